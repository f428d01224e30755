/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DRAIN_H
#define GPUQ_SUPERVISOR_DRAIN_H

/*
 * Drain
 *
 * Carries out what health.h says about each device. A drained one is given nothing
 * new: what runs there ends, its idle workers go, and what left the choice of the device
 * to us goes to another, if there is one that takes jobs. What named it, and what has
 * data there, waits with the reason.
 *
 * What an administrator drained, and what the kernel's log condemned, is kept with the
 * keeper, by the device's uuid, so that it stays drained when a supervisor follows another.
 * What else was drained by itself is not: a fresh supervisor finds that out again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"

typedef struct Device Device;
typedef struct Engine Engine;
typedef struct DeviceMonitor DeviceMonitor;

/** drain_hold() - an administrator drains it. @by: who, @reason: for people. Return: true: it took jobs until now. */
bool drain_hold(Device *device, const char *by, const char *reason);
/** drain_release() - an administrator gives it back. Return: true: it was drained. */
bool drain_release(Device *device);

/** drain_condemn() - the kernel's log says that it is broken: drained until an administrator gives it back. */
void drain_condemn(Device *device, const char *why);
/** drain_sign() - a worker of @domain says that the device is broken. */
void drain_sign(Device *device, HealthSign sign, uint32_t domain, const char *why);
/** drain_checked() - a look at it has ended. */
void drain_checked(Device *device, HealthFinding finding, const char *why);
/** drain_check_failed() - the probe of a device ended without a word. A probe that hung, or that the driver took with it, says enough. */
void drain_check_failed(Device *device, bool has_started, const char *why);
/** drain_tick() - now and then: has the looks that are due. */
void drain_tick(Engine *engine, uint64_t now_ns);

/** drain_on_held() - what a supervisor before us had kept. Return: false: it is none of this; else @fd is consumed. */
bool drain_on_held(DeviceMonitor *monitor, const char *key, int fd);
/** drain_adopt() - devices are known: those that were drained before are. */
void drain_adopt(DeviceMonitor *monitor);
/** drain_free() - at the end of the program. */
void drain_free(DeviceMonitor *monitor);

#endif
