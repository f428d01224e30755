/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_FENCE_H
#define GPUQ_COMPILER_FENCE_H

/*
 * Fence
 *
 * A fenced image: each load and store of its kernels through global or generic addresses reaches the
 * memory of its launch alone, which has nothing of another user. Every kernel has one more parameter,
 * behind its own: a Fence. The compiler makes the image, the worker passes the fence with each launch;
 * both know this page.
 *
 * Memory of the launch is two ranges, in which there may be more of the same user's than its job names
 * (worker/fence.h), the module's own variables, and shared, local and parameter memory, of which the
 * hardware lets a thread reach its own only. Outside of it a load gives zeros, a store or an atomic
 * operation does nothing, nor do loads and stores of global memory that follow at once (fence_span.c),
 * and the kernel writes 1 to `flag` when it returns. Nothing faults, as a fault would end the jobs of all
 * users of the context.
 *
 * Most jobs need one range, and comparing with one costs half as much. So most kernels K have an entry
 * for one range, K followed by FENCE_ONE_RANGE, with the same parameters, which ignores the other range.
 *
 * An access that begins in a range may end up to FENCE_MARGIN bytes behind it, so the margin must belong
 * to nobody else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FENCE_NAME      "gpuq_fence" /* begins every name that is added */
#define FENCE_ONE_RANGE "$gpuq_fence"
#define FENCE_RANGES    2u
#define FENCE_MARGIN    256u

typedef struct FenceRange {
        uint64_t begin;
        uint64_t n_bytes; /* 0: nothing */
} FenceRange;

typedef struct Fence {
        FenceRange ranges[FENCE_RANGES];
        uint64_t flag; /* the address of a uint32_t */
} Fence;

/** fence_is_name() - whether a kernel is an entry for one range; a user's kernel of such a name is refused. */
static inline bool fence_is_name(const char *symbol, size_t n_symbol) {
        size_t n_suffix = sizeof(FENCE_ONE_RANGE) - 1;

        return n_symbol > n_suffix &&
               memcmp(symbol + n_symbol - n_suffix, FENCE_ONE_RANGE, n_suffix) == 0;
}

#endif
