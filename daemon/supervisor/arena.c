/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/arena.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "supervisor/device.h"
#include "supervisor/keeper_link.h"
#include "supervisor/list.h"
#include "supervisor/slot.h"
#include "supervisor/supervisor.h"
#include "supervisor/worker.h"

static int arena_make_memfd(Arena *arena) {
        int seals = F_SEAL_SHRINK | F_SEAL_GROW;
        _cleanup_(closep) int fd = -1;
        char name[48];

        snprintf(name, sizeof(name), "gpuq-arena-%llu", (unsigned long long)arena->id);
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)arena->size) < 0)
                return -errno;
        /* The client of an image adds F_SEAL_WRITE itself, once it has filled it. */
        if (arena->place == ARENA_HOST)
                seals |= F_SEAL_SEAL;
        if (fcntl(fd, F_ADD_SEALS, seals) < 0)
                return -errno;

        arena_adopt_fd(arena, TAKE_FD(fd));
        return 0;
}

int arena_new(Supervisor *supervisor, User *user, ArenaPlace place, uint64_t size,
              Arena **ret_arena) {
        _cleanup_(arena_unrefp) Arena *arena = NULL;
        int r;

        arena = calloc(1, sizeof(*arena));
        if (!arena)
                return -ENOMEM;

        arena->supervisor = supervisor;
        arena->user = user;
        arena->place = place;
        arena->size = size;
        arena->fd = -1;
        arena->n_refs = 1;
        LIST_INIT(&arena->mappings);
        arena->id = ++supervisor->last_arena;
        HASH_ADD(hh, supervisor->arenas, id, sizeof(arena->id), arena);
        user->n_arenas++;

        r = user_charge(user, &arena->charge,
                        place == ARENA_DEVICE ? USER_DEVICE_BYTES : USER_ARENA_BYTES, size);
        if (r == USER_E_QUOTA)
                return ARENA_E_QUOTA;
        if (place != ARENA_DEVICE) {
                r = arena_make_memfd(arena);
                if (r < 0)
                        return r;
        }

        *ret_arena = TAKE_PTR(arena);
        return 0;
}

void arena_adopt_fd(Arena *arena, int fd) {
        char key[KEEPER_KEY_MAX];

        assert(arena->fd < 0);
        arena->fd = fd;
        snprintf(key, sizeof(key), "arena-%llu", (unsigned long long)arena->id);
        keeper_link_keep(arena->supervisor->keeper, key, fd);
}

static void arena_forget_fd(Arena *arena) {
        char key[KEEPER_KEY_MAX];

        if (arena->fd < 0)
                return;
        snprintf(key, sizeof(key), "arena-%llu", (unsigned long long)arena->id);
        keeper_link_drop(arena->supervisor->keeper, key);
        close(arena->fd);
}

static void arena_free(Arena *arena) {
        Mapping *mapping;

        while ((mapping = LIST_FIRST(&arena->mappings)))
                worker_drop_mapping(mapping);
        assert(!arena->slot && !arena->maker);
        if (arena->device && arena->fd >= 0)
                arena->device->arena_bytes -= arena->size;
        HASH_DEL(arena->supervisor->arenas, arena);
        arena->user->n_arenas--;
        arena_forget_fd(arena);
        user_uncharge(&arena->charge);
        free(arena);
}

Arena *arena_ref(Arena *arena) {
        arena->n_refs++;
        return arena;
}

Arena *arena_unref(Arena *arena) {
        if (arena && --arena->n_refs == 0)
                arena_free(arena);
        return NULL;
}

bool arena_is_sealed_image(const Arena *arena) {
        const int wanted = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
        int seals;

        if (arena->place != ARENA_IMAGE)
                return false;
        seals = fcntl(arena->fd, F_GET_SEALS);
        return seals >= 0 && (seals & wanted) == wanted;
}
