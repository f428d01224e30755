/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_DEVICE_H
#define GPUQ_WORKER_DEVICE_H

/*
 * Device
 *
 * Finds the device, and decides whether an error means that the device is broken rather than its work.
 * A device is known by its uuid: when a device falls off the bus, later ones move up in every process
 * that starts afterwards, and an index means another device.
 */

#include <stdbool.h>

#include "driver/driver.h"
#include "worker/failure.h"

#define DEVICE_UUID_MAX 48

/** device_uuid() - as text. @text: "" if the driver does not report it. */
void device_uuid(const Driver *cu, CUdevice device, char text[static DEVICE_UUID_MAX]);
/** device_find() - the device with this uuid, after cuInit(). Return: 0, or FAILURE_E_SET. */
int device_find(const Driver *cu, const char *uuid, unsigned *ret_ordinal, Failure *failure);

/** device_is_broken() - whether an error of creating a context means that the device is broken. */
bool device_is_broken(CUresult result);
/** device_broke() - whether an error of a working context means that; false for errors that a kernel can cause. */
bool device_broke(CUresult result);

/**
 * device_ask_nvml() - an error that NVML reports
 *
 * @pci: as the driver reports it.
 *
 * Return: false: none, or there is no NVML.
 */
bool device_ask_nvml(const char *pci, const char **ret_problem);

#endif
