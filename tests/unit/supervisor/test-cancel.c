/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancelling the jobs of a job of Slurm: its own, of its user, and for administrators of any user.
 */
#include "fake.h"

#include "slot.h"

#define ALICE FAKE_UID
#define BOB   (FAKE_UID + 1)
#define SLURM 77u

static Engine *engine_of(const Fake *fake) {
        return &fake->supervisor->engine;
}

static Session *session_of_client(const FakeClient *client) {
        return session_find(&client->fake->supervisor->clients, client->session);
}

static FakeClient *client_of(Fake *fake, uint32_t uid, uint32_t slurm_job) {
        FakeClient *client = fake_client(fake, uid);

        session_of_client(client)->submitter.slurm_job = slurm_job;
        fake_module(client);
        return client;
}

/* Return: how many were cancelled. */
static size_t cancel(FakeClient *client, uint32_t slurm_job) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        Gpuq__V1__Reply *reply;

        cancel.slurm_job = slurm_job;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
        do
                reply = fake_receive(client);
        while (reply->body_case != GPUQ__V1__REPLY__BODY_CANCELLED);
        return reply->cancelled->n_ids;
}

static bool is_left(const Fake *fake, uint64_t id) {
        const Job *job = job_find(engine_of(fake), id);

        return job && !job->verdict.failure;
}

static void only_the_jobs_of_that_slurm_job_are_cancelled(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *inside = client_of(fake, ALICE, SLURM);
        FakeClient *beside = client_of(fake, ALICE, SLURM + 1);
        FakeClient *outside = client_of(fake, ALICE, 0);
        uint64_t other, none;

        fake_submit_many(inside, (FakeJob){}, 3);
        other = fake_submit(beside, (FakeJob){});
        none = fake_submit(outside, (FakeJob){});
        assert_int_equal(cancel(outside, SLURM), 3);
        assert_true(is_left(fake, other));
        assert_true(is_left(fake, none));
        fake_client_close(inside);
        fake_client_close(beside);
        fake_client_close(outside);
        fake_free(fake);
}

static void those_of_other_users_are_for_administrators(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *alice = client_of(fake, ALICE, SLURM);
        FakeClient *bob = client_of(fake, BOB, SLURM);
        FakeClient *carol = client_of(fake, BOB + 1, 0);
        uint64_t id = fake_submit(alice, (FakeJob){}), own = fake_submit(carol, (FakeJob){});

        fake_submit(bob, (FakeJob){});
        assert_int_equal(cancel(bob, SLURM), 1);
        assert_true(is_left(fake, id));
        assert_int_equal(cancel(carol, SLURM), 0);

        session_of_client(carol)->peer.is_admin = true;
        assert_true(cancel(carol, SLURM) >= 1);
        assert_false(is_left(fake, id));
        assert_true(is_left(fake, own));
        fake_client_close(alice);
        fake_client_close(bob);
        fake_client_close(carol);
        fake_free(fake);
}

/* Its position is among that user's jobs. */
static void a_user_whose_jobs_are_being_listed_stays(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, ALICE);
        User *user = session_of_client(client)->submitter.user;
        uint32_t n_held = user->n_held;
        JobCursor cursor = {};

        cursor_begin(&cursor, user);
        assert_int_equal(user->n_held, n_held + 1);
        cursor_end(&cursor);
        cursor_end(&cursor);
        assert_int_equal(user->n_held, n_held);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_jobs_of_that_slurm_job_are_cancelled),
                cmocka_unit_test(those_of_other_users_are_for_administrators),
                cmocka_unit_test(a_user_whose_jobs_are_being_listed_stays),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
