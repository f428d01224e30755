/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_BROKEN_H
#define GPUQ_CPU_BROKEN_H

/*
 * Broken
 *
 * For tests: devices that fail as hardware does. The file that GPUQ_CPU_BROKEN names
 * says which, and is read again whenever it matters, so that a device can break and
 * recover under a running program. A line each:
 *
 *     driver CODE    cuInit() fails with this CUresult, a number
 *     DEVICE CODE    device DEVICE makes no context, and fails what runs on it
 *     KERNEL CODE    launches of the kernel of that name fail, and nothing else
 *     cuMemsetD8Async CODE
 *                    that call fails, and nothing else; so do the calls for green contexts
 *     DEVICE gone    a process that starts finds device DEVICE no more; those behind it move up
 *     DEVICE room:N  it takes N processes' contexts at once, each of which locks one of the files
 *                    NAME.0, NAME.1, ... beside this one, which is NAME
 *
 * Without the variable or the file all are well.
 */

#include <stdbool.h>

#include "driver/cuda_types.h"

/** broken_driver() - Return: what cuInit() fails with, or CUDA_SUCCESS. */
CUresult broken_driver(void);
/** broken_device() - Return: what this device fails with, or CUDA_SUCCESS. */
CUresult broken_device(int number);
/** broken_call() - Return: what a call, or the launch of a kernel, of this name fails with, or
 * CUDA_SUCCESS. */
CUresult broken_call(const char *name);
/** broken_take_room() - reserve memory for this process's context until it ends. Return: false:
 * the device has none. */
bool broken_take_room(int number);
/** broken_is_gone() - is the device missing for new processes? */
bool broken_is_gone(int number);

#endif
