/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CRASHES_H
#define GPUQ_SUPERVISOR_CRASHES_H

/*
 * Crashes
 *
 * Limits how often the workers of one trust domain may end by a fault before the next start has to
 * wait: a burst at once, then one per interval. Each fault costs the start of a process and of a
 * context, which slows all users of that device. Pure: time comes in as an argument.
 */

#include <stdint.h>

#define CRASHES_FREE     8u            /* at once */
#define CRASHES_EVERY_NS 1000000000ull /* then one per interval */

/* Zeroed: no crash yet. Touched only by this module. */
typedef struct Crashes {
        uint64_t paid_ns; /* the crashes so far are paid for by then */
} Crashes;

/** crashes_add() - a worker ended by a fault. */
void crashes_add(Crashes *crashes, uint64_t now_ns);
/** crashes_until() - when the next worker may start; 0: at once. */
uint64_t crashes_until(const Crashes *crashes, uint64_t now_ns);

#endif
