/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that send more than their share.
 */
#include "fake.h"

#include <string.h>

static Worker *object_of(Fake *fake, const FakeWorker *worker) {
        Worker *found;

        HASH_FIND(hh, fake->supervisor->workers.table, &worker->id, sizeof(worker->id), found);
        return found;
}

static void say_figures(FakeWorker *worker, size_t n, const char *text) {
        for (size_t i = 0; i < n; ++i)
                fake_say(worker, (WorkerMessage){{.kind = FROM_WORKER_STATS}, .more = text}, -1);
}

static FakeWorker *worker_with_job(Fake *fake, FakeClient *client, size_t index, uint64_t *ret_id) {
        *ret_id = fake_submit(client, (FakeJob){});
        return fake_worker(fake, index, 1);
}

static void a_turn_reads_so_many_messages(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        FakeWorker *worker;
        Worker *object;
        uint64_t id;
        int credit;

        worker = worker_with_job(fake, client, 0, &id);
        object = object_of(fake, worker);
        say_figures(worker, 600, NULL);
        credit = object->credit;
        worker_begin_turn(object);
        worker_read(object);
        worker_read(object);
        assert_int_equal(credit - object->credit, WORKER_TURN_BYTES / WORKER_TURN_LEAST);
        fake_turn(fake);
        assert_true(credit - object->credit >= 600 - WORKER_CREDIT_TICK);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static void a_long_message_is_paid_for_in_later_turns(void **state) {
        static char text[1 << 20];
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        FakeWorker *worker;
        Worker *object;
        unsigned turns = 0;
        uint64_t id;
        int credit;

        memset(text, 'x', sizeof(text) - 1);
        worker = worker_with_job(fake, client, 0, &id);
        object = object_of(fake, worker);
        say_figures(worker, 4, text);
        credit = object->credit;
        for (; credit - object->credit < 4; ++turns) {
                int before = object->credit;

                worker_begin_turn(object);
                worker_read(object);
                assert_in_range(before - object->credit, 0, 1);
        }
        assert_in_range(turns, 3 * sizeof(text) / WORKER_TURN_BYTES,
                        4 * sizeof(text) / WORKER_TURN_BYTES + 4);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
        fake_free(fake);
}

static bool is_killed(void *worker) {
        return ((FakeWorker *)worker)->is_killed;
}

/* Another user's job ends meanwhile, and that user's worker goes on. */
static void who_floods_is_stopped(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        FakeWorker *worker, *good;
        uint64_t id, theirs;

        worker = worker_with_job(fake, client, 0, &id);
        good = worker_with_job(fake, other, 1, &theirs);
        say_figures(worker, 4 * WORKER_CREDIT_START, NULL);
        fake_end(good, theirs, 0);
        fake_expect_end(other, theirs, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_wait(fake, is_killed, worker);
        fake_expect_end(client, id, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT, "");
        assert_false(good->is_killed);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void ends_of_nothing_are_no_message(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        FakeWorker *worker;
        uint64_t id;

        worker = worker_with_job(fake, client, 0, &id);
        fake_say(worker, (WorkerMessage){{.kind = FROM_WORKER_ENDS}}, -1);
        fake_wait(fake, is_killed, worker);
        fake_expect_end(client, id, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT, "");
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_turn_reads_so_many_messages),
                cmocka_unit_test(a_long_message_is_paid_for_in_later_turns),
                cmocka_unit_test(who_floods_is_stopped),
                cmocka_unit_test(ends_of_nothing_are_no_message),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
