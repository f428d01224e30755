/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stall
 *
 * See stall.h.
 */
#include "stall.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

/* glibc has no name for it, although timer_create(2) gives one. */
#ifdef sigev_notify_thread_id
#define STALL_THREAD sigev_notify_thread_id
#else
#define STALL_THREAD _sigev_un._tid
#endif

/* The one that runs: a signal handler has no argument. */
static Stall *stall_current;

static uint64_t stall_read(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t stall_cpu_ns(void) {
        return stall_read(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- samples ----------------------------------------------------------------- */

void stall_sample(StallTurn *turn, Activity now, uint64_t cpu_ns) {
        uint64_t took_ns = turn->n_samples ? cpu_ns - turn->latest_ns : 0;

        if (turn->n_samples == 0)
                *turn = (StallTurn){.first_ns = cpu_ns};
        if (!activity_is_same(&turn->run, &now))
                turn->run_ns = 0;
        turn->run = now;
        turn->run_ns += took_ns;
        if (turn->run_ns >= turn->longest_ns) {
                turn->longest = now;
                turn->longest_ns = turn->run_ns;
        }
        turn->latest_ns = cpu_ns;
        turn->n_samples++;
}

/* The arrival of the signal alone has ended a blocked call. */
static void stall_on_signal(int number) {
        int saved_errno = errno;
        Stall *stall = stall_current;

        (void)number;
        if (stall && !stall->is_closing) {
                activity_sample(stall_read(CLOCK_MONOTONIC));
                stall_sample(&stall->turn, activity_now(), stall_cpu_ns());
        }
        errno = saved_errno;
}

/* A sample that comes meanwhile is dropped. */
bool stall_close_turn(Stall *stall, StallTurn *ret_turn) {
        bool is_long = false;

        stall->is_closing = 1;
        atomic_signal_fence(memory_order_seq_cst);
        if (stall->turn.n_samples > 1) {
                *ret_turn = stall->turn;
                ret_turn->latest_ns = stall_cpu_ns();
                is_long = stall_took_ns(ret_turn) >= STALL_TURN_MS * 1000000u;
        }
        stall->turn.n_samples = 0;
        activity_pause();
        atomic_signal_fence(memory_order_seq_cst);
        stall->is_closing = 0;
        return is_long;
}

/* ---- life -------------------------------------------------------------------- */

int stall_start(Stall *stall, uv_loop_t *loop) {
        const struct timespec each = {.tv_nsec = STALL_MS * 1000000L};
        const struct itimerspec always = {.it_interval = each, .it_value = each};
        struct sigevent event = {
                .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF, .STALL_THREAD = gettid()};
        /* Without SA_RESTART, so that calls end. */
        struct sigaction action = {.sa_handler = stall_on_signal};
        int r;

        r = uv_loop_configure(loop, UV_LOOP_BLOCK_SIGNAL, SIGPROF);
        if (r < 0)
                return r;
        stall->turn = (StallTurn){};
        stall_current = stall;
        if (sigaction(SIGPROF, &action, NULL) < 0 ||
            timer_create(CLOCK_MONOTONIC, &event, &stall->timer) < 0)
                return -errno;
        timer_settime(stall->timer, 0, &always, NULL);
        return 0;
}

void stall_stop(Stall *stall) {
        timer_delete(stall->timer);
        stall_current = NULL;
}
