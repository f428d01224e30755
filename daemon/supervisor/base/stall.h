/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_STALL_H
#define GPUQ_SUPERVISOR_STALL_H

/*
 * Stall
 *
 * Bounds how long a system call can stall the loop. Closing a descriptor that another process made
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
 */

#include <time.h>

#include <uv.h>

#define STALL_MS 50u

typedef struct Stall {
        timer_t timer;
} Stall;

/**
 * stall_start() - start sending the signal to this thread, which runs the loop
 *
 * All other threads block the signal. Return: 0 or a negative errno.
 */
int stall_start(Stall *stall, uv_loop_t *loop);
/** stall_stop() - stop: calls may block for any time again. */
void stall_stop(Stall *stall);

#endif
