/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "supervisor/slot.h"
#include "supervisor/supervisor.h"
#include "supervisor/worker.h"

#define N_TRIES (SLOT_TRIES_MAX + 1)

static const Slot *slot_of(Fake *fake, uint32_t domain) {
        Slot *slot;

        for (slot = fake->supervisor->slots; slot; slot = slot->hh.next)
                if (slot->key.domain == domain && slot->key.device == 0)
                        return slot;
        return NULL;
}

static bool has_tried(void *slot) {
        return ((Slot *)slot)->room.n_tries >= N_TRIES;
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
        assert_string_equal(fake_reason(waiting, id),
                            "room for its user's context on device 0 (others there: 1)");
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

static bool wants_none(void *slot) {
        return ((Slot *)slot)->room.n_tries == 0;
}

/* Its device is chosen again, and the next one to lack room there begins to wait anew. */
static void whose_work_is_gone_waits_for_no_room(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *here = fake_client(fake, FAKE_UID), *waiting = fake_client(fake, FAKE_UID + 1);
        uint64_t first;

        first = fake_submit(here, (FakeJob){});
        fake_worker(fake, 0, 1);
        is_full(fake, true);
        fake_submit(waiting, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(slot_of(fake, FAKE_UID + 1)->room.n_others, 1);
        fake_client_close(waiting);
        fake_wait(fake, wants_none, (void *)slot_of(fake, FAKE_UID + 1));
        assert_int_equal(slot_of(fake, FAKE_UID + 1)->room.n_others, 0);
        fake_end(&fake->workers[0], first, 0);
        fake_expect_end(here, first, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(here);
        fake_free(fake);
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
        assert_non_null(strstr(fake_reason(waiting, named), "room"));
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
                cmocka_unit_test(whose_work_is_gone_waits_for_no_room),
                cmocka_unit_test(work_goes_where_there_is_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
