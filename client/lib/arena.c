/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena
 *
 * Making and opening one takes a round trip, during which the lock is free; a
 * second mutex keeps two threads from making two where one would do, and from
 * opening twice what the first one's last buffer then closes. It is always taken
 * before the client's lock.
 */

#include "arena.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "call.h"
#include "error.h"
#include "spare.h"

#define ARENA_SHARED_MIN                                                                           \
        (UINT64_C(1) << 20) /* the first shared host arena; from here on a buffer has its own */
#define ARENA_SHARED_MAX    (UINT64_C(64) << 20) /* no shared one is larger */
#define ARENA_DEVICE_SHARED (UINT64_C(2) << 20)  /* what a device allocates at least */
#define ARENA_PAGE          4096u

/* ---- making and opening ---------------------------------------------------------- */

static int arena_map(Arena *arena, int fd) {
        struct stat st;
        void *data;

        if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size < arena->size)
                return error_set(GPUQ_E_PROTOCOL,
                                 "gpuqd sent no descriptor with arena %llu, or one too small",
                                 (unsigned long long)arena->id);

        data = mmap(NULL, arena->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED)
                return error_system("cannot map an arena");

        arena->data = data;
        return 0;
}

static void arena_free(Arena *arena) {
        space_finish(&arena->space);
        if (arena->data)
                munmap(arena->data, arena->size);
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

        TAILQ_INSERT_TAIL(&client->arenas, arena, arenas);
        *ret_arena = arena;
        return 0;
}

/* Where a limit is met, the spares go first: they count on it too. */
static int arena_request(gpuq_client *client, Gpuq__V1__ArenaCreate *create,
                         Gpuq__V1__Reply **ret_reply, int *ret_fd) {
        int r;

        r = call_run(client, GPUQ__V1__REQUEST__BODY_ARENA_CREATE, create,
                     GPUQ__V1__REPLY__BODY_ARENA, CLIENT_FOREVER, ret_reply, ret_fd);
        if (r != GPUQ_E_QUOTA && r != GPUQ_E_MEMORY)
                return r;
        if (create->place == GPUQ__V1__PLACE__DEVICE || !spare_release(client))
                return r;

        return call_run(client, GPUQ__V1__REQUEST__BODY_ARENA_CREATE, create,
                        GPUQ__V1__REPLY__BODY_ARENA, CLIENT_FOREVER, ret_reply, ret_fd);
}

static int arena_create(gpuq_client *client, uint64_t size, int device, Arena **ret_arena) {
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        _cleanup_(closep) int fd = -1;
        int r;

        create.place = device == ARENA_HOST ? GPUQ__V1__PLACE__HOST : GPUQ__V1__PLACE__DEVICE;
        create.size = size;
        create.device = device >= 0 ? (uint32_t)device + 1 : 0;
        r = arena_request(client, &create, &reply, &fd);
        if (r < 0)
                return r;

        if (reply->arena->place != create.place || reply->arena->size < size) {
                client_fail(client, GPUQ_E_PROTOCOL, "gpuqd made another arena than was asked for");
                return client_error(client);
        }

        r = arena_new(client, reply->arena, fd, true, ret_arena);
        if (r < 0)
                arena_close(client, reply->arena->arena);
        return r;
}

static Arena *arena_find(gpuq_client *client, uint64_t id) {
        Arena *arena;

        TAILQ_FOREACH (arena, &client->arenas, arenas)
                if (arena->id == id)
                        return arena;

        return NULL;
}

/* With arena_lock, so that the lock is taken again after it. */
static void arena_lock_both(gpuq_client *client) {
        pthread_mutex_unlock(&client->lock);
        pthread_mutex_lock(&client->arena_lock);
        pthread_mutex_lock(&client->lock);
}

static int arena_open_locked(gpuq_client *client, uint64_t id, Arena **ret_arena) {
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
                            "gpuqd opened another arena than was asked for");
                return client_error(client);
        }

        r = arena_new(client, reply->arena, fd, false, ret_arena);
        if (r < 0)
                arena_close(client, id);
        return r;
}

int arena_open(gpuq_client *client, uint64_t id, Arena **ret_arena) {
        Arena *arena;
        int r;

        arena_lock_both(client);
        r = arena_open_locked(client, id, &arena);
        if (r == 0) {
                arena->n_buffers++;
                *ret_arena = arena;
        }
        pthread_mutex_unlock(&client->arena_lock);
        return r;
}

int arena_create_image(gpuq_client *client, uint64_t size, uint64_t *ret_id, int *ret_fd) {
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        _cleanup_(closep) int fd = -1;
        int r;

        create.place = GPUQ__V1__PLACE__IMAGE;
        create.size = size;
        r = arena_request(client, &create, &reply, &fd);
        if (r < 0)
                return r;

        if (fd < 0) {
                client_fail(client, GPUQ_E_PROTOCOL, "gpuqd sent no descriptor for an image");
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

/* ---- dividing ------------------------------------------------------------------- */

static bool arena_suits(const Arena *arena, int device) {
        if (!arena->ours || !arena->shared)
                return false;

        return device == ARENA_ANY ? arena->device >= 0 : arena->device == device;
}

/* Return: 0, SPACE_E_FULL, or -ENOMEM. */
static int arena_take_shared(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
                             Extent **ret_extent) {
        Arena *arena;
        int r;

        TAILQ_FOREACH (arena, &client->arenas, arenas) {
                if (!arena_suits(arena, device))
                        continue;

                r = space_take(&arena->space, size, ret_extent);
                if (r == SPACE_E_FULL)
                        continue;
                if (r == 0)
                        *ret_arena = arena;
                return r;
        }

        return SPACE_E_FULL;
}

/* Return: as arena_take_shared(). */
static int arena_take_spare(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
                            Extent **ret_extent) {
        Arena *arena;
        int r;

        arena = device == ARENA_HOST ? spare_take(client, size) : NULL;
        if (!arena)
                return SPACE_E_FULL;

        r = space_take(&arena->space, size, ret_extent);
        if (r != 0) {
                arena_end(client, arena);
                return r;
        }

        TAILQ_INSERT_TAIL(&client->arenas, arena, arenas);
        *ret_arena = arena;
        return 0;
}

/* In an arena that is there: no message is needed. Return: 0, SPACE_E_FULL, or -ENOMEM. */
static int arena_take_present(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
                              Extent **ret_extent) {
        if (size < ARENA_SHARED_MIN)
                return arena_take_shared(client, size, device, ret_arena, ret_extent);

        return arena_take_spare(client, size, device, ret_arena, ret_extent);
}

/* Each further one is twice as large: few arenas for many buffers, little memory for few. */
static uint64_t arena_next_shared_size(gpuq_client *client, int device) {
        uint64_t size = ARENA_SHARED_MIN;
        Arena *arena;

        if (device != ARENA_HOST)
                return ARENA_DEVICE_SHARED;

        TAILQ_FOREACH (arena, &client->arenas, arenas)
                if (arena_suits(arena, device) && size < ARENA_SHARED_MAX)
                        size *= 2;

        return size;
}

static int arena_make(gpuq_client *client, uint64_t size, int device, Arena **ret_arena) {
        bool shared = size < ARENA_SHARED_MIN;
        Arena *arena;
        int r;

        if (size > INT64_MAX - ARENA_PAGE)
                return error_set(GPUQ_E_INVALID, "no memory is that large: %llu bytes",
                                 (unsigned long long)size);

        if (shared)
                size = MAX(size, arena_next_shared_size(client, device));
        else
                size = (size + ARENA_PAGE - 1) / ARENA_PAGE * ARENA_PAGE;

        r = arena_create(client, size, device, &arena);
        if (r < 0)
                return r;

        arena->shared = shared;
        *ret_arena = arena;
        return 0;
}

static int arena_take_locked(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
                             Extent **ret_extent) {
        int r;

        r = arena_take_present(client, size, device, ret_arena, ret_extent);
        if (r == SPACE_E_FULL) {
                r = arena_make(client, size, device, ret_arena);
                if (r < 0)
                        return r;

                r = space_take(&(*ret_arena)->space, size, ret_extent);
        }

        /* A new one that stays empty serves the next buffer, or goes with the client. */
        return r == 0 ? 0 : error_memory();
}

/*
 * Memory that somebody had is cleared, without the lock: it may be much. Of
 * device memory only what is new is ever handed out, see arena_give().
 */
static void arena_clear(gpuq_client *client, Arena *arena, const Extent *extent) {
        if (!arena->data || extent->dirty == 0)
                return;

        pthread_mutex_unlock(&client->lock);
        memset(arena->data + extent->offset, 0, extent->dirty);
        pthread_mutex_lock(&client->lock);
}

int arena_take(gpuq_client *client, uint64_t size, int device, bool clear, Arena **ret_arena,
               Extent **ret_extent) {
        bool alone = false;
        int r;

        r = arena_take_present(client, size, device, ret_arena, ret_extent); /* the usual way */
        if (r == SPACE_E_FULL) {
                arena_lock_both(client);
                alone = true;
                r = arena_take_locked(client, size, device, ret_arena, ret_extent);
        } else if (r < 0) {
                r = error_memory();
        }

        if (r == 0) {
                (*ret_arena)->n_buffers++;
                if (clear)
                        arena_clear(client, *ret_arena, *ret_extent);
        }
        if (alone)
                pthread_mutex_unlock(&client->arena_lock);
        return r;
}

/* ---- giving back ------------------------------------------------------------------ */

/*
 * One shared arena is kept for the next buffers, the largest: a program that needs
 * several megabytes in small buffers again and again would else have a new one each time.
 *
 * Return: which of those without buffers goes, or NULL.
 */
static Arena *arena_to_go(gpuq_client *client, Arena *arena) {
        Arena *other;

        if (!arena->shared || arena->device != ARENA_HOST || arena->space.n_retired > 0)
                return arena;

        TAILQ_FOREACH (other, &client->arenas, arenas)
                if (other != arena && arena_suits(other, ARENA_HOST) && other->n_buffers == 0)
                        return other->size < arena->size ? other : arena;

        return NULL;
}

/* What another process may know by name is nobody else's. */
static bool arena_may_be_spare(const gpuq_client *client, const Arena *arena) {
        return arena->ours && !arena->shared && arena->data && arena->space.n_retired == 0 &&
               client->error == 0;
}

void arena_give(gpuq_client *client, Arena *arena, Extent *extent, bool named) {
        /* Device memory could be cleared for the next one only by a job, so it is not handed out again. */
        if (extent && (named || !arena->data))
                space_retire(&arena->space, extent);
        else if (extent)
                space_give(&arena->space, extent);

        if (--arena->n_buffers > 0)
                return;
        arena = arena_to_go(client, arena);
        if (!arena)
                return;

        TAILQ_REMOVE(&client->arenas, arena, arenas);
        if (!arena_may_be_spare(client, arena) || !spare_put(client, arena))
                arena_end(client, arena);
}

void arena_give_forked(Arena *arena) {
        if (--arena->n_buffers > 0 || !arena->data)
                return;

        munmap(arena->data, arena->size);
        arena->data = NULL;
}

void arena_end(gpuq_client *client, Arena *arena) {
        arena_close(client, arena->id);
        arena_free(arena);
}

void arenas_free(gpuq_client *client) {
        Arena *arena;

        (void)spare_release(client);
        while ((arena = TAILQ_FIRST(&client->arenas))) {
                TAILQ_REMOVE(&client->arenas, arena, arenas);
                arena_free(arena);
        }
}
