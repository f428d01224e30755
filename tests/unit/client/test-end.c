/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a connection ends, what the daemon may not say, and asking about others' jobs.
 */

#include "support.h"

static gpuq_job *held_job(Session *session, gpuq_buffer **ret_from, gpuq_buffer **ret_to) {
        gpuq_job *job = session_job(session, 1, ret_from, ret_to);

        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_submit(job));
        fake_await(session->fake, n_jobs, 1);
        return job;
}

static void job_free_all(gpuq_job *job, gpuq_buffer *from, gpuq_buffer *to) {
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void *wait_in_thread(void *job) {
        return (void *)(intptr_t)gpuq_wait(job, -1);
}

static void daemon_that_goes_in_mid_wait_ends_every_wait(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to, *other;
        gpuq_job *job = held_job(session, &from, &to);
        pthread_t threads[4];
        void *r;

        for (unsigned i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, wait_in_thread, job);
        fake_hang_up(session->fake);
        for (unsigned i = 0; i < 4; i++) {
                pthread_join(threads[i], &r);
                assert_int_equal((intptr_t)r, GPUQ_E_CLOSED);
        }
        assert_int_equal(gpuq_wait(job, -1), GPUQ_E_CLOSED);
        assert_text("gpuqd closed the connection");
        assert_int_equal(gpuq_buffer_new(session->client, 8, &other), GPUQ_E_CLOSED);
        assert_int_equal(gpuq_dispatch(session->client, -1), GPUQ_E_CLOSED);
        assert_int_equal(gpuq_client_events(session->client), GPUQ_E_CLOSED);
        job_free_all(job, from, to);
}

static void last_error_of_the_daemon_is_what_waits_return(void **state) {
        Session *session = *state;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;
        gpuq_buffer *from, *to, *other;
        gpuq_job *job = held_job(session, &from, &to);

        error.code = GPUQ__V1__CODE__E_SHUTDOWN;
        error.text = "gpuqd is being stopped";
        reply.body_case = GPUQ__V1__REPLY__BODY_ERROR;
        reply.error = &error;
        fake_send(session->fake, &reply);
        fake_hang_up(session->fake);
        assert_int_equal(gpuq_wait(job, -1), GPUQ_E_SHUTDOWN);
        assert_string_equal(gpuq_error_text(), "gpuqd is being stopped");
        assert_int_equal(gpuq_buffer_new(session->client, 8, &other), GPUQ_E_SHUTDOWN);
        job_free_all(job, from, to);
}

static void last_error_is_read_though_writing_failed_first(void **state) {
        Session *session = *state;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 1, &from, &to);

        error.code = GPUQ__V1__CODE__E_QUOTA;
        error.text = "too slow";
        reply.body_case = GPUQ__V1__REPLY__BODY_ERROR;
        reply.error = &error;
        fake_send(session->fake, &reply);
        fake_hang_up(session->fake);
        assert_int_equal(gpuq_run(job), GPUQ_E_QUOTA);
        assert_string_equal(gpuq_error_text(), "too slow");
        job_free_all(job, from, to);
}

static void garbage_from_the_daemon_is_a_protocol_error(void **state) {
        static const uint8_t too_long[] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
        static const uint8_t no_message[] = {3, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff};
        static const uint8_t no_body[] = {2, 0, 0, 0, 0, 0, 0, 0, 1 << 3, 5};
        static const struct {
                const uint8_t *bytes;
                size_t n_bytes;
        } cases[] = {
                {too_long, sizeof(too_long)},
                {no_message, sizeof(no_message)},
                {no_body, sizeof(no_body)},
        };
        Session *session = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                gpuq_client *client;
                gpuq_status *status;

                assert_ok(gpuq_connect(fake_path(session->fake), &client));
                fake_send_bytes(session->fake, cases[i].bytes, cases[i].n_bytes);
                assert_int_equal(gpuq_get_status(client, &status), GPUQ_E_PROTOCOL);
                gpuq_client_free(client);
        }
}

static void end_of_a_job_that_is_none_is_a_protocol_error(void **state) {
        Session *session = *state;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Completions completions = GPUQ__V1__COMPLETIONS__INIT;
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT, *pointer = &completion;

        completion.id = (uint64_t)FAKE_SESSION << 32 | 55;
        completion.state = GPUQ__V1__STATE__DONE;
        completions.n_completions = 1;
        completions.completions = &pointer;
        reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
        reply.completions = &completions;
        fake_send(session->fake, &reply);
        assert_int_equal(gpuq_dispatch(session->client, -1), 0);
        assert_int_equal(gpuq_dispatch(session->client, 0), GPUQ_E_PROTOCOL);
}

static void end_that_is_told_twice_counts_once(void **state) {
        Session *session = *state;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Completions completions = GPUQ__V1__COMPLETIONS__INIT;
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT, *pointer = &completion;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 1, &from, &to);
        gpuq_status *status;

        assert_ok(gpuq_run(job));
        completion.id = gpuq_job_id(job);
        completion.state = GPUQ__V1__STATE__DONE;
        completions.n_completions = 1;
        completions.completions = &pointer;
        reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
        reply.completions = &completions;
        fake_send(session->fake, &reply);
        assert_ok(gpuq_get_status(session->client, &status));
        gpuq_status_free(status);
        job_free_all(job, from, to);
}

static void jobs_of_a_freed_client_are_closed(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = held_job(session, &from, &to), *other;
        gpuq_client *client = session->client;

        assert_ok(gpuq_job_new(client, &other));
        gpuq_client_free(TAKE_PTR(session->client));
        fake_await(session->fake, n_ends, 1);
        assert_int_equal(gpuq_wait(job, -1), GPUQ_E_CLOSED);
        assert_int_equal(gpuq_submit(other), GPUQ_E_CLOSED);
        gpuq_job_free(other);
        job_free_all(job, from, to);
}

static void jobs_of_others_are_waited_for_by_id(void **state) {
        Session *session = *state;
        gpuq_result result;

        assert_int_equal(gpuq_wait_id(session->client, UINT64_C(1) << 32 | 2, -1, &result),
                         GPUQ_E_FAULT);
        assert_int_equal(result.state, GPUQ_FAILED);
        assert_int_equal(result.error, GPUQ_E_FAULT);
        assert_string_equal(result.text, "it faulted");
        assert_string_equal(result.output, "last words");
        assert_string_equal(gpuq_error_text(), "it faulted");
        assert_int_equal(gpuq_wait_id(session->client, 5, -1, NULL), GPUQ_E_NOT_FOUND);
}

static void asking_again_does_not_pile_up_requests(void **state) {
        Session *session = *state;
        uint64_t never = UINT64_C(1) << 32 | 1;
        gpuq_status *status;

        for (unsigned i = 0; i < 10; i++)
                assert_int_equal(gpuq_wait_id(session->client, never, 1, NULL), GPUQ_E_AGAIN);
        assert_text("1.1");
        assert_ok(gpuq_get_status(session->client, &status)); /* all before it was heard then */
        gpuq_status_free(status);
        assert_int_equal(fake_counts(session->fake).n_waits, 1);
}

static void status_and_queue_come_as_plain_structs(void **state) {
        Session *session = *state;
        gpuq_cancelled cancelled;
        gpuq_status *status;
        gpuq_queue *queue;
        uint64_t ids[] = {1, 2, 3};

        assert_ok(gpuq_get_status(session->client, &status));
        assert_int_equal(status->n_devices, 2);
        assert_string_equal(status->devices[1].name, "Fake 9000");
        assert_int_equal(status->workers[0].contexts, 1);
        assert_int_equal(status->workers[0].memory, 5 << 20);
        assert_string_equal(status->users[0].user, "somebody");
        assert_true(status->users[0].share == 0.25);
        gpuq_status_free(status);

        assert_ok(gpuq_get_queue(session->client, 1000, &queue));
        assert_int_equal(queue->n_entries, 1);
        assert_int_equal(queue->entries[0].uid, 1000);
        assert_string_equal(queue->entries[0].reason, "queued");
        assert_string_equal(queue->entries[0].state, "waiting");
        assert_int_equal(queue->entries[0].priority, -5);
        assert_int_equal(queue->entries[0].device, -1);
        gpuq_queue_free(queue);

        assert_ok(gpuq_cancel_ids(session->client, ids, 3, &cancelled));
        assert_int_equal(cancelled.n_ended, 3);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                session_test(daemon_that_goes_in_mid_wait_ends_every_wait),
                session_test(last_error_of_the_daemon_is_what_waits_return),
                session_test(last_error_is_read_though_writing_failed_first),
                session_test(garbage_from_the_daemon_is_a_protocol_error),
                session_test(end_of_a_job_that_is_none_is_a_protocol_error),
                session_test(end_that_is_told_twice_counts_once),
                session_test(jobs_of_a_freed_client_are_closed),
                session_test(jobs_of_others_are_waited_for_by_id),
                session_test(asking_again_does_not_pile_up_requests),
                session_test(status_and_queue_come_as_plain_structs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
