/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_STALL_H
#define GPUQ_SUPERVISOR_STALL_H

/*
 * Stall
 *
 * Bounds how long a system call can stall the loop, and finds turns that take long. Closing a descriptor that another process made
 * can take long: a TCP socket with SO_LINGER waits for its peer. Such a descriptor can come with
 * any message of a worker that a user has taken over, and with a client's message where the
 * kernel cannot refuse descriptors (before Linux 6.16). The kernel closes even a descriptor that is
 * not accepted in the name of its receiver. A signal ends such a wait. One is sent every STALL_MS,
 * whatever the loop is doing, so this module need not know the kinds and order of callbacks.
 *
 * The signal is SIGPROF, which libuv can block exactly while the loop sleeps, so that it does not
 * end the sleep. While the first signal is pending the timer stands still (timer_getoverrun(2): at
 * most one signal of a timer is pending). The signal is delivered when the sleep ends, before all
 * callbacks, and that restarts the timer. An idle loop therefore pays nothing, and after a sleep of
 * any length the next signal comes within STALL_MS. A one-shot timer would have to be armed
 * again by its handler, which might run after the timer was deleted.
 *
 * The same signal samples what the loop is doing (util/activity.h) and the CPU time of its thread, so
 * that a long turn can be logged with its cause. A turn without two samples costs no clock. Of a
 * longer one the time before its first sample is not known, at most STALL_MS; CPU time, unlike
 * time, does not grow while other processes have the processor.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <uv.h>

#include "util/activity.h"

#define STALL_MS      10u
#define STALL_TURN_MS 50u /* of CPU time: a turn that takes longer is long */

/* One turn of the loop, as its samples found it; times are CPU time. */
typedef struct StallTurn {
        unsigned n_samples;
        uint64_t first_ns, latest_ns;
        Activity run; /* found by the latest samples in a row */
        uint64_t run_ns;
        Activity longest; /* of all such runs */
        uint64_t longest_ns;
} StallTurn;

typedef struct Stall {
        timer_t timer;
        StallTurn turn;
        volatile sig_atomic_t is_closing;
} Stall;

/**
 * stall_start() - start sending the signal to this thread, which runs the loop
 *
 * No other thread gets the signal, whether or not it blocks it. Return: 0 or a negative errno.
 */
int stall_start(Stall *stall, uv_loop_t *loop);
/** stall_cpu_ns() - CPU time of the calling thread so far; a system call. */
uint64_t stall_cpu_ns(void);
/** stall_took_ns() - CPU time of the turn since its first sample. */
static inline uint64_t stall_took_ns(const StallTurn *turn) {
        return turn->latest_ns - turn->first_ns;
}
/** stall_close_turn() - stall_end_turn() of a turn with samples. */
bool stall_close_turn(Stall *stall, StallTurn *ret_turn);
/** stall_end_turn() - the loop is about to sleep or poll. Return: true: the turn was long; it is in @ret_turn. */
static inline bool stall_end_turn(Stall *stall, StallTurn *ret_turn) {
        return *(volatile unsigned *)&stall->turn.n_samples && stall_close_turn(stall, ret_turn);
}
/** stall_sample() - note what goes on, for the signal handler and for tests; @cpu_ns: of this thread. */
void stall_sample(StallTurn *turn, Activity now, uint64_t cpu_ns);
/** stall_stop() - stop: calls may block for any time again. */
void stall_stop(Stall *stall);

#endif
