/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PROBE_H
#define GPUQ_SUPERVISOR_PROBE_H

/*
 * Probe
 *
 * Finds out which devices there are, by a worker that only looks. Tried again
 * until it succeeds; what waits for a device waits with the reason. Later, a look at
 * one of them alone says whether it is well.
 */

#include "worker/protocol.h"

#define PROBE_RETRY_MS 2000u

typedef struct Device Device;
typedef struct Supervisor Supervisor;
typedef struct Worker Worker;

/** probe_start() - have one look. */
void probe_start(Supervisor *supervisor);
/** probe_done() - it said what there is, or why there is nothing. */
void probe_done(Supervisor *supervisor, const WorkerMessage *probed);
/** probe_look() - have a look at this device alone. */
void probe_look(Device *device);
/** probe_looked() - what it found. */
void probe_looked(const Worker *worker, const WorkerMessage *probed);
/** probe_look_failed() - it ended without a word. One that hung, or that the driver took with it, says enough. */
void probe_look_failed(const Worker *worker, const char *why);
/** probe_failed() - it came to nothing: @why. Harmless once devices are known. */
void probe_failed(Supervisor *supervisor, const char *why);

#endif
