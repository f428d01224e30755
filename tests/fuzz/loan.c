/* SPDX-License-Identifier: Apache-2.0 */
#include "loan.h"

#include <stdlib.h>

#include "clock.h"
#include "jobs.h"
#include "workers.h"

#define LOAN_FIRES    70u /* at once: gpuqd offers a ring after 64 */
#define LOAN_ROUNDS   4u
#define LOAN_PREPARED 2u
#define LOAN_REST_NS  20000000u /* then a ring is offered again */

void loan_free(Loan *loan) {
        direct_ring_release(&loan->ring);
        *loan = (Loan){};
}

void loan_hear(Loan *loan, const Gpuq__V1__Reply *reply, int fd) {
        switch (reply->body_case) {
                case GPUQ__V1__REPLY__BODY_PREPARED:
                        loan->n_prepared++;
                        break;
                case GPUQ__V1__REPLY__BODY_DIRECT_READY:
                        if (!loan->ring.shared && fd >= 0)
                                (void)direct_ring_adopt(&loan->ring, fd);
                        break;
                case GPUQ__V1__REPLY__BODY_DIRECT_LEND:
                        loan->is_offered = true;
                        break;
                default:
                        break;
        }
}

/* ---- the way --------------------------------------------------------------------- */

static void loan_send(const FakeClient *client, const Gpuq__V1__Request *request) {
        (void)wire_queue(client->wire, &request->base, -1);
        (void)wire_flush(client->wire);
}

void loan_request(FakeClient *client, Gpuq__V1__Request__BodyCase what) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__DirectOpen open = GPUQ__V1__DIRECT_OPEN__INIT;
        Gpuq__V1__DirectBegin begin = GPUQ__V1__DIRECT_BEGIN__INIT;
        Gpuq__V1__DirectEnd end = GPUQ__V1__DIRECT_END__INIT;

        request.body_case = what;
        if (what == GPUQ__V1__REQUEST__BODY_DIRECT_OPEN)
                request.direct_open = &open;
        else if (what == GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN)
                request.direct_begin = &begin;
        else
                request.direct_end = &end;
        loan_send(client, &request);
}

static void loan_load_module(const FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        loan_send(client, &request);
}

static void loan_prepare(const FakeClient *client, uint64_t arena) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Prepare prepare = GPUQ__V1__PREPARE__INIT;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;

        kernel.module = client->module;
        kernel.name = "add";
        buffer.arena = arena;
        buffer.length = 64;
        buffer.direction = GPUQ__V1__DIRECTION__INOUT;
        job.kernels = &kernels;
        job.n_kernels = 1;
        job.buffers = &buffers;
        job.n_buffers = arena != 0;
        job.repeatable = arena & 1;
        prepare.job = &job;
        request.body_case = GPUQ__V1__REQUEST__BODY_PREPARE;
        request.prepare = &prepare;
        loan_send(client, &request);
}

static void loan_fire_by_message(FakeClient *client, unsigned n) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Fires message = GPUQ__V1__FIRES__INIT;
        Gpuq__V1__Fire fires[LOAN_FIRES], *list[LOAN_FIRES];

        n = MIN(n, LOAN_FIRES);
        for (unsigned i = 0; i < n; ++i) {
                gpuq__v1__fire__init(&fires[i]);
                fires[i].prepared = 1 + i % LOAN_PREPARED;
                fires[i].tag = ++client->tag;
                list[i] = &fires[i];
        }
        message.fires = list;
        message.n_fires = n;
        message.seen = client->n_seen;
        request.body_case = GPUQ__V1__REQUEST__BODY_FIRES;
        request.fires = &message;
        loan_send(client, &request);
}

static void loan_fire_in_ring(Loan *loan, FakeClient *client, unsigned n) {
        DirectRing *ring = &loan->ring;

        if (!ring->shared)
                return;
        ring->position = ring->shared->n_written;
        for (unsigned i = 0; i < n; ++i) {
                direct_ring_free(direct_ring_entry(ring, ring->position));
                (void)direct_ring_write(ring, ++client->tag, 1 + i % LOAN_PREPARED);
        }
}

void loan_fire(Loan *loan, FakeClient *client, unsigned n, bool in_ring) {
        if (in_ring)
                loan_fire_in_ring(loan, client, n);
        else
                loan_fire_by_message(client, n);
}

void loan_go(Loan *loan, FakeClient *client, uint64_t arena, bool begins,
             void (*settle)(void *userdata), void *userdata) {
        if (!client->module)
                loan_load_module(client);
        if (!loan->ring.shared)
                loan_request(client, GPUQ__V1__REQUEST__BODY_DIRECT_OPEN);
        settle(userdata);
        for (unsigned i = loan->n_prepared; i < LOAN_PREPARED; ++i)
                loan_prepare(client, arena);
        settle(userdata);
        for (unsigned i = 0; i < LOAN_ROUNDS && !loan->is_offered; ++i) {
                clock_advance(LOAN_REST_NS);
                loan_fire_by_message(client, LOAN_FIRES);
                settle(userdata);
        }
        if (!loan->is_offered || !begins)
                return;
        loan->is_offered = false;
        loan_request(client, GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN);
        settle(userdata);
}

void loan_take(Loan *loan, unsigned n) {
        DirectRing reader = {.shared = loan->ring.shared};
        uint32_t tag, prepared;

        if (!reader.shared)
                return;
        reader.position = reader.shared->n_taken;
        while (n-- && direct_ring_look(&reader, &tag, &prepared)) {
                direct_ring_begin(&reader, tag);
                direct_ring_take(&reader, tag);
        }
}

/* ---- what is hostile ------------------------------------------------------------- */

void loan_spoil(const Loan *loan, const FakeClient *client, Input *input) {
        uint32_t *words = (uint32_t *)loan->ring.shared, *word;
        DirectEntry *entry;

        if (!words)
                return;
        entry = direct_ring_entry(&loan->ring, loan->ring.shared->n_taken + input_u8(input) % 16);
        switch (input_below(input, 4)) {
                case 0:
                        word = words + 16 * input_below(input, 3) + input_below(input, 3);
                        break;
                case 1:
                case 2:
                        word = (uint32_t *)entry + input_below(input, 6);
                        break;
                default:
                        word = words + input_u16(input) % (direct_ring_bytes() / sizeof(*words));
        }
        switch (input_below(input, 4)) {
                case 0:
                        *word = (uint32_t)input_edge(input);
                        break;
                case 1:
                        *word = client->tag + input_u8(input) - 64;
                        break;
                case 2:
                        *word = input_below(input, 4);
                        break;
                default:
                        *word += input_u8(input) - 128;
        }
}

void loan_return(const Loan *loan, const FakeClient *client, FakeWorker *worker, Input *input) {
        WorkerTaken taken[WORKER_DIRECT_JOBS];
        uint8_t how = input_u8(input);
        uint32_t n_written = loan->ring.shared ? loan->ring.shared->n_written : 0;
        WorkerMessage message = {
                {
                        .kind = FROM_WORKER_RETURNED,
                        .id = client->session,
                        .number = WORKER_TAKEN(n_written, client->tag),
                        .n_items = how % 128,
                },
                .items = taken,
        };

        for (uint32_t i = 0; i < message.head.n_items; ++i)
                taken[i] = (WorkerTaken){client->tag - message.head.n_items + 1 + i,
                                         1 + i % LOAN_PREPARED};
        if (how & 128) {
                taken[how % 128 / 2] =
                        (WorkerTaken){(uint32_t)input_edge(input), input_below(input, 4)};
                if (input_below(input, 4) == 0)
                        message.head.number = input_number(input, 8);
        }
        fake_say(worker, message, -1);
}

void loan_count(const FakeClient *client, FakeWorker *worker, Input *input) {
        WorkerLent lent[4];
        unsigned n = 1 + input_below(input, ARRAY_SIZE(lent));
        WorkerMessage message = {
                {.kind = FROM_WORKER_LENT, .number = input_edge(input)},
                .items = lent,
        };

        for (unsigned i = 0; i < n; ++i)
                lent[i] = (WorkerLent){
                        .session = client->session,
                        .prepared = 1 + input_u8(input) / 8 % 3,
                        .n_done = 1 + input_edge(input),
                        .waited_us = input_edge(input),
                        .ran_us = input_edge(input),
                        .busy_ns = input_edge(input),
                };
        message.head.n_items = (uint32_t)(n * sizeof(*lent)) - (input_u8(input) >= 250);
        fake_say(worker, message, -1);
}

/* ---- the rest ----------------------------------------------------------------------- */

bool loan_end_jobs(Fake *fake, FakeWorker *worker) {
        const Engine *engine = &fake->supervisor->engine;
        bool any = false;
        const Job *job;

        for (size_t i = 0; !worker->is_ended && i < worker->n_jobs; ++i) {
                job = job_find(engine, worker->jobs[i]);
                if (!job || job->state != JOB_RUNNING)
                        continue;
                fake_end(worker, worker->jobs[i], 0);
                any = true;
        }
        worker->n_jobs = 0;
        return any;
}

/* No job has the tag 0, whatever a ring or a worker said. */
static void loan_check_history(const Session *session) {
        const User *user = session->submitter.user;
        uint64_t id = (uint64_t)session->submitter.id << 32;

        if (user && (history_find(user->history, id) || history_was_leased(user->history, id)))
                abort();
}

void loan_check(const Fake *fake) {
        const Supervisor *supervisor = fake->supervisor;
        const Session *session;
        const Worker *worker;
        const Lease *lease;
        size_t n_out = 0;

        for (worker = supervisor->workers.table; worker; worker = worker->hh.next)
                TAILQ_FOREACH (lease, &worker->executor.leases, link) {
                        session = session_find(&supervisor->clients, lease->submitter->id);
                        if (!session || !lending_is_out(session) || !lease->n_templates ||
                            lease->executor != &worker->executor)
                                abort();
                        n_out++;
                }
        for (session = supervisor->clients.sessions; session; session = session->hh.next) {
                n_out -= lending_is_out(session);
                loan_check_history(session);
        }
        if (n_out)
                abort();
}
