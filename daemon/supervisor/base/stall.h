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
 * signal: one comes each STALL_MS, whatever the loop is at, so that nothing has to know
 * which kinds of callbacks there are and in what order they are called.
 *
 * It is SIGPROF, the signal that libuv can block for just as long as the loop sleeps: a
 * sleep does not end for it. The first that comes meanwhile waits, the timer behind it
 * stands still (timer_getoverrun(2): one signal a timer waits at most), and it is
 * delivered when the sleep ends, ahead of all callbacks, which starts the timer again. So
 * an idle loop pays nothing, and one that slept however long has its next signal within
 * STALL_MS. A timer of one shot would have to be armed anew by its handler, which might run when
 * the timer is no more.
 */

#include <time.h>

#include <uv.h>

#define STALL_MS 50u

typedef struct Stall {
        timer_t timer;
} Stall;

/**
 * stall_start() - from now on, in this thread, which is the loop's
 *
 * All other threads block the signal. Return: 0 or a negative errno.
 */
int stall_start(Stall *stall, uv_loop_t *loop);
/** stall_stop() - calls may take as long as they like again. */
void stall_stop(Stall *stall);

#endif
