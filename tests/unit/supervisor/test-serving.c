/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a turn of the loop is divided: first the rule alone, then sessions of a supervisor.
 */
#include "fake.h"

#include "clients.h"

#define MANY 64u

typedef struct Work {
        ServingMember member;
        size_t n_left; /* requests */
        size_t n_steps;
        size_t n_served;
} Work;

static void work_join(Serving *serving, Work *work, uid_t uid, size_t n_left, size_t n_steps) {
        *work = (Work){.n_left = n_left, .n_steps = n_steps};
        assert_int_equal(serving_join(serving, &work->member, uid), 0);
        if (n_left)
                serving_wait(serving, &work->member);
}

static void work_serve(Serving *serving, Work *work) {
        while (work->n_left) {
                if (!serving_goes_on(&work->member)) {
                        serving_wait(serving, &work->member);
                        return;
                }
                serving_pay(&work->member, work->n_steps);
                work->n_left--;
                work->n_served++;
        }
        serving_leave_off(serving, &work->member);
}

/* Return: the steps of this turn. */
static uint64_t turn_that(Serving *serving, bool gives_parts) {
        uint64_t before = serving->n_steps;
        ServingMember *member;

        serving_begin_turn(serving, gives_parts);
        while ((member = serving_next(serving)))
                work_serve(serving, container_of(member, Work, member));
        return serving->n_steps - before;
}

static uint64_t turn(Serving *serving) {
        return turn_that(serving, true);
}

static void work_leave(Serving *serving, Work *work, size_t n) {
        for (size_t i = 0; i < n; ++i)
                serving_leave(serving, &work[i].member);
        serving_fini(serving);
}

static void one_person_alone_gets_the_turn(void **state) {
        Serving serving;
        Work work;

        serving_init(&serving);
        work_join(&serving, &work, 1, 1000000, 1);
        assert_int_equal(turn(&serving), SERVING_TURN_STEPS);
        assert_int_equal(turn(&serving), SERVING_TURN_STEPS);
        assert_true(serving_has_waiting(&serving));
        work_leave(&serving, &work, 1);
}

static void a_person_with_many_sessions_gets_no_more_than_one_with_one(void **state) {
        Work many[MANY], one;
        Serving serving;
        size_t n_many = 0;

        serving_init(&serving);
        for (unsigned i = 0; i < MANY; ++i)
                work_join(&serving, &many[i], 1, 1000000, 1);
        work_join(&serving, &one, 2, 1000000, 1);
        for (unsigned i = 0; i < 100; ++i)
                assert_true(turn(&serving) <= SERVING_TURN_STEPS);
        for (unsigned i = 0; i < MANY; ++i) {
                assert_true(many[i].n_served > 0); /* nor does one of its own sessions starve */
                n_many += many[i].n_served;
        }
        assert_int_equal(n_many, one.n_served);
        serving_leave(&serving, &one.member);
        work_leave(&serving, many, MANY);
}

static void a_large_request_is_paid_for_in_later_turns(void **state) {
        Work large, small;
        Serving serving;

        serving_init(&serving);
        work_join(&serving, &large, 1, 100, 10 * SERVING_TURN_STEPS);
        work_join(&serving, &small, 2, 1000000, 1);
        (void)turn(&serving);
        assert_int_equal(large.n_served, 1);
        assert_int_equal(small.n_served, 0); /* the turn was long enough */
        for (unsigned i = 0; i < 19; ++i)
                (void)turn(&serving);
        assert_int_equal(large.n_served, 1);
        assert_int_equal(small.n_served, 19 * SERVING_TURN_STEPS / 2);
        (void)turn(&serving);
        assert_int_equal(large.n_served, 2);
        serving_leave(&serving, &small.member);
        work_leave(&serving, &large, 1);
}

static void a_person_without_steps_waits_and_the_others_go_on(void **state) {
        Work heavy, light;
        Serving serving;

        serving_init(&serving);
        work_join(&serving, &heavy, 1, 1000000, 1);
        work_join(&serving, &light, 2, 0, 1);
        assert_int_equal(turn(&serving), SERVING_TURN_STEPS);
        for (unsigned i = 0; i < 10; ++i) {
                light.n_left = 1;
                serving_wait(&serving, &light.member);
                assert_true(serving_has_ready(&serving));
                assert_int_equal(turn_that(&serving, false), 1);
                assert_true(serving_has_waiting(&serving));
                assert_false(serving_has_ready(&serving)); /* the loop may sleep */
        }
        assert_int_equal(light.n_served, 10);
        assert_int_equal(heavy.n_served, SERVING_TURN_STEPS);
        (void)turn(&serving);
        assert_true(heavy.n_served > SERVING_TURN_STEPS);
        serving_leave(&serving, &light.member);
        work_leave(&serving, &heavy, 1);
}

static void the_loop_is_shared_until_nobody_else_has_asked_for_a_while(void **state) {
        Work one, other;
        Serving serving;

        serving_init(&serving);
        work_join(&serving, &one, 1, 1000000, 1);
        work_join(&serving, &other, 2, 1, 1);
        assert_false(serving_is_shared(&serving));
        (void)turn(&serving);
        (void)turn(&serving);
        for (unsigned i = 0; i < SERVING_SHARED_PARTS; ++i) {
                assert_true(serving_is_shared(&serving));
                (void)turn_that(&serving, false); /* does not count */
                (void)turn(&serving);
        }
        assert_false(serving_is_shared(&serving));
        serving_leave(&serving, &other.member);
        work_leave(&serving, &one, 1);
}

static void turns_without_requests_pay_but_save_nothing(void **state) {
        Serving serving;
        Work work;

        serving_init(&serving);
        work_join(&serving, &work, 1, 1, 3 * SERVING_TURN_STEPS);
        (void)turn(&serving);
        for (unsigned i = 0; i < 10; ++i)
                (void)turn(&serving);
        work.n_left = 1000000;
        work.n_steps = 1;
        serving_wait(&serving, &work.member);
        assert_int_equal(turn(&serving), SERVING_TURN_STEPS);
        work_leave(&serving, &work, 1);
}

/* As what a thread did for it. */
static void parts_from_before_do_not_pay_for_what_came_later(void **state) {
        Serving serving;
        Work work;

        serving_init(&serving);
        work_join(&serving, &work, 1, 1, 1);
        for (unsigned i = 0; i < 20; ++i)
                (void)turn(&serving);
        serving_pay(&work.member, 3 * SERVING_TURN_STEPS);
        work.n_left = 5;
        serving_wait(&serving, &work.member);
        (void)turn(&serving);
        (void)turn(&serving);
        assert_int_equal(work.n_left, 5);
        (void)turn(&serving);
        assert_int_equal(work.n_left, 0);
        work_leave(&serving, &work, 1);
}

static void a_new_connection_does_not_forgive_a_debt(void **state) {
        Serving serving;
        Work work;

        serving_init(&serving);
        work_join(&serving, &work, 1, 1, 3 * SERVING_TURN_STEPS);
        (void)turn(&serving);
        serving_leave(&serving, &work.member);
        work_join(&serving, &work, 1, 5, 1);
        assert_int_equal(turn(&serving), 0);
        assert_int_equal(turn(&serving), 0);
        assert_int_equal(turn(&serving), 5);
        work_leave(&serving, &work, 1);
}

static void large_requests_of_many_people_come_in_a_turn_each(void **state) {
        Work large[MANY], small;
        Serving serving;

        serving_init(&serving);
        for (unsigned i = 0; i < MANY; ++i)
                work_join(&serving, &large[i], i, 100, 10 * SERVING_TURN_STEPS);
        for (unsigned i = 0; i < MANY; ++i)
                assert_int_equal(turn(&serving), 10 * SERVING_TURN_STEPS);
        for (unsigned i = 0; i < MANY; ++i)
                assert_int_equal(large[i].n_served, 1);
        work_join(&serving, &small, MANY, 1, 1);
        (void)turn(&serving);
        assert_int_equal(small.n_served, 1); /* the others still pay */
        serving_leave(&serving, &small.member);
        work_leave(&serving, large, MANY);
}

static void many_people_get_the_least_each_over_several_turns(void **state) {
        Work work[MANY];
        Serving serving;

        serving_init(&serving);
        for (unsigned i = 0; i < MANY; ++i)
                work_join(&serving, &work[i], i, 1000000, 1);
        for (unsigned i = 0; i < MANY * SERVING_LEAST_STEPS / SERVING_TURN_STEPS; ++i)
                assert_int_equal(turn(&serving), SERVING_TURN_STEPS);
        for (unsigned i = 0; i < MANY; ++i)
                assert_int_equal(work[i].n_served, SERVING_LEAST_STEPS);
        work_leave(&serving, work, MANY);
}

/* ---- sessions -------------------------------------------------------------- */

static void queue_cancels(FakeClient *client, size_t n, size_t n_ids) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        uint64_t *ids = calloc(n_ids, sizeof(*ids));

        assert_non_null(ids);
        for (size_t i = 0; i < n_ids; ++i)
                ids[i] = 0xffffffff00000001;
        cancel.ids = ids;
        cancel.n_ids = n_ids;
        request.serial = 7;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        for (size_t i = 0; i < n; ++i)
                assert_int_equal(wire_queue(client->wire, &request.base, -1), 0);
        free(ids);
        (void)wire_flush(client->wire);
}

static bool has_reply(FakeClient *client) {
        WireFrame frame;

        return wire_next(client->wire, &frame) == 0 ||
               (wire_receive(client->wire) == 0 && wire_next(client->wire, &frame) == 0);
}

/* ---- time ------------------------------------------------------------------ */

static uint64_t cpu_ns, request_ns; /* that each request takes */
static unsigned n_asked;

uint64_t __wrap_stall_cpu_ns(void);

uint64_t __wrap_stall_cpu_ns(void) {
        n_asked++;
        return cpu_ns += request_ns;
}

static void a_large_request_pays_for_its_time(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *large = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        Serving *serving = &fake->supervisor->clients.serving;
        uint64_t before = serving->n_steps;

        request_ns = 30000000;
        queue_cancels(other, 1, 1);
        while (!has_reply(other))
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        assert_int_equal(n_asked, 0); /* small ones are not timed */
        assert_true(serving->n_steps - before < 100);

        queue_cancels(large, 2, 512);
        while (!has_reply(large))
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        assert_int_equal(n_asked, 2);
        assert_true(serving->n_steps - before >= 30000);
        assert_true(serving_has_waiting(
                serving)); /* its second request waits until the first is paid */
        fake_client_close(large);
        fake_client_close(other);
        fake_free(fake);
}

/* Sixteen connections of one user, full of requests, and one request of another user. */
static void another_user_waits_for_a_turn_not_for_all_requests(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *flood[16], *other = fake_client(fake, FAKE_UID + 1);
        Serving *serving = &fake->supervisor->clients.serving;
        uint64_t began;

        for (size_t i = 0; i < ARRAY_SIZE(flood); ++i) {
                flood[i] = fake_client(fake, FAKE_UID);
                queue_cancels(flood[i], 200, 64);
        }
        for (unsigned i = 0; i < 3; ++i)
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        assert_true(serving_has_waiting(serving));

        queue_cancels(other, 1, 1);
        began = serving->n_steps;
        while (!has_reply(other))
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        assert_true(serving->n_steps - began <= 3 * SERVING_TURN_STEPS);

        for (size_t i = 0; i < ARRAY_SIZE(flood); ++i)
                fake_client_close(flood[i]);
        fake_client_close(other);
        fake_free(fake);
}

/* ---- busy cores ------------------------------------------------------------ */

static bool are_busy;

bool __wrap_cores_are_busy(Cores *cores, uint64_t now_ns);

bool __wrap_cores_are_busy(Cores *cores, uint64_t now_ns) {
        return are_busy;
}

/* Return: whether somebody waits for the next parts, and nobody has steps left. */
static bool turn_that_uses_up(Fake *fake) {
        const Serving *serving = &fake->supervisor->clients.serving;

        uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        return fake->supervisor->is_timed && serving_has_waiting(serving) &&
               !serving_has_ready(serving);
}

/* One user asks without end while the cores are busy, and another has asked, too. */
static void loop_rests(bool by_ring) {
        Fake *fake = fake_new(1, (char *[]){"poll_us=1000", NULL});
        FakeClient *flood = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        unsigned n_rests = 0, n_replies = 0;

        if (by_ring)
                fake_ring(flood);
        are_busy = true;
        queue_cancels(flood, 100, 64);
        queue_cancels(other, 1, 1);
        while (n_replies < 100) {
                if (turn_that_uses_up(fake)) {
                        assert_false(uv_is_active((uv_handle_t *)&fake->supervisor->idle));
                        assert_true(uv_is_active((uv_handle_t *)&fake->supervisor->part_timer));
                        n_rests++;
                }
                (void)wire_flush(flood->wire);
                n_replies += has_reply(flood);
        }
        assert_true(n_rests > 0);
        assert_true(has_reply(other));
        are_busy = false;
        fake_client_close(flood);
        fake_client_close(other);
        fake_free(fake);
}

static void the_loop_rests_until_the_next_parts(void **state) {
        loop_rests(false);
}

static void a_full_ring_lets_the_loop_rest(void **state) {
        loop_rests(true);
}

/* ---- sessions without a hello ---------------------------------------------- */

static Session *session_by(const FakeClient *client) {
        return session_find(&client->fake->supervisor->clients,
                            client->fake->supervisor->clients.last_session);
}

static void who_says_no_hello_is_sent_away_with_the_reason(void **state) {
        Fake *fake = fake_new(1, (char *[]){"hello_timeout_s=60", NULL});
        FakeClient *silent = fake_client_raw(fake, FAKE_UID, false);
        Session *session = session_by(silent);
        uint64_t from_ns = session->serving.joined_ns;

        session_tick(session, from_ns + 60000000000);
        assert_int_equal(session->state, SESSION_HELLO);
        session_tick(session, from_ns + 60000000001);
        fake_expect_error(silent, GPUQ__V1__CODE__E_PROTOCOL, "did not send its hello within 60 s");
        assert_null(fake_receive(silent));
        fake_client_close(silent);
        fake_free(fake);
}

static void a_connection_counts_before_its_hello(void **state) {
        Fake *fake = fake_new(1, (char *[]){"sessions=2", NULL});
        FakeClient *one = fake_client_raw(fake, FAKE_UID, false);
        FakeClient *two = fake_client_raw(fake, FAKE_UID, false);
        FakeClient *more = fake_client_raw(fake, FAKE_UID, false);
        FakeClient *other = fake_client(fake, FAKE_UID + 1);

        fake_expect_error(more, GPUQ__V1__CODE__E_QUOTA, "sessions");
        fake_client_close(one);
        fake_client_close(two);
        fake_client_close(more);
        fake_client_close(other);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_person_alone_gets_the_turn),
                cmocka_unit_test(a_person_with_many_sessions_gets_no_more_than_one_with_one),
                cmocka_unit_test(a_large_request_is_paid_for_in_later_turns),
                cmocka_unit_test(a_person_without_steps_waits_and_the_others_go_on),
                cmocka_unit_test(the_loop_is_shared_until_nobody_else_has_asked_for_a_while),
                cmocka_unit_test(turns_without_requests_pay_but_save_nothing),
                cmocka_unit_test(parts_from_before_do_not_pay_for_what_came_later),
                cmocka_unit_test(a_new_connection_does_not_forgive_a_debt),
                cmocka_unit_test(large_requests_of_many_people_come_in_a_turn_each),
                cmocka_unit_test(many_people_get_the_least_each_over_several_turns),
                cmocka_unit_test(a_large_request_pays_for_its_time),
                cmocka_unit_test(another_user_waits_for_a_turn_not_for_all_requests),
                cmocka_unit_test(the_loop_rests_until_the_next_parts),
                cmocka_unit_test(a_full_ring_lets_the_loop_rest),
                cmocka_unit_test(who_says_no_hello_is_sent_away_with_the_reason),
                cmocka_unit_test(a_connection_counts_before_its_hello),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
