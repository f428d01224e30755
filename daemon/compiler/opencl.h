/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_OPENCL_H
#define GPUQ_COMPILER_OPENCL_H

/*
 * OpenCL
 *
 * OpenCL C to PTX.
 */

#include "compiler/backend.h"

#define OPENCL_LOCALS_MAX 64u /* __local arguments of a kernel */

enum {
        _OPENCL_E_SUCCESS,
        OPENCL_E_LOCAL, /* too many __local arguments, or one that is not used as clang does it */
        OPENCL_E_VARIABLE, /* a variable of the program that is not __constant */
};

/** opencl_library() - libclc's file of built-in functions for PTX. NULL: it is not installed. */
const char *opencl_library(void);
/** opencl_compile() - Return: 0 or a negative errno. */
int opencl_compile(const Request *request, Result *result, Ptx *ret_ptx);
/**
 * opencl_rewrite() - PTX as gpuq needs it
 *
 * __local arguments become offsets in a launch's dynamic shared memory. __constant memory becomes
 * global memory, because an argument may point to either.
 *
 * @text:     PTX as clang writes it, with a zero byte behind it
 * @ret_text: the caller's
 *
 * Return: 0, OPENCL_E_LOCAL, OPENCL_E_VARIABLE, or -ENOMEM.
 */
int opencl_rewrite(const char *text, char **ret_text, size_t *ret_n_text);
/**
 * opencl_hide_spaces() - makes @text loadable
 *
 * CUDA's loader answers CUDA_ERROR_INVALID_IMAGE to a kernel with a parameter ".ptr .shared". Once the signature was
 * read, blanks may stand there.
 */
void opencl_hide_spaces(char *text, size_t n_text);

#endif
