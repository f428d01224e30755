/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of ended jobs: when there is one, what it keeps, and what it counts instead.
 */
#include "fake.h"

#include <string.h>

#include "supervisor.h"

#define SECOND_NS 1000000000ull

static Engine *engine_of(const Fake *fake) {
        return &fake->supervisor->engine;
}

static User *user_of(const Fake *fake, uint32_t uid) {
        for (User *user = engine_of(fake)->users; user; user = user->hh.next)
                if (user->uid == uid)
                        return user;
        return NULL;
}

static Trace *trace_of(const Fake *fake, uint32_t uid) {
        Trace *trace;

        assert_int_equal(trace_open(engine_of(fake), user_of(fake, uid), false, &trace), 0);
        return trace;
}

static void ask(FakeClient *client, uint64_t trace, uint64_t next) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__TraceGet get = GPUQ__V1__TRACE_GET__INIT;

        get.trace = trace;
        get.next = next;
        request.body_case = GPUQ__V1__REQUEST__BODY_TRACE_GET;
        request.trace_get = &get;
        fake_send(client, &request);
}

static const Gpuq__V1__Trace *read_trace(FakeClient *client, uint64_t trace, uint64_t next) {
        const Gpuq__V1__Reply *reply;

        ask(client, trace, next);
        do
                reply = fake_receive(client);
        while (reply->body_case == GPUQ__V1__REPLY__BODY_COMPLETIONS);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_TRACE);
        return reply->trace;
}

static uint64_t run_one(Fake *fake, FakeClient *client) {
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_end(fake_worker(fake, 0, 1), id, 0);
        fake_completion(client, id);
        return id;
}

static void without_a_reader_nothing_is_kept(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        fake_module(client);
        run_one(fake, client);
        assert_true(LIST_EMPTY(&engine_of(fake)->ends.traces));
        fake_client_close(client);
        fake_free(fake);
}

static void a_reader_gets_each_job_once(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        const Gpuq__V1__Trace *trace;
        uint64_t number, next, first, second;

        fake_module(client);
        run_one(fake, client);
        trace = read_trace(client, 0, 0); /* valid until something else is received */
        assert_int_equal(trace->n_jobs, 0);
        number = trace->trace;
        next = trace->next;
        first = run_one(fake, client);
        second = run_one(fake, client);
        trace = read_trace(client, number, next);
        assert_int_equal(trace->n_jobs, 2);
        assert_int_equal(trace->jobs[0]->id, first);
        assert_int_equal(trace->jobs[1]->id, second);
        assert_string_equal(trace->jobs[0]->kernels, "add");
        assert_int_equal(trace->jobs[0]->worker, 1000);
        assert_true(trace->jobs[0]->submitted_ns <= trace->jobs[0]->started_ns);
        assert_true(trace->jobs[0]->started_ns <= trace->jobs[0]->ended_ns);
        assert_true(trace->jobs[1]->ended_ns <= trace->now_ns);
        assert_int_equal(trace->lost, 0);
        trace = read_trace(client, number, trace->next);
        assert_int_equal(trace->n_jobs, 0);
        fake_client_close(client);
        fake_free(fake);
}

static void each_user_reads_a_trace_of_its_own(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        uint64_t number, others;

        fake_module(client);
        number = read_trace(client, 0, 0)->trace;
        others = read_trace(other, 0, 0)->trace;
        run_one(fake, client);
        assert_int_equal(read_trace(other, others, 0)->n_jobs, 0);
        assert_int_equal(read_trace(client, number, 0)->n_jobs, 1);
        ask(other, number, 0);
        fake_expect_error(other, FAILURE_NOT_FOUND, "begin again");
        ask(client, number, 2);
        fake_expect_error(client, FAILURE_NOT_FOUND, "begin again");
        fake_client_close(other);
        fake_client_close(client);
        fake_free(fake);
}

static void a_job_without_a_place_is_counted(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t now_ns = SECOND_NS;
        Trace *trace;

        trace = trace_of(fake, FAKE_UID);
        for (size_t i = 0; i < TRACE_MAX; ++i)
                assert_non_null(trace_add(trace, now_ns));
        assert_null(trace_add(trace, now_ns + TRACE_KEEP_NS - 1));
        assert_int_equal(trace->n_ended, TRACE_MAX + 1);
        assert_int_equal(trace->n_kept, TRACE_MAX);

        now_ns += TRACE_KEEP_NS;
        assert_int_equal(trace_add(trace, now_ns)->serial, TRACE_MAX + 2);
        assert_int_equal(trace_at(trace, trace_after(trace, 0))->serial, 2);
        assert_int_equal(trace_at(trace, trace_after(trace, TRACE_MAX))->serial, TRACE_MAX + 2);
        assert_int_equal(trace_after(trace, TRACE_MAX + 2), trace->n_kept);
        fake_client_close(client);
        fake_free(fake);
}

static void a_long_trace_is_read_in_pages(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        const Gpuq__V1__Trace *page = read_trace(client, 0, 0);
        Trace *trace = trace_of(fake, FAKE_UID);
        uint64_t next = page->next, n_jobs = 0, n_lost = 0;
        bool has_more = true;

        for (size_t i = 0; i < TRACE_MAX + 1000; ++i)
                (void)trace_add(trace, SECOND_NS);
        while (has_more) {
                page = read_trace(client, trace->number, next);
                assert_in_range(page->n_jobs, 0, 256);
                n_jobs += page->n_jobs;
                n_lost += page->lost;
                next = page->next;
                has_more = page->more;
        }
        assert_int_equal(n_jobs, TRACE_MAX);
        assert_int_equal(n_lost, 1000);
        fake_client_close(client);
        fake_free(fake);
}

static void a_trace_that_nobody_reads_is_freed(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t now_ns;
        Trace *trace;
        User *user;

        user = user_of(fake, FAKE_UID);
        trace = trace_of(fake, FAKE_UID);
        now_ns = trace->asked_ns + TRACE_IDLE_NS;
        assert_true(user_used(user, USER_RECORD_BYTES) >= sizeof(Trace));
        trace_tick(engine_of(fake), now_ns);
        assert_false(LIST_EMPTY(&engine_of(fake)->ends.traces));
        trace_tick(engine_of(fake), now_ns + 1);
        assert_true(LIST_EMPTY(&engine_of(fake)->ends.traces));
        assert_true(user_used(user, USER_RECORD_BYTES) < sizeof(Trace));
        fake_client_close(client);
        fake_free(fake);
}

static void the_number_of_traces_is_limited_but_for_administrators(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *clients[TRACE_USERS_MAX + 1];
        Trace *trace;
        User *user;

        for (uint32_t i = 0; i <= TRACE_USERS_MAX; ++i)
                clients[i] = fake_client(fake, FAKE_UID + i);
        for (uint32_t i = 0; i < TRACE_USERS_MAX; ++i)
                trace_of(fake, FAKE_UID + i);
        user = user_of(fake, FAKE_UID + TRACE_USERS_MAX);
        assert_int_equal(trace_open(engine_of(fake), user, false, &trace), TRACE_E_MANY);
        assert_int_equal(trace_open(engine_of(fake), user, true, &trace), 0);
        assert_ptr_equal(trace_of(fake, FAKE_UID), trace_of(fake, FAKE_UID));
        for (uint32_t i = 0; i <= TRACE_USERS_MAX; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_reader_nothing_is_kept),
                cmocka_unit_test(a_reader_gets_each_job_once),
                cmocka_unit_test(each_user_reads_a_trace_of_its_own),
                cmocka_unit_test(a_job_without_a_place_is_counted),
                cmocka_unit_test(a_long_trace_is_read_in_pages),
                cmocka_unit_test(a_trace_that_nobody_reads_is_freed),
                cmocka_unit_test(the_number_of_traces_is_limited_but_for_administrators),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
