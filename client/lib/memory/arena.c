/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena
 */

#include "arena.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "call.h"
#include "error.h"

static int arena_map(Arena *arena, int fd) {
        struct stat st;
        void *data;

        if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size < arena->size)
                return error_set(GPUQ_E_PROTOCOL,
                                 "protocol error: gpuqd sent arena %llu without its memory, or "
                                 "with less than it asked for",
                                 (unsigned long long)arena->id);

        data = mmap(NULL, arena->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED)
                return error_system("cannot map an arena");

        arena->data = data;
        return 0;
}

void arena_unmap(Arena *arena) {
        if (arena->data)
                munmap(arena->data, arena->size);
        arena->data = NULL;
}

static void arena_free(Arena *arena) {
        space_finish(&arena->space);
        arena_unmap(arena);
        free(arena);
}

static int arena_new(gpuq_client *client, const Gpuq__V1__ArenaReady *ready, int fd, bool ours,
                     Arena **ret_arena) {
        Arena *arena;
        int r;

        arena = calloc(1, sizeof(*arena));
        if (!arena)
                return error_memory();

        arena->id = ready->arena;
        arena->size = ready->size;
        arena->ours = ours;
        arena->address = ready->address;
        arena->device = ready->place == GPUQ__V1__PLACE__DEVICE ? (int)ready->device : ARENA_HOST;

        r = space_init(&arena->space, ours ? arena->size : 0);
        if (r < 0) {
                arena_free(arena);
                return error_memory();
        }

        if (arena->device == ARENA_HOST) {
                r = arena_map(arena, fd);
                if (r < 0) {
                        arena_free(arena);
                        return r;
                }
        }

        TAILQ_INSERT_TAIL(&client->memory->arenas, arena, arenas);
        *ret_arena = arena;
        return 0;
}

int arena_create(gpuq_client *client, uint64_t size, int device, Arena **ret_arena) {
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        _cleanup_(closep) int fd = -1;
        int r;

        create.place = device == ARENA_HOST ? GPUQ__V1__PLACE__HOST : GPUQ__V1__PLACE__DEVICE;
        create.size = size;
        create.device = device >= 0 ? (uint32_t)device + 1 : 0;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_ARENA_CREATE, &create,
                     GPUQ__V1__REPLY__BODY_ARENA, CLIENT_FOREVER, &reply, &fd);
        if (r < 0)
                return r;

        if (reply->arena->place != create.place || reply->arena->size < size) {
                client_fail(client, GPUQ_E_PROTOCOL,
                            "protocol error: gpuqd created another arena than the requested one");
                return client_error(client);
        }

        r = arena_new(client, reply->arena, fd, true, ret_arena);
        if (r < 0)
                arena_close(client, reply->arena->arena);
        return r;
}

static Arena *arena_find(gpuq_client *client, uint64_t id) {
        Arena *arena;

        TAILQ_FOREACH (arena, &client->memory->arenas, arenas)
                if (arena->id == id)
                        return arena;

        return NULL;
}

int arena_open(gpuq_client *client, uint64_t id, Arena **ret_arena) {
        Gpuq__V1__ArenaOpen open = GPUQ__V1__ARENA_OPEN__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        _cleanup_(closep) int fd = -1;
        Arena *arena;
        int r;

        arena = arena_find(client, id);
        if (arena) {
                *ret_arena = arena;
                return 0;
        }

        open.arena = id;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_ARENA_OPEN, &open, GPUQ__V1__REPLY__BODY_ARENA,
                     CLIENT_FOREVER, &reply, &fd);
        if (r < 0)
                return r;

        if (reply->arena->arena != id || reply->arena->place == GPUQ__V1__PLACE__IMAGE) {
                client_fail(client, GPUQ_E_PROTOCOL,
                            "protocol error: gpuqd opened another arena than the requested one");
                return client_error(client);
        }

        r = arena_new(client, reply->arena, fd, false, ret_arena);
        if (r < 0)
                arena_close(client, id);
        return r;
}

int arena_create_image(gpuq_client *client, uint64_t size, uint64_t *ret_id, int *ret_fd) {
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        _cleanup_(closep) int fd = -1;
        int r;

        create.place = GPUQ__V1__PLACE__IMAGE;
        create.size = size;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_ARENA_CREATE, &create,
                     GPUQ__V1__REPLY__BODY_ARENA, CLIENT_FOREVER, &reply, &fd);
        if (r < 0)
                return r;

        if (fd < 0) {
                client_fail(client, GPUQ_E_PROTOCOL,
                            "protocol error: gpuqd sent no descriptor for a module's image");
                return client_error(client);
        }

        *ret_id = reply->arena->arena;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

void arena_close(gpuq_client *client, uint64_t id) {
        Gpuq__V1__ArenaClose close = GPUQ__V1__ARENA_CLOSE__INIT;

        if (client->error != 0)
                return;

        close.arena = id;
        if (client_send(client, GPUQ__V1__REQUEST__BODY_ARENA_CLOSE, &close, NULL) == 0)
                client_flush(client);
}

void arena_end(gpuq_client *client, Arena *arena) {
        arena_close(client, arena->id);
        arena_free(arena);
}

void arenas_free(gpuq_client *client) {
        Arena *arena;

        while ((arena = TAILQ_FIRST(&client->memory->arenas))) {
                TAILQ_REMOVE(&client->memory->arenas, arena, arenas);
                arena_free(arena);
        }
}
