/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_QUIET_H
#define GPUQ_WORKER_QUIET_H

/*
 * Quiet
 *
 * A window in which no new work is issued, so that work in flight ends and one job can have the device
 * alone. However many jobs ask for it, at most a twenty-fifth of the time is quiet. Pure.
 *
 * Without these windows both ways of a trial were timed beside other work in flight, and the choice was
 * sometimes wrong: the lone addition of in_place.h took 15.4 us in one section of a run and 26.6 us,
 * staged, in another.
 */

#include <stdbool.h>
#include <stdint.h>

#define QUIET_NS     UINT64_C(2000000) /* the longest moment */
#define QUIET_GAP_NS (25 * QUIET_NS)   /* from its end to the next one at least */

typedef struct Quiet {
        uint64_t until_ns;  /* end of the current quiet period */
        uint64_t window_ns; /* end of the present or last window */
} Quiet;

/** quiet_may_be() - a quiet period may start now. */
bool quiet_may_be(const Quiet *quiet, uint64_t now_ns);
/** quiet_ask() - request a quiet period until then at most; nothing happens outside of a window. */
void quiet_ask(Quiet *quiet, uint64_t until_ns, uint64_t now_ns);
/** quiet_is() - whether it is quiet now. */
bool quiet_is(const Quiet *quiet, uint64_t now_ns);
/** quiet_end() - the reason for the quiet period has ended. The window stays open for other requests. */
void quiet_end(Quiet *quiet);

#endif
