/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_GEMM_H
#define GPUQ_WORKER_GEMM_H

/*
 * Gemm
 *
 * A matrix product that was checked (util/gemm.h), as a library is asked for it: C = alpha A B + beta C, of
 * row-major matrices.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_types.h"
#include "util/gemm.h"

typedef struct GemmMatrix {
        uint64_t ld, stride; /* elements */
        uint32_t transposed;
        uint32_t alignment; /* bytes that divide its address, at most GEMM_ALIGNMENT */
} GemmMatrix;

#define GEMM_ALIGNMENT 256u

/* No padding: equal shapes have equal bytes. */
typedef struct Gemm {
        uint32_t element; /* Gpuq__V1__Element */
        uint32_t tf32;
        uint64_t m, n, k, batch;
        GemmMatrix a, b, c;
        double alpha, beta; /* after the shape */
} Gemm;

#define GEMM_SHAPE_BYTES offsetof(Gemm, alpha)

typedef struct GemmPlaces {
        CUdeviceptr a, b, c;
        CUdeviceptr workspace; /* as many bytes as the library asked for */
} GemmPlaces;

#endif
