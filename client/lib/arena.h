/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_ARENA_H
#define GPUQ_LIB_ARENA_H

/*
 * Arena
 *
 * Memory that the daemon made: of this session, or another's of the same user
 * opened by id. Small buffers share arenas, host memory of 1, 2, 4 … 64 MiB and
 * device memory of 2 MiB; a large one has its own. An arena without buffers is
 * closed, but for the largest shared host arena, which is kept for the next buffers, and for
 * those of large host buffers, which become spares (spare.h).
 */

#include "client.h"
#include "space.h"

#define ARENA_HOST (-1) /* as a device: host memory */
#define ARENA_ANY  (-2) /* as a device: some device, the daemon chooses */

typedef struct Arena {
        uint64_t id;
        TAILQ_ENTRY(Arena) arenas; /* client->arenas or client->spares */
        uint64_t size;
        int device;    /* index, or ARENA_HOST */
        uint8_t *data; /* NULL: device memory */
        size_t n_buffers;
        int64_t spare_since_us; /* of a spare */
        Space space;            /* of an arena that is ours: what of it is taken */
        bool ours;
        bool shared; /* by small buffers */
} Arena;

/**
 * arena_take() - an extent for a buffer of @size bytes, in an arena that is there or a new one
 * @device: index, ARENA_HOST or ARENA_ANY
 * @clear:  host memory is zeroed; else it may hold what a buffer of this client held that was freed
 *
 * Gives up the lock to ask the daemon. Give back both with arena_give().
 *
 * Return: 0, or a GPUQ_E_.
 */
int arena_take(gpuq_client *client, uint64_t size, int device, bool clear, Arena **ret_arena,
               Extent **ret_extent);
/** arena_open() - another session's arena, or one that is open already; n_buffers counts the caller's. */
int arena_open(gpuq_client *client, uint64_t id, Arena **ret_arena);
/**
 * arena_give() - a buffer is no more
 * @extent: what it had of an arena of ours; NULL: it was opened by name
 * @named:  another process may know it by name, so nobody else may have its place
 */
void arena_give(gpuq_client *client, Arena *arena, Extent *extent, bool named);
/** arena_give_forked() - the same in a child, where lists and lock are not to be touched: unmaps only. */
void arena_give_forked(Arena *arena);
/** arena_end() - close and free one that is in no list. */
void arena_end(gpuq_client *client, Arena *arena);
/** arenas_free() - of a client that nobody holds any more. */
void arenas_free(gpuq_client *client);

/** arena_create_image() - a memfd for a module's image. The descriptor is the caller's. */
int arena_create_image(gpuq_client *client, uint64_t size, uint64_t *ret_id, int *ret_fd);
/** arena_close() - tell the daemon; nothing is heard back. */
void arena_close(gpuq_client *client, uint64_t id);

#endif
