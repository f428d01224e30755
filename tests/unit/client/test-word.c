/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion words: who names them, and what they tell before the message does.
 */
#include "support.h"

#include "client/lib/jobs/word.h"

/* Of a daemon that says clients may spin. */
static int open_spinning(void **state) {
        Session *session = calloc(1, sizeof(*session));

        session->fake = fake_new();
        fake_set(session->fake, (FakeManners){.version = 1, .poll_us = 1000, .words = true});
        *state = session;
        assert_ok(gpuq_connect(fake_path(session->fake), &session->client));
        assert_ok(gpuq_module_builtin(session->client, &session->module));
        return 0;
}

static void run_one(Session *session, uint64_t value) {
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, value, &from, &to);

        assert_ok(gpuq_run(job));
        assert_int_equal(buffer_word(to), 2 * value);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void warm_up(Session *session) {
        for (unsigned i = 0; i < WORD_AFTER; i++)
                run_one(session, i);
}

/* Submitted and, as its word says, done, though the daemon holds it. */
static gpuq_job *job_done_by_word(Session *session, gpuq_buffer **ret_from, gpuq_buffer **ret_to) {
        gpuq_job *job = session_job(session, 21, ret_from, ret_to);

        fake_set(session->fake,
                 (FakeManners){.version = 1, .poll_us = 1000, .words = true, .hold = true});
        assert_ok(gpuq_submit(job));
        while (gpuq_poll(job) == 0)
                usleep(100);
        assert_int_equal(gpuq_poll(job), 1);
        return job;
}

static void they_are_named_after_some_waits_by_jobs_that_are_few(void **state) {
        Session *session = *state;
        gpuq_buffer *from[WORD_FEW_JOBS + 1], *to[WORD_FEW_JOBS + 1];
        gpuq_job *jobs[WORD_FEW_JOBS + 1];

        warm_up(session);
        assert_int_equal(fake_counts(session->fake).n_words, 0);
        run_one(session, 5);
        assert_int_equal(fake_counts(session->fake).n_words, 1);

        for (unsigned i = 0; i <= WORD_FEW_JOBS; i++)
                jobs[i] = session_job(session, i, &from[i], &to[i]);
        assert_ok(gpuq_submit_many(jobs, WORD_FEW_JOBS + 1));
        for (unsigned i = 0; i <= WORD_FEW_JOBS; i++) {
                assert_ok(gpuq_wait(jobs[i], -1));
                gpuq_job_free(jobs[i]);
                gpuq_buffer_free(from[i]);
                gpuq_buffer_free(to[i]);
        }
        assert_int_equal(fake_counts(session->fake).n_words, 1);
}

static void a_word_tells_the_end_and_the_message_the_rest(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_result result;
        gpuq_job *job;

        warm_up(session);
        job = job_done_by_word(session, &from, &to);
        assert_ok(gpuq_wait(job, -1));
        assert_int_equal(buffer_word(to), 42);
        assert_int_equal(fake_complete(session->fake), 1);
        assert_ok(gpuq_job_get_result(job, &result));
        assert_int_equal(result.state, GPUQ_DONE);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void what_a_word_told_stands_when_the_connection_ends(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_result result;
        gpuq_job *job;

        warm_up(session);
        job = job_done_by_word(session, &from, &to);
        fake_hang_up(session->fake);
        assert_ok(gpuq_job_get_result(job, &result));
        assert_int_equal(result.state, GPUQ_DONE);
        assert_ok(gpuq_wait(job, -1));
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void a_job_that_fails_says_so_in_its_message(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job;

        warm_up(session);
        job = session_job(session, 3, &from, &to);
        fake_set(session->fake, (FakeManners){.version = 1,
                                              .poll_us = 1000,
                                              .words = true,
                                              .job_code = GPUQ__V1__CODE__E_FAULT});
        assert_int_equal(gpuq_run(job), GPUQ_E_FAULT);
        assert_int_equal(fake_counts(session->fake).n_words, 1);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void words_come_back_and_serve_again(void **state) {
        Session *session = *state;

        warm_up(session);
        for (unsigned i = 0; i < 3 * WORD_N; i++)
                run_one(session, i);
        assert_int_equal(fake_counts(session->fake).n_words, 3 * WORD_N);
}

static void count_call(gpuq_job *job, void *userdata) {
        ++*(unsigned *)userdata;
}

static void a_callback_still_runs_before_its_wait_returns(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        unsigned n_calls = 0;
        gpuq_job *job;

        warm_up(session);
        job = session_job(session, 3, &from, &to);
        assert_ok(gpuq_job_set_callback(job, count_call, &n_calls));
        assert_ok(gpuq_run(job));
        assert_int_equal(n_calls, 1);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

#define spinning_test(f) cmocka_unit_test_setup_teardown(f, open_spinning, session_close)

int main(void) {
        const struct CMUnitTest tests[] = {
                spinning_test(they_are_named_after_some_waits_by_jobs_that_are_few),
                spinning_test(a_word_tells_the_end_and_the_message_the_rest),
                spinning_test(what_a_word_told_stands_when_the_connection_ends),
                spinning_test(a_job_that_fails_says_so_in_its_message),
                spinning_test(words_come_back_and_serve_again),
                spinning_test(a_callback_still_runs_before_its_wait_returns),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
