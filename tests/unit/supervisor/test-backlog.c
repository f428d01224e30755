/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that concern all of a user's jobs: each turn of the loop does a bounded part of the work,
 * counted in steps, and other users' jobs go on meanwhile.
 */
#include "fake.h"

#include "slot.h"

#define MANY     20000u
#define SESSIONS 48u
#define STEPS_IN 1024u /* most of one turn */

static char *const one_at_a_time[] = {"inflight_jobs=1", "quantum_ms=0", NULL};

static Fake *fake_with(char *const *settings) {
        return fake_new(1, (char **)settings);
}

static FakeClient *client_with_module(Fake *fake, uint32_t uid) {
        FakeClient *client = fake_client(fake, uid);

        fake_module(client);
        return client;
}

static Engine *engine_of(const Fake *fake) {
        return &fake->supervisor->engine;
}

/* Turns until the backlog is done. Return: how many were needed. */
static unsigned turns(Fake *fake) {
        unsigned n = 0;

        do {
                uint64_t before = engine_of(fake)->n_steps;

                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
                assert_true(engine_of(fake)->n_steps - before <= STEPS_IN);
                n++;
        } while (n < 3 || !backlog_is_empty(engine_of(fake))); /* news take two turns */
        return n;
}

static void a_client_that_dies_with_many_jobs(void **state) {
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeWorker *worker;
        uint64_t first;

        first = fake_submit_many(client, (FakeJob){}, MANY);
        worker = fake_worker(fake, 0, 1);
        assert_int_equal(HASH_COUNT(engine_of(fake)->jobs), MANY);
        wire_free(client->wire);
        client->wire = NULL;
        uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT); /* it is read that the client is gone */
        assert_true(turns(fake) > 2 * MANY / STEPS_IN);
        assert_int_equal(HASH_COUNT(engine_of(fake)->jobs), 1);

        fake_end(worker, first, 0);
        fake_turn(fake);
        assert_int_equal(worker->n_jobs, 1); /* none of the others ran meanwhile */
        assert_null(engine_of(fake)->jobs);
        fake_client_close(client);
        fake_free(fake);
}

/* A job that writes, and many that read what it wrote. Return: its id. */
static uint64_t submit_with_readers(FakeClient *client, size_t n) {
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), id;

        id = fake_submit(client, (FakeJob){.arena = arena,
                                           .length = 64,
                                           .direction = GPUQ__V1__DIRECTION__OUT,
                                           .repeatable = true});
        fake_submit_many(client,
                         (FakeJob){.arena = arena,
                                   .length = 64,
                                   .direction = GPUQ__V1__DIRECTION__IN,
                                   .repeatable = true},
                         n);
        return id;
}

static size_t n_queued(const Fake *fake) {
        return engine_of(fake)->devices[0].n_queued;
}

static void a_job_with_many_followers_starts_and_ends(void **state) {
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeWorker *worker;
        uint64_t blocker, writer;

        blocker = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 1);
        writer = submit_with_readers(client, MANY);
        assert_int_equal(n_queued(fake), 1); /* the writer */

        fake_end(worker, blocker, 0);
        assert_true(turns(fake) > MANY / STEPS_IN);
        fake_turn(fake);
        assert_int_equal(worker->jobs[1], writer);
        assert_int_equal(n_queued(fake), MANY); /* they may follow it */

        fake_end(worker, writer, 0);
        assert_true(turns(fake) > MANY / STEPS_IN);
        fake_turn(fake);
        assert_int_equal(worker->jobs[2], writer + 1);
        assert_int_equal(worker->after[2], 0);
        fake_client_close(client);
        fake_turn(fake);
        fake_free(fake);
}

static void many_dependents_of_a_job_that_fails(void **state) {
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);
        FakeWorker *worker;
        uint64_t first, theirs;

        first = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 1);
        fake_submit_many(client, (FakeJob){.after = first}, MANY);
        fake_end(worker, first, GPUQ__V1__CODE__E_INVALID);
        uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        assert_false(backlog_is_empty(engine_of(fake)));

        theirs = fake_submit_unseen(other, (FakeJob){}); /* it does not wait for all of that */
        for (unsigned i = 0; i < 3; ++i)
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        assert_non_null(job_find(engine_of(fake), theirs));
        assert_int_equal(job_find(engine_of(fake), theirs)->state, JOB_RUNNING);
        assert_false(backlog_is_empty(engine_of(fake)));

        (void)turns(fake);
        fake_expect_end(client, first + MANY, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_DEPENDENCY,
                        "");
        fake_turn(fake);
        fake_end(fake_worker(fake, 1, 1), theirs, 0);
        fake_expect_end(other, theirs, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

/* What they depended on is let go with their ends, in steps, and not all at once when they are reported. */
static void jobs_that_depend_on_very_many_end(void **state) {
        enum { N_BEFORE = 512, N_AFTER = 200 };
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t before, after, from;
        FakeWorker *worker;
        const Job *job;

        before = fake_submit_many(client, (FakeJob){}, N_BEFORE);
        worker = fake_worker(fake, 0, 1);
        for (unsigned i = 0; i < N_AFTER; ++i)
                after = fake_submit(client, (FakeJob){.after = before, .n_after = N_BEFORE});
        job = job_find(engine_of(fake), after);
        assert_int_equal(job->edges.n_after, N_BEFORE);
        for (unsigned i = 0; i < N_BEFORE; ++i)
                assert_int_equal(job->edges.after[i].before->id, before + i);

        from = engine_of(fake)->n_steps;
        fake_end(worker, before, GPUQ__V1__CODE__E_INVALID);
        assert_true(turns(fake) > 3);
        assert_true(engine_of(fake)->n_steps - from >= N_AFTER * N_BEFORE / JOB_AFTER_STEP);
        for (unsigned i = 1; i < N_BEFORE; ++i)
                assert_false(job_has_followers(job_find(engine_of(fake), before + i)));
        fake_expect_end(client, after, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_DEPENDENCY,
                        "the job depends on job 1.1, which failed");
        fake_client_close(client);
        fake_turn(fake);
        fake_free(fake);
}

/* They stay queued when it goes back, and find when they are picked that they have to wait again. */
static void followers_wait_again_for_a_job_that_comes_back(void **state) {
        Fake *fake = fake_with((char *[]){"inflight_jobs=2", "quantum_ms=0", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeWorker *worker;
        uint64_t writer;

        writer = submit_with_readers(client, 4);
        worker = fake_worker(fake, 0, 2);
        assert_int_equal(worker->jobs[0], writer);
        assert_int_equal(worker->after[1], writer);
        assert_int_equal(n_queued(fake), 3);

        fake_stopped(fake, worker, "a fault", (uint64_t[]){writer, writer + 1},
                     (WorkerPhase[]){WORKER_PHASE_QUEUED, WORKER_PHASE_QUEUED}, 2);
        worker = fake_worker(fake, 1, 2);
        assert_int_equal(worker->jobs[0], writer);
        assert_int_equal(worker->jobs[1], writer + 1);
        assert_int_equal(worker->after[1], writer);
        for (unsigned i = 0; i < 5; ++i) {
                fake_worker(fake, 1, MIN(i + 2, 5));
                assert_int_equal(worker->jobs[i], writer + i);
                fake_end(worker, writer + i, 0);
                fake_expect_end(client, writer + i, GPUQ__V1__STATE__DONE, 0, NULL);
        }
        fake_client_close(client);
        fake_free(fake);
}

/* A cancelled job leaves a gap; the readers behind it wait for what was before it. */
static void followers_of_a_cancelled_job_wait_for_those_before_it(void **state) {
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), first, second;
        FakeJob writes = {.arena = arena, .length = 64, .direction = GPUQ__V1__DIRECTION__OUT};
        FakeJob reads = {.arena = arena, .length = 64, .direction = GPUQ__V1__DIRECTION__IN};
        FakeWorker *worker;

        first = fake_submit(client, writes);
        worker = fake_worker(fake, 0, 1);
        second = fake_submit(client, writes);
        fake_submit_many(client, reads, MANY);
        place_end_soon(job_find(engine_of(fake), second), JOB_CANCELLED,
                       failure_new(FAILURE_CANCELLED, "cancelled"));
        (void)turns(fake);
        fake_turn(fake);
        assert_int_equal(worker->n_jobs, 1);

        fake_end(worker, first, 0);
        assert_true(turns(fake) > MANY / STEPS_IN);
        fake_turn(fake);
        assert_int_equal(worker->n_jobs, 2);
        assert_int_equal(worker->jobs[1], second + 1);
        assert_int_equal(n_queued(fake), MANY - 1);
        fake_client_close(client);
        fake_turn(fake);
        fake_free(fake);
}

static bool has_given_up(void *userdata) {
        return !TAILQ_EMPTY(&engine_of(userdata)->giving_up);
}

static void many_jobs_whose_worker_does_not_start(void **state) {
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *client;
        uint64_t first;

        client = client_with_module(fake, FAKE_UID);
        fake->start_error = "it does not start";
        fake_die(fake, fake_worker(fake, 0, 0));
        first = fake_submit_many(client, (FakeJob){}, MANY);
        while (!has_given_up(fake)) {
                uv_run(&fake->supervisor->loop, UV_RUN_ONCE);
                if (!has_given_up(fake))
                        fake_step(fake);
        }
        assert_true(turns(fake) > MANY / STEPS_IN);
        fake_expect_end(client, first + MANY - 1, GPUQ__V1__STATE__FAILED,
                        GPUQ__V1__CODE__E_NO_DEVICE, "it does not start");
        assert_null(engine_of(fake)->jobs);
        fake_client_close(client);
        fake_free(fake);
}

/* The others stay in their queue, so that it takes few steps to let them go; other sessions go by. */
static void few_jobs_wait_for_a_module_outside_their_queue(void **state) {
        Fake *fake = fake_with((char *[]){"inflight_jobs=8", "quantum_ms=0", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID), *plain;
        FakeWorker *worker;
        uint64_t first, other;

        plain = fake_client(fake, FAKE_UID);
        fake_die(fake, fake_worker(fake, 0, 0));
        fake->hold_modules = true;
        first = fake_submit_many(client, (FakeJob){}, MANY);
        worker = fake_worker(fake, 1, 0);
        other = fake_submit(plain, (FakeJob){});
        fake_worker(fake, 1, 1);
        assert_int_equal(worker->jobs[0], other);
        assert_int_equal(worker->n_jobs, 1);
        assert_int_equal(job_find(engine_of(fake), first)->place, JOB_PARKED);
        assert_int_equal(job_find(engine_of(fake), first + INSTANCE_PARKED_MAX - 1)->place,
                         JOB_PARKED);
        assert_int_equal(job_find(engine_of(fake), first + INSTANCE_PARKED_MAX)->place, JOB_QUEUED);

        fake_release_modules(fake, worker, 0);
        fake_worker(fake, 1, 8);
        assert_int_equal(worker->jobs[1], first);
        assert_int_equal(worker->jobs[7], first + 6);
        fake_client_close(client);
        fake_client_close(plain);
        fake_free(fake);
}

static void send_cancel_all(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;

        cancel.all = true;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
}

/* What the client sends behind it waits; jobs that others of its user submit meanwhile stay. */
static void cancelling_all_of_many_jobs(void **state) {
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *second = client_with_module(fake, FAKE_UID);
        Serving *serving = &fake->supervisor->clients.serving;
        uint64_t behind, beside, before;
        Gpuq__V1__Reply *reply;

        fake_submit_many(client, (FakeJob){}, MANY);
        client->is_unseen = true;
        send_cancel_all(client);
        behind = fake_submit(client, (FakeJob){});
        uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT); /* the first part of it */
        assert_true(serving_has_waiting(serving));
        beside = fake_submit_unseen(second, (FakeJob){});
        for (unsigned n = 0; n < 3 || serving_has_waiting(serving); ++n) {
                before = serving->n_steps;
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
                /* MANY / 16: the reply, which is one piece */
                assert_in_range(serving->n_steps - before, 0,
                                SERVING_TURN_STEPS + SERVING_VISIT_STEPS + MANY / 16);
        }
        fake_step(fake);
        do
                reply = fake_receive(client);
        while (reply->body_case != GPUQ__V1__REPLY__BODY_CANCELLED);
        assert_int_equal(reply->cancelled->n_ids, MANY);
        assert_non_null(job_find(engine_of(fake), behind));
        assert_non_null(job_find(engine_of(fake), beside));
        assert_null(job_find(engine_of(fake), behind)->verdict.failure);
        assert_null(job_find(engine_of(fake), beside)->verdict.failure);
        fake_client_close(client);
        fake_client_close(second);
        fake_free(fake);
}

/* Each session had a message of jobs behind a job that was yet to come, and all were served in one turn. */
static void deferred_requests_of_many_sessions_are_divided_among_turns(void **state) {
        Fake *fake = fake_with(one_at_a_time);
        FakeClient *first = fake_client(fake, FAKE_UID), *clients[SESSIONS];
        Serving *serving = &fake->supervisor->clients.serving;
        uint64_t ahead = (uint64_t)first->session << 32 | 9, ids[SESSIONS], before;

        for (size_t i = 0; i < SESSIONS; ++i)
                clients[i] = fake_client(fake, FAKE_UID);
        for (size_t i = 0; i < SESSIONS; ++i) {
                clients[i]->is_unseen = true;
                ids[i] = fake_submit_many(clients[i], (FakeJob){.after = ahead}, WIRE_JOBS_MAX);
        }
        for (unsigned n = 0; n < 8 || serving_has_waiting(serving); ++n) {
                before = serving->n_steps;
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
                assert_in_range(serving->n_steps - before, 0, 8 * SERVING_TURN_STEPS);
        }
        for (size_t i = 0; i < SESSIONS; ++i) {
                clients[i]->is_unseen = false;
                fake_expect_end(clients[i], ids[i], GPUQ__V1__STATE__FAILED,
                                GPUQ__V1__CODE__E_DEPENDENCY, "does not exist");
                fake_client_close(clients[i]);
        }
        fake_client_close(first);
        fake_free(fake);
}

static void a_cursor_passes_each_job_once_whatever_ends(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t first = fake_submit_many(client, (FakeJob){}, 6);
        JobCursor cursor = {};
        Job *jobs[6];

        for (size_t i = 0; i < 6; ++i)
                jobs[i] = job_find(engine_of(fake), first + i);
        cursor_begin(&cursor, jobs[0]->user);
        assert_ptr_equal(cursor_next(&cursor), jobs[0]);
        ending_cancel(jobs[0], failure_new(FAILURE_CANCELLED, "behind it"));
        ending_cancel(jobs[1], failure_new(FAILURE_CANCELLED, "where it is"));
        ending_cancel(jobs[2], failure_new(FAILURE_CANCELLED, "and again"));
        assert_ptr_equal(cursor_next(&cursor), jobs[3]);
        ending_cancel(jobs[5], failure_new(FAILURE_CANCELLED, "before it"));
        assert_ptr_equal(cursor_next(&cursor), jobs[4]);
        assert_null(cursor_next(&cursor));
        cursor_end(&cursor);
        cursor_end(&cursor);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_client_that_dies_with_many_jobs),
                cmocka_unit_test(a_job_with_many_followers_starts_and_ends),
                cmocka_unit_test(many_dependents_of_a_job_that_fails),
                cmocka_unit_test(jobs_that_depend_on_very_many_end),
                cmocka_unit_test(followers_wait_again_for_a_job_that_comes_back),
                cmocka_unit_test(followers_of_a_cancelled_job_wait_for_those_before_it),
                cmocka_unit_test(many_jobs_whose_worker_does_not_start),
                cmocka_unit_test(few_jobs_wait_for_a_module_outside_their_queue),
                cmocka_unit_test(cancelling_all_of_many_jobs),
                cmocka_unit_test(deferred_requests_of_many_sessions_are_divided_among_turns),
                cmocka_unit_test(a_cursor_passes_each_job_once_whatever_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
