/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stall
 */
#include "supervisor/stall.h"

#include <errno.h>
#include <stdbool.h>

static void stall_arm(Stall *stall) {
        struct itimerspec once = {.it_value.tv_nsec = STALL_MS * 1000000L};

        stall->armed = true;
        timer_settime(stall->timer, 0, &once, NULL);
}

static void stall_on_signal(int number, siginfo_t *info, void *context) {
        Stall *stall = info->si_code == SI_TIMER ? info->si_value.sival_ptr : NULL;

        (void)number;
        (void)context;
        if (!stall)
                return;
        if (stall->in_callbacks)
                stall_arm(stall); /* the next call may stall too */
        else
                stall->armed = false;
}

static void stall_on_check(uv_check_t *check) {
        Stall *stall = check->data;

        stall->in_callbacks = true;
        if (!stall->armed)
                stall_arm(stall);
}

static void stall_on_prepare(uv_prepare_t *prepare) {
        Stall *stall = prepare->data;

        stall->in_callbacks = false;
}

int stall_start(Stall *stall, uv_loop_t *loop) {
        struct sigevent event = {
                .sigev_notify = SIGEV_SIGNAL,
                .sigev_signo = SIGPROF,
                .sigev_value.sival_ptr = stall,
        };
        /* Without SA_RESTART: calls are to end. */
        struct sigaction action = {.sa_sigaction = stall_on_signal, .sa_flags = SA_SIGINFO};
        int r;

        r = uv_loop_configure(loop, UV_LOOP_BLOCK_SIGNAL, SIGPROF);
        if (r < 0)
                return r;
        if (sigaction(SIGPROF, &action, NULL) < 0 ||
            timer_create(CLOCK_MONOTONIC, &event, &stall->timer) < 0)
                return -errno;

        uv_check_init(loop, &stall->check);
        stall->check.data = stall;
        uv_check_start(&stall->check, stall_on_check);
        uv_unref((uv_handle_t *)&stall->check);
        uv_prepare_init(loop, &stall->prepare);
        stall->prepare.data = stall;
        uv_prepare_start(&stall->prepare, stall_on_prepare);
        uv_unref((uv_handle_t *)&stall->prepare);

        stall->in_callbacks = true; /* timers that are due call back before the first check */
        stall_arm(stall);
        return 0;
}

void stall_stop(Stall *stall) {
        timer_delete(stall->timer);
        uv_close((uv_handle_t *)&stall->check, NULL);
        uv_close((uv_handle_t *)&stall->prepare, NULL);
}
