/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_DEVICE_RUNTIME_H
#define GPUQ_COMPILER_DEVICE_RUNTIME_H

/*
 * Device runtime
 *
 * CUDA's functions for kernels that launch kernels (dynamic parallelism), such as cudaLaunchDeviceV2().
 * PTX declares those that it calls, and a linker takes them from libcudadevrt.a of the CUDA Toolkit.
 * Only GPUs have them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "compiler/request.h"
#include "compiler/result.h"

/**
 * device_runtime_call() - what a module does with the device runtime
 *
 * Return: for example "a kernel launches kernels (dynamic parallelism)", the caller's string; NULL: it
 * calls none of its functions, or there is no memory.
 */
char *device_runtime_call(const char *ptx, size_t n_ptx);
/** device_runtime_is_missing() - whether a linker's errors say that a function of it is undefined. */
bool device_runtime_is_missing(const char *log);
/** device_runtime_is_wanted() - whether NVRTC's errors say that source needs it. */
bool device_runtime_is_wanted(const char *log);
/**
 * device_runtime_read() - libcudadevrt.a
 *
 * Beside the linker or NVRTC, if one is loaded, as they are then of one version; else where the toolkit
 * is installed. The result says why there is none. @ret_library: the caller's; NULL: none.
 * Return: 0 or a negative errno.
 */
int device_runtime_read(const Request *request, Result *result, char **ret_library,
                        size_t *ret_n_library);

#endif
