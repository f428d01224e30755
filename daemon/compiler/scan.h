/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_SCAN_H
#define GPUQ_COMPILER_SCAN_H

/*
 * Scan
 *
 * The step between preprocessing and compiling CUDA C++ for the CPU driver, as
 * daemon/driver/cpu/image.h describes it. It finds the kernels, rewrites dynamic shared memory as
 * the header requires, and appends a line for each kernel. Pure; line numbers stay. The compiler
 * rejects what this step does not understand.
 */

#include <stddef.h>

/**
 * scan_rewrite() - of preprocessed source
 * @ret_text: the caller's string
 *
 * A template is no kernel; each of its explicit instantiations and specialisations is, as "f<float>".
 *
 * Return: how many kernels there are, or -ENOMEM.
 */
int scan_rewrite(const char *text, size_t n_text, char **ret_text);

#endif
