/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_ADVICE_H
#define GPUQ_COMPILER_ADVICE_H

/*
 * Advice
 *
 * A compiler's errors say what it refuses. For source that was written for nvcc, the advice says what to do instead.
 * Pure.
 */

#include <stdbool.h>

/** advice_is_of_host() - whether NVRTC refuses functions of the host, but no variables of it. */
bool advice_is_of_host(const char *log);
/** advice() - Return: lines to print behind the errors of NVRTC or clang, a constant; "": there is nothing to say. */
const char *advice(const char *log);

#endif
