/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job costs the supervisor: `ninja -C BUILD benchmark`, or under a profiler.
 *
 *     load-supervisor [JOBS IN FLIGHT] [ROUNDS] [CLIENTS] [ring] [fire] [trace] [data] [two]
 *
 * Clients and worker are played in the same thread and not counted. Each job comes in a frame of its
 * own, as gpuq_submit() sends it, with three buffers and a kernel, or with "fire" as a prepared one; so
 * many are in flight for each client. They end by halves, so that some always are. With "trace" all are
 * traced. With "data" the buffers are device memory, with "two" that of two devices; the clients are even then.
 *
 * Times say little on a machine that does other work too; instructions do. Divided by the jobs that are
 * told of at the end:
 *
 *     valgrind --tool=callgrind --toggle-collect=load_turn load-supervisor 32 200 16 ring
 */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_SLICE   4096u
#define LOAD_CLIENTS 256u
#define LOAD_WORKERS 2u

typedef struct LoadWorker {
        FakeWorker *worker;
        uint64_t *ids; /* in flight already */
        size_t n_ids;
} LoadWorker;

typedef struct Play {
        Fake *fake;
        FakeClient *clients[LOAD_CLIENTS];
        uint64_t arenas[LOAD_CLIENTS];
        LoadWorker workers[LOAD_WORKERS];
        unsigned n_workers;
        unsigned n_clients;
        unsigned n_jobs; /* in flight, of each */
        unsigned n_part; /* of them, so many end together */
        unsigned part;   /* that is submitted in this round */
        bool is_fired;
        bool on_device;    /* the buffers */
        uint64_t spent_ns; /* of this round */
        uint64_t turns;
} Play;

static void load_buffer(uint64_t arena, Gpuq__V1__Buffer *buffer, unsigned slice,
                        Gpuq__V1__Direction direction) {
        gpuq__v1__buffer__init(buffer);
        buffer->arena = arena;
        buffer->offset = (uint64_t)slice * LOAD_SLICE;
        buffer->length = LOAD_SLICE;
        buffer->direction = direction;
}

/* Three buffers and a kernel: two in, one out. */
typedef struct LoadJob {
        Gpuq__V1__Job job;
        Gpuq__V1__Kernel kernel, *kernels;
        Gpuq__V1__Buffer buffers[3], *list[3];
} LoadJob;

static void load_job(const FakeClient *client, uint64_t arena, unsigned slot, LoadJob *job) {
        static uint8_t operations[72];

        gpuq__v1__job__init(&job->job);
        gpuq__v1__kernel__init(&job->kernel);
        for (unsigned i = 0; i < 3; ++i) {
                job->list[i] = &job->buffers[i];
                load_buffer(arena, &job->buffers[i], 3 * slot + i,
                            i < 2 ? GPUQ__V1__DIRECTION__IN : GPUQ__V1__DIRECTION__OUT);
        }
        job->kernel.module = client->module;
        job->kernel.name = "add_f32";
        job->kernels = &job->kernel;
        job->job.buffers = job->list;
        job->job.n_buffers = 3;
        job->job.kernels = &job->kernels;
        job->job.n_kernels = 1;
        job->job.operations.data = operations;
        job->job.operations.len = sizeof(operations);
}

static void load_submit(FakeClient *client, uint64_t arena, unsigned slot) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Submit submit = GPUQ__V1__SUBMIT__INIT;
        Gpuq__V1__Job *jobs;
        LoadJob job;

        load_job(client, arena, slot, &job);
        job.job.tag = ++client->tag;
        jobs = &job.job;
        submit.jobs = &jobs;
        submit.n_jobs = 1;
        submit.seen = client->n_seen; /* as libgpuq says it */
        request.serial = 7;
        request.body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        request.submit = &submit;
        assert_int_equal(wire_queue(client->wire, &request.base, -1), 0);
}

/* One for each slot, numbered from 1. */
static void load_prepare(FakeClient *client, uint64_t arena, unsigned n_slots) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Prepare prepare = GPUQ__V1__PREPARE__INIT;
        LoadJob job;

        for (unsigned slot = 0; slot < n_slots; ++slot) {
                load_job(client, arena, slot, &job);
                prepare.job = &job.job;
                request.body_case = GPUQ__V1__REQUEST__BODY_PREPARE;
                request.prepare = &prepare;
                fake_send(client, &request);
                assert_int_equal(fake_receive(client)->prepared->prepared, slot + 1);
        }
}

static void load_fire(FakeClient *client, unsigned slot) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Fires fires = GPUQ__V1__FIRES__INIT;
        Gpuq__V1__Fire fire = GPUQ__V1__FIRE__INIT, *list = &fire;

        fire.prepared = slot + 1;
        fire.tag = ++client->tag;
        fires.fires = &list;
        fires.n_fires = 1;
        fires.seen = client->n_seen;
        request.serial = 7;
        request.body_case = GPUQ__V1__REQUEST__BODY_FIRES;
        request.fires = &fires;
        assert_int_equal(wire_queue(client->wire, &request.base, -1), 0);
}

__attribute__((noinline)) static void load_turn(Play *load) {
        uint64_t begin_ns = uv_hrtime();

        uv_run(&load->fake->supervisor->loop, UV_RUN_NOWAIT);
        load->spent_ns += uv_hrtime() - begin_ns;
        load->turns++;
}

/* Return: how many jobs the worker got. */
static size_t load_take_jobs(LoadWorker *worker) {
        const uint8_t *data;
        size_t n_data, n = 0;

        channel_wake(worker->worker->channel);
        while (channel_receive(worker->worker->channel, &data, &n_data) == 0) {
                WorkerMessage message;

                assert_true(protocol_read(data, n_data, &message));
                if (message.head.kind != TO_WORKER_JOBS)
                        continue;
                data = message.items;
                for (size_t n_left = message.head.n_items; n_left;) {
                        WorkerJobParts parts;
                        const WorkerJob *job = protocol_job(data, n_left, &parts);

                        assert_non_null(job);
                        worker->ids[worker->n_ids++] = job->id;
                        n++;
                        data += job->n_bytes;
                        n_left -= job->n_bytes;
                }
        }
        return n;
}

static void load_end_jobs(LoadWorker *worker, size_t n) {
        WorkerEnd *ends = calloc(n, sizeof(*ends));

        for (size_t i = 0; i < n; ++i)
                ends[i] = (WorkerEnd){.id = worker->ids[i], .ran_us = 10};
        fake_say(worker->worker,
                 (WorkerMessage){{.kind = FROM_WORKER_ENDS, .n_items = (uint32_t)n}, .items = ends},
                 -1);
        free(ends);
        worker->n_ids -= n;
        memmove(worker->ids, worker->ids + n, worker->n_ids * sizeof(*worker->ids));
}

/* Return: how many completions the client got. */
static size_t load_take_completions(FakeClient *client) {
        Gpuq__V1__Reply *reply;
        WireFrame frame;
        size_t n = 0;

        while (wire_receive(client->wire) == 0)
                while (wire_next(client->wire, &frame) == 0) {
                        reply = gpuq__v1__reply__unpack(NULL, frame.n_data, frame.data);
                        assert_non_null(reply);
                        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_COMPLETIONS);
                        n += reply->completions->n_completions;
                        gpuq__v1__reply__free_unpacked(reply, NULL);
                }
        client->n_seen += (uint32_t)n;
        return n;
}

static void load_submit_part(Play *load, unsigned c) {
        for (unsigned i = 0; i < load->n_part; ++i) {
                unsigned slot = load->part * load->n_part + i;

                if (load->is_fired)
                        load_fire(load->clients[c], slot);
                else
                        load_submit(load->clients[c], load->arenas[c], slot);
        }
        assert_int_equal(wire_flush(load->clients[c]->wire), 0);
}

/* A part is submitted; with all in flight, the part before it ends. */
static void load_round(Play *load) {
        size_t n_part = (size_t)load->n_part * load->n_clients, n = 0, n_more = 0, n_ids = 0;

        for (unsigned c = 0; c < load->n_clients; ++c)
                load_submit_part(load, c);
        while (n_more < n_part) {
                load_turn(load);
                for (unsigned i = 0; i < load->n_workers; ++i)
                        n_more += load_take_jobs(&load->workers[i]);
        }
        for (unsigned i = 0; i < load->n_workers; ++i)
                n_ids += load->workers[i].n_ids;
        load->part = (load->part + 1) % (load->n_jobs / load->n_part);
        if (n_ids < (size_t)load->n_jobs * load->n_clients)
                return;

        for (unsigned i = 0; i < load->n_workers; ++i)
                load_end_jobs(&load->workers[i], n_part / load->n_workers);
        while (n < n_part) {
                load_turn(load);
                for (unsigned c = 0; c < load->n_clients; ++c)
                        n += load_take_completions(load->clients[c]);
        }
}

/* Has the worker of its data load its module. */
static void load_warm(FakeClient *client, uint64_t arena) {
        FakeJob job = {.arena = arena, .length = 1, .direction = GPUQ__V1__DIRECTION__IN};
        uint64_t id = fake_submit(client, job);
        Fake *fake = client->fake;

        fake_turn(fake);
        for (size_t i = 0; i < fake->n_workers; ++i)
                if (fake->workers[i].n_jobs &&
                    fake->workers[i].jobs[fake->workers[i].n_jobs - 1] == id)
                        fake_end(&fake->workers[i], id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        client->n_seen++;
}

static void load_begin(Play *load, bool with_rings) {
        char *settings[] = {"inflight_jobs=8192", "inflight_ms=60000", "poll_us=10000", NULL};

        load->fake = fake_new(load->n_workers, settings);
        for (unsigned c = 0; c < load->n_clients; ++c) {
                load->clients[c] = fake_client(load->fake, FAKE_UID);
                load->arenas[c] = fake_arena(load->clients[c],
                                             load->on_device ? GPUQ__V1__PLACE__DEVICE
                                                             : GPUQ__V1__PLACE__HOST,
                                             3ull * load->n_jobs * LOAD_SLICE);
                fake_module(load->clients[c]);
                if (load->on_device)
                        load_warm(load->clients[c], load->arenas[c]);
                if (load->is_fired)
                        load_prepare(load->clients[c], load->arenas[c], load->n_jobs);
                if (with_rings)
                        fake_ring(load->clients[c]);
        }
        for (unsigned i = 0; i < load->n_workers; ++i)
                load->workers[i] = (LoadWorker){
                        .worker = fake_worker(load->fake, i, 0),
                        .ids = calloc((size_t)load->n_jobs * load->n_clients, sizeof(uint64_t)),
                };
}

/* As if a client read the trace of all jobs, without its requests. */
static void load_trace(Play *load) {
        Engine *engine = &load->fake->supervisor->engine;
        Trace *trace;

        if (trace_open(engine, engine->users, true, &trace) == 0)
                trace->asked_ns = UINT64_MAX / 2;
}

static int load_compare(const void *a, const void *b) {
        uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

        return (first > second) - (first < second);
}

static bool load_has_word(int argc, char **argv, const char *word) {
        for (int i = 4; i < argc; ++i)
                if (strcmp(argv[i], word) == 0)
                        return true;
        return false;
}

static void load_print(const Play *load, uint64_t *rounds_ns, unsigned n_rounds, bool with_rings) {
        unsigned n_part = load->n_part * load->n_clients;

        qsort(rounds_ns, n_rounds, sizeof(*rounds_ns), load_compare);
        printf("%u x %u in flight, %s by %s: %.0f ns a job (median round; best %.0f), %.1f turns "
               "a round, %u jobs with those before the clock ran\n",
               load->n_clients, load->n_jobs, load->is_fired ? "fired" : "submitted",
               with_rings ? "ring" : "socket", (double)rounds_ns[n_rounds / 2] / n_part,
               (double)rounds_ns[0] / n_part, (double)load->turns / n_rounds,
               (n_rounds + n_rounds / 10 + 2) * n_part);
}

int main(int argc, char **argv) {
        bool with_rings = load_has_word(argc, argv, "ring");
        unsigned n_rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 2000;
        Play load = {
                .n_jobs = argc > 1 ? (unsigned)atoi(argv[1]) : 32,
                .n_clients = argc > 3 ? MIN((unsigned)atoi(argv[3]), LOAD_CLIENTS) : 1,
                .is_fired = load_has_word(argc, argv, "fire"),
                .on_device = load_has_word(argc, argv, "data") || load_has_word(argc, argv, "two"),
                .n_workers = load_has_word(argc, argv, "two") ? 2 : 1,
        };
        uint64_t *rounds_ns = calloc(n_rounds, sizeof(*rounds_ns));

        load.n_part = load.n_jobs % 2 ? load.n_jobs : load.n_jobs / 2;
        load_begin(&load, with_rings);
        if (load_has_word(argc, argv, "trace"))
                load_trace(&load);
        for (unsigned i = 0; i < n_rounds / 10 + 2; ++i)
                load_round(&load);

        load.turns = 0;
        for (unsigned i = 0; i < n_rounds; ++i) {
                load.spent_ns = 0;
                load_round(&load);
                rounds_ns[i] = load.spent_ns;
        }
        load_print(&load, rounds_ns, n_rounds, with_rings);

        free(rounds_ns);
        for (unsigned i = 0; i < load.n_workers; ++i)
                free(load.workers[i].ids);
        for (unsigned c = 0; c < load.n_clients; ++c)
                fake_client_close(load.clients[c]);
        fake_free(load.fake);
        return 0;
}
