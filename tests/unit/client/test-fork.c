/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a child may do with what it inherited. The child tells by its exit
 * status: the number of the first check that failed, or 0.
 */

#include "support.h"

#include <sys/wait.h>

#define CHILD_CHECK(n, condition)                                                                  \
        do {                                                                                       \
                if (!(condition))                                                                  \
                        return n;                                                                  \
        } while (0)

static int child_status(pid_t pid) {
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

typedef struct Inherited {
        Session *session;
        gpuq_job *job;
        gpuq_buffer *from, *to;
} Inherited;

static int child_tries_everything(Inherited *in) {
        gpuq_client *client = in->session->client;
        gpuq_module *module = in->session->module;
        gpuq_buffer_ref ref;
        gpuq_buffer *buffer;
        gpuq_module *other;
        gpuq_result result;
        gpuq_status *status;
        gpuq_queue *queue;
        gpuq_job *job;

        CHILD_CHECK(1, gpuq_client_fd(client) == GPUQ_E_FORKED);
        CHILD_CHECK(2, strstr(gpuq_error_text(), "gpuq_connect() in the child"));
        CHILD_CHECK(3, gpuq_client_events(client) == GPUQ_E_FORKED);
        CHILD_CHECK(4, gpuq_dispatch(client, -1) == GPUQ_E_FORKED);
        CHILD_CHECK(5, gpuq_buffer_new(client, 8, &buffer) == GPUQ_E_FORKED);
        CHILD_CHECK(6, gpuq_buffer_new_device(client, 8, 0, &buffer) == GPUQ_E_FORKED);
        CHILD_CHECK(7, gpuq_buffer_slice(in->from, 0, 1, &buffer) == GPUQ_E_FORKED);
        CHILD_CHECK(8, gpuq_buffer_get_ref(in->from, &ref) == GPUQ_E_FORKED);
        CHILD_CHECK(9, gpuq_buffer_data(in->from) == NULL);
        CHILD_CHECK(10, gpuq_module_builtin(client, &other) == GPUQ_E_FORKED);
        CHILD_CHECK(11, gpuq_job_new(client, &job) == GPUQ_E_FORKED);
        CHILD_CHECK(12, gpuq_submit(in->job) == GPUQ_E_FORKED);
        CHILD_CHECK(13, gpuq_wait(in->job, -1) == GPUQ_E_FORKED);
        CHILD_CHECK(14, gpuq_poll(in->job) == GPUQ_E_FORKED);
        CHILD_CHECK(15, gpuq_cancel(in->job) == GPUQ_E_FORKED);
        CHILD_CHECK(16, gpuq_job_get_result(in->job, &result) == GPUQ_E_FORKED);
        CHILD_CHECK(17, gpuq_wait_id(client, 1, -1, NULL) == GPUQ_E_FORKED);
        CHILD_CHECK(18, gpuq_get_status(client, &status) == GPUQ_E_FORKED);
        CHILD_CHECK(19, gpuq_get_queue(client, -1, &queue) == GPUQ_E_FORKED);
        CHILD_CHECK(20, gpuq_cancel_ids(client, NULL, 0, NULL) == GPUQ_E_FORKED);

        gpuq_job_free(in->job);
        gpuq_buffer_free(in->from);
        gpuq_buffer_free(in->to);
        gpuq_module_free(module);
        gpuq_client_free(client);
        return 0;
}

static void child_is_refused_and_the_parent_goes_on(void **state) {
        Session *session = *state;
        Inherited in = {.session = session};
        pid_t pid;

        fake_set(session->fake, (FakeManners){.hold = true});
        in.job = session_job(session, 21, &in.from, &in.to);
        assert_ok(gpuq_submit(in.job));
        pid = fork();
        if (pid == 0)
                _exit(child_tries_everything(&in));
        assert_int_equal(child_status(pid), 0);

        /* The child freed all; the parent's session and its job are as they were. */
        fake_await(session->fake, n_jobs, 1);
        fake_complete(session->fake);
        assert_ok(gpuq_wait(in.job, -1));
        assert_int_equal(buffer_word(in.to), 42);
        assert_int_equal(fake_counts(session->fake).n_ends, 0);
        assert_int_equal(fake_counts(session->fake).n_unloads, 0);
        gpuq_job_free(in.job);
        gpuq_buffer_free(in.from);
        gpuq_buffer_free(in.to);
}

static int child_connects(Session *inherited) {
        Session session = {.fake = inherited->fake};
        gpuq_buffer *from, *to;
        gpuq_job *job;

        CHILD_CHECK(1, gpuq_connect(fake_path(session.fake), &session.client) == 0);
        CHILD_CHECK(2, gpuq_module_builtin(session.client, &session.module) == 0);
        job = session_job(&session, 4, &from, &to);
        CHILD_CHECK(3, gpuq_run(job) == 0);
        CHILD_CHECK(4, buffer_word(to) == 8);
        CHILD_CHECK(5, gpuq_dispatch(inherited->client, 0) == GPUQ_E_FORKED);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
        gpuq_module_free(session.module);
        gpuq_client_free(session.client);
        return 0;
}

static void child_connects_anew(void **state) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(child_connects(*state));
        assert_int_equal(child_status(pid), 0);
}

static int grandchild_is_refused_too(Session *inherited) {
        gpuq_client *client;
        pid_t pid;
        int status;

        CHILD_CHECK(1, gpuq_connect(fake_path(inherited->fake), &client) == 0);
        pid = fork();
        if (pid == 0)
                _exit(gpuq_dispatch(client, 0) == GPUQ_E_FORKED &&
                                      gpuq_dispatch(inherited->client, 0) == GPUQ_E_FORKED
                              ? 0
                              : 1);
        CHILD_CHECK(2, waitpid(pid, &status, 0) == pid && status == 0);
        CHILD_CHECK(3, gpuq_dispatch(client, 0) == 0);
        gpuq_client_free(client);
        return 0;
}

static void grandchild_tells_both_generations(void **state) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(grandchild_is_refused_too(*state));
        assert_int_equal(child_status(pid), 0);
}

static void *wait_main(void *job) {
        return (void *)(intptr_t)gpuq_wait(job, -1);
}

static void *spin_main(void *userdata) {
        Session *session = userdata;

        for (unsigned i = 0; i < 20000; i++) {
                gpuq_buffer *buffer;

                if (gpuq_buffer_new(session->client, 64, &buffer) < 0)
                        return NULL;
                gpuq_buffer_free(buffer);
        }
        return session;
}

static int child_frees(Inherited *in) {
        gpuq_job_free(in->job);
        gpuq_buffer_free(in->from);
        gpuq_buffer_free(in->to);
        gpuq_module_free(in->session->module);
        gpuq_client_free(in->session->client);
        return 0;
}

/* A lock that another thread holds at the fork is never let go in the child. */
static void child_does_not_hang_on_a_held_lock(void **state) {
        Session *session = *state;
        Inherited in = {.session = session};
        pthread_t waiter, spinner;
        void *r;

        fake_set(session->fake, (FakeManners){.hold = true});
        in.job = session_job(session, 1, &in.from, &in.to);
        assert_ok(gpuq_submit(in.job));
        fake_await(session->fake, n_jobs, 1);
        pthread_create(&waiter, NULL, wait_main, in.job);
        pthread_create(&spinner, NULL, spin_main, session);
        for (unsigned i = 0; i < 50; i++) {
                pid_t pid = fork();

                if (pid == 0)
                        _exit(child_frees(&in));
                assert_int_equal(child_status(pid), 0);
        }
        pthread_join(spinner, &r);
        assert_ptr_equal(r, session);
        fake_complete(session->fake);
        pthread_join(waiter, &r);
        assert_int_equal((intptr_t)r, 0);
        gpuq_job_free(in.job);
        gpuq_buffer_free(in.from);
        gpuq_buffer_free(in.to);
}

/* A child that still holds a copy of the socket must not keep the session open. */
static void freeing_ends_the_session_though_a_child_lives(void **state) {
        Session *session = *state;
        int fds[2];
        pid_t pid;
        char byte;

        assert_int_equal(pipe(fds), 0);
        pid = fork();
        if (pid == 0) {
                close(fds[1]);
                _exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
        }
        close(fds[0]);
        gpuq_client_free(TAKE_PTR(session->client));
        fake_await(session->fake, n_ends, 1);
        close(fds[1]);
        assert_int_equal(child_status(pid), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                session_test(child_is_refused_and_the_parent_goes_on),
                session_test(child_connects_anew),
                session_test(grandchild_tells_both_generations),
                session_test(child_does_not_hang_on_a_held_lock),
                session_test(freeing_ends_the_session_though_a_child_lives),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
