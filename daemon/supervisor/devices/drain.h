/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DRAIN_H
#define GPUQ_SUPERVISOR_DRAIN_H

/*
 * Drain
 *
 * Carries out the decisions of health.h. A drained device gets no new work: its running jobs end, its
 * idle workers are stopped, and jobs whose client did not choose the device go to another one that
 * takes jobs. Jobs that name the device, or have data there, wait and show the reason.
 *
 * The keeper holds what an administrator drained, and what the kernel's log condemned, by the
 * device's uuid, so that it stays drained under the next supervisor. Other drained devices are
 * not kept: the next supervisor detects the problem again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"

typedef struct Device Device;
typedef struct Engine Engine;
typedef struct DeviceMonitor DeviceMonitor;

/**
 * drain_hold() - an administrator drains the device
 *
 * @by: the administrator, @reason: for people; "": the reason of an earlier drain stays.
 *
 * Return: true: it took jobs until now.
 */
bool drain_hold(Device *device, const char *by, const char *reason);
/** drain_release() - an administrator returns it to service. Return: true: it was drained. */
bool drain_release(Device *device);

/**
 * drain_condemn() - the kernel's log reports that the device is broken: it is drained until an
 * administrator returns it to service
 */
void drain_condemn(Device *device, const char *why);
/** drain_doubt() - a worker blames the device: check it, and settle the claims of its slots (claim.h). */
void drain_doubt(Device *device);
/** drain_fault() - the kernel's log reports that the hardware failed under a worker. */
void drain_fault(Device *device);
/** drain_checked() - a health check has ended. */
void drain_checked(Device *device, HealthFinding finding, const char *why);
/**
 * drain_check_failed() - the probe of a device ended without a result
 *
 * @blames_device: it hung, or crashed in the driver, which means BROKEN.
 */
void drain_check_failed(Device *device, bool blames_device, const char *why);
/** drain_tick() - called periodically: starts the health checks that are due. */
void drain_tick(Engine *engine, uint64_t now_ns);

/**
 * drain_on_held() - what the keeper held for an earlier supervisor
 *
 * Return: false: the key is not a drained device's; else @fd is consumed.
 */
bool drain_on_held(DeviceMonitor *monitor, const char *key, int fd);
/** drain_adopt() - devices are known: drain those that were drained before. */
void drain_adopt(DeviceMonitor *monitor);
/** drain_free() - at the end of the program. */
void drain_free(DeviceMonitor *monitor);

#endif
