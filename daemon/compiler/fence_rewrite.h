/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_FENCE_REWRITE_H
#define GPUQ_COMPILER_FENCE_REWRITE_H

/*
 * Fence rewrite
 *
 * PTX to PTX whose kernels stay within the fence of fence.h. Kernels get the fence as their last
 * parameter, functions as their first, and calls pass it on. Before an instruction that accesses
 * memory its address is compared; there is no branch. Pure. Any bytes are accepted without harm.
 */

#include <stddef.h>

typedef struct Fenced {
        char *text; /* malloc()ed, with a zero byte behind it */
        size_t n_text;
} Fenced;

enum {
        _FENCE_REWRITE_E_SUCCESS,
        FENCE_REWRITE_E_REFUSED, /* there is a message */
};

/**
 * fence_rewrite()
 * @ret_error: with FENCE_REWRITE_E_REFUSED, one line; the caller's string
 *
 * Return: 0, FENCE_REWRITE_E_REFUSED, or -ENOMEM.
 */
int fence_rewrite(const char *text, size_t n_text, Fenced *ret_fenced, char **ret_error);
/** fenced_finish() - free what it holds. */
void fenced_finish(Fenced *fenced);

#endif
