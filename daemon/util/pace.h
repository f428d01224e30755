/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_PACE_H
#define GPUQ_UTIL_PACE_H

/*
 * Pace
 *
 * How eagerly a loop looks for what another process or the GPU does without ringing:
 * it spins for a while after something happened, then naps, longer and longer.
 * Kernels of the CPU driver need the cores themselves, so there it naps almost at
 * once. When it sleeps for good, until somebody rings, is for its owner to say: the
 * configuration allows so much looking while jobs are in flight, and with none there
 * is only a moment of it. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

typedef struct Pace {
        uint64_t spin_ns;  /* how long after an event it spins */
        unsigned part;     /* a nap is as long as the time since that, divided by this */
        uint64_t event_ns; /* when something last happened */
} Pace;

/** pace_init() */
void pace_init(Pace *pace, bool cpu);
/** pace_event() - something happened. */
void pace_event(Pace *pace, uint64_t now_ns);
/** pace_next() - nanoseconds to nap now, 0: spin. */
uint64_t pace_next(const Pace *pace, uint64_t now_ns);
/**
 * pace_may_sleep() - until somebody rings
 * @poll_ns: so long it looks after an event, with jobs in flight
 * @is_busy: there are some
 */
bool pace_may_sleep(const Pace *pace, uint64_t poll_ns, bool is_busy, uint64_t now_ns);

#endif
