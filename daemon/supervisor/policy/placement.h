/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PLACEMENT_H
#define GPUQ_SUPERVISOR_PLACEMENT_H

/*
 * Placement
 *
 * What a job costs on each of several devices, in time. jobs/choice.c collects the facts. Pure: time comes in as
 * an argument.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * What a user's jobs of unknown duration count for on a device, all together, besides DURATION_UNKNOWN_NS each. It is
 * more than the cost of starting a worker: the second such job goes to an idle device, and does not wait for a
 * first one that may be long.
 */
#define PLACEMENT_UNKNOWN_NS 25000000ull

/**
 * placement_left_ns() - how long a running job will probably still take
 *
 * A job of known duration that is late will be later still. A job of unknown duration is assumed to take as long
 * again as it has run.
 */
uint64_t placement_left_ns(uint64_t expected_ns, uint64_t elapsed_ns, bool is_known);

#endif
