/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_GANG_H
#define GPUQ_CPU_GANG_H

/*
 * Gang
 *
 * Blocks that run at the same time because they wait for each other: a
 * cooperative grid, or the clusters of a grid one after the other. Each block has
 * a host thread.
 */

#include <stdbool.h>

#include "driver/cpu/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Gang Gang;

/**
 * gang_new() - @n blocks at once, in clusters of @cluster
 * @grid: they are the whole grid
 *
 * Return: NULL if there is no memory.
 */
Gang *gang_new(struct CUctx_st *context, uint32_t n, uint32_t cluster, bool grid);
/** gang_free() - NULL is fine. Return: NULL. */
Gang *gang_free(Gang *gang);

/** gang_join() - run the blocks of one rank in this engine; returns when all ranks have called
 * it. */
void gang_join(Gang *gang, uint32_t rank, Engine *engine);
/** gang_meet() - wait for the cluster's or the grid's other blocks, or for the context's fault. */
void gang_meet(Gang *gang, GpuqCpuBarrier scope, uint32_t rank);
/** gang_is_grid() - whether its blocks are a whole grid; NULL is none. */
bool gang_is_grid(const Gang *gang);
/** gang_grid_words() - 8 bytes, zero at first, that all blocks of a grid share; NULL: it is no grid. */
void *gang_grid_words(Gang *gang);
/** gang_engine() - the engine of another block, by its rank in the cluster of block @rank. NULL:
 * there is none. */
const Engine *gang_engine(const Gang *gang, uint32_t rank, uint32_t other);

#ifdef __cplusplus
}
#endif

#endif
