/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_BATCH_REWRITE_H
#define GPUQ_COMPILER_BATCH_REWRITE_H

/*
 * Batch rewrite
 *
 * Writes the twins of batch.h.
 */

#include <stddef.h>

/**
 * batch_rewrite() - PTX with the twin of each kernel behind it, where there can be one
 * @ret_text: the caller's; written, as @ret_n_text, if there are any
 *
 * What is valid stays valid, for the same version and target. Return: how many twins, or -ENOMEM.
 */
int batch_rewrite(const char *text, size_t n_text, char **ret_text, size_t *ret_n_text);

#endif
