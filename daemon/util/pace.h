/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_PACE_H
#define GPUQ_UTIL_PACE_H

/*
 * Pace
 *
 * How often a loop polls for what another process or the GPU does without ringing a bell. It spins
 * for a while after an event, then naps, longer and longer. Kernels of the CPU driver need the
 * cores themselves, so with that driver it naps almost at once, and soon if other programs want the
 * cores. The owner decides when to sleep until a bell: with jobs in flight after poll_us, without
 * jobs after a moment. Pure.
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
/** pace_next() - @is_contended: other programs want the cores. Return: nanoseconds to nap now, 0: spin. */
uint64_t pace_next(const Pace *pace, bool is_contended, uint64_t now_ns);
/**
 * pace_may_sleep() - may the loop sleep until a bell rings?
 *
 * @poll_ns: how long it polls after an event, with jobs in flight
 * @is_busy: there are jobs in flight
 */
bool pace_may_sleep(const Pace *pace, uint64_t poll_ns, bool is_busy, uint64_t now_ns);

#endif
