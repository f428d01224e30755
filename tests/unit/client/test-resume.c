/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon whose supervisor dies and is no longer knows this session: what the client says to the
 * next one, and that nobody who waits notices.
 */

#include "support.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "client/lib/jobs/word.h"

/* Jobs are held from here on. */
#define HOLDING .version = 1, .hold = true

typedef struct Trial {
        gpuq_job *job;
        gpuq_buffer *from, *to;
        pthread_t thread;
} Trial;

static void *trial_wait(void *job) {
        return (void *)(intptr_t)gpuq_wait(job, -1);
}

/* A job that the daemon holds. */
static Trial trial_begin(Session *session, uint64_t value) {
        unsigned n_jobs = fake_counts(session->fake).n_jobs;
        Trial trial;

        trial.job = session_job(session, value, &trial.from, &trial.to);
        fake_set(session->fake, (FakeManners){HOLDING});
        assert_ok(gpuq_submit(trial.job));
        fake_await(session->fake, n_jobs, n_jobs + 1);
        return trial;
}

static void trial_start_waiting(Trial *trial) {
        assert_int_equal(pthread_create(&trial->thread, NULL, trial_wait, trial->job), 0);
}

static int trial_join(Trial *trial) {
        void *r;

        assert_int_equal(pthread_join(trial->thread, &r), 0);
        return (int)(intptr_t)r;
}

static void trial_free(Trial *trial) {
        gpuq_job_free(trial->job);
        gpuq_buffer_free(trial->from);
        gpuq_buffer_free(trial->to);
}

/* It ended well, with the right result. */
static void trial_end(Trial *trial, uint64_t value) {
        assert_ok(gpuq_wait(trial->job, -1));
        assert_int_equal(buffer_word(trial->to), 2 * value);
        trial_free(trial);
}

/* By the last one to come, which was told all: the @n-th that was. */
static void assert_heard(Session *session, unsigned n, const char *expected) {
        char *heard;

        fake_await(session->fake, n_resumed, n);
        heard = fake_heard(session->fake);

        assert_string_equal(heard, expected);
        free(heard);
}

/* ---- what the next one hears --------------------------------------------------------- */

static void a_job_that_waits_is_said_again_and_ends_well(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 21);

        trial_start_waiting(&trial);
        fake_die(session->fake, false);
        assert_heard(session, 1, "hello:7 again:101 load:901,0 submit:1+0 resumed:0");
        assert_int_equal(fake_complete(session->fake), 1);
        assert_ok(trial_join(&trial));
        trial_end(&trial, 21);
        assert_int_equal(fake_counts(session->fake).n_runs, 1);
        assert_int_equal(gpuq_client_session(session->client), FAKE_SESSION);
}

static void a_job_that_ended_untold_is_not_run_again(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 8);

        fake_die(session->fake, true);
        trial_end(&trial, 8);
        assert_int_equal(fake_counts(session->fake).n_runs, 1);
        assert_int_equal(fake_counts(session->fake).n_hellos, 2);
}

static void what_was_told_is_not_said_again_but_counted(void **state) {
        Session *session = *state;
        Trial told = trial_begin(session, 1), other;

        assert_int_equal(fake_complete(session->fake), 1);
        assert_ok(gpuq_wait(told.job, -1));
        other = trial_begin(session, 2);
        trial_start_waiting(&other);
        fake_die(session->fake, false);
        assert_heard(session, 1, "hello:7 again:101 load:901,0 submit:2+0 resumed:1");
        fake_complete(session->fake);
        assert_ok(trial_join(&other));
        trial_end(&other, 2);
        trial_free(&told);
}

/* More than a socket holds, and a slow fake has not read: nobody else sends the rest. */
static void await_many_jobs(Session *session, unsigned n) {
        while (fake_counts(session->fake).n_jobs < n)
                assert_true(gpuq_dispatch(session->client, 10) >= 0);
}

static void many_jobs_are_said_again_in_their_order(void **state) {
        enum { N = 600 };
        Session *session = *state;
        gpuq_job *jobs[N];
        gpuq_buffer *from[N], *to[N];

        fake_set(session->fake, (FakeManners){HOLDING});
        for (unsigned i = 0; i < N; i++) {
                jobs[i] = session_job(session, i, &from[i], &to[i]);
                assert_ok(gpuq_submit(jobs[i]));
        }
        await_many_jobs(session, N);
        fake_die(session->fake, true);
        for (unsigned i = N; i-- > 0;)
                assert_ok(gpuq_wait(jobs[i], -1));
        assert_heard(session, 1,
                     "hello:7 again:101 load:901,0 submit:1+255 submit:257+255 submit:513+87 "
                     "resumed:0");
        assert_int_equal(fake_counts(session->fake).n_runs, N);
        for (unsigned i = 0; i < N; i++) {
                assert_int_equal(buffer_word(to[i]), 2 * i);
                gpuq_job_free(jobs[i]);
                gpuq_buffer_free(from[i]);
                gpuq_buffer_free(to[i]);
        }
}

static void what_does_not_fit_in_a_message_is_said_in_several(void **state) {
        enum { N = 9 };
        Session *session = *state;
        gpuq_config config = {.grid = {1}, .block = {1}};
        Trial trials[N];

        for (unsigned i = 0; i < N; i++) { /* each of about 900 KiB */
                gpuq_job *job;

                trials[i].job = job = session_job(session, i, &trials[i].from, &trials[i].to);
                gpuq_arg args[] = {gpuq_in(trials[i].from), gpuq_out(trials[i].to), gpuq_u64(1)};
                for (unsigned k = 0; k < 20000; k++)
                        assert_ok(gpuq_job_launch(job, session->module, "twice", &config, args, 3));
                fake_set(session->fake, (FakeManners){HOLDING});
                assert_ok(gpuq_submit(job));
        }
        await_many_jobs(session, N);
        fake_die(session->fake, true);
        for (unsigned i = 0; i < N; i++)
                trial_end(&trials[i], i);
        assert_int_equal(fake_counts(session->fake).n_runs, N);
}

static void a_prepared_job_lives_as_long_as_what_it_fired(void **state) {
        Session *session = *state;
        gpuq_prepared *prepared;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 1, &from, &to), *fired[2];

        fake_set(session->fake, (FakeManners){HOLDING});
        assert_ok(gpuq_prepare(job, &prepared));
        assert_ok(gpuq_fire(prepared, NULL, &fired[0]));
        assert_ok(gpuq_fire(prepared, NULL, &fired[1]));
        gpuq_job_free(job);
        gpuq_prepared_free(prepared);
        fake_await(session->fake, n_jobs, 2);

        fake_die(session->fake, true);
        assert_ok(gpuq_wait(fired[0], -1));
        assert_ok(gpuq_wait(fired[1], -1));
        fake_await(session->fake, n_unprepares, 1);
        assert_int_equal(fake_counts(session->fake).n_runs, 2);
        gpuq_job_free(fired[0]);
        gpuq_job_free(fired[1]);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void submitted_and_fired_jobs_keep_their_common_order(void **state) {
        Session *session = *state;
        Trial first = trial_begin(session, 1), last;
        gpuq_prepared *prepared;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 1, &from, &to), *fired;

        assert_ok(gpuq_prepare(job, &prepared));
        assert_ok(gpuq_fire(prepared, NULL, &fired));
        fake_await(session->fake, n_jobs, 2);
        last = trial_begin(session, 3);
        trial_start_waiting(&last);
        fake_die(session->fake, false);
        assert_heard(session, 1,
                     "hello:7 again:101 load:901,0 prepare:1 submit:1+0 fires:2 "
                     "submit:3+0 resumed:0");
        fake_complete(session->fake);
        assert_ok(trial_join(&last));
        assert_ok(gpuq_wait(fired, -1));
        trial_end(&first, 1);
        trial_end(&last, 3);
        gpuq_job_free(job);
        gpuq_job_free(fired);
        gpuq_prepared_free(prepared);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void spares_are_kept_too(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 1);
        gpuq_buffer *large, *again;
        unsigned n_arenas;

        assert_ok(gpuq_buffer_new(session->client, 3u << 20, &large));
        gpuq_buffer_free(large);
        n_arenas = fake_counts(session->fake).n_arenas;
        trial_start_waiting(&trial);
        fake_die(session->fake, false);
        assert_heard(session, 1, "hello:7 again:101 again:102 load:901,0 submit:1+0 resumed:0");
        assert_ok(gpuq_buffer_new(session->client, 3u << 20, &again));
        assert_int_equal(fake_counts(session->fake).n_arenas, n_arenas);
        fake_complete(session->fake);
        assert_ok(trial_join(&trial));
        trial_end(&trial, 1);
        gpuq_buffer_free(again);
}

static void a_cancellation_is_said_again(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 1);

        fake_set(session->fake, (FakeManners){HOLDING, .arena_hold = true});
        assert_ok(gpuq_cancel(trial.job));
        fake_await(session->fake, n_cancels, 1);
        fake_set(session->fake, (FakeManners){HOLDING});
        fake_die(session->fake, false);
        assert_int_equal(gpuq_wait(trial.job, -1), GPUQ_E_CANCELLED);
        assert_heard(session, 1, "hello:7 again:101 load:901,0 submit:1+0 cancel:1 resumed:0");
        trial_free(&trial);
}

static void a_word_that_told_the_end_is_not_taken_back(void **state) {
        Session *session = *state;
        gpuq_result result;
        Trial trial;

        fake_set(session->fake, (FakeManners){.version = 1, .poll_us = 1000, .words = true});
        gpuq_module_free(session->module);
        gpuq_client_free(session->client);
        assert_ok(gpuq_connect(fake_path(session->fake), &session->client));
        assert_ok(gpuq_module_builtin(session->client, &session->module));
        for (unsigned i = 0; i < WORD_AFTER; i++) {
                Trial warm;

                warm.job = session_job(session, i, &warm.from, &warm.to);
                assert_ok(gpuq_submit(warm.job));
                trial_end(&warm, i);
        }

        fake_set(session->fake, (FakeManners){HOLDING, .poll_us = 1000, .words = true});
        trial.job = session_job(session, 4, &trial.from, &trial.to);
        assert_ok(gpuq_submit(trial.job));
        while (gpuq_poll(trial.job) == 0)
                usleep(100);
        assert_int_equal(fake_counts(session->fake).n_words, 1);

        fake_set(session->fake,
                 (FakeManners){.version = 1, .job_code = GPUQ__V1__CODE__E_NOT_FOUND});
        fake_die(session->fake, false);
        assert_ok(gpuq_job_get_result(trial.job, &result));
        assert_int_equal(result.state, GPUQ_DONE);
        trial_end(&trial, 4);
}

/* ---- requests that wait --------------------------------------------------------------- */

static void *make_buffer(void *userdata) {
        Session *session = userdata;
        gpuq_buffer *buffer = NULL;

        if (gpuq_buffer_new(session->client, 2u << 20, &buffer) < 0)
                return NULL;
        memset(gpuq_buffer_data(buffer), 1, gpuq_buffer_size(buffer));
        return buffer;
}

static void an_arena_that_was_asked_for_is_asked_for_again(void **state) {
        Session *session = *state;
        pthread_t thread;
        void *buffer;

        fake_set(session->fake, (FakeManners){.arena_hold = true});
        pthread_create(&thread, NULL, make_buffer, session);
        fake_await(session->fake, n_asked, 1);
        fake_set(session->fake, (FakeManners){.arena_hold = false});
        fake_die(session->fake, false);
        pthread_join(thread, &buffer);
        assert_non_null(buffer);
        assert_int_equal(fake_counts(session->fake).n_arenas, 1);
        gpuq_buffer_free(buffer);
}

static void *load_module(void *userdata) {
        Session *session = userdata;
        gpuq_module *module = NULL;

        gpuq_module_load(session->client, GPUQ_FORMAT_SOURCE, "hello", 5, NULL, "a.cu", &module);
        return module;
}

static void an_image_is_kept_until_its_module_is_there(void **state) {
        Session *session = *state;
        pthread_t thread;
        void *module;

        fake_set(session->fake, (FakeManners){.load_hold = true});
        pthread_create(&thread, NULL, load_module, session);
        fake_await(session->fake, n_asked, 1);
        fake_set(session->fake, (FakeManners){.load_hold = false});
        fake_die(session->fake, false);
        pthread_join(thread, &module);
        assert_non_null(module);
        assert_heard(session, 1, "hello:7 again:101 load:901,0 load:0,101 resumed:0");

        /* Once it is there the image goes with it. */
        fake_die(session->fake, false);
        gpuq_wait_id(session->client, UINT64_C(1) << 32 | 2, -1, NULL);
        assert_heard(session, 2, "hello:7 load:901,0 load:903,101 wait resumed:0");
        gpuq_module_free(module);
}

static void *wait_for_other(void *userdata) {
        Session *session = userdata;

        return (void *)(intptr_t)gpuq_wait_id(session->client, UINT64_C(1) << 32 | 1, -1, NULL);
}

static void a_wait_for_anothers_job_is_said_again(void **state) {
        Session *session = *state;
        pthread_t thread;
        void *r;

        pthread_create(&thread, NULL, wait_for_other, session);
        fake_await(session->fake, n_waits, 1);
        fake_die(session->fake, false);
        fake_await(session->fake, n_waits, 2);
        fake_hang_up(session->fake);
        pthread_join(thread, &r);
        assert_int_equal((intptr_t)r, GPUQ_E_CLOSED);
}

static void *discard_one(void *userdata) {
        Session *session = userdata;

        return (void *)(intptr_t)gpuq_discard(session->client, 1);
}

/* The daemon that died did it, and the next one finds nothing. */
static void a_discard_that_is_said_again_has_been_done(void **state) {
        Session *session = *state;
        pthread_t thread;
        void *r;

        assert_int_equal(gpuq_discard(session->client, 1), GPUQ_E_NOT_FOUND);
        fake_set(session->fake, (FakeManners){.version = 1, .discard_hold = true});
        pthread_create(&thread, NULL, discard_one, session);
        fake_await(session->fake, n_discards, 2);
        fake_set(session->fake, (FakeManners){.version = 1});
        fake_die(session->fake, false);
        pthread_join(thread, &r);
        assert_int_equal((intptr_t)r, 0);
        assert_int_equal(fake_counts(session->fake).n_discards, 3);
}

/* ---- meanwhile -------------------------------------------------------------------------- */

static bool is_asking(gpuq_client *client) {
        bool is_asking;

        pthread_mutex_lock(&client->lock);
        is_asking = !TAILQ_EMPTY(&client->calls);
        pthread_mutex_unlock(&client->lock);
        return is_asking;
}

static void what_is_submitted_and_asked_meanwhile_is_said_then(void **state) {
        Session *session = *state;
        Trial waiting = trial_begin(session, 1), meanwhile;
        pthread_t thread;
        void *buffer;

        fake_set(session->fake, (FakeManners){HOLDING, .hello_hold = true});
        trial_start_waiting(&waiting);
        fake_die(session->fake, false);
        fake_await(session->fake, n_hellos, 2);

        meanwhile.job = session_job(session, 5, &meanwhile.from, &meanwhile.to);
        assert_ok(gpuq_submit(meanwhile.job));
        pthread_create(&thread, NULL, make_buffer, session);
        while (!is_asking(session->client))
                usleep(100);
        assert_int_equal(gpuq_wait(meanwhile.job, 50), GPUQ_E_AGAIN);
        assert_int_equal(fake_counts(session->fake).n_jobs, 1);

        fake_set(session->fake, (FakeManners){.hello_hold = false});
        pthread_join(thread, &buffer);
        assert_non_null(buffer);
        assert_ok(trial_join(&waiting));
        trial_end(&waiting, 1);
        trial_end(&meanwhile, 5);
        assert_heard(session, 1, "hello:7 again:101 load:901,0 submit:1+1 create resumed:0");
        gpuq_buffer_free(buffer);
}

static void who_only_submits_comes_back_too(void **state) {
        enum { N = 200 };
        Session *session = *state;
        Trial first = trial_begin(session, 1), trials[N];
        useconds_t pause_us = 100; /* and then more: the fake may be slow to hear it */
        unsigned n = 0;

        fake_set(session->fake, (FakeManners){.hold = false});
        fake_die(session->fake, false);
        for (; n < N && fake_counts(session->fake).n_hellos < 2; n++) {
                trials[n].job = session_job(session, n, &trials[n].from, &trials[n].to);
                assert_ok(gpuq_submit(trials[n].job));
                usleep(pause_us);
                pause_us = MIN(2 * pause_us, 100000);
        }
        assert_int_equal(fake_counts(session->fake).n_hellos, 2);
        trial_end(&first, 1);
        for (unsigned i = 0; i < n; i++)
                trial_end(&trials[i], i);
}

static void several_threads_go_on_waiting(void **state) {
        enum { N = 4 };
        Session *session = *state;
        Trial trials[N];

        for (unsigned i = 0; i < N; i++)
                trials[i] = trial_begin(session, i);
        for (unsigned i = 0; i < N; i++)
                trial_start_waiting(&trials[i]);
        for (unsigned n = 1; n <= 3; n++) {
                fake_die(session->fake, n == 3);
                fake_await(session->fake, n_resumed, n);
        }
        for (unsigned i = 0; i < N; i++) {
                assert_ok(trial_join(&trials[i]));
                trial_end(&trials[i], i);
        }
        assert_int_equal(fake_counts(session->fake).n_runs, N);
}

static void who_waits_for_one_client_brings_back_the_others_of_the_process(void **state) {
        Session *session = *state, other = {.fake = session->fake};
        Trial trial = trial_begin(session, 1), theirs;

        assert_ok(gpuq_connect(fake_path(session->fake), &other.client));
        assert_ok(gpuq_module_builtin(other.client, &other.module));
        theirs = trial_begin(&other, 2);
        fake_die(session->fake, false);
        trial_start_waiting(&trial);
        fake_await(session->fake, n_resumed, 2);
        assert_int_equal(fake_complete(session->fake), 2);
        assert_ok(trial_join(&trial));
        trial_end(&trial, 1);
        trial_end(&theirs, 2);
        gpuq_module_free(other.module);
        gpuq_client_free(other.client);
}

static void count_ends(gpuq_job *job, void *userdata) {
        ++*(unsigned *)userdata;
}

/* As a program with its own event loop does. */
static void turn_until(gpuq_client *client, const unsigned *n_ends, unsigned n) {
        int fd = gpuq_client_fd(client);
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        while (*n_ends < n) {
                assert_int_equal(poll(&poll_fd, 1, 20000), 1);
                assert_true(gpuq_dispatch(client, 0) >= 0);
                assert_int_equal(gpuq_client_fd(client), fd);
        }
}

static void a_users_loop_keeps_its_descriptor(void **state) {
        Session *session = *state;
        Trial first = trial_begin(session, 1), second;
        unsigned n_ends = 0;
        int fd = gpuq_client_fd(session->client);

        assert_true(fd >= 0);
        assert_ok(gpuq_job_set_callback(first.job, count_ends, &n_ends));
        fake_die(session->fake, true);
        turn_until(session->client, &n_ends, 1);
        assert_int_equal(gpuq_client_fd(session->client), fd);

        second = trial_begin(session, 2);
        assert_ok(gpuq_job_set_callback(second.job, count_ends, &n_ends));
        fake_complete(session->fake);
        turn_until(session->client, &n_ends, 2);
        trial_end(&first, 1);
        trial_end(&second, 2);
}

/* ---- the hard orders ---------------------------------------------------------------------- */

static void death_in_the_middle_of_a_frame_is_a_death(void **state) {
        static const uint8_t half[] = {100, 0, 0, 0, 0, 0, 0, 0, 0x32, 98, 1};
        Session *session = *state;
        Trial trial = trial_begin(session, 6);

        fake_send_bytes(session->fake, half, sizeof(half));
        fake_die(session->fake, true);
        trial_end(&trial, 6);
}

static void an_end_told_before_and_after_counts_once(void **state) {
        Session *session = *state;
        Trial told = trial_begin(session, 6), other = trial_begin(session, 7);
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Completions completions = GPUQ__V1__COMPLETIONS__INIT;
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT, *pointer = &completion;

        completion.id = gpuq_job_id(told.job);
        completion.state = GPUQ__V1__STATE__DONE;
        completions.n_completions = 1;
        completions.completions = &pointer;
        reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
        reply.completions = &completions;
        fake_send(session->fake, &reply); /* not read yet */
        fake_die(session->fake, false);
        trial_start_waiting(&other);
        assert_heard(session, 1, "hello:7 again:101 load:901,0 submit:2+0 resumed:1");
        fake_send(session->fake, &reply);
        fake_complete(session->fake);
        assert_ok(trial_join(&other));
        trial_end(&told, 6);
        trial_end(&other, 7);
}

static void death_while_it_is_resumed_is_one_more(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 6);

        trial_start_waiting(&trial);
        fake_set(session->fake, (FakeManners){HOLDING, .n_hello_deaths = 5});
        fake_die(session->fake, false);
        fake_await(session->fake, n_resumed, 1);
        assert_int_equal(fake_counts(session->fake).n_hellos, 1 + 5 + 1);
        fake_die(session->fake, true);
        assert_ok(trial_join(&trial));
        trial_end(&trial, 6);
        assert_int_equal(fake_counts(session->fake).n_runs, 1);
}

/* Connections that fill the listener's room. Return: how many. */
static unsigned fill_backlog(Session *session, int fds[static 8]) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        unsigned n = 0;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", fake_path(session->fake));
        for (; n < 8; n++) {
                fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                if (connect(fds[n], (struct sockaddr *)&address, sizeof(address)) < 0)
                        break;
        }
        assert_in_range(n, 1, 7);
        close(fds[n]);
        return n;
}

static void a_full_backlog_is_tried_again_also_by_a_users_loop(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 6);
        struct pollfd poll_fd = {.fd = gpuq_client_fd(session->client), .events = POLLIN};
        unsigned n_ends = 0, n_fds;
        int fds[8];

        assert_ok(gpuq_job_set_callback(trial.job, count_ends, &n_ends));
        fake_set(session->fake, (FakeManners){HOLDING, .busy = true});
        n_fds = fill_backlog(session, fds);
        fake_die(session->fake, true);
        for (unsigned i = 0; i < 5; i++) {
                assert_int_equal(poll(&poll_fd, 1, 20000), 1);
                assert_true(gpuq_dispatch(session->client, 0) >= 0);
        }
        assert_int_equal(fake_counts(session->fake).n_hellos, 1);

        fake_set(session->fake, (FakeManners){HOLDING});
        turn_until(session->client, &n_ends, 1);
        trial_end(&trial, 6);
        for (unsigned i = 0; i < n_fds; i++)
                close(fds[i]);
}

/* ---- where it ends ------------------------------------------------------------------------ */

static void a_refusal_ends_all_at_once(void **state) {
        Session *session = *state;
        Trial trials[] = {trial_begin(session, 1), trial_begin(session, 2)};
        gpuq_buffer *buffer;

        fake_set(session->fake, (FakeManners){.resume_code = GPUQ__V1__CODE__E_SHUTDOWN});
        trial_start_waiting(&trials[0]);
        trial_start_waiting(&trials[1]);
        fake_die(session->fake, false);
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(trial_join(&trials[i]), GPUQ_E_SHUTDOWN);
        assert_int_equal(gpuq_wait(trials[0].job, -1), GPUQ_E_SHUTDOWN);
        assert_string_equal(gpuq_error_text(), "who are you?");
        assert_int_equal(gpuq_buffer_new(session->client, 8, &buffer), GPUQ_E_SHUTDOWN);
        assert_int_equal(fake_counts(session->fake).n_hellos, 2);
        trial_free(&trials[0]);
        trial_free(&trials[1]);
}

static void a_daemon_that_knows_nothing_of_it_ends_it_clearly(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 1);

        fake_set(session->fake, (FakeManners){HOLDING, .forgetful = true});
        fake_die(session->fake, false);
        assert_int_equal(gpuq_wait(trial.job, -1), GPUQ_E_SHUTDOWN);
        assert_text("no longer knows this session");
        trial_free(&trial);
}

static void where_nobody_listens_it_ends_at_once(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 1);
        struct pollfd poll_fd = {.fd = gpuq_client_fd(session->client), .events = POLLIN};

        fake_hang_up(session->fake);
        while (gpuq_dispatch(session->client, 0) >= 0)
                assert_int_equal(poll(&poll_fd, 1, 20000), 1);
        assert_int_equal(poll(&poll_fd, 1, 0), 1);
        assert_int_equal(gpuq_wait(trial.job, -1), GPUQ_E_CLOSED);
        assert_text("gpuqd closed the connection");
        assert_text("No such file or directory");
        trial_free(&trial);
}

static void after_its_last_word_there_is_no_other_try(void **state) {
        Session *session = *state;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;
        Trial trial = trial_begin(session, 1);

        error.code = GPUQ__V1__CODE__E_SHUTDOWN;
        error.text = "gpuqd is being stopped";
        reply.body_case = GPUQ__V1__REPLY__BODY_ERROR;
        reply.error = &error;
        fake_send(session->fake, &reply);
        fake_die(session->fake, false);
        assert_int_equal(gpuq_wait(trial.job, -1), GPUQ_E_SHUTDOWN);
        assert_int_equal(gpuq_dispatch(session->client, 20), GPUQ_E_SHUTDOWN);
        assert_int_equal(fake_counts(session->fake).n_hellos, 1);
        trial_free(&trial);
}

static void a_freed_client_does_not_come_back(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 1);

        fake_set(session->fake, (FakeManners){HOLDING, .hello_hold = true});
        trial_start_waiting(&trial);
        fake_die(session->fake, false);
        fake_await(session->fake, n_hellos, 2);
        gpuq_client_free(TAKE_PTR(session->client));
        assert_int_equal(trial_join(&trial), GPUQ_E_CLOSED);
        fake_await(session->fake, n_ends, 1);
        assert_int_equal(fake_counts(session->fake).n_hellos, 2);
        trial_free(&trial);
}

static void a_child_does_not_come_back_for_its_parent(void **state) {
        Session *session = *state;
        Trial trial = trial_begin(session, 9);
        int status;
        pid_t pid;

        fake_set(session->fake, (FakeManners){HOLDING, .hello_hold = true});
        fake_die(session->fake, false);
        while (fake_counts(session->fake).n_hellos < 2)
                assert_int_equal(gpuq_wait(trial.job, 20), GPUQ_E_AGAIN);
        pid = fork();
        if (pid == 0) {
                int r = gpuq_wait(trial.job, -1);

                gpuq_client_free(session->client);
                _exit(r == GPUQ_E_FORKED ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);

        fake_set(session->fake, (FakeManners){.hello_hold = false});
        trial_end(&trial, 9);
        assert_int_equal(fake_counts(session->fake).n_hellos, 2);
}

static void a_first_connection_may_lose_its_daemon_too(void **state) {
        Session *session = *state;
        gpuq_client *client;

        fake_set(session->fake, (FakeManners){.n_hello_deaths = 2});
        assert_ok(gpuq_connect(fake_path(session->fake), &client));
        gpuq_client_free(client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                session_test(a_job_that_waits_is_said_again_and_ends_well),
                session_test(a_job_that_ended_untold_is_not_run_again),
                session_test(what_was_told_is_not_said_again_but_counted),
                session_test(many_jobs_are_said_again_in_their_order),
                session_test(what_does_not_fit_in_a_message_is_said_in_several),
                session_test(a_prepared_job_lives_as_long_as_what_it_fired),
                session_test(submitted_and_fired_jobs_keep_their_common_order),
                session_test(spares_are_kept_too),
                session_test(a_cancellation_is_said_again),
                session_test(a_word_that_told_the_end_is_not_taken_back),
                session_test(an_arena_that_was_asked_for_is_asked_for_again),
                session_test(an_image_is_kept_until_its_module_is_there),
                session_test(a_wait_for_anothers_job_is_said_again),
                session_test(a_discard_that_is_said_again_has_been_done),
                session_test(what_is_submitted_and_asked_meanwhile_is_said_then),
                session_test(who_only_submits_comes_back_too),
                session_test(several_threads_go_on_waiting),
                session_test(who_waits_for_one_client_brings_back_the_others_of_the_process),
                session_test(a_users_loop_keeps_its_descriptor),
                session_test(death_in_the_middle_of_a_frame_is_a_death),
                session_test(an_end_told_before_and_after_counts_once),
                session_test(death_while_it_is_resumed_is_one_more),
                session_test(a_full_backlog_is_tried_again_also_by_a_users_loop),
                session_test(a_refusal_ends_all_at_once),
                session_test(a_daemon_that_knows_nothing_of_it_ends_it_clearly),
                session_test(where_nobody_listens_it_ends_at_once),
                session_test(after_its_last_word_there_is_no_other_try),
                session_test(a_freed_client_does_not_come_back),
                session_test(a_child_does_not_come_back_for_its_parent),
                session_test(a_first_connection_may_lose_its_daemon_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
