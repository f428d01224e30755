/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polling while busy, sleeping when idle.
 */
#include "fake.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#define DONE GPUQ__V1__STATE__DONE

static FakeClient *client_with_module(Fake *fake) {
        FakeClient *client = fake_client(fake, FAKE_UID);

        fake_module(client);
        return client;
}

static bool supervisor_sleeps(void *userdata) {
        Fake *fake = userdata;

        return uv_backend_timeout(&fake->supervisor->loop) != 0;
}

/* One that looks so long for what comes next that with a job in flight it does not fall asleep in a test, however slow that is. */
static Fake *fake_that_polls(void) {
        Fake *fake = fake_new(1, (char *[]){"poll_us=100000", NULL});

        fake->supervisor->config->poll_us = 600000000;
        return fake;
}

static Worker *fake_worker_object(Fake *fake, const FakeWorker *worker) {
        Worker *found;

        HASH_FIND(hh, fake->supervisor->workers.table, &worker->id, sizeof(worker->id), found);
        assert_non_null(found);
        return found;
}

static bool bell_rings(Fake *fake, const FakeWorker *worker) {
        struct pollfd fd = {.fd = channel_bell_fd(fake_worker_object(fake, worker)->channel),
                            .events = POLLIN};

        return poll(&fd, 1, 0) == 1;
}

static void ask_status(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;

        request.serial = 7;
        request.body_case = GPUQ__V1__REQUEST__BODY_STATUS_GET;
        request.status_get = &get;
        assert_int_equal(wire_queue(client->wire, &request.base, -1), 0);
        assert_int_equal(wire_flush(client->wire), 0);
}

static void while_it_polls_a_worker_rings_no_bell(void **state) {
        Fake *fake = fake_that_polls();
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id;

        assert_true(supervisor_sleeps(fake)); /* there was no job yet */
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 1);
        assert_false(supervisor_sleeps(fake));
        fake_end(worker, id, 0);
        assert_false(bell_rings(fake, worker));
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void with_no_job_in_flight_it_sleeps_soon(void **state) {
        Fake *fake = fake_that_polls();
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t first = fake_submit(client, (FakeJob){}),
                 second = fake_submit(client, (FakeJob){});

        fake_worker(fake, 0, 2);
        fake_end(worker, first, 0);
        fake_expect_end(client, first, DONE, 0, NULL);
        assert_false(supervisor_sleeps(fake));
        fake_end(worker, second, 0);
        fake_expect_end(client, second, DONE, 0, NULL);
        fake_wait(fake, supervisor_sleeps, fake);
        fake_client_close(client);
        fake_free(fake);
}

static uint64_t cpu_ns(void) {
        struct timespec time;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Beside a kernel that takes long: less of a core the longer it takes, and whoever speaks is heard all the same. */
static void while_it_polls_in_vain_it_naps(void **state) {
        Fake *fake = fake_that_polls();
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id = fake_submit(client, (FakeJob){}), began_ns, cpu_before_ns;

        fake_worker(fake, 0, 1);
        began_ns = uv_hrtime();
        while (uv_hrtime() - began_ns < 20000000u)
                fake_turn(fake);
        cpu_before_ns = cpu_ns();
        while (uv_hrtime() - began_ns < 120000000u)
                fake_turn(fake);
        assert_true(cpu_ns() - cpu_before_ns < 50000000u);
        assert_false(supervisor_sleeps(fake));

        ask_status(client);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        fake_end(worker, id, 0);
        assert_false(bell_rings(fake, worker));
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void it_sleeps_some_time_after_the_last_job(void **state) {
        Fake *fake = fake_new(1, (char *[]){"poll_us=1000", NULL});
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_worker(fake, 0, 1);
        fake_wait(fake, supervisor_sleeps, fake); /* though the job runs on */
        fake_end(worker, id, 0);
        assert_true(bell_rings(fake, worker));
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_wait(fake, supervisor_sleeps, fake);
        fake_client_close(client);
        fake_free(fake);
}

static void without_polling_it_sleeps_at_once(void **state) {
        Fake *fake = fake_new(1, (char *[]){"poll_us=0", NULL});
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_worker(fake, 0, 1);
        assert_true(supervisor_sleeps(fake));
        fake_end(worker, id, 0);
        assert_true(bell_rings(fake, worker));
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void the_status_says_that_it_may_not_raise_its_priority(void **state) {
        Fake *fake = fake_new(1, (char *[]){NULL});
        FakeClient *client = client_with_module(fake);
        const Gpuq__V1__Status *status;

        for (int lacks = 0; lacks < 2; lacks++) {
                fake->supervisor->clients.lacks_priority = lacks;
                ask_status(client);
                status = fake_receive(client)->status;
                assert_int_equal(strstr(status->lacks, "priority") != NULL, lacks);
        }
        fake_client_close(client);
        fake_free(fake);
}

/* Other programs want the cores, until idle(). */
static void busy(Fake *fake) {
        Contention *contention = &fake->supervisor->cores.contention;

        contention_lost(contention, uv_hrtime());
        contention->next_ns = UINT64_MAX;
}

static void idle(Fake *fake) {
        Contention *contention = &fake->supervisor->cores.contention;

        contention_count(contention, 1, 2, uv_hrtime());
}

static void on_a_busy_machine_it_sleeps_with_a_job_in_flight(void **state) {
        Fake *fake = fake_that_polls();
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_worker(fake, 0, 1);
        assert_false(supervisor_sleeps(fake));
        busy(fake);
        fake_wait(fake, supervisor_sleeps, fake);
        fake_end(worker, id, 0);
        assert_true(bell_rings(fake, worker));
        fake_expect_end(client, id, DONE, 0, NULL);

        idle(fake);
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 2);
        assert_false(supervisor_sleeps(fake));
        fake_end(worker, id, 0);
        assert_false(bell_rings(fake, worker));
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static Session *fake_session(const FakeClient *client) {
        Session *found;

        HASH_FIND(hh, client->fake->supervisor->clients.sessions, &client->session,
                  sizeof(client->session), found);
        assert_non_null(found);
        return found;
}

static bool session_is_rung(const FakeClient *client) {
        struct pollfd fd = {.fd = wire_fd(fake_session(client)->wire), .events = POLLIN};

        return poll(&fd, 1, 0) == 1;
}

static void while_it_polls_a_ring_is_read_without_a_bell(void **state) {
        Fake *fake = fake_that_polls();
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id;

        fake_ring(client);
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 1);
        assert_true(fake_session(client)->ring.is_polled);
        assert_false(supervisor_sleeps(fake));
        ask_status(client);
        assert_false(session_is_rung(client));
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void on_a_busy_machine_a_ring_is_read_when_it_is_rung(void **state) {
        Fake *fake = fake_that_polls();
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id;

        fake_ring(client);
        busy(fake);
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 1);
        fake_wait(fake, supervisor_sleeps, fake);
        assert_false(fake_session(client)->ring.is_polled);
        ask_status(client);
        assert_true(session_is_rung(client));
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void an_idle_ring_is_no_longer_polled(void **state) {
        Fake *fake = fake_new(1, (char *[]){"poll_us=1000", NULL});
        FakeClient *client = client_with_module(fake);

        fake_ring(client);
        fake_wait(fake, supervisor_sleeps, fake);
        assert_false(fake_session(client)->ring.is_polled);
        assert_true(TAILQ_EMPTY(&fake->supervisor->clients.polled));
        ask_status(client);
        assert_true(session_is_rung(client));
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        fake_wait(fake, supervisor_sleeps, fake);
        fake_client_close(client);
        fake_free(fake);
}

/* Six with one job each: those of the first four are on their way before the fifth is read. */
static void what_some_rings_brought_goes_on_before_the_others_are_read(void **state) {
        Fake *fake = fake_that_polls();
        FakeClient *other = client_with_module(fake), *clients[6];
        FakeWorker *worker = NULL;
        unsigned n_lists;
        uint64_t id;

        fake_submit(other, (FakeJob){}); /* keeps it awake */
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i) {
                clients[i] = client_with_module(fake);
                fake_ring(clients[i]);
                id = fake_submit(clients[i], (FakeJob){}); /* its module is there from now on */
                worker = fake_worker(fake, 0, i + 2);
                fake_end(worker, id, 0);
                fake_expect_end(clients[i], id, DONE, 0, NULL);
        }

        n_lists = worker->n_lists;
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                fake_submit_unseen(clients[i], (FakeJob){});
        fake_worker(fake, 0, 1 + 2 * ARRAY_SIZE(clients));
        assert_int_equal(worker->n_lists, n_lists + 2);
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                fake_end(worker, worker->jobs[1 + ARRAY_SIZE(clients) + i], 0);
        fake_end(worker, worker->jobs[0], 0);
        fake_client_close(other);
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

/* About jobs that do not exist: the answer is as long as the question. */
static void ask_for_much(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        uint64_t ids[256];

        for (size_t i = 0; i < ARRAY_SIZE(ids); ++i)
                ids[i] = UINT64_MAX - i;
        cancel.ids = ids;
        cancel.n_ids = ARRAY_SIZE(ids);
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
}

/* One whose answers fill its ring and its share of memory: no turn is spent on it until it reads. */
static void a_ring_whose_client_does_not_read_keeps_nobody_awake(void **state) {
        Fake *fake = fake_new(1, (char *[]){"poll_us=1000", NULL});
        FakeClient *client = client_with_module(fake);
        size_t n_asked = 0, n_told = 0;

        fake_ring(client);
        while (!fake_session(client)->is_held_up && n_asked++ < 100000) {
                ask_for_much(client);
                fake_turn(fake);
        }
        ask_for_much(client);
        n_asked++;
        fake_wait(fake, supervisor_sleeps, fake);
        assert_true(fake_session(client)->is_held_up);
        assert_false(fake_session(client)->ring.is_polled);

        for (; n_told < n_asked; n_told++)
                assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_CANCELLED);
        fake_wait(fake, supervisor_sleeps, fake);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(while_it_polls_a_worker_rings_no_bell),
                cmocka_unit_test(with_no_job_in_flight_it_sleeps_soon),
                cmocka_unit_test(while_it_polls_in_vain_it_naps),
                cmocka_unit_test(it_sleeps_some_time_after_the_last_job),
                cmocka_unit_test(without_polling_it_sleeps_at_once),
                cmocka_unit_test(the_status_says_that_it_may_not_raise_its_priority),
                cmocka_unit_test(on_a_busy_machine_it_sleeps_with_a_job_in_flight),
                cmocka_unit_test(on_a_busy_machine_a_ring_is_read_when_it_is_rung),
                cmocka_unit_test(while_it_polls_a_ring_is_read_without_a_bell),
                cmocka_unit_test(an_idle_ring_is_no_longer_polled),
                cmocka_unit_test(what_some_rings_brought_goes_on_before_the_others_are_read),
                cmocka_unit_test(a_ring_whose_client_does_not_read_keeps_nobody_awake),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
