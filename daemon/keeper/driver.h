/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_DRIVER_H
#define GPUQ_KEEPER_DRIVER_H

/*
 * Driver
 *
 * Which driver workers are to load. device=auto means the CPU driver only where
 * the machine has no NVIDIA device at all: a machine whose GPU is not ready yet
 * waits for it rather than compute silently on the CPU.
 */

#include "util/config.h"

/** driver_choose() - "gpu" or "cpu". */
const char *driver_choose(ConfigDriver configured);

#endif
