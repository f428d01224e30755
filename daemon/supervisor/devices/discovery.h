/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DISCOVERY_H
#define GPUQ_SUPERVISOR_DISCOVERY_H

/*
 * Discovery
 *
 * Finds out which devices exist, by a probe process. It is repeated until it succeeds; meanwhile jobs
 * that need a device wait and show the reason.
 */

#include "monitor.h"

#define DISCOVERY_RETRY_MS 2000u

/** discovery_start() - unless devices are known. */
void discovery_start(DeviceMonitor *monitor);
/** discovery_found() - the probe reported the devices, or why there are none. */
void discovery_found(DeviceMonitor *monitor, const ProbeResult *result);
/** discovery_failed() - the probe itself failed. Harmless once devices are known. */
void discovery_failed(DeviceMonitor *monitor, const char *why);

#endif
