/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_BLAS_H
#define GPUQ_WORKER_BLAS_H

/*
 * BLAS
 *
 * Matrix products by the host's BLAS, for the CPU driver. f16 and bf16 are converted to f32, one matrix
 * of the batch after the other.
 */

#include "worker/gemm.h"

typedef struct Blas Blas;

/**
 * blas_open() - find one
 * @folders: to search first, separated by colons
 * @n_threads: that it may use, if it can be told
 *
 * Return: NULL: there is none.
 */
Blas *blas_open(const char *folders, unsigned n_threads);
/** blas_workspace() - bytes that a product needs. */
uint64_t blas_workspace(const Gemm *gemm);
/** blas_gemm() - compute a product now. */
void blas_gemm(const Blas *blas, const Gemm *gemm, const GemmPlaces *places);

#endif
