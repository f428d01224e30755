/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_DEVICE_H
#define GPUQ_WORKER_DEVICE_H

/*
 * Device
 *
 * Which device is meant, and whether an error says that it is the device that is
 * broken, not what runs on it. A device is known by its uuid: when one falls off, those
 * behind it move up in every process that starts later, and an index means another.
 */

#include <stdbool.h>

#include "driver/driver.h"
#include "worker/failure.h"

#define DEVICE_UUID_MAX 48

/** device_uuid() - as text. @text: "" where the driver does not tell. */
void device_uuid(const Driver *cu, CUdevice device, char text[static DEVICE_UUID_MAX]);
/** device_find() - after cuInit(): of this uuid. Return: 0, or FAILURE_E_SET. */
int device_find(const Driver *cu, const char *uuid, unsigned *ret_ordinal, Failure *failure);

/** device_is_broken() - what a context could not be made with says so. */
bool device_is_broken(CUresult result);
/** device_broke() - what a context that worked was spent with says so. Of what may be a kernel's fault: no. */
bool device_broke(CUresult result);

/** device_ask_nvml() - what NVML knows against it. @pci: as the driver tells it. Return: false: nothing, or there is no NVML. */
bool device_ask_nvml(const char *pci, const char **ret_problem);

#endif
