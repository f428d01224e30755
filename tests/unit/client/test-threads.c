/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads on one connection, callbacks, and the user's own loop. Built
 * for ThreadSanitizer: cmocka's assertions are made by the main thread only.
 */

#include "support.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

#define N_THREADS 8
#define N_ROUNDS  200

typedef struct Worker {
        Session *session;
        uint64_t first;
        unsigned n_right;
        unsigned n_called; /* atomic */
} Worker;

static gpuq_job *worker_job(Worker *worker, uint64_t value, gpuq_buffer **from, gpuq_buffer **to) {
        gpuq_config config = {.grid = {1}, .block = {1}};
        gpuq_client *client = worker->session->client;
        gpuq_job *job = NULL;

        if (gpuq_buffer_new(client, 8, from) < 0 || gpuq_buffer_new(client, 8, to) < 0 ||
            gpuq_job_new(client, &job) < 0)
                return NULL;

        gpuq_arg args[] = {gpuq_in(*from), gpuq_out(*to), gpuq_u64(1)};
        *(uint64_t *)gpuq_buffer_data(*from) = value;
        return gpuq_job_launch(job, worker->session->module, "twice", &config, args, 3) < 0 ? NULL
                                                                                            : job;
}

static void worker_count(gpuq_job *job, void *userdata) {
        Worker *worker = userdata;
        gpuq_result result;

        if (gpuq_job_get_result(job, &result) == 0 && result.error == 0)
                __atomic_add_fetch(&worker->n_called, 1, __ATOMIC_RELAXED);
}

static void *worker_main(void *userdata) {
        Worker *worker = userdata;

        for (unsigned i = 0; i < N_ROUNDS; i++) {
                gpuq_buffer *from = NULL, *to = NULL;
                gpuq_job *job = worker_job(worker, worker->first + i, &from, &to);
                unsigned n_called = __atomic_load_n(&worker->n_called, __ATOMIC_RELAXED);

                if (!job)
                        return NULL;
                gpuq_job_set_callback(job, worker_count, worker);
                /* A wait returns after the callback has, whichever thread ran it. */
                if (gpuq_submit(job) == 0 && gpuq_wait(job, -1) == 0 &&
                    buffer_word(to) == 2 * (worker->first + i) &&
                    __atomic_load_n(&worker->n_called, __ATOMIC_RELAXED) == n_called + 1)
                        worker->n_right++;
                gpuq_job_free(job);
                gpuq_buffer_free(from);
                gpuq_buffer_free(to);
        }
        return NULL;
}

static void threads_share_a_connection(void **state) {
        Worker workers[N_THREADS];
        pthread_t threads[N_THREADS];

        for (unsigned i = 0; i < N_THREADS; i++) {
                workers[i] = (Worker){.session = *state, .first = i * 100000};
                assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
        }
        for (unsigned i = 0; i < N_THREADS; i++) {
                pthread_join(threads[i], NULL);
                assert_int_equal(workers[i].n_right, N_ROUNDS);
        }
}

static void *wait_main(void *userdata) {
        return (void *)(intptr_t)gpuq_wait(userdata, -1);
}

static void one_job_is_waited_for_by_many(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to, *from2, *to2;
        gpuq_job *job = session_job(session, 3, &from, &to), *second;
        pthread_t threads[N_THREADS];
        void *r;

        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_submit(job));
        for (unsigned i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, wait_main, job);

        /* Submitting goes on while they wait. */
        second = session_job(session, 4, &from2, &to2);
        assert_ok(gpuq_submit(second));
        fake_await(session->fake, n_jobs, 2);
        fake_complete(session->fake);
        for (unsigned i = 0; i < N_THREADS; i++) {
                pthread_join(threads[i], &r);
                assert_int_equal((intptr_t)r, 0);
        }
        assert_ok(gpuq_wait(second, -1));
        gpuq_job_free(job);
        gpuq_job_free(second);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
        gpuq_buffer_free(from2);
        gpuq_buffer_free(to2);
}

static void leader_that_gives_up_hands_over(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);
        pthread_t thread;
        void *r;

        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_submit(job));
        pthread_create(&thread, NULL, wait_main, job);
        assert_int_equal(gpuq_wait(job, 30), GPUQ_E_AGAIN);
        fake_await(session->fake, n_jobs, 1);
        fake_complete(session->fake);
        pthread_join(thread, &r);
        assert_int_equal((intptr_t)r, 0);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

typedef struct Chain {
        Session *session;
        gpuq_buffer *from, *to;
        unsigned n_left;
        unsigned n_waited;
} Chain;

static void chain_next(gpuq_job *job, void *userdata) {
        Chain *chain = userdata;
        gpuq_config config = {.grid = {1}, .block = {1}};
        gpuq_arg args[] = {gpuq_in(chain->from), gpuq_out(chain->to), gpuq_u64(1)};
        gpuq_job *next;

        gpuq_job_free(job);
        if (chain->n_left-- == 0)
                return;

        /* Everything is allowed here, waiting too. */
        if (gpuq_job_new(chain->session->client, &next) < 0 ||
            gpuq_job_launch(next, chain->session->module, "twice", &config, args, 3) < 0)
                return;
        if (chain->n_left % 2) {
                if (gpuq_run(next) == 0)
                        chain->n_waited++;
                chain_next(next, chain);
                return;
        }
        gpuq_job_set_callback(next, chain_next, chain);
        gpuq_submit(next);
}

static void callbacks_may_free_submit_and_wait(void **state) {
        Session *session = *state;
        Chain chain = {.session = session, .n_left = 10};
        gpuq_job *job = session_job(session, 1, &chain.from, &chain.to);

        assert_ok(gpuq_job_set_callback(job, chain_next, &chain));
        assert_ok(gpuq_submit(job));
        while (chain.n_left != UINT_MAX)
                assert_true(gpuq_dispatch(session->client, -1) >= 0);
        assert_int_equal(chain.n_waited, 5);
        gpuq_buffer_free(chain.from);
        gpuq_buffer_free(chain.to);
}

static void count_call(gpuq_job *job, void *userdata) {
        ++*(unsigned *)userdata;
}

static void free_in_call(gpuq_job *job, void *userdata) {
        ++*(unsigned *)userdata;
        gpuq_job_free(job);
}

static void callback_may_free_the_job_that_is_waited_for(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);
        unsigned n_calls = 0;

        assert_ok(gpuq_job_set_callback(job, free_in_call, &n_calls));
        assert_ok(gpuq_run(job));
        assert_int_equal(n_calls, 1);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

typedef struct Slow {
        pthread_mutex_t lock; /* held by the test while the callback shall not return */
        unsigned n_begun;     /* atomic */
} Slow;

static void slow_call(gpuq_job *job, void *userdata) {
        Slow *slow = userdata;

        __atomic_add_fetch(&slow->n_begun, 1, __ATOMIC_RELEASE);
        pthread_mutex_lock(&slow->lock);
        pthread_mutex_unlock(&slow->lock);
}

/* The waiter leads, in poll(), and no message comes when another thread's callback returns. */
static void leader_learns_that_a_callback_returned(void **state) {
        Slow slow = {.lock = PTHREAD_MUTEX_INITIALIZER};
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);
        pthread_t caller, waiter;
        void *r;

        assert_ok(gpuq_job_set_callback(job, slow_call, &slow));
        assert_ok(gpuq_submit(job));
        pthread_mutex_lock(&slow.lock);
        pthread_create(&caller, NULL, wait_main, job);
        while (__atomic_load_n(&slow.n_begun, __ATOMIC_ACQUIRE) == 0)
                sched_yield();
        pthread_create(&waiter, NULL, wait_main, job);
        poll(NULL, 0, 20); /* long enough, most times, to be in poll(); right either way */
        pthread_mutex_unlock(&slow.lock);
        pthread_join(waiter, &r);
        assert_int_equal((intptr_t)r, 0);
        pthread_join(caller, &r);
        assert_int_equal((intptr_t)r, 0);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static bool readable(int fd, int timeout_ms) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        return poll(&poll_fd, 1, timeout_ms) > 0;
}

/* A synchronous call that reads a completion must not leave the user's loop asleep. */
static void loop_learns_of_what_another_call_read(void **state) {
        Session *session = *state;
        int fd = gpuq_client_fd(session->client);
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);
        gpuq_status *status;
        unsigned n_calls = 0;

        assert_true(fd >= 0);
        assert_int_equal(gpuq_client_events(session->client), POLLIN);
        assert_false(readable(fd, 0));
        assert_ok(gpuq_job_set_callback(job, count_call, &n_calls));
        assert_ok(gpuq_submit(job));
        assert_ok(gpuq_get_status(session->client, &status));
        gpuq_status_free(status);
        assert_int_equal(n_calls, 0);
        assert_true(readable(fd, -1));
        assert_true(gpuq_dispatch(session->client, 0) >= 0);
        assert_int_equal(n_calls, 1);
        assert_false(readable(fd, 0));
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void loop_dispatches_when_readable(void **state) {
        Session *session = *state;
        int fd = gpuq_client_fd(session->client);
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);
        unsigned n_calls = 0;
        int n_ended = 0;

        assert_int_equal(gpuq_dispatch(session->client, 0), 0);
        assert_ok(gpuq_job_set_callback(job, count_call, &n_calls));
        assert_ok(gpuq_submit(job));
        while (n_ended == 0) {
                assert_true(readable(fd, -1));
                n_ended = gpuq_dispatch(session->client, 0);
        }
        assert_int_equal(n_ended, 1);
        assert_int_equal(n_calls, 1);
        assert_int_equal(gpuq_poll(job), 1);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void callback_of_a_lost_job_is_called_once(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);
        unsigned n_calls = 0;

        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_job_set_callback(job, count_call, &n_calls));
        assert_ok(gpuq_submit(job));
        gpuq_client_free(TAKE_PTR(session->client));
        assert_int_equal(n_calls, 1);
        assert_int_equal(gpuq_wait(job, 0), GPUQ_E_CLOSED);
        assert_int_equal(n_calls, 1);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

/* Far more than the socket holds waits to be sent, while the daemon reads nothing. */
static void slow_daemon_gets_everything_in_the_end(void **state) {
        enum { N_JOBS = 3000 };
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *first = session_job(session, 3, &from, &to),
                 **jobs = calloc(N_JOBS, sizeof(*jobs));
        gpuq_config config = {.grid = {1}, .block = {1}};
        gpuq_arg args[] = {gpuq_in(from), gpuq_out(to), gpuq_u64(1)};
        pthread_t thread;
        void *r;

        fake_set(session->fake, (FakeManners){.deaf = true});
        assert_ok(gpuq_submit(first));
        pthread_create(&thread, NULL, wait_main, first);
        for (unsigned i = 0; i < N_JOBS; i++) {
                assert_ok(gpuq_job_new(session->client, &jobs[i]));
                for (unsigned j = 0; j < 20; j++)
                        assert_ok(gpuq_job_launch(jobs[i], session->module, "twice", &config, args,
                                                  3));
        }
        assert_ok(gpuq_submit_many(jobs, N_JOBS));
        assert_true(gpuq_client_events(session->client) & POLLOUT);
        fake_set(session->fake, (FakeManners){0});
        for (unsigned i = 0; i < N_JOBS; i++) {
                assert_ok(gpuq_wait(jobs[i], -1));
                gpuq_job_free(jobs[i]);
        }
        pthread_join(thread, &r);
        assert_int_equal((intptr_t)r, 0);
        assert_int_equal(fake_counts(session->fake).n_jobs, N_JOBS + 1);
        free(jobs);
        gpuq_job_free(first);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void on_signal(int signal) {
}

/* Again and again, for one may come before the call that it is to end. */
static void alarm_each(useconds_t us) {
        ualarm(us, us);
}

static void signal_ends_a_dispatch_but_not_a_wait(void **state) {
        struct sigaction action = {.sa_handler = on_signal};
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);

        sigaction(SIGALRM, &action, NULL);
        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_submit(job));
        fake_await(session->fake, n_jobs, 1);
        alarm_each(20000);
        assert_int_equal(gpuq_dispatch(session->client, -1), 0);
        assert_int_equal(gpuq_wait(job, 100), GPUQ_E_AGAIN);
        alarm_each(0);
        fake_complete(session->fake);
        assert_ok(gpuq_wait(job, -1));
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void *wait_then_leave(void *userdata) {
        return (void *)(intptr_t)gpuq_wait(userdata, -1);
}

static void client_freed_under_a_leader_ends_its_wait(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 3, &from, &to);
        pthread_t thread;
        void *r;

        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_submit(job));
        pthread_create(&thread, NULL, wait_then_leave, job);
        fake_await(session->fake, n_jobs, 1);
        gpuq_client_free(TAKE_PTR(session->client));
        pthread_join(thread, &r);
        assert_int_equal((intptr_t)r, GPUQ_E_CLOSED);
        fake_await(session->fake, n_ends, 1);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void *fail_main(void *userdata) {
        uint64_t id;

        if (gpuq_id_parse("wrong", &id) == GPUQ_E_INVALID && strstr(gpuq_error_text(), "wrong"))
                return userdata;

        return NULL;
}

static void error_texts_are_each_threads_own(void **state) {
        pthread_t thread;
        uint64_t id;
        void *r;

        assert_int_equal(gpuq_id_parse("mine", &id), GPUQ_E_INVALID);
        pthread_create(&thread, NULL, fail_main, state);
        pthread_join(thread, &r);
        assert_ptr_equal(r, state);
        assert_text("mine");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                session_test(threads_share_a_connection),
                session_test(one_job_is_waited_for_by_many),
                session_test(leader_that_gives_up_hands_over),
                session_test(callbacks_may_free_submit_and_wait),
                session_test(callback_may_free_the_job_that_is_waited_for),
                session_test(leader_learns_that_a_callback_returned),
                session_test(loop_learns_of_what_another_call_read),
                session_test(loop_dispatches_when_readable),
                session_test(callback_of_a_lost_job_is_called_once),
                session_test(slow_daemon_gets_everything_in_the_end),
                session_test(signal_ends_a_dispatch_but_not_a_wait),
                session_test(client_freed_under_a_leader_ends_its_wait),
                session_test(error_texts_are_each_threads_own),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
