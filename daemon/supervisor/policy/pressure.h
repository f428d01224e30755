/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PRESSURE_H
#define GPUQ_SUPERVISOR_PRESSURE_H

/*
 * Memory pressure
 *
 * Tracks, for one slot, a device without memory for the slot's context: when the slot tried, and
 * when to retry. Pure: time comes in as an argument.
 */

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_RETRY_MS     250u /* before the second try; doubles */
#define PRESSURE_RETRY_MAX_MS 2000u
#define PRESSURE_FORGET_MS    10000u /* after a failed try; then the device may have memory again */

/* Of a slot. Zeroed: its contexts always found memory. */
typedef struct Pressure {
        unsigned n_others; /* other contexts on the device at the last try; 0: no pressure */
        unsigned n_tries;  /* consecutive failed tries */
        uint64_t since_ns; /* the first of these tries */
        uint64_t tried_ns; /* the last of these tries */
        bool was_woken;    /* the next try is due because another worker ended */
        bool was_in_vain;  /* the last such try failed: the next one waits for its time */
} Pressure;

/** pressure_note() - a try failed while the device had @n_others other contexts. */
void pressure_note(Pressure *pressure, unsigned n_others, uint64_t now_ns);
/** pressure_clear() - the context was created, or failed for another reason. */
void pressure_clear(Pressure *pressure);
/** pressure_is_on() - a recent try failed. */
bool pressure_is_on(const Pressure *pressure, uint64_t now_ns);
/** pressure_delay_ns() - from the last try to the next. */
uint64_t pressure_delay_ns(const Pressure *pressure);

#endif
