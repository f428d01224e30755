/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_GEMM_H
#define GPUQ_UTIL_GEMM_H

/*
 * Gemm
 *
 * Whether a matrix product fits its buffers. The client library asks before it sends one, and the worker
 * before it runs one. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"

#define GEMM_LENGTH_MAX INT32_MAX /* of m, n, k, batch and of a row: libraries count with 32 bits */

/** element_bytes() - the size of an element; 0: there is no such type. */
unsigned element_bytes(Gpuq__V1__Element element);
/** element_name() - "f16", "bf16", "f32" or "f64". */
const char *element_name(Gpuq__V1__Element element);
/** gemm_name() - under which lists and the history have it, such as "gemm_f32". */
const char *gemm_name(Gpuq__V1__Element element);
/**
 * gemm_extent() - bytes from the first element of a matrix, or of all in its batch, to the end of the last
 *
 * Return: UINT64_MAX: more than any memory has.
 */
uint64_t gemm_extent(const Gpuq__V1__Gemm *gemm, const Gpuq__V1__Matrix *matrix);
/** gemm_columns() - elements in a row of a matrix as it is stored. */
uint64_t gemm_columns(const Gpuq__V1__Gemm *gemm, const Gpuq__V1__Matrix *matrix);
/**
 * gemm_check() - check everything but the indices of buffers
 * @sizes: of the buffers of a, b and c, in bytes
 * @text: why not, naming the argument
 */
bool gemm_check(const Gpuq__V1__Gemm *gemm, const uint64_t sizes[static 3], char *text,
                size_t n_text);

#endif
