/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_REMEDY_H
#define GPUQ_COMPILER_REMEDY_H

/*
 * Remedy
 *
 * A compiler's errors say what it refuses. For source that was written for nvcc, the remedy says what to do instead.
 * Pure.
 */

#include <stdbool.h>

/** remedy_is_of_host() - whether NVRTC refuses functions of the host, but no variables of it. */
bool remedy_is_of_host(const char *log);
/** remedy() - Return: lines to print behind the errors of NVRTC or clang, a constant; "": there is nothing to say. */
const char *remedy(const char *log);

#endif
