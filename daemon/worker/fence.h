/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_FENCE_H
#define GPUQ_WORKER_FENCE_H

/*
 * Fences
 *
 * What jobs with kernels of fenced images (compiler/fence.h) may reach: the range from the first to the
 * last of their device arenas, which are all of one person's addresses (util/fixed_range.h), so that other arenas
 * of the same person may be between them, and their scratch. Kernels tell of accesses outside in a word of
 * pinned host memory, one for each job in flight.
 */

#include "worker/job.h"

typedef struct Fences {
        const Context *context;
        uint32_t *words; /* NULL: none was needed yet */
        CUdeviceptr words_device;
        uint32_t *spare; /* indices of free words, a stack */
        size_t n_spare;
} Fences;

/** fences_init() - into zeroed @fences. */
void fences_init(Fences *fences, const Context *context);
/** fence_set() - set the fence of its program, whose addresses are set. Return: 0 or FAILURE_E_SET. */
int fence_set(Fences *fences, Job *job, Failure *failure);
/** fence_end() - its work is done, or was not issued: set its failure if an access was outside. */
void fence_end(Fences *fences, Job *job);

#endif
