/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs whose accesses are compared with their buffers.
 */

#include "test-client.h"

#include <string.h>

static const char SOURCE[] =
        "extern \"C\" __global__ void shift(const double *x, double *y, int n, int by) {\n"
        "        int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "        if (i < n)\n"
        "                y[i] = x[i + by];\n"
        "}\n";

static gpuq_job *shift_job(gpuq_client *q, gpuq_module *m, gpuq_buffer *x, gpuq_buffer *y, int by) {
        gpuq_arg args[] = {gpuq_in(x), gpuq_out(y), gpuq_i32(N), gpuq_i32(by)};
        gpuq_config config = {.grid = {N / 100}, .block = {100}};
        gpuq_job *job = NULL;

        DO(gpuq_job_new(q, &job));
        DO(gpuq_job_launch(job, m, "shift", &config, args, 4));
        return job;
}

static void check_fails(gpuq_job *job, const char *words) {
        gpuq_result result;

        CHECK(gpuq_wait(job, -1) == GPUQ_E_FAULT);
        DO(gpuq_job_get_result(job, &result));
        CHECK(result.state == GPUQ_FAILED && result.error == GPUQ_E_FAULT);
        if (!strstr(result.text, words))
                fprintf(stderr, "%s\n", result.text);
        CHECK(strstr(result.text, words));
}

static void run_checked(gpuq_client *q, gpuq_module *m, gpuq_buffer *x, gpuq_buffer *y) {
        gpuq_job *job = shift_job(q, m, x, y, 0);

        DO(gpuq_job_set_checked(job, true));
        DO(gpuq_run(job));
        CHECK(gpuq_job_set_checked(job, true) == GPUQ_E_INVALID);
        CHECK(is_scaled(y, 1));
        gpuq_job_free(job);

        job = shift_job(q, m, x, y, N);
        DO(gpuq_job_set_checked(job, true));
        DO(gpuq_submit(job));
        check_fails(job, "kernel shift: a load of 8 bytes at element ");
        gpuq_job_free(job);
}

/* As "out", x has what the job itself wrote. */
static void read_unwritten(gpuq_client *q, gpuq_module *m, gpuq_buffer *x, gpuq_buffer *y) {
        gpuq_arg args[] = {gpuq_out(x), gpuq_out(y), gpuq_i32(N), gpuq_i32(0)};
        gpuq_config config = {.grid = {N / 100}, .block = {100}};
        gpuq_job *job = NULL;

        for (int is_written = 0; is_written < 2; is_written++) {
                DO(gpuq_job_new(q, &job));
                if (is_written)
                        DO(gpuq_job_fill(job, x, 0, N * sizeof(double), 0, 4));
                DO(gpuq_job_launch(job, m, "shift", &config, args, 4));
                DO(gpuq_job_set_checked(job, true));
                DO(gpuq_submit(job));
                if (is_written)
                        DO(gpuq_wait(job, -1));
                else
                        check_fails(job, "kernel shift: a load of 8 bytes that nobody wrote, at ");
                gpuq_job_free(job);
        }
}

static void fire_checked(gpuq_client *q, gpuq_module *m, gpuq_buffer *x, gpuq_buffer *y) {
        gpuq_set by = {0, 3, gpuq_i32(-N)};
        gpuq_fire_args args = {.sets = &by, .n_sets = 1};
        gpuq_job *job = shift_job(q, m, x, y, 0);
        gpuq_prepared *prepared;

        DO(gpuq_job_set_checked(job, true));
        DO(gpuq_prepare(job, &prepared));
        gpuq_job_free(job);
        DO(gpuq_fire(prepared, &args, &job));
        check_fails(job, " of argument 1 (in), which has 1000 elements, by thread ");
        gpuq_job_free(job);
        gpuq_prepared_free(prepared);
}

void scenario_checked(void) {
        gpuq_client *q = NULL;
        gpuq_module *m = NULL, *builtin = NULL;
        gpuq_buffer *x, *y = NULL;
        gpuq_job *job;

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_module_load(q, GPUQ_FORMAT_SOURCE, SOURCE, strlen(SOURCE), NULL, "shift.cu", &m));
        DO(gpuq_module_builtin(q, &builtin));
        x = filled(q, 1);
        DO(gpuq_buffer_new(q, N * sizeof(double), &y));

        run_checked(q, m, x, y);
        fire_checked(q, m, x, y);
        read_unwritten(q, m, x, y);
        gpuq_buffer_free(x);
        x = filled(q, 1); /* it was filled */
        job = scale_job(q, builtin, 2.5, x, y);
        DO(gpuq_job_set_checked(job, true));
        gpuq_module_free(builtin); /* the job keeps it until it is replaced */
        DO(gpuq_run(job));
        CHECK(is_scaled(y, 2.5));
        gpuq_job_free(job);

        job = shift_job(q, m, x, y, 0);
        DO(gpuq_job_set_checked(job, true));
        DO(gpuq_submit(job));
        gpuq_module_free(m);
        DO(gpuq_wait(job, -1));
        CHECK(is_scaled(y, 1));

        drop(job, y);
        gpuq_buffer_free(x);
        gpuq_client_free(q);
}
