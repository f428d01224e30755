/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polling while busy, sleeping when idle.
 */
#include "fake.h"

#include <poll.h>

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

static Worker *worker_of(Fake *fake, const FakeWorker *worker) {
        Worker *found;

        HASH_FIND(hh, fake->supervisor->workers, &worker->id, sizeof(worker->id), found);
        assert_non_null(found);
        return found;
}

static bool bell_rings(Fake *fake, const FakeWorker *worker) {
        struct pollfd fd = {.fd = channel_bell_fd(worker_of(fake, worker)->channel),
                            .events = POLLIN};

        return poll(&fd, 1, 0) == 1;
}

static void while_it_polls_a_worker_rings_no_bell(void **state) {
        Fake *fake = fake_new(1, (char *[]){"poll_us=100000", NULL});
        FakeClient *client = client_with_module(fake);
        FakeWorker *worker = fake_worker(fake, 0, 0);
        uint64_t id;

        fake_wait(fake, supervisor_sleeps, fake);
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 1);
        assert_false(supervisor_sleeps(fake));
        fake_end(worker, id, 0);
        assert_false(bell_rings(fake, worker));
        fake_expect_end(client, id, DONE, 0, NULL);
        assert_false(supervisor_sleeps(fake));
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(while_it_polls_a_worker_rings_no_bell),
                cmocka_unit_test(it_sleeps_some_time_after_the_last_job),
                cmocka_unit_test(without_polling_it_sleeps_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
