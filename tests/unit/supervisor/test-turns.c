/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users beside each other on one device: whose quantum it is, what it is bounded by,
 * and who is over his GPU seconds. Real time passes, but nothing here measures it: a
 * quantum is over at once, or not before a minute.
 */
#include "fake.h"

#include <string.h>
#include <unistd.h>

#include "slot.h"

#define DONE GPUQ__V1__STATE__DONE

typedef struct Two {
        Fake *fake;
        FakeClient *a, *b;
        FakeWorker *a_worker, *b_worker;
        Quanta *quanta;
} Two;

static FakeClient *client_with_module(Fake *fake, uint32_t uid) {
        FakeClient *client = fake_client(fake, uid);

        fake_module(client);
        return client;
}

static Two two_users(char **settings) {
        Two two = {.fake = fake_new(1, settings)};

        two.a = client_with_module(two.fake, FAKE_UID);
        two.b = client_with_module(two.fake, FAKE_UID + 1);
        two.a_worker = fake_worker(two.fake, 0, 0);
        two.b_worker = two.fake->n_workers > 1 ? &two.fake->workers[1] : two.a_worker;
        two.quanta = &two.fake->supervisor->engine.devices[0].quanta;
        return two;
}

static void two_close(Two *two) {
        fake_client_close(two->a);
        fake_client_close(two->b);
        fake_free(two->fake);
}

static void end_all(Two *two, FakeWorker *worker, uint64_t first, size_t n) {
        for (size_t i = 0; i < n; ++i)
                fake_end(worker, first + i, 0);
        fake_turn(two->fake);
}

static User *user_of(FakeClient *client) {
        return module_find(&client->fake->supervisor->engine, client->module)->user;
}

static void another_user_waits_until_the_holder_has_drained(void **state) {
        Two two = two_users((char *[]){"quantum_ms=60000", NULL});
        uint64_t a, b;

        a = fake_submit_many(two.a, (FakeJob){}, 3);
        b = fake_submit_many(two.b, (FakeJob){}, 2);
        assert_int_equal(two.a_worker->n_jobs, 3);
        assert_int_equal(two.b_worker->n_jobs, 0);
        assert_string_equal(fake_reason(two.b, b + 1),
                            "another user's time slice (1 job of this user ahead)");

        end_all(&two, two.a_worker, a, 2);
        assert_int_equal(two.b_worker->n_jobs, 0);
        end_all(&two, two.a_worker, a + 2, 1);
        assert_int_equal(two.b_worker->n_jobs, 2);
        assert_int_equal(two.quanta->n_quanta, 2);
        assert_int_equal(two.quanta->n_overruns, 0);
        end_all(&two, two.b_worker, b, 2);
        two_close(&two);
}

static void the_holder_goes_on_in_its_quantum(void **state) {
        Two two = two_users((char *[]){"quantum_ms=60000", "inflight_jobs=1", NULL});
        uint64_t a = fake_submit_many(two.a, (FakeJob){}, 3);
        uint64_t b = fake_submit(two.b, (FakeJob){});

        for (size_t i = 0; i < 3; ++i) {
                assert_int_equal(two.a_worker->n_jobs, i + 1);
                assert_int_equal(two.b_worker->n_jobs, 0);
                end_all(&two, two.a_worker, a + i, 1);
        }
        assert_int_equal(two.b_worker->n_jobs, 1);
        end_all(&two, two.b_worker, b, 1);
        two_close(&two);
}

static void a_kernel_that_overruns_stops_nobody(void **state) {
        Two two = two_users((char *[]){"quantum_ms=1", NULL});
        uint64_t a = fake_submit(two.a, (FakeJob){}), b, next;

        b = fake_submit(two.b, (FakeJob){});
        fake_worker(two.fake, 1, 1); /* nothing ended before */
        assert_int_equal(two.quanta->n_overruns, 1);

        /* It keeps its own user's other jobs out as little. */
        end_all(&two, two.b_worker, b, 1);
        next = fake_submit(two.a, (FakeJob){});
        fake_worker(two.fake, 0, 2);
        end_all(&two, two.a_worker, next, 1);
        fake_expect_end(two.a, next, DONE, 0, NULL);
        assert_int_equal(two.quanta->n_overruns, 1);
        end_all(&two, two.a_worker, a, 1);
        two_close(&two);
}

/* Otherwise each of them would cost the others a quantum, for an expected time that is never spent. */
static void jobs_behind_one_that_overran_stop_nobody(void **state) {
        Two two = two_users((char *[]){"quantum_ms=1", NULL});
        FakeJob job = {.arena = fake_arena(two.a, GPUQ__V1__PLACE__HOST, 4096),
                       .length = 4096,
                       .direction = GPUQ__V1__DIRECTION__INOUT};
        uint64_t a = fake_submit(two.a, job), behind, b;

        b = fake_submit(two.b, (FakeJob){});
        fake_worker(two.fake, 1, 1);
        end_all(&two, two.b_worker, b, 1);
        assert_int_equal(two.quanta->n_overruns, 1);

        behind = fake_submit_many(two.a, job, 3);
        fake_worker(two.fake, 0, 4);
        b = fake_submit(two.b, (FakeJob){});
        fake_worker(two.fake, 1, 2);
        assert_int_equal(two.quanta->n_overruns, 1);
        end_all(&two, two.b_worker, b, 1);
        end_all(&two, two.a_worker, a, 1);
        end_all(&two, two.a_worker, behind, 3);
        two_close(&two);
}

/* Sees the ends of jobs. */
typedef struct Watcher {
        EndObserver observer;
        uint64_t id;
        uint64_t busy_ns;
} Watcher;

static void watcher_job_ended(EndObserver *observer, const Job *job, const LedgerEnd *end) {
        Watcher *watcher = (Watcher *)observer;

        (void)end;
        if (job->id == watcher->id)
                watcher->busy_ns = job->cost.busy_ns;
}

/* Its user has paid most of it before its end. */
static void all_time_of_a_job_that_overran_is_recorded(void **state) {
        Two two = two_users((char *[]){"quantum_ms=1", NULL});
        Engine *engine = &two.fake->supervisor->engine;
        Watcher watcher = {.observer.job_ended = watcher_job_ended};
        uint64_t b;

        engine->ends.observer = &watcher.observer;
        watcher.id = fake_submit(two.a, (FakeJob){});
        b = fake_submit(two.b, (FakeJob){});
        fake_worker(two.fake, 1, 1);
        assert_int_equal(two.quanta->n_overruns, 1);
        end_all(&two, two.b_worker, b, 1);
        end_all(&two, two.a_worker, watcher.id, 1);
        fake_expect_end(two.a, watcher.id, DONE, 0, NULL);
        assert_true(watcher.busy_ns >= 1000000);
        engine->ends.observer = NULL;
        two_close(&two);
}

static bool has_paid(void *user) {
        return ((User *)user)->totals.gpu_ns > 0;
}

static void a_user_pays_while_a_job_runs(void **state) {
        Two two = two_users((char *[]){"quantum_ms=60000", NULL});
        User *user = user_of(two.a);
        uint64_t began_ns = uv_hrtime(), a = fake_submit(two.a, (FakeJob){});

        fake_worker(two.fake, 0, 1);
        fake_wait(two.fake, has_paid, user);
        assert_true(user_window_seconds(user, uv_hrtime()) > 0);
        end_all(&two, two.a_worker, a, 1);
        fake_expect_end(two.a, a, DONE, 0, NULL);
        assert_true(user->totals.gpu_ns <= uv_hrtime() - began_ns); /* but once */
        two_close(&two);
}

/* Its quantum began before: nobody else wanted the device, and its worker is new. */
static void who_overruns_does_not_pay_for_idle_time(void **state) {
        Two two = two_users((char *[]){"quantum_ms=1", NULL});
        User *user = user_of(two.a);
        uint64_t a = fake_submit(two.a, (FakeJob){}), b, began_ns, paid_ns;

        fake_worker(two.fake, 0, 1);
        end_all(&two, two.a_worker, a, 1);
        fake_expect_end(two.a, a, DONE, 0, NULL);
        fake_die(two.fake, two.a_worker);

        paid_ns = user->totals.gpu_ns;
        began_ns = uv_hrtime();
        a = fake_submit(two.a, (FakeJob){});
        two.a_worker = fake_worker(two.fake, 2, 1);
        b = fake_submit(two.b, (FakeJob){});
        fake_worker(two.fake, 1, 1);
        assert_int_equal(two.quanta->n_overruns, 1);
        assert_true(user->totals.gpu_ns > paid_ns);
        assert_true(user->totals.gpu_ns - paid_ns <= uv_hrtime() - began_ns);
        end_all(&two, two.b_worker, b, 1);
        end_all(&two, two.a_worker, a, 1);
        two_close(&two);
}

static void a_user_pays_for_the_time_that_an_overrun_cost_the_others(void **state) {
        Two two = two_users((char *[]){"quantum_ms=1", NULL});
        const Device *device = &two.fake->supervisor->engine.devices[0];
        uint64_t began_ns = uv_hrtime(), a, b;

        a = fake_submit(two.a, (FakeJob){});
        b = fake_submit(two.b, (FakeJob){});
        fake_worker(two.fake, 1, 1);
        assert_true(device->gpu_ns >= 1000000);
        assert_true(fairshare_usage(device->share, &user_of(two.a)->lanes[0]->share, uv_hrtime()) >
                    0);
        end_all(&two, two.b_worker, b, 1);
        end_all(&two, two.a_worker, a, 1);
        assert_true(device->gpu_ns <= 2 * (uv_hrtime() - began_ns)); /* of both, but once */
        two_close(&two);
}

static void who_starts_a_worker_interrupts_nobody(void **state) {
        Two two = {.fake = fake_new(1, (char *[]){"quantum_ms=60000", NULL})};
        uint64_t a, b;

        two.a = client_with_module(two.fake, FAKE_UID);
        two.b = fake_client(two.fake, FAKE_UID + 1);
        two.quanta = &two.fake->supervisor->engine.devices[0].quanta;
        two.a_worker = fake_worker(two.fake, 0, 0);
        a = fake_submit(two.a, (FakeJob){});
        b = fake_submit(two.b, (FakeJob){}); /* its worker is still to be started */
        two.b_worker = fake_worker(two.fake, 1, 0);
        assert_int_equal(two.b_worker->n_jobs, 0);
        assert_ptr_equal(two.quanta->holder, &user_of(two.a)->lanes[0]->slot->domain);
        end_all(&two, two.a_worker, a, 1);
        fake_worker(two.fake, 1, 1);
        end_all(&two, two.b_worker, b, 1);
        two_close(&two);
}

static void one_alone_is_not_bounded(void **state) {
        Two two = two_users((char *[]){"quantum_ms=1", "inflight_ms=1000", NULL});
        uint64_t a = fake_submit_many(two.a, (FakeJob){}, 100);

        assert_int_equal(two.a_worker->n_jobs, 100);
        assert_int_equal(two.quanta->n_quanta, 1);
        end_all(&two, two.a_worker, a, 100);
        two_close(&two);
}

static void a_worker_that_dies_hands_over(void **state) {
        Two two = two_users((char *[]){"quantum_ms=60000", NULL});
        uint64_t a = fake_submit(two.a, (FakeJob){}), b = fake_submit(two.b, (FakeJob){});

        assert_int_equal(two.b_worker->n_jobs, 0);
        fake_die(two.fake, two.a_worker);
        fake_expect_end(two.a, a, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT, "");
        fake_worker(two.fake, 1, 1);
        end_all(&two, two.b_worker, b, 1);
        two_close(&two);
}

static void without_quanta_all_run_beside_each_other(void **state) {
        static char *settings[][3] = {{"quantum_ms=0"}, {"isolation=shared", "quantum_ms=60000"}};

        for (size_t i = 0; i < ARRAY_SIZE(settings); ++i) {
                Two two = two_users(settings[i]);
                uint64_t a = fake_submit(two.a, (FakeJob){}), b = fake_submit(two.b, (FakeJob){});

                assert_int_equal(two.b_worker->n_jobs, two.a_worker == two.b_worker ? 2 : 1);
                assert_int_equal(two.quanta->n_quanta, 0);
                end_all(&two, two.a_worker, a, 1);
                end_all(&two, two.b_worker, b, 1);
                two_close(&two);
        }
}

static bool is_dispatched(void *userdata) {
        return ((FakeWorker *)userdata)->n_jobs > 1;
}

static void jobs_of_a_user_over_his_gpu_seconds_are_held(void **state) {
        Two two = two_users((char *[]){"gpu_seconds=100", "inflight_jobs=1", NULL});
        uint64_t first = fake_submit_many(two.a, (FakeJob){}, 2), refused, b;

        user_add_gpu_time(user_of(two.a), 200000000000ull, uv_hrtime());
        end_all(&two, two.a_worker, first, 1);
        fake_expect_end(two.a, first, DONE, 0, NULL);
        assert_int_equal(two.a_worker->n_jobs, 1);
        assert_non_null(strstr(fake_reason(two.a, first + 1), "over the limit gpu_seconds"));
        refused = fake_submit(two.a, (FakeJob){});
        fake_expect_end(two.a, refused, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_QUOTA,
                        "of 100 s in the last 86400 s"); /* and what the first took */

        b = fake_submit(two.b, (FakeJob){}); /* nobody else waits for that */
        fake_worker(two.fake, 1, 1);
        end_all(&two, two.b_worker, b, 1);

        user_of(two.a)->limits.gpu_seconds = 300;
        fake_wait(two.fake, is_dispatched, two.a_worker);
        end_all(&two, two.a_worker, first + 1, 1);
        fake_expect_end(two.a, first + 1, DONE, 0, NULL);
        two_close(&two);
}

/* ---- a keeper that does not read ------------------------------------------- */

#define MANY 600u /* more than a socket holds */

static size_t count_replies(FakeClient *client) {
        WireFrame frame;
        size_t n = 0;

        (void)wire_flush(client->wire); /* of its requests, too, the socket holds some at a time */
        do {
                for (; wire_next(client->wire, &frame) == 0; n++)
                        close(frame.fd);
        } while (wire_receive(client->wire) == 0);
        return n;
}

/* One that dies now must have given the keeper all that somebody was told of. */
static void nobody_is_told_of_an_arena_before_the_keeper_has_it(void **state) {
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t began_ns = uv_hrtime();
        size_t n_told = 0, n_kept;

        create.place = GPUQ__V1__PLACE__HOST;
        create.size = 4096;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
        request.arena_create = &create;
        fake->is_deaf = true;
        for (unsigned i = 0; i < MANY; ++i) {
                fake_send(client, &request);
                n_told += count_replies(client);
        }
        assert_in_range(n_told, 1, MANY - 1);
        assert_true(uv_hrtime() - began_ns < 5000000000ull); /* nor does the loop wait for it */

        n_kept = fake_kept_in_time(fake);
        assert_true(n_kept >= n_told);
        fake->is_deaf = false;
        for (size_t n_new = 1; n_new; n_told += n_new) {
                n_new = count_replies(client);
                fake_turn(fake);
                n_new += count_replies(client);
        }
        assert_int_equal(n_told, MANY);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(another_user_waits_until_the_holder_has_drained),
                cmocka_unit_test(the_holder_goes_on_in_its_quantum),
                cmocka_unit_test(a_kernel_that_overruns_stops_nobody),
                cmocka_unit_test(jobs_behind_one_that_overran_stop_nobody),
                cmocka_unit_test(all_time_of_a_job_that_overran_is_recorded),
                cmocka_unit_test(a_user_pays_while_a_job_runs),
                cmocka_unit_test(who_overruns_does_not_pay_for_idle_time),
                cmocka_unit_test(a_user_pays_for_the_time_that_an_overrun_cost_the_others),
                cmocka_unit_test(who_starts_a_worker_interrupts_nobody),
                cmocka_unit_test(one_alone_is_not_bounded),
                cmocka_unit_test(a_worker_that_dies_hands_over),
                cmocka_unit_test(without_quanta_all_run_beside_each_other),
                cmocka_unit_test(jobs_of_a_user_over_his_gpu_seconds_are_held),
                cmocka_unit_test(nobody_is_told_of_an_arena_before_the_keeper_has_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
