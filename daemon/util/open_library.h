/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_OPEN_LIBRARY_H
#define GPUQ_UTIL_OPEN_LIBRARY_H

/*
 * Open a library
 *
 * Libraries that gpuq uses where they are installed: NVRTC, nvJitLink, cuBLASLt, BLAS. They are opened at
 * run time, never linked.
 */

/**
 * open_library() - the first of some that can be loaded
 * @folders: to search first, separated by colons, or NULL; then the loader's and the CUDA Toolkit's
 * @names: NULL-terminated, the best first
 *
 * Return: of dlopen(), never closed; NULL: none.
 */
void *open_library(const char *folders, const char *const *names);

#endif
