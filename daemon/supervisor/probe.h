/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PROBE_H
#define GPUQ_SUPERVISOR_PROBE_H

/*
 * Probe
 *
 * Finds out which devices there are, by a worker that only looks. Tried again
 * until it succeeds; what waits for a device waits with the reason.
 */

#include "proto/worker.pb-c.h"

#define PROBE_RETRY_MS 2000u

typedef struct Supervisor Supervisor;

/** probe_start() - have one look. */
void probe_start(Supervisor *supervisor);
/** probe_done() - it said what there is, or why there is nothing. */
void probe_done(Supervisor *supervisor, const Gpuq__Worker__Probed *probed);
/** probe_failed() - it came to nothing: @why. Harmless once devices are known. */
void probe_failed(Supervisor *supervisor, const char *why);

#endif
