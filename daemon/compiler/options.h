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

#define OPTIONS_ALLOWED                                                                            \
        "-DNAME[=VALUE], -UNAME, -std=c++11|14|17|20, --use_fast_math, -maxrregcount=N, "          \
        "--fmad=true|false, --ftz=true|false, --prec-div=true|false, --prec-sqrt=true|false, "     \
        "-lineinfo, -G, --device-int128, --check, -IFOLDER of the headers that were sent; for "    \
        "OpenCL C "                                                                                \
        "-cl-std=CL1.2 and its like, -cl-fast-relaxed-math, -cl-mad-enable, "                      \
        "-cl-finite-math-only, -cl-unsafe-math-optimizations, -cl-denorms-are-zero, "              \
        "-cl-no-signed-zeros"

/* Switches of NVRTC and nvcc. Of several the last one counts. */
typedef enum OptionsSwitch {
        OPTIONS_FMAD,      /* a product and a sum become one operation that rounds once */
        OPTIONS_FTZ,       /* denormal numbers become 0 */
        OPTIONS_PREC_DIV,  /* exact quotients */
        OPTIONS_PREC_SQRT, /* exact square roots */
} OptionsSwitch;

typedef enum OptionsValue {
        OPTIONS_NOT_GIVEN,
        OPTIONS_FALSE,
        OPTIONS_TRUE,
} OptionsValue;

/** options_find_bad() - the first that is not allowed. Return: its index, or @n_options. */
size_t options_find_bad(const char *const *options, size_t n_options);
/** options_nearest() - an option with a similar name, as "--fmad=true|false". Return: a constant, or NULL. */
const char *options_nearest(const char *option);
/** options_is_macro() - whether it is -D or -U, which every compiler takes as it is. */
bool options_is_macro(const char *option);
/** options_is_opencl() - whether it is for OpenCL C, as clang takes it; other sources ignore it. */
bool options_is_opencl(const char *option);
/** options_standard() - of C++, as 17; the last one given, and @least if that is later or none is given. */
unsigned options_standard(const char *const *options, size_t n_options, unsigned least);
/** options_fast_math() - whether --use_fast_math is given. */
bool options_fast_math(const char *const *options, size_t n_options);
/** options_is_int128() - whether it is --device-int128, which NVRTC takes as it is. Clang always has __int128. */
bool options_is_int128(const char *option);
/** options_is_switch() - whether it is one of OptionsSwitch, which NVRTC takes as it is. */
bool options_is_switch(const char *option);
/** options_switch() - the value of --fmad and the like. */
OptionsValue options_switch(const char *const *options, size_t n_options, OptionsSwitch which);
/** options_registers() - the most registers of a thread, of the last -maxrregcount; 0: not given. */
unsigned options_registers(const char *const *options, size_t n_options);
/** options_line_info() - whether -lineinfo is given. */
bool options_line_info(const char *const *options, size_t n_options);
/** options_debug() - whether -G is given. */
bool options_debug(const char *const *options, size_t n_options);
/** options_folder() - the FOLDER of -IFOLDER, a relative path. Return: NULL for any other option. */
const char *options_folder(const char *option);
/** options_is_path() - whether it is a relative path without "." and ".." in it, of at most 1024 bytes. */
bool options_is_path(const char *path);
/** options_checked() - whether --check is given: kernels compare their accesses with the job's buffers (check.h). */
bool options_checked(const char *const *options, size_t n_options);

#endif
