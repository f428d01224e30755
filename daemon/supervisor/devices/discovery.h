/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DISCOVERY_H
#define GPUQ_SUPERVISOR_DISCOVERY_H

/*
 * Discovery
 *
 * Finds out which devices there are, by a process that only looks. Repeated until it
 * succeeds; jobs that wait for a device wait with the reason.
 */

#include "monitor.h"

#define DISCOVERY_RETRY_MS 2000u

/** discovery_start() - unless devices are known. */
void discovery_start(DeviceMonitor *monitor);
/** discovery_found() - the probe said what there is, or why there is nothing. */
void discovery_found(DeviceMonitor *monitor, const ProbeResult *result);
/** discovery_failed() - the probe came to nothing. Harmless once devices are known. */
void discovery_failed(DeviceMonitor *monitor, const char *why);

#endif
