/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job costs the supervisor: `ninja -C BUILD benchmark`, or under a profiler.
 *
 *     load-supervisor [JOBS IN FLIGHT] [ROUNDS]
 *
 * Client and worker are played in the same thread and not counted. Each job comes
 * in a frame of its own, as gpuq_submit() sends it, with three buffers and a kernel.
 */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

#define LOAD_SLICE 4096u

typedef struct Load {
        Fake *fake;
        FakeClient *client;
        FakeWorker *worker;
        uint64_t arena;
        unsigned n_jobs;   /* in flight */
        uint64_t spent_ns; /* of this round */
        uint64_t turns;
} Load;

static void load_buffer(const Load *load, Gpuq__V1__Buffer *buffer, unsigned slice,
                        Gpuq__V1__Direction direction) {
        gpuq__v1__buffer__init(buffer);
        buffer->arena = load->arena;
        buffer->offset = (uint64_t)slice * LOAD_SLICE;
        buffer->length = LOAD_SLICE;
        buffer->direction = direction;
}

static void load_submit(Load *load, unsigned slot) {
        static uint8_t operations[72];
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Submit submit = GPUQ__V1__SUBMIT__INIT;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT, *jobs = &job;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;
        Gpuq__V1__Buffer buffers[3], *list[3] = {&buffers[0], &buffers[1], &buffers[2]};

        for (unsigned i = 0; i < 3; ++i)
                load_buffer(load, &buffers[i], 3 * slot + i,
                            i < 2 ? GPUQ__V1__DIRECTION__IN : GPUQ__V1__DIRECTION__OUT);
        kernel.module = load->client->module;
        kernel.name = "add_f32";
        job.tag = ++load->client->tag;
        job.buffers = list;
        job.n_buffers = 3;
        job.kernels = &kernels;
        job.n_kernels = 1;
        job.operations.data = operations;
        job.operations.len = sizeof(operations);
        submit.jobs = &jobs;
        submit.n_jobs = 1;
        request.serial = 7;
        request.body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        request.submit = &submit;
        assert_int_equal(wire_queue(load->client->wire, &request.base, -1), 0);
}

static void load_turn(Load *load) {
        uint64_t begin_ns = uv_hrtime();

        uv_run(&load->fake->supervisor->loop, UV_RUN_NOWAIT);
        load->spent_ns += uv_hrtime() - begin_ns;
        load->turns++;
}

/* Return: how many jobs the worker got. */
static size_t load_take_jobs(Load *load, uint64_t *ids) {
        Gpuq__Worker__ToWorker *message;
        const uint8_t *data;
        size_t n_data, n = 0;

        channel_wake(load->worker->channel);
        while (channel_receive(load->worker->channel, &data, &n_data) == 0) {
                message = gpuq__worker__to_worker__unpack(NULL, n_data, data);
                assert_non_null(message);
                for (size_t i = 0; message->body_case == GPUQ__WORKER__TO_WORKER__BODY_JOBS &&
                                   i < message->jobs->n_jobs;
                     ++i)
                        ids[n++] = message->jobs->jobs[i]->id;
                gpuq__worker__to_worker__free_unpacked(message, NULL);
        }
        return n;
}

static void load_end_jobs(Load *load, const uint64_t *ids, size_t n) {
        Gpuq__Worker__FromWorker message = GPUQ__WORKER__FROM_WORKER__INIT;
        Gpuq__Worker__JobEnds ends = GPUQ__WORKER__JOB_ENDS__INIT;
        Gpuq__Worker__JobEnd *end = calloc(n, sizeof(*end)), **list = calloc(n, sizeof(*list));

        for (size_t i = 0; i < n; ++i) {
                gpuq__worker__job_end__init(&end[i]);
                end[i].id = ids[i];
                end[i].ran_us = 10;
                list[i] = &end[i];
        }
        ends.ends = list;
        ends.n_ends = n;
        message.body_case = GPUQ__WORKER__FROM_WORKER__BODY_ENDS;
        message.ends = &ends;
        assert_int_equal(channel_send(load->worker->channel, &message.base, -1), 0);
        free(list);
        free(end);
}

/* Return: how many completions the client got. */
static size_t load_take_completions(Load *load) {
        Gpuq__V1__Reply *reply;
        WireFrame frame;
        size_t n = 0;

        while (wire_receive(load->client->wire) == 0)
                while (wire_next(load->client->wire, &frame) == 0) {
                        reply = gpuq__v1__reply__unpack(NULL, frame.n_data, frame.data);
                        assert_non_null(reply);
                        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_COMPLETIONS);
                        n += reply->completions->n_completions;
                        gpuq__v1__reply__free_unpacked(reply, NULL);
                }
        return n;
}

static void load_round(Load *load, uint64_t *ids) {
        size_t n = 0;

        for (unsigned i = 0; i < load->n_jobs; ++i)
                load_submit(load, i);
        assert_int_equal(wire_flush(load->client->wire), 0);
        while (n < load->n_jobs) {
                load_turn(load);
                n += load_take_jobs(load, ids + n);
        }
        load_end_jobs(load, ids, n);
        for (n = 0; n < load->n_jobs; n += load_take_completions(load))
                load_turn(load);
}

static int load_compare(const void *a, const void *b) {
        uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

        return (first > second) - (first < second);
}

int main(int argc, char **argv) {
        unsigned n_rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 2000;
        Load load = {.n_jobs = argc > 1 ? (unsigned)atoi(argv[1]) : 32};
        char *settings[] = {"inflight_jobs=1024", "inflight_ms=60000", NULL};
        uint64_t *ids = calloc(load.n_jobs, sizeof(*ids));
        uint64_t *rounds_ns = calloc(n_rounds, sizeof(*rounds_ns));

        load.fake = fake_new(1, settings);
        load.client = fake_client(load.fake, FAKE_UID);
        load.arena =
                fake_arena(load.client, GPUQ__V1__PLACE__HOST, 3ull * load.n_jobs * LOAD_SLICE);
        fake_module(load.client);
        load.worker = fake_worker(load.fake, 0, 0);
        for (unsigned i = 0; i < n_rounds / 10 + 1; ++i)
                load_round(&load, ids);

        load.turns = 0;
        for (unsigned i = 0; i < n_rounds; ++i) {
                load.spent_ns = 0;
                load_round(&load, ids);
                rounds_ns[i] = load.spent_ns;
        }
        qsort(rounds_ns, n_rounds, sizeof(*rounds_ns), load_compare);
        printf("%u in flight: %.0f ns a job (median round; best %.0f), %.1f turns a round\n",
               load.n_jobs, (double)rounds_ns[n_rounds / 2] / load.n_jobs,
               (double)rounds_ns[0] / load.n_jobs, (double)load.turns / n_rounds);

        free(rounds_ns);
        free(ids);
        fake_client_close(load.client);
        fake_free(load.fake);
        return 0;
}
