/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking over while a driver does not show its devices.
 */
#include "fake.h"

#include <string.h>
#include <unistd.h>

#include "process_age.h"
#include "takeover_state.h"

#define BEFORE 5u /* a session of the supervisor before */

/* A supervisor that has one session to take over, and is looking for devices. */
static Fake *fake_with_a_slow_driver(void) {
        LedgerSession record = {.id = BEFORE, .uid = FAKE_UID, .gid = FAKE_UID, .pid = 1};
        Fake *fake = fake_new(1, NULL);
        Ledger *ledger;

        assert_int_equal(ledger_new(&ledger), 0);
        record.start = process_age_start(record.pid);
        assert_int_not_equal(ledger_add(ledger, LEDGER_SESSION, &record), LEDGER_NONE);
        ledger_note_id(ledger, LEDGER_SESSION, BEFORE);
        fake_stop(fake);
        fake->hold_probe = true;
        fake_start(fake, NULL);
        fake_hand_over(fake, KEEPER_KEY_LEDGER, ledger_fd(ledger));
        ledger_free(ledger);
        fake_begin(fake);
        fake_turn(fake);
        assert_non_null(fake->look);
        return fake;
}

static bool lets_in(void *userdata) {
        return takeover_lets_in(((Fake *)userdata)->supervisor);
}

static void pass_time(Fake *fake) {
        fake->supervisor->takeover->began_ns -= TAKEOVER_LATE_MS * UINT64_C(1000000);
        fake_wait(fake, lets_in, fake);
}

static void ask(FakeClient *client, Gpuq__V1__Request__BodyCase what, void *body) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;

        request.body_case = what;
        request.hello = body;
        fake_send(client, &request);
}

static FakeClient *client_that_resumes(Fake *fake) {
        FakeClient *client = fake_client_raw(fake, FAKE_UID, false);
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;
        const Gpuq__V1__Reply *reply;

        hello.version_min = hello.version_max = 1;
        hello.client = "test";
        hello.resume = BEFORE;
        ask(client, GPUQ__V1__REQUEST__BODY_HELLO, &hello);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_WELCOME);
        assert_true(reply->welcome->resumed);
        assert_int_equal(reply->welcome->session, BEFORE);
        return client;
}

static void ask_for_an_arena(FakeClient *client) {
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;

        create.place = GPUQ__V1__PLACE__HOST;
        create.size = 4096;
        ask(client, GPUQ__V1__REQUEST__BODY_ARENA_CREATE, &create);
}

static void expect_an_arena(FakeClient *client) {
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_ARENA);
}

static void expect_state(FakeClient *client, const char *state) {
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;
        const Gpuq__V1__Reply *reply;

        ask(client, GPUQ__V1__REQUEST__BODY_STATUS_GET, &get);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        assert_string_equal(reply->status->state, state);
}

/* Who is answered nothing gives his session up. */
static void who_resumes_is_let_in_and_served_once_devices_are_known(void **state) {
        Gpuq__V1__Resumed resumed = GPUQ__V1__RESUMED__INIT;
        Fake *fake = fake_with_a_slow_driver();
        FakeClient *client, *other;

        fake_turn(fake);
        assert_false(lets_in(fake));
        pass_time(fake);
        client = client_that_resumes(fake);
        ask_for_an_arena(client);
        ask(client, GPUQ__V1__REQUEST__BODY_RESUMED, &resumed);
        other = fake_client(fake, FAKE_UID);
        assert_true(other->session > BEFORE);
        expect_state(other, "looking for devices");
        ask_for_an_arena(other);
        assert_null(fake->supervisor->engine.arenas);
        assert_true(takeover_is_open(fake->supervisor));

        fake_release_probe(fake);
        expect_an_arena(client);
        expect_an_arena(other);
        expect_state(other, "ready");
        assert_false(takeover_is_open(fake->supervisor));
        fake_client_close(other);
        fake_client_close(client);
        fake_free(fake);
}

static void who_leaves_before_devices_are_known_is_not_waited_for(void **state) {
        Fake *fake = fake_with_a_slow_driver();
        FakeClient *client;

        pass_time(fake);
        client = client_that_resumes(fake);
        ask_for_an_arena(client);
        fake_client_close(client);
        fake_release_probe(fake);
        fake_turn(fake);
        assert_false(takeover_is_open(fake->supervisor));
        assert_null(fake->supervisor->clients.sessions);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_resumes_is_let_in_and_served_once_devices_are_known),
                cmocka_unit_test(who_leaves_before_devices_are_known_is_not_waited_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
