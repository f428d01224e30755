/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PRESSURE_H
#define GPUQ_SUPERVISOR_PRESSURE_H

/*
 * Memory pressure
 *
 * What one slot knows of a device that had no memory for its context: when it tried,
 * and when to try again. Pure: time comes in as an argument.
 */

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_RETRY_MS     250u /* before the second try; doubles */
#define PRESSURE_RETRY_MAX_MS 2000u
#define PRESSURE_FORGET_MS    10000u /* after a failed try; then the device may have memory again */

/* Of a slot. Zeroed: its contexts always found memory. */
typedef struct Pressure {
        unsigned n_others; /* other contexts on the device at the last try; 0: no pressure */
        unsigned n_tries;  /* in a row that failed */
        uint64_t since_ns; /* the first of them, */
        uint64_t tried_ns; /* and the last */
        bool was_woken;    /* the next try is because another worker ended */
        bool was_in_vain;  /* the last one was, and failed: the next one waits for its time */
} Pressure;

/** pressure_note() - a try failed, with so many other contexts on the device. */
void pressure_note(Pressure *pressure, unsigned n_others, uint64_t now_ns);
/** pressure_clear() - the context was made, or failed for another reason. */
void pressure_clear(Pressure *pressure);
/** pressure_is_on() - a try failed lately. */
bool pressure_is_on(const Pressure *pressure, uint64_t now_ns);
/** pressure_delay_ns() - from the last try to the next. */
uint64_t pressure_delay_ns(const Pressure *pressure);

#endif
