/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DURATION_H
#define GPUQ_SUPERVISOR_DURATION_H

/*
 * Duration
 *
 * How long jobs of one user take, by kernels, module and size of data: a moving
 * average per class, from which the expected time of the next one is told. It is what
 * one more of them adds to the device's time, so that the expected times of all that is
 * in flight add up to when it has drained. Pure. Bounded: the class that was made first
 * is forgotten first.
 */

#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

#define DURATION_MAX        1024u
#define DURATION_UNKNOWN_NS 1000000ull /* a job never seen before: neither short nor long */

typedef struct Duration Duration;

/** duration_new() - nothing known. Return: 0, or -ENOMEM. */
int duration_new(Duration **ret_duration);
/** duration_free() - NULL is fine. Return: NULL. */
Duration *duration_free(Duration *duration);
DEFINE_CLEANUP(Duration, duration_free)

/** duration_key() - mix a name into a class; start with 0. */
uint64_t duration_key(uint64_t key, const void *data, size_t n_data);
/** duration_expected() - Return: ns, DURATION_UNKNOWN_NS for a class never seen. */
uint64_t duration_expected(const Duration *duration, uint64_t key);
/**
 * duration_learn() - a job of this class ended; without memory it is simply not learnt
 * @ran_ns:   from its start to its end, with whatever ran beside and before it
 * @n_beside: jobs that were in flight with it, itself included
 * @busy_ns:  from the end before its own to its end
 */
void duration_learn(Duration *duration, uint64_t key, uint64_t ran_ns, uint32_t n_beside,
                    uint64_t busy_ns);

#endif
