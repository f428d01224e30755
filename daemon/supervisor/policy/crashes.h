/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CRASHES_H
#define GPUQ_SUPERVISOR_CRASHES_H

/*
 * Crashes
 *
 * How often the workers of one trust domain may end by a fault before the next has
 * to wait: some at once, then one a while. Each costs the machine the start of a
 * process and of a context, which everybody on that device feels. Pure: time comes in
 * as an argument.
 */

#include <stdint.h>

#define CRASHES_FREE     8u            /* at once */
#define CRASHES_EVERY_NS 1000000000ull /* and then one in so long */

/* Zeroed: none. Touched only by this module. */
typedef struct Crashes {
        uint64_t paid_ns; /* by when those so far are paid for */
} Crashes;

/** crashes_add() - a worker ended by a fault. */
void crashes_add(Crashes *crashes, uint64_t now_ns);
/** crashes_until() - when the next worker may start; 0: at once. */
uint64_t crashes_until(const Crashes *crashes, uint64_t now_ns);

#endif
