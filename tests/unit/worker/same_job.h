/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_SAME_JOB_H
#define GPUQ_TEST_SAME_JOB_H

/*
 * A job as the worker keeps it, against its message. Whatever it names is there, as far as there is room. For one job
 * at a time.
 */

#include <stdlib.h>
#include <string.h>

#include "worker/job.h"

#define SAME_JOB_MAX 64u

typedef struct SameJob {
        Arena arenas[SAME_JOB_MAX];
        size_t n_arenas;
        Module modules[SAME_JOB_MAX];
        size_t n_modules;
        Blocks blocks;
} SameJob;

static inline Arena *same_job_arena(void *userdata, uint64_t id) {
        SameJob *same = userdata;
        size_t i = 0;

        while (i < same->n_arenas && same->arenas[i].id != id)
                ++i;
        if (i == SAME_JOB_MAX)
                return NULL;
        if (i == same->n_arenas)
                same->arenas[same->n_arenas++] = (Arena){.id = id, .size = UINT64_MAX};
        return &same->arenas[i];
}

static inline Module *same_job_module(void *userdata, uint64_t id) {
        SameJob *same = userdata;
        size_t i = 0;

        while (i < same->n_modules && same->modules[i].id != id)
                ++i;
        if (i == SAME_JOB_MAX)
                return NULL;
        if (i == same->n_modules)
                same->modules[same->n_modules++] = (Module){.id = id};
        return &same->modules[i];
}

static inline bool same_job_is_unused(const SameJob *same) {
        for (size_t i = 0; i < same->n_arenas; ++i)
                if (same->arenas[i].n_uses > 0)
                        return false;
        for (size_t i = 0; i < same->n_modules; ++i)
                if (same->modules[i].n_uses > 0)
                        return false;
        return true;
}

static inline bool same_job_buffers(const Job *job, const WorkerJob *message,
                                    const WorkerJobParts *parts) {
        if (job->n_buffers != message->n_buffers)
                return false;
        for (size_t i = 0; i < job->n_buffers; ++i) {
                const StagingBuffer *ours = &job->buffers[i];
                const WorkerBuffer *theirs = &parts->buffers[i];

                if (!ours->arena)
                        continue;
                if (job_arena(ours->arena)->id != theirs->arena || ours->offset != theirs->offset ||
                    ours->length != theirs->length ||
                    ours->whole != (theirs->direction == GPUQ__V1__DIRECTION__OUT_WHOLE))
                        return false;
                if (theirs->direction > GPUQ__V1__DIRECTION__OUT_WHOLE)
                        return failure_is_set(&job->failure);
                if (!ours->whole && ours->direction != theirs->direction)
                        return false;
        }
        return true;
}

static inline bool same_job_kernels(const Job *job, const WorkerJob *message,
                                    const WorkerJobParts *parts) {
        const char *name = parts->names;

        if (job->n_kernels != message->n_kernels)
                return false;
        for (size_t i = 0; i < job->n_kernels; ++i, name += strlen(name) + 1) {
                const JobKernel *ours = &job->kernels[i];

                if ((ours->module && ours->module->id != parts->modules[i]) ||
                    strcmp(ours->name, name) != 0)
                        return false;
        }
        return true;
}

static inline bool same_job_is(const Job *job, const WorkerJob *message,
                               const WorkerJobParts *parts) {
        return job->id == message->id && job->priority == message->priority &&
               job->timed == (message->timed != 0) && job->alone == (message->alone != 0) &&
               job->timeout_ms == message->timeout_ms && same_job_buffers(job, message, parts) &&
               same_job_kernels(job, message, parts) &&
               (!job->word.arena || (job->word.arena->id == message->word_arena &&
                                     job->word.offset == message->word_offset)) &&
               job->order.n_after == message->n_after &&
               (job->order.n_after == 0 ||
                memcmp(job->order.after, parts->after,
                       job->order.n_after * sizeof(*job->order.after)) == 0) &&
               job->n_operations == message->n_operations &&
               (job->n_operations == 0 ||
                memcmp(job->operations, parts->operations, job->n_operations) == 0);
}

/** same_job_new() - as job_new(). Return: NULL: these bytes are refused. */
static inline Job *same_job_new(SameJob *same, const uint8_t *data, size_t n_data,
                                const WorkerJob **ret_message, WorkerJobParts *ret_parts) {
        const JobTables tables = {same_job_arena, same_job_module, same};
        Job *job = NULL;

        *same = (SameJob){0};
        blocks_init(&same->blocks);
        *ret_message = protocol_job(data, n_data, ret_parts);
        if (*ret_message && job_new(*ret_message, ret_parts, &tables, &same->blocks, &job) != 0)
                abort();
        return job;
}

/** same_job_end() - @job: NULL: none was made. Return: whether nothing is in use now. */
static inline bool same_job_end(SameJob *same, Job *job) {
        if (job) {
                job_let_go(job);
                word_end(&job->word, job->id, false);
                job_free(job, &same->blocks);
        }
        blocks_clear(&same->blocks);
        return same_job_is_unused(same);
}

#endif
