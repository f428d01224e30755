/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEVICES_ROOM_H
#define GPUQ_SUPERVISOR_DEVICES_ROOM_H

/*
 * Devices: the room's public header
 *
 * Decides whether a device may be used: which devices exist, health checks by probes, draining by
 * administrators and by the daemon, and the kernel log's reports about them (Xids). It may call jobs/
 * and the rooms below; workers/ and clients/ reach it through DeviceOps. It promises that one
 * worker's report drains no device, that a drained device gets no new job, that work without a fixed
 * device moves to another one, and that a device drained by an administrator stays drained under the
 * next supervisor.
 */

#include "monitor.h"

/** monitor_init() - in zeroed memory; from now on @engine can reach the monitor. */
void monitor_init(DeviceMonitor *monitor, Engine *engine, const DeviceMonitorOwner *owner,
                  void *userdata);
/** monitor_start() - start the discovery of devices. */
void monitor_start(DeviceMonitor *monitor);
/**
 * monitor_on_held() - the keeper held this for the previous supervisor
 *
 * Return: false: the key is not the monitor's; else @fd is consumed.
 */
bool monitor_on_held(DeviceMonitor *monitor, const char *key, int fd);
/**
 * monitor_read_kernel_log() - start reading Xids from the kernel's log
 *
 * Return: 0 and @fd is consumed, or a negative errno.
 */
int monitor_read_kernel_log(DeviceMonitor *monitor, int fd);
/** monitor_tick() - called periodically: read the log, start the health checks that are due. */
void monitor_tick(DeviceMonitor *monitor, uint64_t now_ns);
/** monitor_close() - close its timers; the loop must run once more. */
void monitor_close(DeviceMonitor *monitor);
/** monitor_fini() - free the rest. */
void monitor_fini(DeviceMonitor *monitor);

#endif
