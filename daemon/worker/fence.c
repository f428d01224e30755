/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences
 */
#include "worker/fence.h"

#include <string.h>

#define FENCE_WORDS 65536u /* as many as jobs in flight (inflight_jobs), at most */

void fences_init(Fences *fences, const Context *context) {
        *fences = (Fences){.context = context};
}

/* ---- arenas -------------------------------------------------------------------------------- */

/* From the first to the last: between them are only arenas of the same person. */
static FenceRange arenas_range(const Job *job) {
        uint64_t begin = UINT64_MAX, end = 0;

        for (size_t i = 0; i < job->n_buffers; ++i) {
                const Arena *arena = job_arena(job->buffers[i].arena);

                if (!job->buffers[i].in_device)
                        continue;
                begin = MIN(begin, arena->address);
                end = MAX(end, arena->address + arena->n_mapped);
        }
        return end > begin ? (FenceRange){begin, end - begin} : (FenceRange){};
}

static FenceRange scratch_range(const Job *job) {
        if (job->staging.n_bytes <= FENCE_MARGIN)
                return (FenceRange){};
        return (FenceRange){job->scratch, job->staging.n_bytes - FENCE_MARGIN};
}

/* ---- flags ------------------------------------------------------------------------------------ */

static int flags_allocate(Fences *fences, Failure *failure) {
        const Driver *cu = fences->context->cu;
        _cleanup_(freep) uint32_t *spare = calloc(FENCE_WORDS, sizeof(*spare));
        void *memory;
        int r;

        if (!spare)
                return failure_set(failure, GPUQ__V1__CODE__E_MEMORY,
                                   "the worker is out of memory");
        r = result_check(cu,
                         cu->cuMemHostAlloc(&memory, FENCE_WORDS * sizeof(uint32_t),
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                         GPUQ__V1__CODE__E_MEMORY, "cuMemHostAlloc", failure);
        if (r)
                return r;
        memset(memory, 0, FENCE_WORDS * sizeof(uint32_t));
        r = result_check(cu, cu->cuMemHostGetDevicePointer(&fences->words_device, memory, 0),
                         GPUQ__V1__CODE__E_MEMORY, "cuMemHostGetDevicePointer", failure);
        if (r)
                return r;

        fences->words = memory;
        for (uint32_t i = 0; i < FENCE_WORDS; ++i)
                spare[i] = FENCE_WORDS - 1 - i;
        fences->spare = TAKE_PTR(spare);
        fences->n_spare = FENCE_WORDS;
        return 0;
}

static int flag_take(Fences *fences, Job *job, Failure *failure) {
        int r;

        if (job->fence_word)
                return 0;
        r = fences->words ? 0 : flags_allocate(fences, failure);
        if (r)
                return r;
        if (fences->n_spare == 0)
                return failure_set(failure, GPUQ__V1__CODE__E_MEMORY,
                                   "too many jobs are in flight for fence = yes");

        job->fence_word = fences->spare[--fences->n_spare] + 1;
        fences->words[job->fence_word - 1] = 0;
        return 0;
}

/* ---- a job ------------------------------------------------------------------------------------- */

int fence_set(Fences *fences, Job *job, Failure *failure) {
        FenceRange arenas, scratch;
        int r;

        if (!job->program->is_fenced)
                return 0;
        r = flag_take(fences, job, failure);
        if (r)
                return r;

        arenas = arenas_range(job);
        scratch = scratch_range(job);
        job->program->fence = (Fence){
                .flag = fences->words_device + (job->fence_word - 1) * sizeof(uint32_t),
        };
        if (arenas.n_bytes > 0 && scratch.n_bytes > 0) {
                job->program->fence.ranges[0] = arenas;
                job->program->fence.ranges[1] = scratch;
        } else {
                job->program->fence.ranges[0] = arenas.n_bytes > 0 ? arenas : scratch;
        }
        return 0;
}

void fence_end(Fences *fences, Job *job) {
        uint32_t i = job->fence_word - 1;

        if (!job->fence_word)
                return;
        job->fence_word = 0;
        fences->spare[fences->n_spare++] = i;
        if (__atomic_load_n(&fences->words[i], __ATOMIC_ACQUIRE) == 0 ||
            failure_is_set(&job->failure))
                return;
        failure_set(&job->failure, GPUQ__V1__CODE__E_FAULT,
                    "a kernel accessed memory outside of the job's: its loads there gave zeros and "
                    "its stores did nothing, as fence = yes in gpuqd.conf says; on a gpuqd without "
                    "it, gpuq run --check tells where");
}
