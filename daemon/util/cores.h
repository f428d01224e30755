/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CORES_H
#define GPUQ_UTIL_CORES_H

/*
 * Cores
 *
 * What the kernel tells about contention for the cores, for util/contention.h. A sample takes about
 * 1 us, a count about 6 us. Pressure stall information (/proc/pressure/cpu) is too slow: the kernel
 * updates it every two seconds.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/contention.h"

/** cores_open() - of the calling thread. Return: a descriptor, or -1: the kernel does not tell. */
int cores_open(void);
/**
 * cores_are_busy() - take a sample or a count if one is due
 *
 * @fd: from cores_open() in this thread; -1: take no samples.
 *
 * Return: is sleeping better than polling?
 */
bool cores_are_busy(Contention *contention, int fd, uint64_t now_ns);

#endif
