/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_SYMBOL_H
#define GPUQ_UTIL_SYMBOL_H

/*
 * Symbol
 *
 * The plain name inside a mangled C++ symbol: "scale" for "_Z5scalePfi", "gemm" for
 * "_ZN4math4gemmIfEEvPT_". Reads only the function's name, which is enough for users who name a kernel as
 * in their source. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

/* The prefix of the names of gpuq's own kernels. */
#define SYMBOL_INTERNAL "gpuq_internal_"

/**
 * symbol_base() - the last name of a symbol, without template arguments
 * @ret_base: inside @symbol
 *
 * Return: false if @symbol is not mangled, or in a form that this function does not read.
 */
bool symbol_base(const char *symbol, const char **ret_base, size_t *ret_n_base);
/** symbol_matches() - whether a symbol's plain name is @name. */
bool symbol_matches(const char *symbol, const char *name);
/** name_matches() - whether a C++ name such as "math::gemm<float>" has the plain name @plain. */
bool name_matches(const char *name, const char *plain);
/** symbol_is_device_runtime() - of libcudadevrt.a, which is part of modules whose kernels launch kernels. */
bool symbol_is_device_runtime(const char *symbol);
/** symbol_is_internal() - a kernel that no user runs. */
bool symbol_is_internal(const char *symbol);

#endif
