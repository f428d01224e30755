/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DURATION_H
#define GPUQ_SUPERVISOR_DURATION_H

/*
 * Duration
 *
 * How long jobs of one user take, by kernels, module and size of data: a moving average per class,
 * which predicts the next job of that class. The average is the time by which one more job delays
 * the device, so the sum over all jobs in flight tells when the device will be idle. Pure. Bounded:
 * the oldest class is forgotten first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

#define DURATION_MAX        1024u
#define DURATION_UNKNOWN_NS 1000000ull /* an unknown job counts as neither short nor long */

typedef struct Duration Duration;

/** duration_new() - no class is known. Return: 0, or -ENOMEM. */
int duration_new(Duration **ret_duration);
/** duration_free() - NULL is fine. Return: NULL. */
Duration *duration_free(Duration *duration);
DEFINE_CLEANUP(Duration, duration_free)

/** duration_key() - mix a name into a class; start with 0. */
uint64_t duration_key(uint64_t key, const void *data, size_t n_data);
/** duration_expected() - Return: ns; DURATION_UNKNOWN_NS for an unknown class. */
uint64_t duration_expected(const Duration *duration, uint64_t key);
/** duration_is_known() - whether duration_expected() knew; an average of exactly that time counts as unknown. */
static inline bool duration_is_known(uint64_t expected_ns) {
        return expected_ns != DURATION_UNKNOWN_NS;
}
/**
 * duration_learn() - a job of this class ended; without memory the sample is dropped
 * @ran_ns:   from the job's start to its end, including jobs that ran beside and before it
 * @n_beside: jobs that were in flight with it, itself included
 * @busy_ns:  from the previous job's end to this job's end
 */
void duration_learn(Duration *duration, uint64_t key, uint64_t ran_ns, uint32_t n_beside,
                    uint64_t busy_ns);

#endif
