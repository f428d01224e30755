/* SPDX-License-Identifier: Apache-2.0 */
#include "test-client.h"

#include <string.h>

/* ---- what the scenarios share ---- */

gpuq_buffer *filled(gpuq_client *client, double factor) {
        gpuq_buffer *buffer = NULL;
        double *data;

        DO(gpuq_buffer_new(client, N * sizeof(double), &buffer));
        data = gpuq_buffer_data(buffer);
        for (int i = 0; i < N; i++)
                data[i] = factor * i;
        return buffer;
}

gpuq_job *scale_job(gpuq_client *client, gpuq_module *builtin, double factor, gpuq_buffer *x,
                    gpuq_buffer *y) {
        gpuq_arg args[] = {gpuq_f64(factor), gpuq_in(x), gpuq_out(y), gpuq_u64(N)};
        gpuq_config config = {.grid = {4}, .block = {256}};
        gpuq_job *job = NULL;

        DO(gpuq_job_new(client, &job));
        DO(gpuq_job_launch(job, builtin, "scale_f64", &config, args, 4));
        return job;
}

void drop(gpuq_job *job, gpuq_buffer *y) {
        gpuq_job_free(job);
        gpuq_buffer_free(y);
}

int is_scaled(gpuq_buffer *y, double factor) {
        const double *data = gpuq_buffer_data(y);

        for (int i = 0; i < N; i++)
                if (data[i] != factor * i)
                        return 0;
        return 1;
}

/* ---- scenarios ---- */

static void scenario_run(void) {
        gpuq_client *q = NULL;
        gpuq_module *m = NULL;
        gpuq_buffer *x, *y = NULL;
        gpuq_result result;
        gpuq_job *job;

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_module_builtin(q, &m));
        CHECK(gpuq_client_devices(q) >= 1 && gpuq_client_session(q) > 0);
        x = filled(q, 1);
        DO(gpuq_buffer_new(q, N * sizeof(double), &y));

        job = scale_job(q, m, 2.5, x, y);
        CHECK(gpuq_job_id(job) == 0);
        CHECK(gpuq_job_get_result(job, &result) == GPUQ_E_AGAIN);
        DO(gpuq_job_set_timed(job, true));
        DO(gpuq_run(job));
        CHECK(is_scaled(y, 2.5));

        DO(gpuq_job_get_result(job, &result));
        CHECK(result.state == GPUQ_DONE && result.error == 0 && result.device == 0);
        CHECK(!strcmp(result.text, "") && !strcmp(result.output, "") && result.ran_us > 0);
        CHECK(gpuq_job_id(job) >> 32 == gpuq_client_session(q));
        CHECK(gpuq_submit(job) == GPUQ_E_INVALID); /* once only */

        gpuq_job_free(job);
        gpuq_buffer_free(x);
        gpuq_buffer_free(y);
        gpuq_module_free(m);
        gpuq_client_free(q);
}

static void scenario_buffers(void) {
        gpuq_buffer *x, *slice = NULL, *device = NULL, *back = NULL, *theirs = NULL;
        gpuq_client *q = NULL, *other = NULL;
        gpuq_buffer_ref ref;
        gpuq_job *job = NULL;

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_connect(NULL, &other));
        x = filled(q, 1);
        DO(gpuq_buffer_slice(x, 80, 160, &slice));
        CHECK(gpuq_buffer_size(slice) == 160 && gpuq_buffer_device(slice) == -1);
        CHECK(gpuq_buffer_data(slice) == (char *)gpuq_buffer_data(x) + 80);
        CHECK(gpuq_buffer_slice(x, N * sizeof(double), 1, &back) == GPUQ_E_INVALID && !back);
        gpuq_buffer_free(x); /* the slice keeps it */

        DO(gpuq_buffer_new_device(q, 160, -1, &device));
        CHECK(gpuq_buffer_data(device) == NULL && gpuq_buffer_device(device) == 0);
        DO(gpuq_job_new(q, &job));
        DO(gpuq_job_copy(job, device, 0, slice, 0, 160));
        DO(gpuq_run(job));
        gpuq_job_free(job);

        DO(gpuq_buffer_get_ref(device, &ref));
        DO(gpuq_buffer_open(other, &ref, &theirs));
        gpuq_client_free(q); /* what another session has open stays */
        DO(gpuq_buffer_new(other, 160, &back));
        DO(gpuq_job_new(other, &job));
        DO(gpuq_job_copy(job, back, 0, theirs, 0, 160));
        DO(gpuq_run(job));
        for (int i = 0; i < 20; i++)
                CHECK(((double *)gpuq_buffer_data(back))[i] == 10 + i);

        gpuq_job_free(job);
        gpuq_buffer_free(slice);
        gpuq_buffer_free(device);
        gpuq_buffer_free(theirs);
        gpuq_buffer_free(back);
        gpuq_client_free(other);
}

/* Many small buffers come from few arenas; freed ones are used again, zeroed. */
static void scenario_small_buffers(void) {
        enum { COUNT = 10000 };
        static gpuq_buffer *buffers[COUNT];
        gpuq_client *q = NULL;

        DO(gpuq_connect(NULL, &q));
        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < COUNT; i++) {
                        char *data;

                        DO(gpuq_buffer_new(q, 1 + (size_t)(i * 37 % 2000), &buffers[i]));
                        data = gpuq_buffer_data(buffers[i]);
                        CHECK(data[0] == 0 && data[gpuq_buffer_size(buffers[i]) - 1] == 0);
                        memset(data, 0xff, gpuq_buffer_size(buffers[i]));
                }
                for (int i = 0; i < COUNT; i++)
                        gpuq_buffer_free(buffers[i]);
        }
        gpuq_client_free(q);
}

static void scenario_dependencies(void) {
        gpuq_client *q = NULL, *other = NULL;
        gpuq_buffer *x, *y = NULL, *theirs = NULL;
        gpuq_module *m = NULL, *their_m = NULL;
        gpuq_job *first, *second;
        gpuq_buffer_ref ref;
        gpuq_result result;
        uint64_t id;
        char text[24];

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_connect(NULL, &other));
        DO(gpuq_module_builtin(q, &m));
        DO(gpuq_module_builtin(other, &their_m));
        x = filled(q, 1);
        DO(gpuq_buffer_new(q, N * sizeof(double), &y));
        DO(gpuq_buffer_get_ref(y, &ref));
        DO(gpuq_buffer_open(other, &ref, &theirs));

        first = scale_job(q, m, 3, x, y);
        DO(gpuq_submit(first));
        /* Two sockets have no order between them: once this is answered the job is known. */
        DO(gpuq_wait_id(q, gpuq_job_id(first), -1, NULL));
        {
                gpuq_arg args[] = {gpuq_f64(1), gpuq_in(theirs), gpuq_inout(theirs), gpuq_u64(N)};
                gpuq_config config = {.grid = {4}, .block = {256}};

                DO(gpuq_job_new(other, &second));
                DO(gpuq_job_launch(second, their_m, "axpy_f64", &config, args, 4));
                DO(gpuq_job_after(second, gpuq_job_id(first)));
                DO(gpuq_run(second));
        }
        CHECK(is_scaled(y, 6));

        DO(gpuq_wait_id(other, gpuq_job_id(first), -1, &result));
        CHECK(result.state == GPUQ_DONE);
        gpuq_id_format(gpuq_job_id(first), text);
        DO(gpuq_id_parse(text, &id));
        CHECK(id == gpuq_job_id(first));
        CHECK(gpuq_wait_id(other, 123456789, -1, NULL) == GPUQ_E_NOT_FOUND);

        drop(first, x);
        drop(second, y);
        gpuq_buffer_free(theirs);
        gpuq_module_free(m);
        gpuq_module_free(their_m);
        gpuq_client_free(q);
        gpuq_client_free(other);
}

static const char BROKEN[] = "extern \"C\" __global__ void k() { missing_name = 1; }\n";
static const char SOURCE[] =
        "extern \"C\" __global__ void triple(const double *x, double *y, int n) {\n"
        "        for (int i = 0; i < n; i++)\n"
        "                y[i] = FACTOR * x[i];\n"
        "}\n";

static void scenario_modules(void) {
        static const char *const options[] = {"-DFACTOR=3.0", NULL};
        gpuq_module *m = NULL, *broken = NULL;
        gpuq_client *q = NULL;
        gpuq_buffer *x, *y = NULL;
        gpuq_kernel_info info;
        gpuq_job *job = NULL;
        unsigned n_blocks;
        size_t n_bytes;

        DO(gpuq_connect(NULL, &q));
        CHECK(gpuq_module_load(q, GPUQ_FORMAT_SOURCE, BROKEN, strlen(BROKEN), NULL, "broken.cu",
                               &broken) == GPUQ_E_COMPILE);
        CHECK(!broken && strstr(gpuq_error_text(), "missing_name"));

        DO(gpuq_module_load(q, GPUQ_FORMAT_AUTO, SOURCE, strlen(SOURCE), options, "triple.cu", &m));
        CHECK(gpuq_module_occupancy(m, "triple", 0, 0, -1, &n_blocks) == GPUQ_E_INVALID);
        CHECK(strstr(gpuq_error_text(), "at least one thread"));
        CHECK(gpuq_module_n_kernels(m) == 1 && !gpuq_module_has_variables(m));
        CHECK(gpuq_module_variable_size(m, "x", &n_bytes) == GPUQ_E_NOT_FOUND);
        DO(gpuq_module_kernel(m, 0, &info));
        CHECK(!strcmp(info.name, "triple") && info.n_parameters == 3);
        CHECK(gpuq_module_kernel(m, 1, &info) == GPUQ_E_NOT_FOUND);

        x = filled(q, 1);
        DO(gpuq_buffer_new(q, N * sizeof(double), &y));
        gpuq_arg args[] = {gpuq_in(x), gpuq_out(y), gpuq_i32(N)};
        gpuq_config config = {0};
        DO(gpuq_job_new(q, &job));
        CHECK(gpuq_job_launch(job, m, "quadruple", &config, args, 3) == GPUQ_E_NOT_FOUND);
        CHECK(strstr(gpuq_error_text(), "quadruple") && strstr(gpuq_error_text(), "triple"));
        CHECK(gpuq_job_launch(job, m, "triple", &config, args, 2) == GPUQ_E_INVALID);
        DO(gpuq_job_launch(job, m, "triple", &config, args, 3));
        gpuq_module_free(m); /* a job keeps what it uses */
        DO(gpuq_run(job));
        CHECK(is_scaled(y, 3));

        drop(job, y);
        gpuq_buffer_free(x);
        gpuq_client_free(q);
}

static void scenario_status(void) {
        gpuq_client *q = NULL;
        gpuq_status *status = NULL;
        gpuq_queue *queue = NULL;
        gpuq_cancelled cancelled;
        uint64_t unknown = 77;

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_get_status(q, &status));
        CHECK(status->n_devices >= 1 && status->n_users >= 1 && !strcmp(status->state, "ready"));
        CHECK(status->users[0].sessions >= 1 && status->devices[0].name[0]);
        gpuq_status_free(status);
        DO(gpuq_get_queue(q, -1, &queue));
        CHECK(queue->n_entries == 0);
        gpuq_queue_free(queue);
        DO(gpuq_cancel_ids(q, &unknown, 1, &cancelled));
        CHECK(cancelled.n_unknown == 1 && cancelled.n_ended == 0);
        gpuq_client_free(q);
}

static const struct {
        const char *name;
        void (*run)(void);
} scenarios[] = {
        {"run", scenario_run},
        {"buffers", scenario_buffers},
        {"small-buffers", scenario_small_buffers},
        {"dependencies", scenario_dependencies},
        {"modules", scenario_modules},
        {"status", scenario_status},
        {"loop", scenario_loop},
        {"loop-again", scenario_loop_again},
        {"threads", scenario_threads},
        {"callbacks", scenario_callbacks},
        {"many", scenario_many},
        {"checked", scenario_checked},
        {"library", scenario_library},
        {"series", scenario_series},
        {"prepared", scenario_prepared},
        {"textures", scenario_textures},
        {"cancel", scenario_cancel},
        {"null-handles", scenario_null_handles},
        {"fork", scenario_fork},
        {"free-client-first", scenario_free_client_first},
        {"daemon-ends", scenario_daemon_ends},
        {"no-daemon", scenario_no_daemon},
};

int main(int argc, char **argv) {
        for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
                if (argc == 2 && !strcmp(argv[1], scenarios[i].name)) {
                        scenarios[i].run();
                        return 0;
                }
        }
        for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
                puts(scenarios[i].name);
        return argc == 1 ? 0 : 2;
}
