/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stall: a descriptor that is slow to close holds the loop up no longer than its bound, however often.
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "stall.h"

#define LINGER_S 30

/* One end of a TCP connection that waits LINGER_S when it is closed; @ret_peer never reads. */
static int slow_socket(int *ret_peer) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
        socklen_t n_address = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
        static char bytes[1 << 16];

        assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof(address)), errno);
        assert_return_code(listen(listener, 1), errno);
        assert_return_code(getsockname(listener, (struct sockaddr *)&address, &n_address), errno);
        assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof(address)), errno);
        *ret_peer = accept(listener, NULL, NULL);
        assert_return_code(*ret_peer, errno);
        close(listener);

        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), errno);
        return fd;
}

typedef struct Calls {
        uint64_t took_ns;
        unsigned n;
        uv_prepare_t prepare;
        uv_idle_t idle;
        uv_check_t check;
        uv_poll_t poll;
} Calls;

static void close_slowly(Calls *calls) {
        uint64_t from_ns = uv_hrtime();

        for (unsigned i = 0; i < 3; ++i) {
                int peer, fd = slow_socket(&peer);

                close(fd);
                close(peer);
        }
        calls->took_ns += uv_hrtime() - from_ns;
        calls->n++;
}

/* Ten times as long as the signal takes to come. */
static void *sleep_for_ten(void *is_interrupted) {
        const struct timespec time = {.tv_nsec = 10 * STALL_MS * 1000000L};

        *(bool *)is_interrupted = nanosleep(&time, NULL) != 0;
        return NULL;
}

/* A library's thread that does not block the signal would read a stall that may be freed. */
static void another_thread_gets_no_signal(void **state) {
        sigset_t prof, before;
        bool is_interrupted;
        pthread_t thread;
        uv_loop_t loop;
        Stall stall;

        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(pthread_create(&thread, NULL, sleep_for_ten, &is_interrupted), 0);
        sigemptyset(&prof);
        sigaddset(&prof, SIGPROF);
        pthread_sigmask(SIG_BLOCK, &prof, &before); /* so that only the other thread could get it */
        assert_int_equal(stall_start(&stall, &loop), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_false(is_interrupted);
        stall_stop(&stall);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        uv_loop_close(&loop);
}

/* @n callbacks with three closes each, all of which wait LINGER_S when nothing ends them. */
static void assert_not_held_up(const Calls *calls, unsigned n) {
        assert_int_equal(calls->n, n);
        assert_in_range(calls->took_ns, 1, 3 * n * 10 * STALL_MS * UINT64_C(1000000));
}

static void on_timer(uv_timer_t *timer) {
        Calls *calls = timer->data;

        close_slowly(calls);
        if (calls->n == 2)
                uv_close((uv_handle_t *)timer, NULL);
}

static void on_prepare(uv_prepare_t *prepare) {
        close_slowly(prepare->data);
        uv_close((uv_handle_t *)prepare, NULL);
}

static void on_idle(uv_idle_t *idle) {
        close_slowly(idle->data);
        uv_close((uv_handle_t *)idle, NULL);
}

static void on_check(uv_check_t *check) {
        close_slowly(check->data);
        uv_close((uv_handle_t *)check, NULL);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
        close_slowly(poll->data);
        uv_close((uv_handle_t *)poll, NULL);
}

static void end_loop(uv_loop_t *loop, Stall *stall) {
        stall_stop(stall);
        uv_run(loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(loop), 0);
}

static void a_descriptor_that_lingers_does_not_hold_up_the_loop(void **state) {
        uv_timer_t timer;
        Calls calls = {};
        uv_loop_t loop;
        Stall stall = {};

        uv_loop_init(&loop);
        assert_int_equal(stall_start(&stall, &loop), 0);
        uv_timer_init(&loop, &timer);
        timer.data = &calls;
        uv_timer_start(&timer, on_timer, 0, 1); /* due at once, before the loop has ever slept */
        uv_run(&loop, UV_RUN_DEFAULT);

        assert_not_held_up(&calls, 2);
        end_loop(&loop, &stall);
}

/* Nothing but the descriptor wakes the loop, and its callback is the first after the sleep. */
static void a_descriptor_read_after_a_sleep_does_not_hold_up_the_loop(void **state) {
        struct itimerspec after = {.it_value.tv_nsec = 2 * STALL_MS * 1000000L};
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        Calls calls = {};
        uv_loop_t loop;
        Stall stall = {};

        assert_return_code(fd, errno);
        uv_loop_init(&loop);
        assert_int_equal(stall_start(&stall, &loop), 0);
        uv_poll_init(&loop, &calls.poll, fd);
        calls.poll.data = &calls;
        uv_poll_start(&calls.poll, UV_READABLE, on_poll);
        assert_return_code(timerfd_settime(fd, 0, &after, NULL), errno);
        uv_run(&loop, UV_RUN_DEFAULT);

        assert_not_held_up(&calls, 1);
        close(fd);
        end_loop(&loop, &stall);
}

static void no_kind_of_callback_holds_up_the_loop(void **state) {
        Calls calls = {};
        uv_loop_t loop;
        Stall stall = {};

        uv_loop_init(&loop);
        assert_int_equal(stall_start(&stall, &loop), 0);
        uv_idle_init(&loop, &calls.idle);
        uv_prepare_init(&loop, &calls.prepare);
        uv_check_init(&loop, &calls.check);
        calls.idle.data = calls.prepare.data = calls.check.data = &calls;
        uv_idle_start(&calls.idle, on_idle);
        uv_prepare_start(&calls.prepare, on_prepare);
        uv_check_start(&calls.check, on_check);
        uv_run(&loop, UV_RUN_DEFAULT);

        assert_not_held_up(&calls, 3);
        end_loop(&loop, &stall);
}

static void on_early(uv_timer_t *timer) {
        uv_close((uv_handle_t *)timer, NULL);
}

static void on_late(uv_timer_t *timer) {
        getrusage(RUSAGE_THREAD, timer->data);
        uv_close((uv_handle_t *)timer, NULL);
}

static void an_idle_loop_is_not_woken(void **state) {
        struct rusage before, after;
        uv_timer_t early, late;
        uv_loop_t loop;
        Stall stall = {};

        uv_loop_init(&loop);
        assert_int_equal(stall_start(&stall, &loop), 0);
        uv_timer_init(&loop, &early);
        uv_timer_start(&early, on_early, 1, 0);
        uv_run(&loop, UV_RUN_ONCE);
        uv_timer_init(&loop, &late);
        late.data = &after;
        uv_timer_start(&late, on_late, 20 * STALL_MS, 0);
        getrusage(RUSAGE_THREAD, &before);
        uv_run(&loop, UV_RUN_DEFAULT); /* sleeps until it is late, if it is not already */

        assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, 5);
        end_loop(&loop, &stall);
}

/* ---- long turns -------------------------------------------------------------- */

#define MS UINT64_C(1000000)

static const Activity cancel = {ACTIVITY_REQUEST, 10, 1001, 5};
static const Activity submit = {ACTIVITY_REQUEST, 8, 1002, 6};

static void the_cause_is_the_longest_of_a_turn(void **state) {
        StallTurn turn = {};

        stall_sample(&turn, submit, 1000 * MS); /* how long before is not known */
        assert_int_equal(stall_took_ns(&turn), 0);
        stall_sample(&turn, submit, 1010 * MS);
        stall_sample(&turn, cancel, 1020 * MS);
        stall_sample(&turn, cancel, 1090 * MS);
        stall_sample(&turn, submit, 1100 * MS);
        assert_int_equal(stall_took_ns(&turn), 100 * MS);
        assert_true(activity_is_same(&turn.longest, &cancel));
        assert_int_equal(turn.longest_ns, 80 * MS);

        turn.n_samples = 0; /* the next turn */
        stall_sample(&turn, submit, 5000 * MS);
        assert_int_equal(stall_took_ns(&turn), 0);
        assert_true(activity_is_same(&turn.longest, &submit));
}

static uint64_t cpu_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

typedef struct Turns {
        Stall stall;
        uv_prepare_t prepare;
        StallTurn longs[4];
        unsigned n_longs;
} Turns;

static void on_turn(uv_prepare_t *prepare) {
        Turns *turns = prepare->data;

        if (stall_end_turn(&turns->stall, &turns->longs[turns->n_longs]))
                turns->n_longs++;
        assert_in_range(turns->n_longs, 0, 3);
}

static void on_computing(uv_timer_t *timer) {
        uint64_t from_ns = cpu_ns();

        activity_begin(ACTIVITY_REQUEST, 10, 1001, 5);
        while (cpu_ns() - from_ns < 4 * STALL_TURN_MS * MS)
                ;
        uv_close((uv_handle_t *)timer, NULL);
}

/* Time passes, and others have the processor. */
static void on_waiting(uv_timer_t *timer) {
        uint64_t from_ns = uv_hrtime();
        const struct timespec nap = {.tv_nsec = 1000000};

        while (uv_hrtime() - from_ns < 4 * STALL_TURN_MS * MS)
                nanosleep(&nap, NULL);
        uv_close((uv_handle_t *)timer, NULL);
}

static void run_turns(Turns *turns, uv_timer_cb callback) {
        uv_timer_t timer;
        uv_loop_t loop;

        uv_loop_init(&loop);
        assert_int_equal(stall_start(&turns->stall, &loop), 0);
        uv_prepare_init(&loop, &turns->prepare);
        turns->prepare.data = turns;
        uv_prepare_start(&turns->prepare, on_turn);
        uv_unref((uv_handle_t *)&turns->prepare);
        uv_timer_init(&loop, &timer);
        uv_timer_start(&timer, callback, 0, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        on_turn(&turns->prepare);
        uv_close((uv_handle_t *)&turns->prepare, NULL);
        end_loop(&loop, &turns->stall);
}

static void a_turn_that_computes_long_is_found_with_its_cause(void **state) {
        Turns turns = {};

        run_turns(&turns, on_computing);
        assert_int_equal(turns.n_longs, 1);
        assert_true(stall_took_ns(&turns.longs[0]) >= STALL_TURN_MS * MS);
        assert_true(activity_is_same(&turns.longs[0].longest, &cancel));
}

static void a_turn_that_waits_long_is_not_logged(void **state) {
        Turns turns = {};

        run_turns(&turns, on_waiting);
        assert_int_equal(turns.n_longs, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(another_thread_gets_no_signal),
                cmocka_unit_test(a_descriptor_that_lingers_does_not_hold_up_the_loop),
                cmocka_unit_test(a_descriptor_read_after_a_sleep_does_not_hold_up_the_loop),
                cmocka_unit_test(no_kind_of_callback_holds_up_the_loop),
                cmocka_unit_test(an_idle_loop_is_not_woken),
                cmocka_unit_test(the_cause_is_the_longest_of_a_turn),
                cmocka_unit_test(a_turn_that_computes_long_is_found_with_its_cause),
                cmocka_unit_test(a_turn_that_waits_long_is_not_logged),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
