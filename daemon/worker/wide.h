/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_WIDE_H
#define GPUQ_WORKER_WIDE_H

/*
 * Wide
 *
 * A built-in reduction K works in one block. Its wide form, the internal kernel WIDE_PREFIX K, works in
 * all blocks and has the same result, bit by bit (kernels/reduce.cuh). The worker launches it in place of
 * K if there are numbers for several parts, so users need not know of it.
 *
 * The wide form takes K's arguments, and WIDE_BYTES of memory that were zeros once. Launches that follow
 * each other may share them, so each stream has its own (stream_wide()). With a null pointer one block
 * does all the work.
 */

#include "util/symbol.h"
#include "worker/geometry.h"

#define WIDE_PREFIX    SYMBOL_INTERNAL "wide_"
#define WIDE_PARTS_MAX 2048u
#define WIDE_PART      32768u /* numbers */
#define WIDE_ONE_PART  65536u /* so many numbers are one part */
#define WIDE_THREADS   512u   /* of a block */
#define WIDE_TILE_THREADS                                                                          \
        256u /* of a block of scan or sort: PARTS_THREADS of client/lib/jobs/parts.h */
#define WIDE_BYTES (16u + WIDE_PARTS_MAX * 16u) /* a counter, and a value per part */

/** wide_parts() - how many parts @n numbers have. Pure. */
unsigned wide_parts(uint64_t n);
/** wide_find() - give the built-in kernels of @image their wide forms; what does not fit is left out. */
void wide_find(Image *image);
/**
 * wide_apply() - make a checked launch that of the wide form, if there is one and the launch gains by it
 * @memory: where the address of the memory will be; the launch has room for one more value
 *
 * Return: whether it is wide now.
 */
bool wide_apply(ProgramLaunch *launch, const Context *context, CUdeviceptr *memory);
/**
 * wide_apply_host() - make a checked launch of scan's and sort's kernels faster with the CPU driver
 *
 * Their result is the same for every block (kernels/lanes.cuh). Blocks of as many threads as libgpuq asks for, which
 * are best on a GPU, become blocks of one thread. Others stay.
 */
void wide_apply_host(ProgramLaunch *launch, const Context *context);

#endif
