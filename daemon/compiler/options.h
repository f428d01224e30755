/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_OPTIONS_H
#define GPUQ_COMPILER_OPTIONS_H

/*
 * Options
 *
 * The compiler options that a client may give, and what each compiler calls
 * them. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_ALLOWED "-DNAME[=VALUE], -UNAME, -std=c++11|14|17|20, --use_fast_math, --check"

/** options_find_bad() - the first that is not allowed. Return: its index, or @n_options. */
size_t options_find_bad(const char *const *options, size_t n_options);
/** options_is_macro() - whether it is -D or -U, which every compiler takes as it is. */
bool options_is_macro(const char *option);
/** options_standard() - of C++, as 17; the last one given, and @least if that is later or none is given. */
unsigned options_standard(const char *const *options, size_t n_options, unsigned least);
/** options_fast_math() - whether --use_fast_math is given. */
bool options_fast_math(const char *const *options, size_t n_options);
/** options_checked() - whether --check is given: kernels compare their accesses with the job's buffers (check.h). */
bool options_checked(const char *const *options, size_t n_options);

#endif
