/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that have a context before they have a user.
 */
#include "fake.h"

#include "spares.h"
#include "workers.h"

#define DONE GPUQ__V1__STATE__DONE

static char *one_spare[] = {"spare_workers=1", NULL};

static Device *device_of(Fake *fake) {
        return &fake->supervisor->engine.devices[0];
}

static unsigned spares_of(Fake *fake) {
        unsigned n = 0;

        for (size_t i = 0; i < fake->n_workers; ++i)
                n += fake->workers[i].is_spare && !fake->workers[i].is_ended;
        return n;
}

static void tick(Fake *fake) {
        spares_tick(&fake->supervisor->workers, engine_now(&fake->supervisor->engine));
        fake_turn(fake);
}

/* The @n_jobs-th of that worker. */
static void run_one(FakeClient *client, size_t worker, size_t n_jobs) {
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_end(fake_worker(client->fake, worker, n_jobs), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
}

static void close_all(FakeClient *client) {
        Fake *fake = client->fake;

        fake_client_close(client);
        fake_free(fake);
}

static void the_first_job_of_a_user_gets_the_spare(void **state) {
        Fake *fake = fake_new(1, one_spare);
        FakeClient *client;

        tick(fake);
        assert_int_equal(fake->n_workers, 1);
        assert_int_equal(spares_of(fake), 1);
        client = fake_client(fake, FAKE_UID);
        run_one(client, 0, 1);
        assert_int_equal(fake->workers[0].uid, FAKE_UID);

        device_of(fake)->spare_ns = 0; /* some time has passed, and there is another */
        tick(fake);
        assert_int_equal(fake->n_workers, 2);
        assert_int_equal(spares_of(fake), 1);
        run_one(client, 0, 2);
        close_all(client);
}

static void a_spare_that_still_starts_is_taken_too(void **state) {
        Fake *fake = fake_new(1, one_spare);
        FakeClient *client;
        uint64_t id;

        fake->hold_ready = true;
        tick(fake);
        client = fake_client(fake, FAKE_UID);
        id = fake_submit(client, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(fake->n_workers, 1);
        assert_true(fake->workers[0].is_spare);

        fake->hold_ready = false;
        fake_come_up(fake, &fake->workers[0]);
        fake_worker(fake, 0, 1);
        assert_false(fake->workers[0].is_spare);
        fake_end(&fake->workers[0], id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        close_all(client);
}

/* Its context is made for all SMs. */
static void a_user_with_a_share_of_the_sms_gets_no_spare(void **state) {
        char *settings[] = {"spare_workers=1", "sms=25%", NULL};
        Fake *fake = fake_new(1, settings);
        FakeClient *client;

        tick(fake);
        assert_int_equal(spares_of(fake), 1);
        assert_true(sms_are_all(fake->workers[0].sms));
        client = fake_client(fake, FAKE_UID);
        run_one(client, 1, 1);
        assert_int_equal(spares_of(fake), 1);
        assert_int_equal(fake->workers[1].uid, FAKE_UID);
        assert_true(sms_are_equal(fake->workers[1].sms, (Sms){.n = 25, .is_percent = true}));
        close_all(client);
}

static void after_a_fault_the_next_job_gets_the_spare(void **state) {
        Fake *fake = fake_new(1, one_spare);
        FakeClient *client = fake_client(fake, FAKE_UID);

        run_one(client, 0, 1);
        tick(fake);
        assert_int_equal(spares_of(fake), 1);
        fake_die(fake, &fake->workers[0]);
        run_one(client, 1, 1);
        assert_int_equal(fake->workers[1].uid, FAKE_UID);
        close_all(client);
}

static void without_a_spare_a_worker_starts(void **state) {
        Fake *fake = fake_new(1, one_spare);
        FakeClient *client;

        tick(fake);
        fake_die(fake, &fake->workers[0]);
        tick(fake); /* not at once: it might die again and again */
        assert_int_equal(fake->n_workers, 1);
        client = fake_client(fake, FAKE_UID);
        run_one(client, 1, 1);
        assert_int_equal(fake->workers[1].uid, FAKE_UID);

        device_of(fake)->spare_ns = 0; /* the time is up */
        tick(fake);
        assert_int_equal(spares_of(fake), 1);
        close_all(client);
}

static void a_spare_that_dies_as_it_is_taken_costs_no_job(void **state) {
        Fake *fake = fake_new(1, one_spare);
        FakeClient *client;
        uint64_t id;

        tick(fake);
        fake->hold_ready = true;
        client = fake_client(fake, FAKE_UID);
        id = fake_submit(client, (FakeJob){});
        fake_turn(fake);
        assert_false(fake->workers[0].is_spare);
        fake->hold_ready = false;
        fake_die(fake, &fake->workers[0]);
        fake_worker(fake, 1, 1);
        fake_end(&fake->workers[1], id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        close_all(client);
}

static void none_stays_on_a_drained_device(void **state) {
        Fake *fake = fake_new(1, one_spare);

        tick(fake);
        assert_true(fake->supervisor->engine.device_ops->drain(device_of(fake), "root", "work"));
        tick(fake);
        assert_int_equal(spares_of(fake), 0);
        assert_true(fake->supervisor->engine.device_ops->undrain(device_of(fake)));
        tick(fake);
        tick(fake);
        assert_int_equal(spares_of(fake), 1);
        fake_free(fake);
}

static void none_stays_where_memory_is_short(void **state) {
        Fake *fake = fake_new(1, one_spare);
        Workers *workers = &fake->supervisor->workers;

        tick(fake);
        device_of(fake)->memory_total = 80;
        spares_ready(workers->table, 10);
        fake_turn(fake);
        assert_int_equal(spares_of(fake), 1);
        spares_ready(workers->table, 9);
        fake_turn(fake);
        tick(fake);
        assert_int_equal(spares_of(fake), 0);
        fake_free(fake);
}

static void a_worker_that_is_stuck_at_its_start_keeps_no_spare_from_others(void **state) {
        Fake *fake = fake_new(1, one_spare);
        FakeClient *client;
        Worker *worker;

        fake->hold_ready = true;
        client = fake_client(fake, FAKE_UID);
        device_of(fake)->spare_ns = UINT64_MAX; /* its worker is no spare */
        fake_submit(client, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(fake->n_workers, 1);
        device_of(fake)->spare_ns = 0;
        tick(fake);
        assert_int_equal(spares_of(fake), 0);

        worker = fake->supervisor->workers.table;
        worker->executor.idle_ns -= SPARES_WAIT_NS;
        tick(fake);
        assert_int_equal(spares_of(fake), 1);
        close_all(client);
}

static void another_configuration_means_another_spare(void **state) {
        Fake *fake = fake_new(1, one_spare);

        tick(fake);
        workers_configure(&fake->supervisor->workers);
        fake_turn(fake);
        assert_true(fake->workers[0].is_ended);
        tick(fake);
        assert_int_equal(spares_of(fake), 1);

        fake->supervisor->config->spare_workers = 0;
        tick(fake);
        assert_int_equal(spares_of(fake), 0);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_job_of_a_user_gets_the_spare),
                cmocka_unit_test(a_spare_that_still_starts_is_taken_too),
                cmocka_unit_test(a_user_with_a_share_of_the_sms_gets_no_spare),
                cmocka_unit_test(after_a_fault_the_next_job_gets_the_spare),
                cmocka_unit_test(without_a_spare_a_worker_starts),
                cmocka_unit_test(a_spare_that_dies_as_it_is_taken_costs_no_job),
                cmocka_unit_test(none_stays_on_a_drained_device),
                cmocka_unit_test(none_stays_where_memory_is_short),
                cmocka_unit_test(a_worker_that_is_stuck_at_its_start_keeps_no_spare_from_others),
                cmocka_unit_test(another_configuration_means_another_spare),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
