/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CUBLASLT_H
#define GPUQ_WORKER_CUBLASLT_H

/*
 * cuBLASLt
 *
 * Matrix products on a GPU. The library's first choice for a shape is kept for as long as the worker lives,
 * or until too many others were used. It depends on the shape and alignment alone, and each product has its own
 * workspace, so equal products have equal bits.
 */

#include <stddef.h>

#include "worker/gemm.h"

typedef struct Cublaslt Cublaslt;

/** cublaslt_open() - in the current context. Return: NULL: it is not on this machine, or does not work. */
Cublaslt *cublaslt_open(const char *folders);
/**
 * cublaslt_plan() - choose an algorithm
 * @ret_workspace: bytes that it needs
 * @ret_is_new: it has not run yet: loading its kernel may wait for running ones
 *
 * Return: false: the library cannot compute this.
 */
bool cublaslt_plan(Cublaslt *lt, const Gemm *gemm, size_t *ret_workspace, bool *ret_is_new);
/** cublaslt_gemm() - issue a product, or capture it. */
CUresult cublaslt_gemm(Cublaslt *lt, const Gemm *gemm, const GemmPlaces *places, CUstream stream);

#endif
