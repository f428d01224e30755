/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "handover.h"

#define DONE GPUQ__V1__STATE__DONE

static FakeClient *client_with_module(Fake *fake) {
        FakeClient *client = fake_client(fake, FAKE_UID);

        fake_module(client);
        return client;
}

static bool has_handed_over(void *userdata) {
        const Fake *fake = userdata;

        return fake->supervisor->handover.is_done;
}

/* More often than it takes when nothing is in flight. */
static void look_some_times(Fake *fake) {
        uv_loop_t *loop = &fake->supervisor->loop;
        uint64_t until_ms = uv_now(loop) + 10 * SUPERVISOR_QUIT_STEP_MS;

        while (uv_now(loop) < until_ms)
                uv_run(loop, UV_RUN_ONCE);
}

static void what_is_in_flight_ends_and_is_told_before_it_leaves(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        handover_begin(&fake->supervisor->handover);
        fake->supervisor->handover.until_ns = UINT64_MAX;
        look_some_times(fake);
        assert_false(has_handed_over(fake));
        fake_end(worker, id, 0);
        fake_wait(fake, has_handed_over, fake);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void nothing_is_dispatched_and_nobody_told_that_it_ends(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        handover_begin(&fake->supervisor->handover);
        fake_submit(client, (FakeJob){});
        fake_turn(fake);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        fake_wait(fake, has_handed_over, fake);
        assert_int_equal(worker->n_jobs, 1);
        assert_false(worker->is_stopping);
        assert_false(client->is_closed);
        fake_client_close(client);
        fake_free(fake);
}

static void a_job_without_end_is_left_when_time_is_up(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_module(fake);

        fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 1);
        handover_begin(&fake->supervisor->handover);
        fake->supervisor->handover.until_ns = 0;
        fake_wait(fake, has_handed_over, fake);
        assert_false(client->is_closed);
        fake_client_close(client);
        fake_free(fake);
}

static void an_idle_one_leaves_at_once(void **state) {
        Fake *fake = fake_new(1, NULL);

        handover_begin(&fake->supervisor->handover);
        fake->supervisor->handover.until_ns = UINT64_MAX;
        fake_wait(fake, has_handed_over, fake);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_in_flight_ends_and_is_told_before_it_leaves),
                cmocka_unit_test(nothing_is_dispatched_and_nobody_told_that_it_ends),
                cmocka_unit_test(a_job_without_end_is_left_when_time_is_up),
                cmocka_unit_test(an_idle_one_leaves_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
