/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stall
 */
#include "stall.h"

#include <errno.h>
#include <signal.h>

/* Empty: the arrival of the signal has ended the blocked call. */
static void stall_on_signal(int number) {
        (void)number;
}

int stall_start(Stall *stall, uv_loop_t *loop) {
        const struct timespec each = {.tv_nsec = STALL_MS * 1000000L};
        const struct itimerspec always = {.it_interval = each, .it_value = each};
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
        /* Without SA_RESTART, so that calls end. */
        struct sigaction action = {.sa_handler = stall_on_signal};
        int r;

        r = uv_loop_configure(loop, UV_LOOP_BLOCK_SIGNAL, SIGPROF);
        if (r < 0)
                return r;
        if (sigaction(SIGPROF, &action, NULL) < 0 ||
            timer_create(CLOCK_MONOTONIC, &event, &stall->timer) < 0)
                return -errno;
        timer_settime(stall->timer, 0, &always, NULL);
        return 0;
}

void stall_stop(Stall *stall) {
        timer_delete(stall->timer);
}
