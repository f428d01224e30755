/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of jobs as the worker reads it where it stands: each is kept as its message says. What the
 * supervisor writes has names and operations of clients in it.
 */

#include <stdlib.h>

#include "job_message.h"
#include "message.h"
#include "same_job.h"

#define JOB_BYTES_MAX 16384u
#define JOB_PARTS_MAX 8u

static size_t take(Input *input, void *to, size_t n_max) {
        size_t n;
        const uint8_t *from = input_take(input, input_u8(input) % (n_max + 1), &n);

        if (n)
                memcpy(to, from, n);
        return n;
}

static uint8_t *write_job(Input *input, uint8_t *p) {
        WorkerBuffer buffers[JOB_PARTS_MAX];
        uint64_t modules[JOB_PARTS_MAX], after[JOB_PARTS_MAX];
        char names[64];
        uint8_t operations[64];
        const WorkerJobParts parts = {buffers, modules, after, names, operations};
        WorkerJob job = {
                .priority = (int32_t)input_edge(input),
                .id = input_edge(input),
                .word_arena = input_edge(input),
                .word_offset = input_edge(input),
                .timeout_ms = (uint32_t)input_edge(input),
                .n_buffers = input_below(input, JOB_PARTS_MAX + 1),
                .n_kernels = input_below(input, JOB_PARTS_MAX + 1),
                .n_after = input_below(input, JOB_PARTS_MAX + 1),
                .timed = input_below(input, 2),
                .alone = input_below(input, 2),
        };

        for (uint32_t i = 0; i < job.n_buffers; ++i)
                buffers[i] = (WorkerBuffer){input_edge(input), input_edge(input), input_edge(input),
                                            input_below(input, 6)};
        for (uint32_t i = 0; i < job.n_kernels; ++i) {
                modules[i] = input_edge(input);
                job.n_names += (uint32_t)take(input, names + job.n_names, 5);
                names[job.n_names++] = '\0';
        }
        for (uint32_t i = 0; i < job.n_after; ++i)
                after[i] = input_edge(input);
        job.n_operations = (uint32_t)take(input, operations, sizeof(operations));
        return job_message_write(p, job, &parts);
}

static size_t write_jobs(Input *input, uint8_t *data) {
        uint8_t *p = data;
        size_t n;

        for (unsigned n_jobs = 1 + input_below(input, 3); n_jobs; --n_jobs)
                p = write_job(input, p);
        n = (size_t)(p - data);
        return input_below(input, 3) == 0 ? message_spoil(input, data, n, JOB_BYTES_MAX) : n;
}

/* Return: bytes of it; 0: refused. */
static size_t try_job(const uint8_t *data, size_t n_data) {
        static SameJob same;
        WorkerJobParts parts;
        const WorkerJob *message;
        Job *job = same_job_new(&same, data, n_data, &message, &parts);

        if (job && !same_job_is(job, message, &parts))
                abort();
        if (!same_job_end(&same, job))
                abort();
        return job ? message->n_bytes : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        Input input = {data, n_data};
        uint8_t room[JOB_BYTES_MAX], *exact;
        bool is_raw = input_below(&input, 8) == 0;
        size_t n = is_raw ? input.n : write_jobs(&input, room), at = 0, n_job = 1;

        exact = malloc(n + !n); /* what is behind it is not to be read */
        memcpy(exact, is_raw ? input.data : room, n);
        while (at < n && n_job) {
                n_job = try_job(exact + at, n - at);
                at += n_job;
        }
        free(exact);
        return 0;
}
