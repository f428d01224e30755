/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CORES_H
#define GPUQ_UTIL_CORES_H

/*
 * Cores
 *
 * Contention for the cores as the loop of a supervisor or worker sees it (util/contention.h). The
 * evidence is the thread's run-queue delay, which takes 1 us to read, once a millisecond.
 *
 * While the machine is busy, the thread sleeps whenever it can, and has a higher priority, so that
 * it runs soon after it is woken. Its threads and children do not inherit the priority. A thread
 * that polls has the normal one, because it would take a core from other programs unnoticed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/contention.h"

#define CORES_NICE (-10)

typedef struct Cores {
        Contention contention;
        int fd;         /* -1: the kernel does not tell */
        bool may_raise; /* the thread's priority */
} Cores;

/**
 * cores_open() - for the calling thread, which alone uses @cores
 * @wants_raise: it may have the higher priority: it runs no code of users
 *
 * A niceness that an administrator has chosen is kept.
 *
 * Return: false: the process may not raise its priority.
 */
bool cores_open(Cores *cores, bool wants_raise);
/** cores_close() */
void cores_close(Cores *cores);
/** cores_are_busy() - Return: is sleeping better than polling? */
bool cores_are_busy(Cores *cores, uint64_t now_ns);

#endif
