/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_ADVICE_H
#define GPUQ_COMPILER_ADVICE_H

/*
 * Advice
 *
 * A compiler's errors say what it does not take. For source that was written for nvcc, this says what to
 * do about it. Pure.
 */

#include <stdbool.h>

/** advice_is_of_host() - whether NVRTC's errors say that the source has functions of the host. */
bool advice_is_of_host(const char *log);
/** advice() - Return: lines to print behind the errors of NVRTC or clang, a constant; "": there is nothing to say. */
const char *advice(const char *log);

#endif
