/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <string.h>

#define DONE      GPUQ__V1__STATE__DONE
#define FAILED    GPUQ__V1__STATE__FAILED
#define CANCELLED GPUQ__V1__STATE__CANCELLED
#define IN        GPUQ__V1__DIRECTION__IN
#define OUT       GPUQ__V1__DIRECTION__OUT
#define INOUT     GPUQ__V1__DIRECTION__INOUT

static FakeClient *client_with_module(Fake *fake, uint32_t uid) {
        FakeClient *client = fake_client(fake, uid);

        fake_module(client);
        return client;
}

static bool holds_a_module(void *userdata) {
        const Fake *fake = userdata;

        return fake->n_held > 0;
}

static void send_cancel(FakeClient *client, uint64_t id, bool all) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;

        cancel.ids = &id;
        cancel.n_ids = id != 0;
        cancel.all = all;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
}

static void send_wait(FakeClient *client, uint64_t id) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Wait wait = GPUQ__V1__WAIT__INIT;

        wait.id = id;
        request.body_case = GPUQ__V1__REQUEST__BODY_WAIT;
        request.wait = &wait;
        fake_send(client, &request);
}

static void a_job_runs_and_its_end_is_told_once(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        uint64_t id = fake_submit(client, (FakeJob){.arena = arena, .length = 8, .direction = OUT});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        assert_int_equal(worker->jobs[0], id);
        assert_int_equal(worker->n_arenas, 1);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        assert_null(job_find(&fake->supervisor->engine, id));
        fake_client_close(client);
        assert_int_equal(worker->n_dropped, 1);
        fake_free(fake);
}

static void what_is_submitted_together_goes_out_together(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_ms=1000", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t first = fake_submit_many(client, (FakeJob){}, 50);
        FakeWorker *worker = fake_worker(fake, 0, 50);

        assert_int_equal(worker->n_lists, 1);
        for (uint64_t i = 0; i < 50; ++i)
                fake_end(worker, first + i, 0);
        fake_completion(client, first + 49);
        assert_int_equal(client->reply->completions->n_completions, 50);
        fake_client_close(client);
        fake_free(fake);
}

static void what_is_in_flight_is_bounded_by_count_and_time(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=3", "inflight_ms=1000", NULL});
        Fake *timed = fake_new(1, (char *[]){"inflight_ms=5", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *timed_client = client_with_module(timed, FAKE_UID);

        fake_submit_many(client, (FakeJob){}, 10);
        fake_turn(fake);
        assert_int_equal(fake_worker(fake, 0, 1)->n_jobs, 3);
        /* of unknown duration, which counts as 1 ms */
        fake_submit_many(timed_client, (FakeJob){}, 10);
        fake_turn(timed);
        assert_int_equal(fake_worker(timed, 0, 1)->n_jobs, 5);
        fake_client_close(client);
        fake_client_close(timed_client);
        fake_free(fake);
        fake_free(timed);
}

static void priority_then_sessions_in_turn(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", NULL});
        FakeClient *a = client_with_module(fake, FAKE_UID), *b = client_with_module(fake, FAKE_UID);
        uint64_t running = fake_submit(a, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);
        uint64_t a1 = fake_submit_many(a, (FakeJob){}, 2);
        uint64_t b1 = fake_submit_many(b, (FakeJob){}, 2);
        uint64_t urgent = fake_submit(b, (FakeJob){.priority = 5});
        uint64_t wanted[] = {running, urgent, a1, b1, a1 + 1, b1 + 1};

        for (size_t i = 0; i < ARRAY_SIZE(wanted); ++i) {
                worker = fake_worker(fake, 0, i + 1);
                assert_int_equal(worker->jobs[i], wanted[i]);
                fake_end(worker, wanted[i], 0);
        }
        fake_client_close(a);
        fake_client_close(b);
        fake_free(fake);
}

static FakeWorker *worker_that_is_busy(Fake *fake) {
        for (size_t i = 0; i < fake->n_workers; ++i) {
                FakeWorker *worker = &fake->workers[i];

                if (worker->n_jobs &&
                    job_find(&fake->supervisor->engine, worker->jobs[worker->n_jobs - 1]))
                        return worker;
        }
        return NULL;
}

static User *user_of(FakeClient *client) {
        return module_find(&client->fake->supervisor->engine, client->module)->user;
}

/* By time, whatever each job took: apart by no more than a few of the longest. One at
 * a time is in flight, unless the machine is slow and it outlasts its quantum. */
static void users_share_by_weight(void **state) {
        char *settings[] = {"inflight_jobs=1", "inflight_ms=1", NULL};
        Fake *fake = fake_new(1, settings);
        FakeClient *heavy = client_with_module(fake, FAKE_UID);
        FakeClient *light = client_with_module(fake, FAKE_UID + 1);
        uint64_t before_ns = 0, longest_ns = DURATION_UNKNOWN_NS;
        Device *device = &fake->supervisor->engine.devices[0];
        double heavy_ns, light_ns;

        user_of(heavy)->limits.weight = 3;
        fake_submit_many(heavy, (FakeJob){}, 200);
        fake_submit_many(light, (FakeJob){}, 200);
        fake_turn(fake);
        for (unsigned i = 0; i < 200; ++i) {
                FakeWorker *worker = worker_that_is_busy(fake);

                assert_non_null(worker);
                fake_end(worker, worker->jobs[worker->n_jobs - 1], 0);
                fake_turn(fake);
                longest_ns = MAX(longest_ns, device->gpu_ns - before_ns);
                before_ns = device->gpu_ns;
        }
        heavy_ns = (double)user_of(heavy)->totals.gpu_ns / 3;
        light_ns = (double)user_of(light)->totals.gpu_ns;
        assert_true(heavy_ns - light_ns < 4.0 * (double)longest_ns);
        assert_true(light_ns - heavy_ns < 4.0 * (double)longest_ns);
        fake_client_close(heavy);
        fake_client_close(light);
        fake_free(fake);
}

static void overlapping_jobs_go_to_the_worker_in_order(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        uint64_t writer =
                fake_submit(client, (FakeJob){.arena = arena, .length = 8, .direction = OUT});
        uint64_t reader =
                fake_submit(client, (FakeJob){.arena = arena, .length = 8, .direction = IN});
        uint64_t apart = fake_submit(
                client, (FakeJob){.arena = arena, .offset = 8, .length = 8, .direction = OUT});
        FakeWorker *worker = fake_worker(fake, 0, 3);

        assert_int_equal(worker->jobs[1], reader);
        assert_int_equal(worker->after[1], writer);
        assert_int_equal(worker->jobs[2], apart);
        assert_int_equal(worker->after[2], 0);
        for (size_t i = 0; i < 3; ++i)
                fake_end(worker, worker->jobs[i], 0);
        fake_expect_end(client, reader, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_dependency_waits_for_the_end(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID);
        uint64_t first = fake_submit(client, (FakeJob){});
        uint64_t second = fake_submit(other, (FakeJob){.after = first});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        fake_turn(fake);
        assert_int_equal(worker->n_jobs, 1);
        assert_string_equal(fake_reason(other, second), "depends on job 1.1");
        fake_end(worker, first, 0);
        worker = fake_worker(fake, 0, 2);
        fake_end(worker, second, 0);
        fake_expect_end(other, second, DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

/* Two connections that are readable in one turn may be read in either order: what was
 * submitted first on one must not be unknown on the other. */
static void a_dependency_may_be_read_before_what_it_names(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID);
        uint64_t first = (uint64_t)client->session << 32 | 1, second, third;
        FakeWorker *worker;

        second = fake_submit_unseen(other, (FakeJob){.after = first});
        assert_int_equal(fake_submit_unseen(client, (FakeJob){}), first);
        worker = fake_worker(fake, 0, 1);
        fake_turn(fake);
        assert_int_equal(worker->jobs[0], first);
        fake_end(worker, first, 0);
        worker = fake_worker(fake, 0, 2);
        fake_end(worker, second, 0);
        fake_expect_end(other, second, DONE, 0, NULL);
        third = fake_submit(other, (FakeJob){.after = first + 5});
        fake_expect_end(other, third, FAILED, GPUQ__V1__CODE__E_DEPENDENCY,
                        "1.6, which does not exist");
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_failure_travels_down_a_long_chain(void **state) {
        Fake *fake = fake_new(1, (char *[]){"jobs=100000", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t first = fake_submit(client, (FakeJob){}), last = first;
        FakeWorker *worker;

        for (unsigned i = 0; i < 2000; ++i)
                last = fake_submit(client, (FakeJob){.after = last});
        worker = fake_worker(fake, 0, 1);
        fake_end(worker, first, GPUQ__V1__CODE__E_LAUNCH);
        fake_expect_end(
                client, last, FAILED, GPUQ__V1__CODE__E_DEPENDENCY,
                "the job depends on job 1.2000, which depends on job 1.1, which failed: refused");
        fake_client_close(client);
        fake_free(fake);
}

static void wrong_dependencies_are_told_apart(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);
        uint64_t failed, mine, theirs = fake_submit(other, (FakeJob){});
        uint64_t session = (uint64_t)client->session << 32;

        mine = fake_submit(client, (FakeJob){.after = session | 1});
        fake_expect_end(client, mine, FAILED, GPUQ__V1__CODE__E_CYCLE, "itself");
        mine = fake_submit(client, (FakeJob){.after = session | 77});
        fake_expect_end(client, mine, FAILED, GPUQ__V1__CODE__E_CYCLE, "the later job 1.77");
        mine = fake_submit(client, (FakeJob){.after = 99ull << 32 | 1});
        fake_expect_end(client, mine, FAILED, GPUQ__V1__CODE__E_DEPENDENCY,
                        "99.1, which does not exist");
        mine = fake_submit(client, (FakeJob){.after = theirs});
        fake_expect_end(client, mine, FAILED, GPUQ__V1__CODE__E_DENIED, "another user");
        failed = mine;
        mine = fake_submit(client, (FakeJob){.after = failed});
        fake_expect_end(client, mine, FAILED, GPUQ__V1__CODE__E_DEPENDENCY,
                        "which failed: the job depends on job 2.1");
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void wrong_buffers_are_told_apart(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 6000);
        uint64_t device = fake_arena(client, GPUQ__V1__PLACE__DEVICE, 6000);
        uint64_t theirs = fake_arena(other, GPUQ__V1__PLACE__HOST, 100);
        uint64_t id;

        id = fake_submit(client, (FakeJob){.arena = arena, .offset = 4096, .length = 4096});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_INVALID,
                        "buffer 1: bytes 4096 to 8192 are outside of arena 1, which has 6000");
        id = fake_submit(client, (FakeJob){.arena = arena, .offset = 8, .length = UINT64_MAX});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_INVALID, "which has 6000");
        id = fake_submit(client, (FakeJob){.arena = theirs, .length = 1});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_DENIED, "another user");
        id = fake_submit(client, (FakeJob){.arena = 12345, .length = 1});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_NOT_FOUND, "no arena 12345");
        id = fake_submit(client, (FakeJob){.arena = device, .length = 1, .device = 2});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_INVALID,
                        "on device 0, whose memory device 1 cannot access; copy it through");
        id = fake_submit(client, (FakeJob){.device = 3});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_NOT_FOUND,
                        "no device 2: this machine has 2 devices, 0 to 1");
        id = fake_submit(client, (FakeJob){.priority = 101});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_INVALID, "priority 101");
        id = fake_submit(client, (FakeJob){.label = "bell \a"});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_INVALID, "label");
        client->module = 4711;
        id = fake_submit(client, (FakeJob){});
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_NOT_FOUND, "no module 4711");
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void jobs_over_the_limit_fail_and_the_others_go_on(void **state) {
        Fake *fake = fake_new(1, (char *[]){"jobs=3", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t first = fake_submit_many(client, (FakeJob){}, 4);
        FakeWorker *worker = fake_worker(fake, 0, 3);

        fake_expect_end(client, first + 3, FAILED, GPUQ__V1__CODE__E_QUOTA,
                        "see jobs in gpuqd.conf");
        for (size_t i = 0; i < 3; ++i)
                fake_end(worker, first + i, 0);
        fake_expect_end(client, first + 2, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_tag_that_goes_back_ends_the_connection(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);

        fake_submit(client, (FakeJob){});
        client->tag = 0;
        fake_submit(client, (FakeJob){});
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "tag");
        fake_client_close(client);
        fake_free(fake);
}

static void a_waiting_job_is_cancelled_at_once(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = fake_client(fake, FAKE_UID + 1);
        uint64_t first = fake_submit_many(client, (FakeJob){}, 2);
        FakeWorker *worker = fake_worker(fake, 0, 1);

        send_cancel(other, first + 1, false);
        assert_int_equal(fake_receive(other)->cancelled->n_denied, 1);
        send_cancel(client, first + 1, false);
        fake_expect_end(client, first + 1, CANCELLED, GPUQ__V1__CODE__E_CANCELLED, "cancelled");
        send_cancel(client, first + 1, false);
        assert_int_equal(fake_receive(client)->cancelled->n_unknown, 1);
        fake_end(worker, first, 0);
        fake_expect_end(client, first, DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void jobs_behind_a_cancelled_one_keep_their_order(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        FakeJob job = {.arena = arena, .length = 8, .direction = INOUT};
        uint64_t first = fake_submit_many(client, job, 3);
        FakeWorker *worker = fake_worker(fake, 0, 1);

        send_cancel(client, first + 1, false);
        fake_expect_end(client, first + 1, CANCELLED, GPUQ__V1__CODE__E_CANCELLED, "");
        fake_end(worker, first, 0);
        worker = fake_worker(fake, 0, 2);
        assert_int_equal(worker->jobs[1], first + 2);
        fake_end(worker, first + 2, 0);
        fake_expect_end(client, first + 2, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static size_t n_order_edges(const Fake *fake) {
        const Job *job;
        size_t n = 0;

        for (job = fake->supervisor->engine.jobs; job; job = job->hh.next)
                n += job->edges.n_order;
        return n;
}

/* Cancelling gave each follower all predecessors of the cancelled job: quadratic, or worse. */
static void cancelling_in_any_order_makes_no_new_edges(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        uint64_t first =
                fake_submit(client, (FakeJob){.arena = arena, .length = 4096, .direction = INOUT});
        FakeWorker *worker = fake_worker(fake, 0, 1);
        const uint64_t n = 1000;
        size_t n_edges;
        uint64_t last;

        for (uint64_t i = 1; i <= n; ++i)
                fake_submit(client, (FakeJob){.arena = arena,
                                              .offset = i * 37 % 64 * 8,
                                              .length = 8 + i * 53 % 16 * 8,
                                              .direction = i % 3 ? IN : INOUT});
        last = fake_submit(client, (FakeJob){.arena = arena, .length = 4096, .direction = INOUT});
        fake_turn(fake);
        n_edges = n_order_edges(fake);
        for (uint64_t i = 1; i <= n; ++i) {
                uint64_t id = first + 1 + i * 389 % n;

                send_cancel(client, id, false);
                fake_expect_end(client, id, CANCELLED, GPUQ__V1__CODE__E_CANCELLED, "");
                assert_true(n_order_edges(fake) <= n_edges);
        }
        assert_int_equal(worker->n_jobs, 1);
        fake_end(worker, first, 0);
        worker = fake_worker(fake, 0, 2);
        assert_int_equal(worker->jobs[1], last);
        fake_end(worker, last, 0);
        fake_expect_end(client, last, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

/* It counts against its user's limit until the jobs that it followed have ended. */
static void a_gap_stays_charged_until_it_is_closed(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        FakeJob job = {.arena = arena, .length = 8, .direction = INOUT};
        uint64_t first = fake_submit_many(client, job, 3);
        FakeWorker *worker = fake_worker(fake, 0, 1);
        const User *user = job_find(&fake->supervisor->engine, first)->user;

        for (uint64_t i = 1; i <= 2; ++i) {
                send_cancel(client, first + i, false);
                fake_expect_end(client, first + i, CANCELLED, GPUQ__V1__CODE__E_CANCELLED, "");
        }
        assert_int_equal(user->used[USER_JOBS], 3);
        fake_end(worker, first, 0);
        fake_expect_end(client, first, DONE, 0, NULL);
        assert_int_equal(user->used[USER_JOBS], 0);
        fake_client_close(client);
        fake_free(fake);
}

static void a_cancel_of_too_many_ids_is_refused(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;

        cancel.n_ids = WIRE_CANCEL_MAX;
        cancel.ids = calloc(WIRE_CANCEL_MAX + 1, sizeof(*cancel.ids));
        assert_non_null(cancel.ids);
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
        assert_int_equal(fake_receive(client)->cancelled->n_unknown, WIRE_CANCEL_MAX);
        cancel.n_ids++;
        fake_send(client, &request);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "the limit is 4096");
        free(cancel.ids);
        fake_client_close(client);
        fake_free(fake);
}

static void a_running_job_may_end_by_itself_when_cancelled(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        send_cancel(client, 0, true);
        assert_int_equal(fake_receive(client)->cancelled->n_ids, 1);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        assert_false(worker->is_stopping);
        fake_client_close(client);
        fake_free(fake);
}

static void another_process_can_wait_for_a_job(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID),
                   *other = fake_client(fake, FAKE_UID);
        FakeClient *stranger = fake_client(fake, FAKE_UID + 1);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        send_wait(other, id);
        send_wait(stranger, id);
        fake_expect_error(stranger, GPUQ__V1__CODE__E_DENIED, "another user");
        fake_end(worker, id, 0);
        fake_expect_end(other, id, DONE, 0, NULL);
        assert_int_equal(other->reply->serial, 7);
        send_wait(other, id); /* ended long ago */
        assert_int_equal(fake_receive(other)->body_case, GPUQ__V1__REPLY__BODY_COMPLETIONS);
        fake_expect_end(other, id, DONE, 0, NULL);
        send_wait(other, id + 1);
        fake_expect_error(other, GPUQ__V1__CODE__E_NOT_FOUND, "no job");
        fake_client_close(client);
        fake_client_close(other);
        fake_client_close(stranger);
        fake_free(fake);
}

/* Each waiting request is answered when the job ends, all in one turn. */
static void waits_of_a_user_are_bounded(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);
        uint64_t id = fake_submit(client, (FakeJob){}), others = fake_submit(other, (FakeJob){});
        User *user = job_find(&fake->supervisor->engine, id)->user;
        UserCharge rest = {};

        assert_int_equal(user_charge(user, &rest, USER_WAITS, LIMIT_USER_WAITS - 1), 0);
        send_wait(client, id);
        send_wait(client, id);
        fake_expect_error(client, GPUQ__V1__CODE__E_QUOTA, "16384 concurrent waits and fetches");
        send_wait(other, others);
        fake_turn(fake);
        assert_int_equal(user->used[USER_WAITS], LIMIT_USER_WAITS);
        user_uncharge(&rest);
        fake_client_close(client);
        fake_client_close(other);
        fake_turn(fake);
        assert_int_equal(user->used[USER_WAITS], 0);
        fake_free(fake);
}

static void a_dead_clients_waiting_jobs_go(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", NULL});
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t first = fake_submit_many(client, (FakeJob){}, 20);
        FakeWorker *worker = fake_worker(fake, 0, 1);

        fake_client_close(client);
        assert_int_equal(HASH_COUNT(fake->supervisor->engine.jobs), 1);
        fake_end(worker, first, 0);
        fake_turn(fake);
        assert_int_equal(HASH_COUNT(fake->supervisor->engine.jobs), 0);
        assert_int_equal(worker->n_jobs, 1);
        fake_free(fake);
}

static void run_there(FakeClient *client, uint64_t arena, uint32_t device, size_t n_jobs) {
        uint64_t id = fake_submit(
                client,
                (FakeJob){.arena = arena, .length = 8, .direction = INOUT, .device = device + 1});
        FakeWorker *worker = fake_worker(client->fake, device, n_jobs);

        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        assert_int_equal(worker->n_arenas, 1);
}

static void each_worker_is_given_an_arena_once(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);

        run_there(client, arena, 0, 1);
        run_there(client, arena, 1, 1);
        run_there(client, arena, 0, 2);
        run_there(client, arena, 1, 2);
        fake_client_close(client);
        fake_free(fake);
}

/* Short jobs, of which few wait at any time. */
static void another_device_is_used_once_the_first_is_never_idle(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_end(fake_worker(fake, 0, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL); /* its duration is known */
        fake_submit_many(client, (FakeJob){}, 3);
        assert_int_equal(fake_worker(fake, 0, 4)->device, 0);
        fake_turn(fake);
        assert_int_equal(fake->n_workers, 1);

        fake->supervisor->engine.users->lanes[0]->busy_ns -= 200000000;
        id = fake_submit(client, (FakeJob){});
        assert_int_equal(fake_worker(fake, 1, 1)->jobs[0], id);
        assert_int_equal(fake->workers[1].device, 1);
        fake_client_close(client);
        fake_free(fake);
}

static void say_wait(Fake *fake, FakeWorker *worker, WorkerWait wait) {
        fake_say(worker, (WorkerMessage){{.kind = FROM_WORKER_STATS, .detail = wait}}, -1);
        fake_turn(fake);
}

static void the_queue_tells_what_the_worker_of_a_running_job_waits_for(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        assert_string_equal(fake_reason(client, id), "");
        say_wait(fake, worker, WORKER_WAITS_FOR_BUILTIN);
        assert_string_equal(fake_reason(client, id), "its worker loads gpuq's own kernels first");
        say_wait(fake, worker, WORKER_WAITS_FOR_ONE); /* perhaps for this one */
        assert_string_equal(fake_reason(client, id), "");
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_job_waits_while_its_module_loads_on_another_device(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t first;
        FakeWorker *worker;

        fake->hold_modules = true;
        first = fake_submit_many(client, (FakeJob){.device = 2}, 3);
        worker = fake_worker(fake, 1, 0);
        fake_turn(fake);
        assert_int_equal(worker->device, 1);
        assert_string_equal(fake_reason(client, first), "its module is being compiled");
        say_wait(fake, worker, WORKER_WAITS_FOR_QUIET);
        assert_string_equal(fake_reason(client, first),
                            "its module is loaded once the running jobs have ended");
        fake_release_modules(fake, worker, 0);
        worker = fake_worker(fake, 1, 3);
        for (size_t i = 0; i < 3; ++i)
                assert_int_equal(worker->jobs[i], first + i);
        fake_client_close(client);
        fake_free(fake);
}

static void a_module_that_does_not_load_fails_the_jobs_that_need_it(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeWorker *worker;
        uint64_t id;

        fake->hold_modules = true;
        id = fake_submit(client, (FakeJob){.device = 2});
        worker = fake_worker(fake, 1, 0);
        fake_turn(fake);
        fake_release_modules(fake, worker, GPUQ__V1__CODE__E_IMAGE);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_IMAGE, "nonsense");

        /* And again: whether it would load now is for the worker to say. */
        fake->hold_modules = true;
        id = fake_submit(client, (FakeJob){.device = 2});
        fake_turn(fake);
        fake_release_modules(fake, worker, GPUQ__V1__CODE__E_IMAGE);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_IMAGE, "nonsense");
        fake_client_close(client);
        fake_free(fake);
}

static void an_idle_worker_is_stopped_but_not_one_that_holds_variables(void **state) {
        Fake *fake = fake_new(1, (char *[]){"worker_idle_s=0", NULL});
        FakeClient *client;
        FakeWorker *worker;
        uint64_t id;

        fake->has_variables = true;
        client = client_with_module(fake, FAKE_UID);
        worker = fake_worker(fake, 0, 0);
        id = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 0, 1);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        for (unsigned i = 0; i < 3; ++i) {
                uv_run(&fake->supervisor->loop, UV_RUN_ONCE); /* a tick at least */
                fake_turn(fake);
        }
        assert_false(worker->is_stopping);
        fake_client_close(client);
        while (!worker->is_stopping) {
                uv_run(&fake->supervisor->loop, UV_RUN_ONCE);
                fake_turn(fake);
        }
        fake_stopped(fake, worker, NULL, NULL, NULL, 0);
        assert_int_equal(HASH_COUNT(fake->supervisor->workers.table), 0);
        fake_free(fake);
}

static void others_labels_are_hidden(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = fake_client(fake, FAKE_UID + 1);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__QueueGet get = GPUQ__V1__QUEUE_GET__INIT;
        Gpuq__V1__Reply *reply;

        fake_submit(client, (FakeJob){.label = "secret"});
        get.all_users = true;
        request.body_case = GPUQ__V1__REQUEST__BODY_QUEUE_GET;
        request.queue_get = &get;
        fake_send(other, &request);
        reply = fake_receive(other);
        assert_int_equal(reply->queue->n_entries, 1);
        assert_string_equal(reply->queue->entries[0]->label, "");
        assert_string_equal(reply->queue->entries[0]->kernel, "");
        fake_send(client, &request);
        reply = fake_receive(client);
        assert_string_equal(reply->queue->entries[0]->label, "secret");
        assert_string_equal(reply->queue->entries[0]->kernel, "add");
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

/* A person may have one for each of their subordinate uids, and the keeper starts a thousand for all. */
static void nobody_has_the_last_worker_process(void **state) {
        Fake *fake = fake_new(3, NULL);
        FakeClient *client;
        uint64_t ids[3];

        quota_init(&fake->supervisor->engine.quotas[USER_WORKERS],
                   8); /* one may have two of them */
        client = client_with_module(fake, FAKE_UID);
        for (uint32_t i = 0; i < 3; ++i)
                ids[i] = fake_submit(client, (FakeJob){.device = i + 1});
        fake_turn(fake);
        assert_int_equal(fake->n_workers, 2);
        assert_non_null(strstr(fake_reason(client, ids[2]), "too few worker processes are left"));
        fake_end(fake_worker(fake, 0, 1), ids[0], 0);
        fake_expect_end(client, ids[0], DONE, 0, NULL);
        fake_die(fake, fake_worker(fake, 0, 1));
        fake_end(fake_worker(fake, 2, 1), ids[2], 0);
        fake_expect_end(client, ids[2], DONE, 0, NULL);
        fake_end(fake_worker(fake, 1, 1), ids[1], 0);
        fake_expect_end(client, ids[1], DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

/* A module that fails again in a later worker fails all jobs that wait for it there. */
static void of_many_jobs_one_gets_the_whole_text_of_their_module(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint32_t other = fake->workers[0].device == 0 ? 2 : 1;
        uint64_t ids[3];

        fake->hold_modules = true;
        for (size_t i = 0; i < 3; ++i)
                ids[i] = fake_submit(client, (FakeJob){.device = other});
        fake_worker(fake, 1, 0);
        fake_wait(fake, holds_a_module, fake);
        fake_release_modules(fake, &fake->workers[1], FAILURE_IMAGE);
        for (size_t i = 0; i < 3; ++i)
                fake_expect_end(client, ids[i], FAILED, GPUQ__V1__CODE__E_IMAGE,
                                "line 1: nonsense");
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nobody_has_the_last_worker_process),
                cmocka_unit_test(of_many_jobs_one_gets_the_whole_text_of_their_module),
                cmocka_unit_test(a_job_runs_and_its_end_is_told_once),
                cmocka_unit_test(what_is_submitted_together_goes_out_together),
                cmocka_unit_test(what_is_in_flight_is_bounded_by_count_and_time),
                cmocka_unit_test(priority_then_sessions_in_turn),
                cmocka_unit_test(users_share_by_weight),
                cmocka_unit_test(overlapping_jobs_go_to_the_worker_in_order),
                cmocka_unit_test(a_dependency_waits_for_the_end),
                cmocka_unit_test(a_dependency_may_be_read_before_what_it_names),
                cmocka_unit_test(a_failure_travels_down_a_long_chain),
                cmocka_unit_test(wrong_dependencies_are_told_apart),
                cmocka_unit_test(wrong_buffers_are_told_apart),
                cmocka_unit_test(jobs_over_the_limit_fail_and_the_others_go_on),
                cmocka_unit_test(a_tag_that_goes_back_ends_the_connection),
                cmocka_unit_test(a_waiting_job_is_cancelled_at_once),
                cmocka_unit_test(jobs_behind_a_cancelled_one_keep_their_order),
                cmocka_unit_test(cancelling_in_any_order_makes_no_new_edges),
                cmocka_unit_test(a_gap_stays_charged_until_it_is_closed),
                cmocka_unit_test(a_cancel_of_too_many_ids_is_refused),
                cmocka_unit_test(a_running_job_may_end_by_itself_when_cancelled),
                cmocka_unit_test(another_process_can_wait_for_a_job),
                cmocka_unit_test(waits_of_a_user_are_bounded),
                cmocka_unit_test(a_dead_clients_waiting_jobs_go),
                cmocka_unit_test(each_worker_is_given_an_arena_once),
                cmocka_unit_test(another_device_is_used_once_the_first_is_never_idle),
                cmocka_unit_test(the_queue_tells_what_the_worker_of_a_running_job_waits_for),
                cmocka_unit_test(a_job_waits_while_its_module_loads_on_another_device),
                cmocka_unit_test(a_module_that_does_not_load_fails_the_jobs_that_need_it),
                cmocka_unit_test(an_idle_worker_is_stopped_but_not_one_that_holds_variables),
                cmocka_unit_test(others_labels_are_hidden),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
