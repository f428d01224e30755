/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_BOUND_H
#define GPUQ_COMPILER_BOUND_H

/*
 * Bound
 *
 * Limits the memory of a compiler that works inside this process. Only private writable memory
 * counts (RLIMIT_DATA), so it may reserve any amount of address space. The limit holds only while
 * the compiler works, because CUDA's driver may need more.
 */

#include <stdbool.h>
#include <sys/resource.h>

#define BOUND_DEFAULT_MIB 4096u

/* A sanitizer's shadow would count as well: then there is no bound. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUND_IS_OFF true
#else
#define BOUND_IS_OFF false
#endif

/** bound_begin() - so many MiB from now on, until bound_end(). Return: the limit before it. */
struct rlimit bound_begin(unsigned memory_mib);
/** bound_end() - end the limit; memory allocated meanwhile stays. */
void bound_end(const struct rlimit *before);

#endif
