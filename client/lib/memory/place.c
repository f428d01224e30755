/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place
 *
 * To create or open an arena takes a round trip, during which the lock is free. A second mutex
 * prevents two threads from creating two arenas where one is enough, and from opening an arena
 * that the other thread is about to close with its last buffer. It is always taken before the
 * client's lock. Device memory has a mutex of its own, because it may wait for a device.
 */

#include "place.h"

#include <string.h>

#include "error.h"
#include "spare.h"
#include "util/human.h"

#define PLACE_SHARED_MIN                                                                           \
        (UINT64_C(1) << 20) /* the first shared host arena; from here on a buffer has its own */
#define PLACE_SHARED_MAX    (UINT64_C(64) << 20) /* no shared one is larger */
#define PLACE_DEVICE_SHARED (UINT64_C(2) << 20)  /* what a device allocates at least */
#define PLACE_PAGE          4096u
#define PLACE_TEXTURE_ALIGN 512u /* where a GPU takes a texture */

/* At a limit, spare arenas are released first, because they count against it. Return: whether
 * to try again. */
static bool place_makes_room(gpuq_client *client, int r) {
        return (r == GPUQ_E_QUOTA || r == GPUQ_E_MEMORY) && spare_release(client);
}

static int place_create(gpuq_client *client, uint64_t size, int device, Arena **ret_arena) {
        int r;

        r = arena_create(client, size, device, ret_arena);
        if (device == ARENA_HOST && place_makes_room(client, r))
                r = arena_create(client, size, device, ret_arena);
        return r;
}

int place_image(gpuq_client *client, uint64_t size, uint64_t *ret_id, int *ret_fd) {
        int r;

        r = arena_create_image(client, size, ret_id, ret_fd);
        if (place_makes_room(client, r))
                r = arena_create_image(client, size, ret_id, ret_fd);
        return r;
}

/* With the second mutex, so that the lock is taken again after it. */
static void place_lock_both(gpuq_client *client, pthread_mutex_t *second) {
        pthread_mutex_unlock(&client->lock);
        pthread_mutex_lock(second);
        pthread_mutex_lock(&client->lock);
}

int place_open(gpuq_client *client, uint64_t id, Arena **ret_arena) {
        Arena *arena;
        int r;

        place_lock_both(client, &client->memory->lock);
        r = arena_open(client, id, &arena);
        if (r == 0) {
                arena->n_buffers++;
                *ret_arena = arena;
        }
        pthread_mutex_unlock(&client->memory->lock);
        return r;
}

/* ---- dividing ------------------------------------------------------------------- */

static bool place_suits(const Arena *arena, int device) {
        if (!arena->ours || !arena->shared)
                return false;

        return device == ARENA_ANY ? arena->device >= 0 : arena->device == device;
}

/* Return: 0, SPACE_E_FULL, or -ENOMEM. */
static int place_take_shared(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
                             Extent **ret_extent) {
        Arena *arena;
        int r;

        TAILQ_FOREACH (arena, &client->memory->arenas, arenas) {
                if (!place_suits(arena, device))
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

/* Return: as place_take_shared(). */
static int place_take_spare(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
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

        TAILQ_INSERT_TAIL(&client->memory->arenas, arena, arenas);
        *ret_arena = arena;
        return 0;
}

/* Use an existing arena, which needs no message. Return: 0, SPACE_E_FULL, or -ENOMEM. */
static int place_take_present(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
                              Extent **ret_extent) {
        if (size < PLACE_SHARED_MIN)
                return place_take_shared(client, size, device, ret_arena, ret_extent);

        return place_take_spare(client, size, device, ret_arena, ret_extent);
}

/* Each further arena is twice as large: few arenas for many buffers, little memory for few
 * buffers. */
static uint64_t place_next_shared_size(gpuq_client *client, int device) {
        uint64_t size = PLACE_SHARED_MIN;
        Arena *arena;

        if (device != ARENA_HOST)
                return PLACE_DEVICE_SHARED;

        TAILQ_FOREACH (arena, &client->memory->arenas, arenas)
                if (place_suits(arena, device) && size < PLACE_SHARED_MAX)
                        size *= 2;

        return size;
}

static int place_make(gpuq_client *client, uint64_t size, int device, Arena **ret_arena) {
        bool shared = size < PLACE_SHARED_MIN;
        Arena *arena;
        int r;

        if (size > INT64_MAX - PLACE_PAGE)
                return error_set(GPUQ_E_INVALID, "a buffer of %s is larger than any memory",
                                 human_bytes(size).text);

        if (shared)
                size = MAX(size, place_next_shared_size(client, device));
        else
                size = (size + PLACE_PAGE - 1) / PLACE_PAGE * PLACE_PAGE;

        r = place_create(client, size, device, &arena);
        if (r < 0)
                return r;

        arena->shared = shared;
        *ret_arena = arena;
        return 0;
}

static int place_take_locked(gpuq_client *client, uint64_t size, int device, Arena **ret_arena,
                             Extent **ret_extent) {
        int r;

        r = place_take_present(client, size, device, ret_arena, ret_extent);
        if (r == SPACE_E_FULL) {
                r = place_make(client, size, device, ret_arena);
                if (r < 0)
                        return r;

                r = space_take(&(*ret_arena)->space, size, ret_extent);
        }

        /* A new arena that stays empty is used by the next buffer, or freed with the client. */
        return r == 0 ? 0 : error_memory();
}

/*
 * Host memory that was in use before is cleared, without the lock because it may be large. Device
 * memory is never reused, see place_give().
 */
static void place_clear(gpuq_client *client, Arena *arena, const Extent *extent) {
        if (!arena->data || extent->dirty == 0)
                return;

        pthread_mutex_unlock(&client->lock);
        memset(arena->data + extent->offset, 0, extent->dirty);
        pthread_mutex_lock(&client->lock);
}

/* All sizes in an arena of a device are such multiples, so all offsets are. */
static uint64_t place_round(uint64_t size, int device) {
        if (device == ARENA_HOST || size > UINT64_MAX - PLACE_TEXTURE_ALIGN)
                return size;
        return (size + PLACE_TEXTURE_ALIGN - 1) / PLACE_TEXTURE_ALIGN * PLACE_TEXTURE_ALIGN;
}

int place_take(gpuq_client *client, uint64_t size, int device, bool clear, Arena **ret_arena,
               Extent **ret_extent) {
        pthread_mutex_t *second =
                device == ARENA_HOST ? &client->memory->lock : &client->memory->device_lock;
        bool alone = false;
        int r;

        size = place_round(size, device);
        r = place_take_present(client, size, device, ret_arena, ret_extent); /* the usual way */
        if (r == SPACE_E_FULL) {
                place_lock_both(client, second);
                alone = true;
                r = place_take_locked(client, size, device, ret_arena, ret_extent);
        } else if (r < 0) {
                r = error_memory();
        }

        if (r == 0) {
                (*ret_arena)->n_buffers++;
                if (clear)
                        place_clear(client, *ret_arena, *ret_extent);
        }
        if (alone)
                pthread_mutex_unlock(second);
        return r;
}

/* ---- giving back ------------------------------------------------------------------ */

/*
 * One shared arena is kept for later buffers, the largest. Otherwise a program that repeatedly
 * needs several megabytes in small buffers would create a new arena each time.
 *
 * Return: which of the arenas without buffers to close, or NULL.
 */
static Arena *place_to_go(gpuq_client *client, Arena *arena) {
        Arena *other;

        if (!arena->shared || arena->device != ARENA_HOST || arena->space.n_retired > 0)
                return arena;

        TAILQ_FOREACH (other, &client->memory->arenas, arenas)
                if (other != arena && place_suits(other, ARENA_HOST) && other->n_buffers == 0)
                        return other->size < arena->size ? other : arena;

        return NULL;
}

/* Memory whose name another process may know is not reused. */
static bool place_may_be_spare(const gpuq_client *client, const Arena *arena) {
        return arena->ours && !arena->shared && arena->data && arena->space.n_retired == 0 &&
               client->error == 0;
}

void place_give(gpuq_client *client, Arena *arena, Extent *extent, bool named) {
        /* Device memory could only be cleared by a job, so it is not reused. */
        if (extent && (named || !arena->data))
                space_retire(&arena->space, extent);
        else if (extent)
                space_give(&arena->space, extent);

        if (--arena->n_buffers > 0)
                return;
        arena = place_to_go(client, arena);
        if (!arena)
                return;

        TAILQ_REMOVE(&client->memory->arenas, arena, arenas);
        if (!place_may_be_spare(client, arena) || !spare_put(client, arena))
                arena_end(client, arena);
}

void place_give_forked(Arena *arena) {
        if (--arena->n_buffers == 0)
                arena_unmap(arena);
}
