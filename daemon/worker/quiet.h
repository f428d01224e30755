/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_QUIET_H
#define GPUQ_WORKER_QUIET_H

/*
 * Quiet
 *
 * A moment in which nothing new is issued, so that what is in flight ends and
 * somebody can have the device to himself. However many ask for it, a
 * twenty-fifth of the time goes there at most. Pure.
 *
 * Without these moments both ways of a trial were timed beside whatever else was in flight, and the choice was wrong at
 * times: the lone addition of in_place.h took 15.4 us in one section of a run and 26.6 us, staged, in another.
 */

#include <stdbool.h>
#include <stdint.h>

#define QUIET_NS     UINT64_C(2000000) /* the longest moment */
#define QUIET_GAP_NS (25 * QUIET_NS)   /* from its end to the next one at least */

typedef struct Quiet {
        uint64_t until_ns;  /* it is quiet */
        uint64_t window_ns; /* the end of the moment in which it may be, or last could */
} Quiet;

/** quiet_may_be() - now, if somebody asks. */
bool quiet_may_be(const Quiet *quiet, uint64_t now_ns);
/** quiet_ask() - until then at most; nothing happens where it may not be. */
void quiet_ask(Quiet *quiet, uint64_t until_ns, uint64_t now_ns);
/** quiet_is() - now. */
bool quiet_is(const Quiet *quiet, uint64_t now_ns);
/** quiet_end() - what it was for has ended. The moment goes on for others who ask. */
void quiet_end(Quiet *quiet);

#endif
