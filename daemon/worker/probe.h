/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_PROBE_H
#define GPUQ_WORKER_PROBE_H

/*
 * Probe
 *
 * Reports the devices to the supervisor, or why there are none. Creates no context.
 */

#include "worker/worker.h"

/** probe_run() - ask the driver, send one Probed. @channel: consumed. Return: the exit status. */
int probe_run(const WorkerOptions *options, Channel *channel);

#endif
