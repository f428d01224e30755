/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_MEMORY_PLACE_H
#define GPUQ_MEMORY_PLACE_H

/*
 * Place
 *
 * Where a buffer goes. Small buffers share arenas, host memory of 1, 2, 4 … 64 MiB and
 * device memory of 2 MiB; a large one has its own. An arena without buffers is
 * closed, but for the largest shared host arena, which is kept for the next buffers, and for
 * those of large host buffers, which become spares (spare.h).
 */

#include "arena.h"

/**
 * place_take() - an extent for a buffer of @size bytes, in an arena that is there or a new one
 * @device: index, ARENA_HOST or ARENA_ANY
 * @clear:  zero host memory; otherwise it may hold the contents of a freed buffer of this client
 *
 * Gives up the lock to ask the daemon. Give back both with place_give().
 *
 * Return: 0, or a GPUQ_E_.
 */
int place_take(gpuq_client *client, uint64_t size, int device, bool clear, Arena **ret_arena,
               Extent **ret_extent);
/** place_open() - arena_open(), and count one buffer in it. */
int place_open(gpuq_client *client, uint64_t id, Arena **ret_arena);
/**
 * place_give() - a buffer was freed
 *
 * @extent: its part of an arena of this session; NULL: it was opened by name
 * @named:  another process may know it by name, so its memory is not reused
 */
void place_give(gpuq_client *client, Arena *arena, Extent *extent, bool named);
/** place_give_forked() - the same in a child, which must not touch lists and lock: only unmap. */
void place_give_forked(Arena *arena);

/** place_image() - arena_create_image(); releases spare arenas if a limit requires it. */
int place_image(gpuq_client *client, uint64_t size, uint64_t *ret_id, int *ret_fd);

#endif
