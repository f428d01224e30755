/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two devices a job gets.
 */
#include "fake.h"

#include "device.h"
#include "executor.h"
#include "slot.h"

#define DONE   GPUQ__V1__STATE__DONE
#define MS     1000000ull
#define SECOND (1000 * MS)

static FakeClient *client_with_module(Fake *fake, uint32_t uid) {
        FakeClient *client = fake_client(fake, uid);

        fake_module(client);
        return client;
}

static Executor *executor_of(Fake *fake, uint32_t uid, unsigned device) {
        Slot *slot;

        for (slot = fake->supervisor->engine.slots; slot; slot = slot->hh.next)
                if (slot->key.domain == uid && slot->key.device == device)
                        return slot->executor;
        fail();
        return NULL;
}

/* Return: the worker of this user on this device. */
static FakeWorker *its_worker(Fake *fake, uint32_t uid, unsigned device) {
        for (size_t i = 0; i < fake->n_workers; ++i)
                if (fake->workers[i].uid == uid && fake->workers[i].device == device &&
                    !fake->workers[i].is_ended)
                        return &fake->workers[i];
        fail();
        return NULL;
}

/* Both workers of this user run, and the duration of its jobs is known: very short. */
static void warm(FakeClient *client, uint32_t uid) {
        for (unsigned i = 0; i < 2; ++i) {
                uint64_t id = fake_submit(client, (FakeJob){.device = i + 1});

                fake_turn(client->fake);
                fake_end(its_worker(client->fake, uid, i), id, 0);
                fake_expect_end(client, id, DONE, 0, NULL);
        }
}

static unsigned device_of(Fake *fake, uint64_t id) {
        Job *job = job_find(&fake->supervisor->engine, id);

        assert_non_null(job);
        assert_non_null(job->device);
        return job->device->index;
}

/* As if what is in flight there had been for so much longer. */
static void pass(Executor *executor, uint64_t ns) {
        Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                job->clock.started_ns -= ns;
        executor->last_end_ns -= executor->last_end_ns > ns ? ns : executor->last_end_ns;
}

static void
jobs_of_unknown_duration_do_not_wait_for_one_another_beside_an_idle_device(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        unsigned n_there[2] = {};

        for (unsigned i = 0; i < 3; ++i)
                n_there[device_of(fake, fake_submit(client, (FakeJob){}))]++;
        assert_int_equal(n_there[0], 2);
        assert_int_equal(n_there[1], 1);
        fake_client_close(client);
        fake_free(fake);
}

static void jobs_known_to_be_short_share_the_worker_that_there_is(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_end(fake_worker(fake, 0, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        for (unsigned i = 0; i < 8; ++i)
                assert_int_equal(device_of(fake, fake_submit(client, (FakeJob){})), 0);
        assert_int_equal(fake->n_workers, 1);
        fake_client_close(client);
        fake_free(fake);
}

static void a_job_that_another_user_runs_for_long_counts(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);

        warm(client, FAKE_UID);
        warm(other, FAKE_UID + 1);
        fake_submit(other, (FakeJob){.device = 1});
        fake_turn(fake);
        pass(executor_of(fake, FAKE_UID + 1, 0), SECOND);
        for (unsigned i = 0; i < 3; ++i)
                assert_int_equal(device_of(fake, fake_submit(client, (FakeJob){})), 1);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_job_counts_with_what_is_left_of_it(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        User *user;
        Job *job;

        warm(client, FAKE_UID);
        user = fake->supervisor->engine.users;
        job = job_find(&fake->supervisor->engine, fake_submit(client, (FakeJob){.device = 1}));
        for (unsigned i = 0; i < 50; ++i)
                duration_learn(user->duration, job->cost.class, SECOND, 1, SECOND);
        fake_end(its_worker(fake, FAKE_UID, 0), job->id, 0);
        fake_turn(fake);

        fake_submit(client, (FakeJob){.device = 1});
        fake_submit(client, (FakeJob){.device = 2});
        fake_turn(fake);
        pass(executor_of(fake, FAKE_UID, 1), SECOND / 2);
        assert_int_equal(device_of(fake, fake_submit(client, (FakeJob){})), 1);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        jobs_of_unknown_duration_do_not_wait_for_one_another_beside_an_idle_device),
                cmocka_unit_test(jobs_known_to_be_short_share_the_worker_that_there_is),
                cmocka_unit_test(a_job_that_another_user_runs_for_long_counts),
                cmocka_unit_test(a_job_counts_with_what_is_left_of_it),
        };

        return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
