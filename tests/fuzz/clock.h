/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_CLOCK_H
#define GPUQ_FUZZ_CLOCK_H

/*
 * Clock
 *
 * CLOCK_MONOTONIC of this process, libuv's included: it goes on by a little with each look,
 * and by what a run says. So each run is the same each time, and a minute takes no time.
 */

#include <stdint.h>

/** clock_reset() - all runs begin at the same time. */
void clock_reset(void);
/** clock_advance() - so much later. */
void clock_advance(uint64_t ns);

#endif
