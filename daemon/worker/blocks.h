/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_BLOCKS_H
#define GPUQ_WORKER_BLOCKS_H

/*
 * Blocks
 *
 * Memory for jobs and batches, of which several hundred thousand a second are made and freed: blocks
 * of a few sizes that are reused. Used by the loop's thread only.
 */

#include <stddef.h>

#include "util/pool.h"

#define BLOCKS_SIZES    5u
#define BLOCKS_SMALLEST 512u  /* bytes; the next sizes are twice as large each */
#define BLOCKS_KEPT_MAX 1024u /* of one size */

typedef struct Blocks {
        Pool pools[BLOCKS_SIZES];
} Blocks;

/** blocks_init() - nothing is kept yet. */
void blocks_init(Blocks *blocks);

/**
 * blocks_take() - uncleared memory of @n_bytes, aligned for any type; blocks_give() returns it
 *
 * Return: NULL: out of memory.
 */
void *blocks_take(Blocks *blocks, size_t n_bytes);
/** blocks_give() - NULL is fine. */
void blocks_give(Blocks *blocks, void *memory);
/** blocks_clear() - return all unused blocks to the system. */
void blocks_clear(Blocks *blocks);

#endif
