/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_DRIVER_H
#define GPUQ_KEEPER_DRIVER_H

/*
 * Driver
 *
 * Which driver workers load. device=auto means the CPU driver only if the machine has no NVIDIA
 * device at all. If its GPU is not ready yet, gpuqd waits for it and does not silently compute on
 * the CPU.
 */

#include <sys/types.h>

#include "util/config.h"

#define DRIVER_GROUPS_MAX 16

/** driver_choose() - "gpu" or "cpu". */
const char *driver_choose(ConfigDriver configured);
/**
 * driver_groups() - whom the device nodes are open to, where they are not open to everybody
 * @folder: /dev; @driver: of driver_choose()
 *
 * Return: how many groups.
 */
int driver_groups(const char *folder, const char *driver, gid_t groups[static DRIVER_GROUPS_MAX]);

#endif
