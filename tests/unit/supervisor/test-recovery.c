/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <string.h>

#include "worker.h"

#define DONE       GPUQ__V1__STATE__DONE
#define FAILED     GPUQ__V1__STATE__FAILED
#define CANCELLED  GPUQ__V1__STATE__CANCELLED
#define IN         GPUQ__V1__DIRECTION__IN
#define OUT        GPUQ__V1__DIRECTION__OUT
#define INOUT      GPUQ__V1__DIRECTION__INOUT
#define QUEUED     WORKER_PHASE_QUEUED
#define ISSUED     WORKER_PHASE_ISSUED
#define COMMITTING WORKER_PHASE_COMMITTING

#define ILLEGAL_ADDRESS "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"

static FakeClient *client_with_module(Fake *fake, uint32_t uid) {
        FakeClient *client = fake_client(fake, uid);

        fake_module(client);
        return client;
}

static void the_guilty_job_fails_and_names_its_kernel(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        fake_stopped(fake, worker, ILLEGAL_ADDRESS, &id, (WorkerPhase[]){ISSUED}, 1);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT,
                        "kernel add: " ILLEGAL_ADDRESS
                        " (this job caused the fault: no other job was in flight)");
        /* and the next one gets a fresh worker */
        id = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 1, 1);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

/* Not what the kernel printed. */
static void the_error_has_the_line_that_the_driver_said(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);
        WorkerInFlight in_flight = {.id = id, .phase = ISSUED};

        fake_say(worker,
                 (WorkerMessage){
                         {.kind = FROM_WORKER_STOPPED,
                          .code = GPUQ__V1__CODE__E_FAULT,
                          .n_items = 1},
                         .text = "CUDA_ERROR_ASSERT: device-side assert triggered",
                         .more = "block: [4]\nk.cu:3: block: [0,0,0] `x < 4` failed.\nblock: "
                                 "[5,\nblock: [1,2,3\nblock: [",
                         .items = &in_flight,
                 },
                 -1);
        fake_turn(fake);
        fake_die(fake, worker);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT,
                        "kernel add: CUDA_ERROR_ASSERT: device-side assert triggered: k.cu:3: "
                        "block: [0,0,0] `x < 4` failed. (this job caused the fault: no other job "
                        "was in flight)");
        fake_client_close(client);
        fake_free(fake);
}

static bool is_running(Fake *fake, uint64_t id) {
        const Job *job = job_find(&fake->supervisor->engine, id);

        return job && job->state == JOB_RUNNING;
}

/* What it left on the device may write into arenas until then. */
static void nothing_is_told_or_runs_again_before_the_process_has_ended(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        fake_last_word(worker, ILLEGAL_ADDRESS, false, &id, (WorkerPhase[]){ISSUED}, 1);
        fake_turn(fake);
        assert_true(is_running(fake, id));
        assert_int_equal(fake->n_workers, 1);
        fake_die(fake, worker);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT, ILLEGAL_ADDRESS);
        fake_client_close(client);
        fake_free(fake);
}

/* The driver may hold it for ever. */
static void one_that_cannot_be_ended_is_not_waited_for_for_ever(void **state) {
        WorkerPhase phases[] = {ISSUED, QUEUED};
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t ids[2], before_ns;
        Worker *worker;

        ids[0] = fake_submit(client, (FakeJob){});
        ids[1] = fake_submit(client, (FakeJob){});
        before_ns = uv_hrtime();
        fake_last_word(fake_worker(fake, 0, 2), ILLEGAL_ADDRESS, false, ids, phases, 2);
        fake_turn(fake);
        worker = worker_of(job_find(&fake->supervisor->engine, ids[0])->executor);
        worker_tick(worker, before_ns + (WORKER_DYING_MS - 1000) * 1000000ull);
        assert_true(is_running(fake, ids[0]));
        worker_tick(worker, uv_hrtime() + (WORKER_DYING_MS + 1000) * 1000000ull);
        fake_expect_end(client, ids[0], FAILED, GPUQ__V1__CODE__E_FAULT, ILLEGAL_ADDRESS);
        fake_end(fake_worker(fake, 1, 1), ids[1], 0);
        fake_expect_end(client, ids[1], DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void one_that_is_killed_for_a_cancelled_job_is_not_waited_for_either(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        Worker *worker;

        fake_worker(fake, 0, 1);
        worker = worker_of(job_find(&fake->supervisor->engine, id)->executor);
        fake->is_deaf = true; /* the keeper's signal has no effect */
        worker_kill(worker);
        worker_tick(worker, uv_hrtime() + (WORKER_DYING_MS - 1000) * 1000000ull);
        assert_true(is_running(fake, id));
        worker_tick(worker, uv_hrtime() + (WORKER_DYING_MS + 1000) * 1000000ull);
        assert_false(is_running(fake, id));
        fake->is_deaf = false;
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static bool has_ended(void *userdata) {
        const FakeWorker *worker = userdata;

        return worker->is_ended;
}

static void one_that_has_said_its_last_word_and_stays_is_killed(void **state) {
        WorkerPhase phases[] = {ISSUED, QUEUED};
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t ids[2];
        FakeWorker *worker;

        ids[0] = fake_submit(client, (FakeJob){});
        ids[1] = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 2);
        fake_last_word(worker, ILLEGAL_ADDRESS, false, ids, phases, 2);
        fake_wait(fake, has_ended, worker);
        fake_expect_end(client, ids[0], FAILED, GPUQ__V1__CODE__E_FAULT, ILLEGAL_ADDRESS);
        fake_end(fake_worker(fake, 1, 1), ids[1], 0);
        fake_expect_end(client, ids[1], DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

/* Its word ends it for the others, and it is in the way of nobody. */
static void one_that_says_that_its_device_failed_and_stays_is_killed(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        fake_last_word(worker, "CUDA_ERROR_ECC_UNCORRECTABLE", true, &id, (WorkerPhase[]){ISSUED},
                       1);
        fake_wait(fake, has_ended, worker);
        fake_client_close(client);
        fake_free(fake);
}

static void suspects_run_alone_one_by_one(void **state) {
        WorkerPhase phases[] = {ISSUED, ISSUED, ISSUED, QUEUED};
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t first = fake_submit_many(client, (FakeJob){}, 4);
        uint64_t ids[] = {first, first + 1, first + 2, first + 3};
        FakeWorker *worker = fake_worker(fake, 0, 4);

        assert_int_equal(worker->n_alone, 0);
        fake_stopped(fake, worker, ILLEGAL_ADDRESS, ids, phases, 4);
        worker = fake_worker(fake, 1, 1);
        fake_turn(fake);
        assert_int_equal(worker->n_jobs, 1);
        assert_int_equal(worker->jobs[0], first);
        assert_string_equal(fake_reason(client, first + 3),
                            "jobs run one at a time to find the cause of a fault");
        fake_end(worker, first, 0);
        worker = fake_worker(fake, 1, 2);
        assert_int_equal(worker->jobs[1], first + 1);
        fake_stopped(fake, worker, ILLEGAL_ADDRESS, &ids[1], phases, 1);
        fake_expect_end(client, first + 1, FAILED, GPUQ__V1__CODE__E_FAULT,
                        "it failed again when it ran alone");
        worker = fake_worker(fake, 2, 1);
        assert_int_equal(worker->jobs[0], first + 2);
        assert_int_equal(worker->n_jobs, 1);
        fake_end(worker, first + 2, 0);
        worker = fake_worker(fake, 2, 2);
        assert_int_equal(worker->jobs[1], first + 3);
        assert_int_equal(worker->n_alone, 2); /* the last one runs the kernel that faulted */
        fake_end(worker, first + 3, 0);
        fake_expect_end(client, first + 3, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void bystanders_that_cannot_run_twice_name_their_buffers(void **state) {
        WorkerPhase phases[] = {ISSUED, ISSUED, ISSUED, COMMITTING};
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t device = fake_arena(client, GPUQ__V1__PLACE__DEVICE, 4096);
        uint64_t host = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        FakeJob in_place = {.arena = device, .offset = 16, .length = 32, .direction = INOUT};
        uint64_t ids[4];
        FakeWorker *worker;

        ids[0] = fake_submit(client, (FakeJob){});
        ids[1] = fake_submit(client, in_place);
        in_place.offset = 1024;
        in_place.repeatable = true;
        ids[2] = fake_submit(client, in_place);
        ids[3] = fake_submit(client, (FakeJob){.arena = host, .length = 8, .direction = INOUT});
        worker = fake_worker(fake, 0, 4);
        fake_stopped(fake, worker, ILLEGAL_ADDRESS, ids, phases, 4);
        fake_expect_end(client, ids[1], FAILED, GPUQ__V1__CODE__E_HALF_WRITTEN,
                        "bytes 16 to 48 of arena 1");
        fake_expect_end(client, ids[3], FAILED, GPUQ__V1__CODE__E_HALF_WRITTEN,
                        "bytes 0 to 8 of arena 2");
        worker = fake_worker(fake, 1, 1);
        fake_end(worker, ids[0], 0);
        worker = fake_worker(fake, 1, 2);
        assert_int_equal(worker->n_arenas, 1); /* the device arena is still there */
        fake_end(worker, ids[2], 0);
        fake_expect_end(client, ids[2], DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void order_is_kept_when_jobs_run_again(void **state) {
        WorkerPhase phases[] = {ISSUED, QUEUED, ISSUED};
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        uint64_t ids[3];
        FakeWorker *worker;

        ids[0] = fake_submit(client, (FakeJob){.arena = arena, .length = 8, .direction = OUT});
        ids[1] = fake_submit(client, (FakeJob){.arena = arena, .length = 8, .direction = IN});
        ids[2] = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 3);
        assert_int_equal(worker->after[1], ids[0]);
        fake_stopped(fake, worker, ILLEGAL_ADDRESS, ids, phases, 3);
        worker = fake_worker(fake, 1, 1);
        assert_int_equal(worker->jobs[0], ids[0]);
        fake_end(worker, ids[0], 0);
        worker = fake_worker(fake, 1, 2);
        assert_int_equal(worker->jobs[1], ids[2]); /* alone, so before the one that never ran */
        fake_end(worker, ids[2], 0);
        worker = fake_worker(fake, 1, 3);
        assert_int_equal(worker->jobs[2], ids[1]);
        fake_end(worker, ids[1], 0);
        fake_expect_end(client, ids[1], DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void another_user_notices_nothing(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);
        uint64_t id = fake_submit(client, (FakeJob){}), theirs = fake_submit(other, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1), *beside = fake_worker(fake, 1, 1);

        fake_die(fake, worker);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT, "killed by signal 9");
        assert_non_null(job_find(&fake->supervisor->engine, theirs));
        fake_end(beside, theirs, 0);
        fake_expect_end(other, theirs, DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_worker_that_lies_is_killed(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);
        uint64_t id = fake_submit(client, (FakeJob){}), theirs = fake_submit(other, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1), *beside = fake_worker(fake, 1, 1);

        fake_end(worker, theirs, 0);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT, "no other job was in flight");
        assert_true(worker->is_killed);
        fake_end(beside, theirs, 0);
        fake_expect_end(other, theirs, DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

/* Each as the last word of a worker with two jobs. */
static void a_worker_whose_messages_make_no_sense_is_killed(void **state) {
        enum {
                ERROR_OF_TWO_ENDS,
                UNKNOWN_PHASE,
                NO_COUNTERS,
                UNKNOWN_WAIT,
                MODULE_TWICE,
                OF_A_PROBE,
                N_WAYS,
        };

        for (int way = 0; way < N_WAYS; ++way) {
                Fake *fake = fake_new(1, NULL);
                FakeClient *client = client_with_module(fake, FAKE_UID);
                uint64_t first = fake_submit(client, (FakeJob){}),
                         second = fake_submit(client, (FakeJob){});
                FakeWorker *worker = fake_worker(fake, 0, 2);
                WorkerEnd ends[] = {{.id = first}, {.id = second}};
                WorkerInFlight jobs[] = {{first, ISSUED}, {second, COMMITTING + 1}};
                WorkerMessage messages[] = {
                        [ERROR_OF_TWO_ENDS] = {{.kind = FROM_WORKER_ENDS, .code = 7, .n_items = 2},
                                               .text = "whose?",
                                               .items = ends},
                        [UNKNOWN_PHASE] = {{.kind = FROM_WORKER_STOPPED, .n_items = 2},
                                           .items = jobs},
                        [NO_COUNTERS] = {{.kind = FROM_WORKER_STATS, .n_items = 4},
                                         .items = "\xff\xff\xff\xff"},
                        [UNKNOWN_WAIT] = {{.kind = FROM_WORKER_STATS, .detail = _WORKER_WAITS_N}},
                        [MODULE_TWICE] = {{.kind = FROM_WORKER_MODULE_ADDED,
                                           .id = client->module,
                                           .n_items = 4},
                                          .items = "\xff\xff\xff\xff"},
                        [OF_A_PROBE] = {{.kind = FROM_WORKER_PROBED}},
                };

                fake_say(worker, messages[way], -1);
                fake_turn(fake);
                assert_true(worker->is_killed);
                fake_client_close(client);
                fake_free(fake);
        }
}

static void a_worker_of_another_build_is_killed(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeWorker *worker = fake_worker(fake, 0, 0);

        fake_say(worker,
                 (WorkerMessage){{.kind = FROM_WORKER_READY, .number = WORKER_PROTOCOL + 1}}, -1);
        fake_turn(fake);
        assert_true(worker->is_killed);
        fake_client_close(client);
        fake_free(fake);
}

static void a_late_job_times_out_and_the_others_run_again(void **state) {
        WorkerPhase phases[] = {ISSUED, ISSUED};
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t late = fake_submit(client, (FakeJob){.timeout_ms = 2000});
        uint64_t other = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 2);

        fake_late(worker, late);
        fake_turn(fake);
        assert_true(worker->is_stopping);
        fake_stopped(fake, worker, NULL, (uint64_t[]){late, other}, phases, 2);
        fake_expect_end(client, late, FAILED, GPUQ__V1__CODE__E_TIMEOUT,
                        "kernel add ran longer than its timeout of 2.000 s");
        worker = fake_worker(fake, 1, 1);
        assert_int_equal(worker->jobs[0], other);
        fake_end(worker, other, 0);
        fake_expect_end(client, other, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_worker_that_does_not_stop_is_killed(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t late = fake_submit(client, (FakeJob){.timeout_ms = 1});
        uint64_t other = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 2);

        fake_late(worker, late);
        fake_expect_end(client, late, FAILED, GPUQ__V1__CODE__E_TIMEOUT, "timeout of 0.001 s");
        assert_true(worker->is_killed);
        worker = fake_worker(fake, 1, 1);
        fake_end(worker, other, 0);
        fake_expect_end(client, other, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

/* As if all of it had been so much earlier. */
static void fake_age(Fake *fake, const FakeWorker *worker, uint64_t ms, bool is_silent) {
        Worker *aged;
        Job *job;

        HASH_FIND(hh, fake->supervisor->workers.table, &worker->id, sizeof(worker->id), aged);
        assert_non_null(aged);
        TAILQ_FOREACH (job, &aged->executor.inflight, link)
                job->clock.started_ns -= ms * 1000000;
        aged->executor.last_end_ns = 0;
        if (is_silent)
                aged->heard_ms -= ms;
}

static void tick(Fake *fake) {
        uint64_t until_ns = uv_hrtime() + 2ull * SUPERVISOR_TICK_MS * 1000000;

        while (uv_hrtime() < until_ns) {
                uv_run(&fake->supervisor->loop, UV_RUN_ONCE);
                fake_turn(fake);
        }
}

static void a_worker_that_keeps_silent_about_any_late_job_is_killed(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t endless = fake_submit(client, (FakeJob){});
        uint64_t late = fake_submit(client, (FakeJob){.timeout_ms = 1});
        FakeWorker *worker = fake_worker(fake, 0, 2);

        fake_age(fake, worker, 10000, false);
        tick(fake);
        assert_false(worker->is_killed); /* it speaks: the job may wait behind the other */
        fake_age(fake, worker, 10000, true);
        tick(fake);
        assert_true(worker->is_killed);
        fake_expect_end(client, late, FAILED, GPUQ__V1__CODE__E_TIMEOUT, "timeout of 0.001 s");
        fake_end(fake_worker(fake, 1, 1), endless, 0);
        fake_expect_end(client, endless, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_running_job_is_cancelled_by_stopping_its_worker(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        FakeWorker *worker = fake_worker(fake, 0, 1);

        cancel.ids = &id;
        cancel.n_ids = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
        fake_expect_end(client, id, CANCELLED, GPUQ__V1__CODE__E_CANCELLED, "cancelled");
        assert_true(worker->is_killed); /* it never answered */
        fake_client_close(client);
        fake_free(fake);
}

static bool has_no_job(void *userdata) {
        const Fake *fake = userdata;

        return HASH_COUNT(fake->supervisor->engine.jobs) == 0;
}

static void a_dead_clients_endless_job_is_ended(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeWorker *worker;

        fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 1);
        fake_client_close(client);
        assert_int_equal(HASH_COUNT(fake->supervisor->engine.jobs), 1);
        fake_wait(fake, has_no_job, fake);
        assert_true(worker->is_stopping);
        fake_free(fake);
}

static void workers_that_do_not_start_give_their_jobs_up(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);
        uint64_t id;

        fake_die(fake, &fake->workers[0]);
        fake->start_error = "out of fake memory";
        id = fake_submit(client, (FakeJob){});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_NO_DEVICE, "out of fake memory");
        assert_int_equal(fake->n_spawned, 2 + 3);
        id = fake_submit(other, (FakeJob){});
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(other, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void variables_that_died_are_told_once(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client;
        FakeWorker *worker;
        uint64_t id;

        fake->has_variables = true;
        client = client_with_module(fake, FAKE_UID);
        id = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 1);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        id = fake_submit(client, (FakeJob){.device = 2});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_INVALID, "are on device 0");
        fake_die(fake, worker);
        id = fake_submit(client, (FakeJob){});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_VARIABLES_LOST, "initial values");
        id = fake_submit(client, (FakeJob){});
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_module_that_kills_its_worker_is_given_up(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id;

        fake->hold_modules = true;
        id = fake_submit(client, (FakeJob){.device = 2});
        for (unsigned i = 1; i <= MODULE_TRIES_MAX; ++i) {
                fake_worker(fake, i, 0);
                fake_turn(fake);
                fake_die(fake, &fake->workers[i]);
        }
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_INTERNAL,
                        "died while it loaded builtin");
        fake_client_close(client);
        fake_free(fake);
}

/* A client asks for a module, does not get it and goes, which nobody has told the worker yet. Return: the worker. */
static FakeWorker *abandon_load(Fake *fake, bool hangs) {
        FakeClient *client = fake_client(fake, FAKE_UID);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;
        FakeWorker *worker = fake_worker(fake, 0, 1);

        fake->hold_modules = true;
        load.format = GPUQ__V1__FORMAT__BUILTIN;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
        fake_turn(fake);
        assert_int_equal(fake->n_held, 1);
        fake->hold_modules = false;
        fake->n_held = 0;
        worker->is_deaf = hangs;
        session_close(session_find(&fake->supervisor->clients, client->session));
        workers_tick(&fake->supervisor->workers, uv_hrtime());
        fake_client_close(client);
        return worker;
}

static void half_a_minute_goes_by(Fake *fake, const FakeWorker *worker) {
        fake_turn(fake);
        fake_age(fake, worker, 30000, true);
        for (unsigned i = 0; i < 120; ++i)
                workers_tick(&fake->supervisor->workers, uv_hrtime());
        fake_turn(fake);
}

static void a_worker_that_hangs_in_a_load_that_nobody_waits_for_is_killed(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = abandon_load(fake, true);

        fake_turn(fake);
        fake_age(fake, worker, 3600000, true);
        workers_tick(&fake->supervisor->workers, uv_hrtime());
        fake_turn(fake);
        assert_false(worker->is_killed); /* perhaps the machine paused */
        half_a_minute_goes_by(fake, worker);
        assert_true(worker->is_killed);
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_worker_that_reads_that_nobody_waits_for_a_load_goes_on(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = abandon_load(fake, false);

        fake_turn(fake);
        assert_int_equal(worker->n_modules_dropped, 1);
        workers_tick(&fake->supervisor->workers, uv_hrtime());
        /* What it does not read later is another matter. */
        worker->is_deaf = true;
        fake_submit(client, (FakeJob){});
        half_a_minute_goes_by(fake, worker);
        assert_false(worker->is_killed);
        worker->is_deaf = false;
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_module_is_not_blamed_for_what_a_job_did(void **state) {
        WorkerPhase issued[] = {ISSUED};
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID);
        uint64_t guilty = fake_submit(client, (FakeJob){.device = 2}), id;
        FakeWorker *worker = fake_worker(fake, 1, 1);

        fake->hold_modules = true;
        id = fake_submit(other, (FakeJob){.device = 2});
        fake_turn(fake);
        fake_stopped(fake, worker, ILLEGAL_ADDRESS, &guilty, issued, 1);
        fake_expect_end(client, guilty, FAILED, GPUQ__V1__CODE__E_FAULT, "illegal");

        /* Once in vain is not too often, and the time before does not count. */
        worker = fake_worker(fake, 2, 0);
        fake_turn(fake);
        fake->hold_modules = false;
        fake_die(fake, worker);
        worker = fake_worker(fake, 3, 1);
        fake_end(worker, id, 0);
        fake_expect_end(other, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_module_that_does_not_load_again_is_tried_with_the_next_job(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_die(fake, fake_worker(fake, 0, 1));
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT, "signal 9");
        fake->hold_modules = true;
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 1, 0);
        fake_turn(fake);
        fake_release_modules(fake, &fake->workers[1], GPUQ__V1__CODE__E_COMPILE);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_COMPILE, "nonsense");

        id = fake_submit(client, (FakeJob){});
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void quitting_tells_clients_and_stops_workers(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeWorker *worker;

        fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 1);
        supervisor_quit(fake->supervisor);
        fake_expect_error(client, GPUQ__V1__CODE__E_SHUTDOWN, "gpuqd is shutting down");
        assert_null(fake_receive(client));
        fake_turn(fake);
        assert_true(worker->is_stopping);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_guilty_job_fails_and_names_its_kernel),
                cmocka_unit_test(the_error_has_the_line_that_the_driver_said),
                cmocka_unit_test(nothing_is_told_or_runs_again_before_the_process_has_ended),
                cmocka_unit_test(one_that_has_said_its_last_word_and_stays_is_killed),
                cmocka_unit_test(one_that_cannot_be_ended_is_not_waited_for_for_ever),
                cmocka_unit_test(one_that_is_killed_for_a_cancelled_job_is_not_waited_for_either),
                cmocka_unit_test(one_that_says_that_its_device_failed_and_stays_is_killed),
                cmocka_unit_test(suspects_run_alone_one_by_one),
                cmocka_unit_test(bystanders_that_cannot_run_twice_name_their_buffers),
                cmocka_unit_test(order_is_kept_when_jobs_run_again),
                cmocka_unit_test(another_user_notices_nothing),
                cmocka_unit_test(a_worker_that_lies_is_killed),
                cmocka_unit_test(a_worker_whose_messages_make_no_sense_is_killed),
                cmocka_unit_test(a_worker_of_another_build_is_killed),
                cmocka_unit_test(a_late_job_times_out_and_the_others_run_again),
                cmocka_unit_test(a_worker_that_does_not_stop_is_killed),
                cmocka_unit_test(a_worker_that_keeps_silent_about_any_late_job_is_killed),
                cmocka_unit_test(a_running_job_is_cancelled_by_stopping_its_worker),
                cmocka_unit_test(a_dead_clients_endless_job_is_ended),
                cmocka_unit_test(workers_that_do_not_start_give_their_jobs_up),
                cmocka_unit_test(variables_that_died_are_told_once),
                cmocka_unit_test(a_module_that_kills_its_worker_is_given_up),
                cmocka_unit_test(a_worker_that_hangs_in_a_load_that_nobody_waits_for_is_killed),
                cmocka_unit_test(a_worker_that_reads_that_nobody_waits_for_a_load_goes_on),
                cmocka_unit_test(a_module_is_not_blamed_for_what_a_job_did),
                cmocka_unit_test(a_module_that_does_not_load_again_is_tried_with_the_next_job),
                cmocka_unit_test(quitting_tells_clients_and_stops_workers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
