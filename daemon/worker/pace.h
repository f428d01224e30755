/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_PACE_H
#define GPUQ_WORKER_PACE_H

/*
 * Pace
 *
 * How eagerly the loop looks for completions: it spins for a while after
 * something happened, then naps, longer and longer. Kernels of the CPU driver
 * need the cores themselves, so there it naps almost at once. With nothing in
 * flight it looks for the next job as long as the configuration allows. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

typedef struct Pace {
        uint64_t spin_ns;  /* how long after an event it spins */
        uint64_t idle_ns;  /* the same with nothing in flight */
        unsigned part;     /* a nap is as long as the time since that, divided by this */
        uint64_t event_ns; /* when something last happened */
} Pace;

/** pace_init() */
void pace_init(Pace *pace, bool cpu, uint64_t idle_ns);
/** pace_event() - something happened. */
void pace_event(Pace *pace, uint64_t now_ns);
/** pace_may_sleep() - with nothing in flight: sleep until something happens, rather than spin. */
bool pace_may_sleep(const Pace *pace, uint64_t now_ns);
/** pace_next() - nanoseconds to sleep now, 0: spin. */
uint64_t pace_next(const Pace *pace, uint64_t now_ns);

#endif
