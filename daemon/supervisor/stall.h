/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_STALL_H
#define GPUQ_SUPERVISOR_STALL_H

/*
 * Stall
 *
 * Bounds how long a system call can hold up the loop. A descriptor that somebody
 * else made can take long to close: a TCP socket with SO_LINGER waits for its peer.
 * One comes with any message of a worker that a user has taken over, and with a
 * client's where the kernel cannot refuse descriptors (before Linux 6.16); even one
 * that is not taken is closed in the name of its receiver. Such a wait ends at a
 * signal: while timers call back, there is one each STALL_MS. Callbacks of
 * descriptors come between prepare and check: they have the one that was armed before,
 * if it is still to come, and so none after a longer sleep. It is SIGPROF, which libuv
 * can keep from ending the loop's sleep.
 */

#include <signal.h>
#include <time.h>

#include <uv.h>

#define STALL_MS 50u

typedef struct Stall {
        timer_t timer;
        volatile sig_atomic_t in_callbacks;
        volatile sig_atomic_t armed;
        uv_prepare_t prepare;
        uv_check_t check;
} Stall;

/**
 * stall_start() - from now on, in this thread, which is the loop's
 *
 * Before any other handle that runs ahead of the loop's sleep: they are called last
 * come, first served. Return: 0 or a negative errno.
 */
int stall_start(Stall *stall, uv_loop_t *loop);
/** stall_stop() - @stall stays until the loop has closed its handles. */
void stall_stop(Stall *stall);

#endif
