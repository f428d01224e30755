/* SPDX-License-Identifier: Apache-2.0 */
#include "test-client.h"

#include <string.h>

#define COUNT 20000u /* of more than one part */

static gpuq_buffer *numbers(gpuq_client *client, int device) {
        gpuq_buffer *buffer = NULL;

        if (device < 0)
                DO(gpuq_buffer_new(client, COUNT * sizeof(uint32_t), &buffer));
        else
                DO(gpuq_buffer_new_device(client, COUNT * sizeof(uint32_t), device, &buffer));
        return buffer;
}

/* Random bits; their prefix sums; the keys and values that they are. */
static int are_right(const uint32_t *random, const uint32_t *sums, const uint32_t *sorted,
                     const uint32_t *values) {
        uint32_t sum = 0;

        for (unsigned i = 0; i < COUNT; i++) {
                sum += random[i];
                if (sums[i] != sum || (i > 0 && sorted[i] < sorted[i - 1]) ||
                    sums[values[i]] - (values[i] ? sums[values[i] - 1] : 0) != sorted[i])
                        return 0;
        }
        return random[0] == 0x6627e8d5; /* Philox 4x32-10 of zeros */
}

typedef struct Operations {
        gpuq_random random;
        gpuq_scan scan;
        gpuq_sort sort;
} Operations;

static Operations operations(gpuq_buffer *random, gpuq_buffer *sums, gpuq_buffer *sorted,
                             gpuq_buffer *index, gpuq_buffer *values) {
        return (Operations){
                .random = {.type = GPUQ_TYPE_U32, .n = COUNT, .to = random},
                .scan = {.type = GPUQ_TYPE_U32, .n = COUNT, .from = random, .to = sums},
                .sort = {.type = GPUQ_TYPE_U32,
                         .n = COUNT,
                         .keys = random,
                         .to = sorted,
                         .value_bytes = 4,
                         .values = index,
                         .values_to = values},
        };
}

static gpuq_job *job_of(gpuq_client *q, const Operations *operations) {
        gpuq_job *job = NULL;

        DO(gpuq_job_new(q, &job));
        CHECK(gpuq_job_random(job, &operations->random) == 1);
        CHECK(gpuq_job_scan(job, &operations->scan) == 2);
        CHECK(gpuq_job_sort(job, &operations->sort) == 12);
        return job;
}

static void check_refusals(gpuq_client *q, const Operations *operations) {
        gpuq_scan scan = operations->scan;
        gpuq_job *job = NULL;

        DO(gpuq_job_new(q, &job));
        CHECK(gpuq_job_scan(NULL, &scan) == GPUQ_E_INVALID);
        CHECK(gpuq_job_scan(job, NULL) == GPUQ_E_INVALID);
        CHECK(gpuq_job_sort(job, NULL) == GPUQ_E_INVALID);
        CHECK(gpuq_job_random(job, NULL) == GPUQ_E_INVALID);
        scan.n++;
        CHECK(gpuq_job_scan(job, &scan) == GPUQ_E_INVALID);
        CHECK(!strcmp(gpuq_error_text(),
                      "scan: 20001 elements of 4 bytes do not fit in from, whose "
                      "buffer has 80000 bytes"));
        CHECK(gpuq_submit(job) == GPUQ_E_INVALID); /* nothing of it was appended */
        gpuq_job_free(job);
}

/* The sums of parts, and keys, values and counts of the sort come behind what the caller named. */
static void check_detached(gpuq_client *q, const Operations *operations, gpuq_job *job) {
        gpuq_fetched *fetched = NULL;
        uint64_t id;

        DO(gpuq_job_detach(job, NULL, 0, &id));
        DO(gpuq_fetch(q, id, &fetched));
        CHECK(fetched->result.state == GPUQ_DONE && fetched->n_outputs == 8);
        CHECK(are_right(fetched->outputs[0].data, fetched->outputs[1].data,
                        fetched->outputs[3].data, fetched->outputs[4].data));
        gpuq_fetched_free(fetched);
        DO(gpuq_discard(q, id));
        gpuq_job_free(job);
}

/* In device memory, where the workspace is then, too. */
static void check_device(gpuq_client *q, gpuq_buffer *host[5]) {
        gpuq_buffer *device[5];
        Operations of_device;
        gpuq_job *job = NULL;

        for (int i = 0; i < 5; i++)
                device[i] = numbers(q, 0);
        of_device = operations(device[0], device[1], device[2], device[3], device[4]);
        DO(gpuq_job_new(q, &job));
        DO(gpuq_job_copy(job, device[3], 0, host[3], 0, gpuq_buffer_size(host[3])));
        DO(gpuq_run(job));
        gpuq_job_free(job);

        job = job_of(q, &of_device);
        for (int i = 0; i < 5; i++)
                DO(gpuq_job_copy(job, host[i], 0, device[i], 0, gpuq_buffer_size(host[i])));
        DO(gpuq_run(job));
        gpuq_job_free(job);
        for (int i = 0; i < 5; i++)
                gpuq_buffer_free(device[i]);
}

static int host_is_right(gpuq_buffer *host[5]) {
        return are_right(gpuq_buffer_data(host[0]), gpuq_buffer_data(host[1]),
                         gpuq_buffer_data(host[2]), gpuq_buffer_data(host[4]));
}

/* Random numbers, scans and sorts; a job keeps what they need, also when the client is gone. */
void scenario_series(void) {
        gpuq_client *q = NULL;
        gpuq_buffer *host[5];
        gpuq_job *job, *kept;
        Operations all;

        DO(gpuq_connect(NULL, &q));
        for (int i = 0; i < 5; i++)
                host[i] = numbers(q, -1);
        for (unsigned i = 0; i < COUNT; i++)
                ((uint32_t *)gpuq_buffer_data(host[3]))[i] = i;
        all = operations(host[0], host[1], host[2], host[3], host[4]);

        job = job_of(q, &all);
        DO(gpuq_run(job));
        CHECK(host_is_right(host));
        gpuq_job_free(job);
        check_refusals(q, &all);
        check_detached(q, &all, job_of(q, &all));
        for (int i = 0; i < 5; i++)
                if (i != 3)
                        memset(gpuq_buffer_data(host[i]), 0, gpuq_buffer_size(host[i]));
        check_device(q, host);
        CHECK(host_is_right(host));

        kept = job_of(q, &all);
        gpuq_client_free(q);
        CHECK(gpuq_job_sort(kept, &all.sort) == GPUQ_E_CLOSED);
        gpuq_job_free(kept);
        for (int i = 0; i < 5; i++)
                gpuq_buffer_free(host[i]);
}
