/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_RUNNABLE_H
#define GPUQ_UTIL_RUNNABLE_H

/*
 * Runnable
 *
 * The count of the machine's runnable threads, for util/contention.h. It takes about 6 us. Pressure
 * stall information (/proc/pressure/cpu) would be too slow: the kernel updates it every two seconds.
 */

#include <stdint.h>

#include "util/contention.h"

/** runnable_count() - if a count is due. */
void runnable_count(Contention *contention, uint64_t now_ns);

#endif
