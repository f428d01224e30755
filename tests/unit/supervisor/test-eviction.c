/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "slot.h"
#include "supervisor.h"
#include "worker.h"

#define N_TRIES (PROVISION_TRIES_MAX + 1)

static const Slot *slot_of(Fake *fake, uint32_t domain) {
        Slot *slot;

        for (slot = fake->supervisor->engine.slots; slot; slot = slot->hh.next)
                if (slot->key.domain == domain && slot->key.device == 0)
                        return slot;
        return NULL;
}

static bool has_tried(void *slot) {
        return ((Slot *)slot)->pressure.n_tries >= N_TRIES;
}

static bool has_failed(void *slot) {
        return ((Slot *)slot)->n_failures > 0;
}

static bool is_stopping(void *worker) {
        return ((FakeWorker *)worker)->is_stopping;
}

static void is_full(Fake *fake, bool full) {
        fake->start_error = full ? "out of fake memory" : NULL;
        fake->start_crowded = full;
}

/* However often others were in the way: only tries that fail without them count. */
static void tries_in_vain_beside_others_give_nothing_up(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *here = fake_client(fake, FAKE_UID), *waiting = fake_client(fake, FAKE_UID + 1);
        FakeWorker *worker;
        uint64_t id, first;
        size_t n;

        first = fake_submit(here, (FakeJob){});
        worker = fake_worker(fake, 0, 1);
        is_full(fake, true);
        id = fake_submit(waiting, (FakeJob){});
        fake_turn(fake);
        fake_wait(fake, has_tried, (void *)slot_of(fake, FAKE_UID + 1));
        assert_string_equal(
                fake_reason(waiting, id),
                "device 0 has no memory for this user's context (1 other worker there)");
        assert_false(worker->is_stopping);

        fake_die(fake, worker);
        fake_expect_end(here, first, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT, "");
        fake_wait(fake, has_failed, (void *)slot_of(fake, FAKE_UID + 1));
        is_full(fake, false);
        n = fake->n_workers;
        worker = fake_worker(fake, n, 1);
        fake_end(worker, id, 0);
        fake_expect_end(waiting, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(here);
        fake_client_close(waiting);
        fake_free(fake);
}

static void the_one_that_is_idle_for_longest_goes(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *clients[3];
        uint64_t ids[3];

        for (unsigned i = 0; i < 3; ++i) {
                clients[i] = fake_client(fake, FAKE_UID + i);
                if (i == 2)
                        is_full(fake, true);
                ids[i] = fake_submit(clients[i], (FakeJob){});
                fake_turn(fake);
                if (i == 2)
                        break;
                fake_end(fake_worker(fake, i, 1), ids[i], 0);
                fake_expect_end(clients[i], ids[i], GPUQ__V1__STATE__DONE, 0, NULL);
        }
        fake_wait(fake, is_stopping, &fake->workers[0]);
        is_full(fake, false);
        fake_stopped(fake, &fake->workers[0], NULL, NULL, NULL, 0);
        fake_end(fake_worker(fake, 3, 1), ids[2], 0);
        fake_expect_end(clients[2], ids[2], GPUQ__V1__STATE__DONE, 0, NULL);
        assert_false(fake->workers[1].is_stopping);
        for (unsigned i = 0; i < 3; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

static bool has_tried_thrice(void *userdata) {
        Fake *fake = userdata;
        Slot *slot;

        for (slot = fake->supervisor->engine.slots; slot; slot = slot->hh.next)
                if (slot->key.domain == FAKE_UID + 2 && slot->pressure.n_tries >= 3)
                        return true;
        return false;
}

/* It stays with one device, or each would look like one with room again. */
static void work_does_not_go_round_between_devices_without_room(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *clients[3];
        uint64_t ids[3];

        for (unsigned i = 0; i < 2; ++i) {
                clients[i] = fake_client(fake, FAKE_UID + i);
                ids[i] = fake_submit(clients[i], (FakeJob){.device = i + 1});
                fake_worker(fake, i, 1);
        }
        is_full(fake, true);
        clients[2] = fake_client(fake, FAKE_UID + 2);
        ids[2] = fake_submit(clients[2], (FakeJob){});
        fake_turn(fake);
        fake_wait(fake, has_tried_thrice, fake);
        assert_true(fake->n_workers <= 2 + 1 + 3);
        assert_non_null(strstr(fake_reason(clients[2], ids[2]), "no memory"));
        for (unsigned i = 0; i < 2; ++i) {
                fake_end(&fake->workers[i], ids[i], 0);
                fake_expect_end(clients[i], ids[i], GPUQ__V1__STATE__DONE, 0, NULL);
        }
        for (unsigned i = 0; i < 3; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

static bool has_tried_twice(void *slot) {
        return ((Slot *)slot)->pressure.n_tries >= 2;
}

/* Even if each check finds no memory. */
static void who_finds_no_room_again_and_again_ends_few(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *clients[5];
        unsigned n_stopping = 0;
        uint64_t id;

        for (unsigned i = 0; i < 5; ++i) {
                clients[i] = fake_client(fake, FAKE_UID + i);
                if (i == 4)
                        break;
                id = fake_submit(clients[i], (FakeJob){});
                fake_turn(fake);
                fake_end(fake_worker(fake, i, 1), id, 0);
                fake_expect_end(clients[i], id, GPUQ__V1__STATE__DONE, 0, NULL);
        }
        is_full(fake, true);
        fake_submit(clients[4], (FakeJob){});
        fake_wait(fake, is_stopping, &fake->workers[0]);
        fake_stopped(fake, &fake->workers[0], NULL, NULL, NULL, 0);
        fake_wait(fake, has_tried_twice, (void *)slot_of(fake, FAKE_UID + 4));
        fake_wait(fake, is_stopping, &fake->workers[1]);
        fake_stopped(fake, &fake->workers[1], NULL, NULL, NULL, 0);
        for (unsigned i = 0; i < 10; ++i)
                fake_turn(fake);
        for (unsigned i = 2; i < 4; ++i)
                n_stopping += fake->workers[i].is_stopping;
        assert_int_equal(n_stopping, 0);
        for (unsigned i = 0; i < 5; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

/* The device has memory, as the daemon's own check finds: nobody is stopped for the liar. */
static void who_only_says_that_there_is_no_memory_stops_nobody(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *here = fake_client(fake, FAKE_UID), *liar = fake_client(fake, FAKE_UID + 1);
        uint64_t id;

        id = fake_submit(here, (FakeJob){});
        fake_end(fake_worker(fake, 0, 1), id, 0);
        fake_expect_end(here, id, GPUQ__V1__STATE__DONE, 0, NULL);
        is_full(fake, true);
        fake->check_finds_room = true;
        id = fake_submit(liar, (FakeJob){});
        fake_turn(fake);
        fake_wait(fake, has_tried, (void *)slot_of(fake, FAKE_UID + 1));
        assert_false(fake->workers[0].is_stopping);
        assert_in_range(fake->n_checks, 1, 2);
        assert_string_equal(fake_device_status(here, 0)->state, "ready");
        fake_client_close(here);
        fake_client_close(liar);
        fake_free(fake);
}

static void a_clock_that_stands_a_little_behind_changes_nothing(void **state) {
        const Pressure pressure = {.n_others = 1, .n_tries = 1, .since_ns = 1000, .tried_ns = 1000};

        assert_true(pressure_is_on(&pressure, 999));
        assert_true(pressure_is_on(&pressure, 1001));
        assert_false(pressure_is_on(&pressure, 1000 + PRESSURE_FORGET_MS * UINT64_C(1000000)));
        assert_false(pressure_is_on(&(Pressure){0}, 0));
}

static void load_on_the_first(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        load.device = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
}

/* What names the device stays, what does not goes to the other one. */
static void work_goes_where_there_is_room(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *here = fake_client(fake, FAKE_UID), *waiting = fake_client(fake, FAKE_UID + 1);
        FakeClient *others[2];
        uint64_t first, id, named;

        first = fake_submit(here, (FakeJob){.device = 1});
        fake_worker(fake, 0, 1);
        is_full(fake, true);
        fake->hold_modules = true;
        for (unsigned i = 0; i < 2; ++i) {
                others[i] = fake_client(fake, FAKE_UID + 1);
                load_on_the_first(others[i]);
        }
        named = fake_submit(waiting, (FakeJob){.device = 1});
        fake_turn(fake);
        fake_wait(fake, has_tried, (void *)slot_of(fake, FAKE_UID + 1));

        is_full(fake, false);
        id = fake_submit(waiting, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(fake->workers[fake->n_workers - 1].device, 1);
        fake_end(fake_worker(fake, fake->n_workers - 1, 1), id, 0);
        fake_expect_end(waiting, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_end(&fake->workers[0], first, 0);
        fake_expect_end(here, first, GPUQ__V1__STATE__DONE, 0, NULL);
        assert_non_null(strstr(fake_reason(waiting, named), "no memory"));
        for (unsigned i = 0; i < 2; ++i)
                fake_client_close(others[i]);
        fake_client_close(here);
        fake_client_close(waiting);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tries_in_vain_beside_others_give_nothing_up),
                cmocka_unit_test(the_one_that_is_idle_for_longest_goes),
                cmocka_unit_test(work_does_not_go_round_between_devices_without_room),
                cmocka_unit_test(who_finds_no_room_again_and_again_ends_few),
                cmocka_unit_test(who_only_says_that_there_is_no_memory_stops_nobody),
                cmocka_unit_test(a_clock_that_stands_a_little_behind_changes_nothing),
                cmocka_unit_test(work_goes_where_there_is_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
