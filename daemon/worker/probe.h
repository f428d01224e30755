/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_PROBE_H
#define GPUQ_WORKER_PROBE_H

/*
 * Probe
 *
 * Tells the supervisor which devices there are, or why there is none. Makes no
 * context.
 */

#include "worker/worker.h"

/** probe_run() - ask the driver, send one Probed. @channel: consumed. Return: the exit status. */
int probe_run(const WorkerOptions *options, Channel *channel);

#endif
