/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UNIT_WORKER_JOB_MESSAGE_H
#define GPUQ_UNIT_WORKER_JOB_MESSAGE_H

/*
 * A job as the supervisor writes it, of its parts in one place each.
 */

#include <string.h>

#include "worker/protocol.h"

/** job_message_bytes() - that job_message_write() writes. */
static inline size_t job_message_bytes(const WorkerJob *job) {
        return sizeof(*job) + job->n_buffers * sizeof(WorkerBuffer) +
               (job->n_kernels + job->n_after) * sizeof(uint64_t) +
               WORKER_ALIGN(job->n_names + job->n_operations);
}

static inline uint8_t *job_message_put(uint8_t *p, const void *data, size_t n) {
        if (n)
                memcpy(p, data, n);
        return p + n;
}

/** job_message_write() - with its length. Return: behind it. */
static inline uint8_t *job_message_write(uint8_t *p, WorkerJob job, const WorkerJobParts *parts) {
        uint8_t *end = p + job_message_bytes(&job);

        job.n_bytes = (uint32_t)(end - p);
        p = job_message_put(p, &job, sizeof(job));
        p = job_message_put(p, parts->buffers, job.n_buffers * sizeof(WorkerBuffer));
        p = job_message_put(p, parts->modules, job.n_kernels * sizeof(uint64_t));
        p = job_message_put(p, parts->after, job.n_after * sizeof(uint64_t));
        p = job_message_put(p, parts->names, job.n_names);
        p = job_message_put(p, parts->operations, job.n_operations);
        memset(p, 0, (size_t)(end - p));
        return end;
}

#endif
