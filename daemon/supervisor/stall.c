/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stall
 */
#include "supervisor/stall.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* A signal handler has no other way to its object. */
static struct {
        timer_t timer;
        volatile sig_atomic_t in_callbacks;
        volatile sig_atomic_t armed;
        uv_prepare_t prepare;
        uv_check_t check;
} stall;

static void stall_arm(void) {
        struct itimerspec once = {.it_value.tv_nsec = STALL_MS * 1000000L};

        stall.armed = true;
        timer_settime(stall.timer, 0, &once, NULL);
}

static void stall_on_signal(int number) {
        (void)number;

        if (stall.in_callbacks)
                stall_arm(); /* the next call may stall too */
        else
                stall.armed = false;
}

static void stall_on_check(uv_check_t *check) {
        (void)check;

        stall.in_callbacks = true;
        if (!stall.armed)
                stall_arm();
}

static void stall_on_prepare(uv_prepare_t *prepare) {
        (void)prepare;

        stall.in_callbacks = false;
}

int stall_start(uv_loop_t *loop) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
        struct sigaction action = {.sa_handler =
                                           stall_on_signal}; /* no SA_RESTART: calls are to end */
        int r;

        r = uv_loop_configure(loop, UV_LOOP_BLOCK_SIGNAL, SIGPROF);
        if (r < 0)
                return r;
        if (sigaction(SIGPROF, &action, NULL) < 0 ||
            timer_create(CLOCK_MONOTONIC, &event, &stall.timer) < 0)
                return -errno;

        uv_check_init(loop, &stall.check);
        uv_check_start(&stall.check, stall_on_check);
        uv_unref((uv_handle_t *)&stall.check);
        uv_prepare_init(loop, &stall.prepare);
        uv_prepare_start(&stall.prepare, stall_on_prepare);
        uv_unref((uv_handle_t *)&stall.prepare);
        return 0;
}

void stall_stop(void) {
        timer_delete(stall.timer);
        stall.in_callbacks = stall.armed = false;
        uv_close((uv_handle_t *)&stall.check, NULL);
        uv_close((uv_handle_t *)&stall.prepare, NULL);
}
