/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_BOUNDS_H
#define GPUQ_UTIL_BOUNDS_H

/*
 * Bounds
 *
 * The capability bounding set: what no program that is executed later can have, whatever its file says.
 */

#include <stdint.h>

/**
 * bounds_drop() - all but @kept, a mask of 1 << CAP_…, for the calling thread and what it starts
 *
 * The capabilities that the thread has now stay, until it executes a program.
 *
 * Return: 0 or a negative errno; -EPERM: without CAP_SETPCAP.
 */
int bounds_drop(uint64_t kept);

#endif
