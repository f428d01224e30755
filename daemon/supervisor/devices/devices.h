/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEVICES_ROOM_H
#define GPUQ_SUPERVISOR_DEVICES_ROOM_H

/*
 * Devices: the room's public header
 *
 * Owns the answer to whether a device may be used: which devices there are, health
 * checks by probes, draining by administrators and by itself, and what the kernel's
 * log says of them (Xids). It may call jobs/ and what is below; workers/ and clients/ reach
 * it through DeviceOps. It promises that one worker's word drains no device, that a drained
 * device gets no new job, that work which left the choice of the device moves to another, and
 * that what an administrator drained stays drained when another supervisor follows.
 */

#include "monitor.h"

/** monitor_init() - in zeroed memory; @engine reaches it from now on. */
void monitor_init(DeviceMonitor *monitor, Engine *engine, const DeviceMonitorOwner *owner,
                  void *userdata);
/** monitor_start() - look for devices. */
void monitor_start(DeviceMonitor *monitor);
/** monitor_on_held() - the keeper held this for the supervisor before. Return: false: it is none of this; else @fd is consumed. */
bool monitor_on_held(DeviceMonitor *monitor, const char *key, int fd);
/** monitor_read_kernel_log() - read Xids from it from now on. Return: 0 and @fd is consumed, or a negative errno. */
int monitor_read_kernel_log(DeviceMonitor *monitor, int fd);
/** monitor_tick() - now and then: read the log, start the health checks that are due. */
void monitor_tick(DeviceMonitor *monitor, uint64_t now_ns);
/** monitor_close() - end its timers; the loop must run once more. */
void monitor_close(DeviceMonitor *monitor);
/** monitor_fini() - frees what is left. */
void monitor_fini(DeviceMonitor *monitor);

#endif
