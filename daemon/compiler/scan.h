/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_SCAN_H
#define GPUQ_COMPILER_SCAN_H

/*
 * Scan
 *
 * The step between preprocessing and compiling CUDA C++ for the CPU driver, as
 * daemon/driver/cpu/image.h describes it: finds the kernels, makes dynamic shared
 * memory what the header wants, and appends a line for each kernel. Pure; line
 * numbers stay. What it does not understand it leaves for the compiler to refuse.
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
