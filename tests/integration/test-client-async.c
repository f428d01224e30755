/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of the asynchronous side: a loop of one's own, threads, callbacks.
 */
#include "test-client.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct Work {
        gpuq_client *client;
        gpuq_module *builtin;
        gpuq_buffer *x;
} Work;

static void work_start(Work *work) {
        DO(gpuq_connect(NULL, &work->client));
        DO(gpuq_module_builtin(work->client, &work->builtin));
        work->x = filled(work->client, 1);
}

static void work_end(Work *work) {
        gpuq_buffer_free(work->x);
        gpuq_module_free(work->builtin);
        gpuq_client_free(work->client);
}

static gpuq_buffer *result_buffer(gpuq_client *client) {
        gpuq_buffer *y = NULL;

        DO(gpuq_buffer_new(client, N * sizeof(double), &y));
        return y;
}

static void on_end(gpuq_job *job, void *userdata) {
        gpuq_result result;

        DO(gpuq_job_get_result(job, &result));
        CHECK(result.state == GPUQ_DONE);
        atomic_fetch_add((atomic_int *)userdata, 1);
}

/* Waits as a program with a loop of its own does, until so many jobs have ended. Not by what
 * gpuq_dispatch() counts: any other call may have read of an end before, if that came quickly. */
static void loop_until(gpuq_client *client, const atomic_int *n_ended, int n_jobs) {
        while (atomic_load(n_ended) < n_jobs) {
                struct pollfd poller = {.fd = gpuq_client_fd(client)};

                poller.events = (short)gpuq_client_events(client);
                CHECK(poller.fd >= 0 && poller.events > 0);
                CHECK(poll(&poller, 1, 60000) == 1);
                DO(gpuq_dispatch(client, 0));
        }
}

/* One job at a time, and more of them than a client does before it asks for a ring. */
void scenario_loop_again(void) {
        atomic_int n_ended = 0;
        gpuq_buffer *y;
        Work work;

        work_start(&work);
        y = result_buffer(work.client);
        for (int i = 1; i <= 300; i++) {
                gpuq_job *job = scale_job(work.client, work.builtin, i, work.x, y);

                DO(gpuq_job_set_callback(job, on_end, &n_ended));
                DO(gpuq_submit(job));
                loop_until(work.client, &n_ended, i);
                CHECK(gpuq_poll(job) == 1);
                CHECK(is_scaled(y, i));
                gpuq_job_free(job);
        }
        gpuq_buffer_free(y);
        work_end(&work);
}

void scenario_loop(void) {
        enum { COUNT = 64 };
        atomic_int n_ended = 0;
        gpuq_buffer *y[COUNT];
        gpuq_job *jobs[COUNT];
        Work work;

        work_start(&work);
        for (int i = 0; i < COUNT; i++) {
                y[i] = result_buffer(work.client);
                jobs[i] = scale_job(work.client, work.builtin, i, work.x, y[i]);
                DO(gpuq_job_set_callback(jobs[i], on_end, &n_ended));
                DO(gpuq_submit(jobs[i]));
        }
        loop_until(work.client, &n_ended, COUNT);
        for (int i = 0; i < COUNT; i++) {
                CHECK(gpuq_poll(jobs[i]) == 1);
                CHECK(is_scaled(y[i], i));
                drop(jobs[i], y[i]);
        }
        work_end(&work);
}

typedef struct Runner {
        Work *work;
        int number;
} Runner;

static void *runner_run(void *userdata) {
        Runner *runner = userdata;
        gpuq_buffer *y = result_buffer(runner->work->client);

        for (int i = 1; i <= 40; i++) {
                double factor = 1000 * runner->number + i;
                gpuq_job *job = scale_job(runner->work->client, runner->work->builtin, factor,
                                          runner->work->x, y);

                DO(gpuq_run(job));
                CHECK(is_scaled(y, factor));
                gpuq_job_free(job);
                /* Each thread has its own error text. */
                CHECK(gpuq_job_new(NULL, &job) == GPUQ_E_INVALID);
        }
        gpuq_buffer_free(y);
        return NULL;
}

void scenario_threads(void) {
        enum { COUNT = 8 };
        pthread_t threads[COUNT];
        Runner runners[COUNT];
        Work work;

        work_start(&work);
        for (int i = 0; i < COUNT; i++) {
                runners[i] = (Runner){.work = &work, .number = i};
                CHECK(pthread_create(&threads[i], NULL, runner_run, &runners[i]) == 0);
        }
        for (int i = 0; i < COUNT; i++)
                CHECK(pthread_join(threads[i], NULL) == 0);
        work_end(&work);
}

void scenario_callbacks(void) {
        enum { COUNT = 32 };
        atomic_int n_ended = 0;
        gpuq_buffer *y[COUNT];
        gpuq_job *jobs[COUNT];
        Work work;

        work_start(&work);
        for (int i = 0; i < COUNT; i++) {
                y[i] = result_buffer(work.client);
                jobs[i] = scale_job(work.client, work.builtin, i, work.x, y[i]);
                DO(gpuq_job_set_callback(jobs[i], on_end, &n_ended));
        }
        DO(gpuq_submit_many(jobs, COUNT));
        for (int i = 0; i < COUNT; i++)
                DO(gpuq_wait(jobs[i], -1));
        CHECK(atomic_load(&n_ended) == COUNT); /* once each */
        DO(gpuq_dispatch(work.client, 0));
        CHECK(atomic_load(&n_ended) == COUNT);
        for (int i = 0; i < COUNT; i++)
                drop(jobs[i], y[i]);
        work_end(&work);
}

/* Freed at once: they still run, and their results are in the buffers. */
void scenario_many(void) {
        enum { COUNT = 2000 };
        gpuq_buffer *y, *z;
        gpuq_job *last;
        Work work;

        work_start(&work);
        y = result_buffer(work.client);
        for (int i = 0; i < COUNT; i++) {
                gpuq_job *job = scale_job(work.client, work.builtin, i, work.x, y);

                DO(gpuq_submit(job));
                gpuq_job_free(job);
        }
        z = result_buffer(work.client);
        last = scale_job(work.client, work.builtin, 5, y, z);
        DO(gpuq_run(last));
        CHECK(is_scaled(y, COUNT - 1));
        drop(last, z);
        gpuq_buffer_free(y);
        work_end(&work);
}

static const char FOREVER[] = "extern \"C\" __global__ void forever(int *x) {\n"
                              "        for (volatile int i = 0; i >= 0; i = 0)\n"
                              "                ;\n"
                              "        x[0] = 1;\n"
                              "}\n";

void scenario_cancel(void) {
        gpuq_config config = {0};
        gpuq_module *m = NULL;
        gpuq_job *job = NULL;
        gpuq_buffer *x = NULL;
        gpuq_result result;
        Work work;

        work_start(&work);
        DO(gpuq_module_load(work.client, GPUQ_FORMAT_SOURCE, FOREVER, sizeof(FOREVER) - 1, NULL,
                            "forever.cu", &m));
        DO(gpuq_buffer_new(work.client, 4, &x));
        DO(gpuq_job_new(work.client, &job));
        gpuq_arg args[] = {gpuq_out(x)};
        DO(gpuq_job_launch(job, m, "forever", &config, args, 1));
        DO(gpuq_submit(job));
        CHECK(gpuq_wait(job, 50) == GPUQ_E_AGAIN);
        CHECK(gpuq_poll(job) == 0);
        DO(gpuq_cancel(job));
        CHECK(gpuq_wait(job, -1) == GPUQ_E_CANCELLED);
        DO(gpuq_job_get_result(job, &result));
        CHECK(result.state == GPUQ_CANCELLED && result.text[0]);
        drop(job, x);
        gpuq_module_free(m);
        work_end(&work);
}
