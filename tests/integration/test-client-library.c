/* SPDX-License-Identifier: Apache-2.0 */
#include "test-client.h"

#include <string.h>

#define SIDE 3

static gpuq_buffer *matrix(gpuq_client *client, double first) {
        gpuq_buffer *buffer = NULL;
        double *data;

        DO(gpuq_buffer_new(client, SIDE * SIDE * sizeof(double), &buffer));
        data = gpuq_buffer_data(buffer);
        for (int i = 0; i < SIDE * SIDE; i++)
                data[i] = first + i;
        return buffer;
}

static gpuq_gemm product(gpuq_buffer *a, gpuq_buffer *b, gpuq_buffer *c) {
        return (gpuq_gemm){
                .type = GPUQ_TYPE_F64,
                .m = SIDE,
                .n = SIDE,
                .k = SIDE,
                .alpha = 1,
                .a = {.buffer = a},
                .b = {.buffer = b, .transposed = true},
                .c = {.buffer = c},
        };
}

/* a times the transposed b, of small whole numbers. */
static int is_product(const double *a, const double *b, const double *c) {
        for (int i = 0; i < SIDE; i++)
                for (int j = 0; j < SIDE; j++) {
                        double sum = 0;

                        for (int k = 0; k < SIDE; k++)
                                sum += a[i * SIDE + k] * b[j * SIDE + k];
                        if (c[i * SIDE + j] != sum)
                                return 0;
                }
        return 1;
}

/* The outputs of a detached job come in the order of the buffers' first use; here there is one. */
static void check_detached(gpuq_client *q, const gpuq_gemm *gemm) {
        gpuq_fetched *fetched = NULL;
        gpuq_job *job = NULL;
        uint64_t id;

        DO(gpuq_job_new(q, &job));
        DO(gpuq_job_gemm(job, gemm));
        DO(gpuq_job_detach(job, NULL, 0, &id));
        DO(gpuq_fetch(q, id, &fetched));
        CHECK(fetched->result.state == GPUQ_DONE && fetched->n_outputs == 1);
        CHECK(is_product(gpuq_buffer_data(gemm->a.buffer), gpuq_buffer_data(gemm->b.buffer),
                         fetched->outputs[0].data));
        gpuq_fetched_free(fetched);
        DO(gpuq_discard(q, id));
        gpuq_job_free(job);
}

static void check_refusals(gpuq_client *q, gpuq_gemm gemm) {
        gpuq_job *job = NULL;

        DO(gpuq_job_new(q, &job));
        CHECK(gpuq_job_gemm(NULL, &gemm) == GPUQ_E_INVALID);
        CHECK(gpuq_job_gemm(job, NULL) == GPUQ_E_INVALID);
        CHECK(gpuq_job_fft(job, NULL) == GPUQ_E_INVALID);
        gemm.a.ld = SIDE + 1;
        CHECK(gpuq_job_gemm(job, &gemm) == GPUQ_E_INVALID);
        CHECK(!strcmp(gpuq_error_text(),
                      "gemm: a needs 88 bytes at offset 0, but its buffer has 72"));
        CHECK(gpuq_submit(job) == GPUQ_E_INVALID); /* nothing of it was appended */
        gemm.a.ld = SIDE;
        DO(gpuq_job_gemm(job, &gemm));
        DO(gpuq_run(job));
        CHECK(gpuq_job_gemm(job, &gemm) == GPUQ_E_INVALID);
        gpuq_job_free(job);
}

/* What it needs may be freed in any order, and the client may go first. */
void scenario_library(void) {
        gpuq_client *q = NULL;
        gpuq_buffer *a, *b, *c;
        gpuq_job *job = NULL, *kept = NULL;
        gpuq_gemm gemm;

        DO(gpuq_connect(NULL, &q));
        a = matrix(q, 1);
        b = matrix(q, -4);
        c = matrix(q, 100);
        gemm = product(a, b, c);
        DO(gpuq_job_new(q, &job));
        DO(gpuq_job_gemm(job, &gemm));
        DO(gpuq_run(job));
        CHECK(is_product(gpuq_buffer_data(a), gpuq_buffer_data(b), gpuq_buffer_data(c)));

        check_refusals(q, gemm);
        check_detached(q, &gemm);
        DO(gpuq_job_new(q, &kept));
        DO(gpuq_job_gemm(kept, &gemm));
        gpuq_client_free(q);
        CHECK(gpuq_job_gemm(kept, &gemm) == GPUQ_E_CLOSED);
        gpuq_job_free(kept);
        gpuq_job_free(job);
        gpuq_buffer_free(a);
        gpuq_buffer_free(b);
        gpuq_buffer_free(c);
}
