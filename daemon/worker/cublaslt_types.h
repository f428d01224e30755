/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CUBLASLT_TYPES_H
#define GPUQ_WORKER_CUBLASLT_TYPES_H

/*
 * cuBLASLt's types
 *
 * As far as they are used, declared anew so that building needs no CUDA Toolkit. Versions 12 and 13 have the same;
 * tests/unit/worker compares them with cublasLt.h wherever that is installed.
 */

#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_types.h"

typedef struct LtContext *LtHandle;
typedef struct LtMatmulDesc *LtDesc;
typedef struct LtMatrixLayout *LtLayout;
typedef struct LtMatmulPreference *LtPreference;

enum {
        LT_SUCCESS = 0,
        LT_NOT_INITIALIZED = 1,
        LT_ALLOC_FAILED = 3,
        LT_EXECUTION_FAILED = 13,

        LT_R_32F = 0,
        LT_R_64F = 1,
        LT_R_16F = 2,
        LT_R_16BF = 14,

        LT_COMPUTE_32F = 68,
        LT_COMPUTE_64F = 70,
        LT_COMPUTE_32F_FAST_TF32 = 77,

        LT_DESC_TRANSA = 3,
        LT_DESC_TRANSB = 4,
        LT_OP_N = 0,
        LT_OP_T = 1,

        LT_LAYOUT_BATCH_COUNT = 5,
        LT_LAYOUT_STRIDED_BATCH_OFFSET = 6,

        LT_PREF_MAX_WORKSPACE_BYTES = 1,
        LT_PREF_REDUCTION_SCHEME_MASK = 3,
        LT_PREF_MIN_ALIGNMENT_A_BYTES = 5,
        LT_PREF_MIN_ALIGNMENT_B_BYTES = 6,
        LT_PREF_MIN_ALIGNMENT_C_BYTES = 7,
        LT_PREF_MIN_ALIGNMENT_D_BYTES = 8,

        LT_REDUCTION_SCHEME_NONE = 0,
        LT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
};

typedef struct LtAlgo {
        uint64_t data[8];
} LtAlgo;

typedef struct LtHeuristic {
        LtAlgo algo;
        size_t workspace; /* bytes */
        int state;
        float n_waves;
        int reserved[4];
} LtHeuristic;

/* X(member, symbol, arguments): each returns LT_SUCCESS or another status. */
/* clang-format off */
#define LT_FUNCTIONS(X)                                                                            \
        X(create, cublasLtCreate, (LtHandle *))                                                    \
        X(desc_create, cublasLtMatmulDescCreate, (LtDesc *, int compute, int scale))               \
        X(desc_destroy, cublasLtMatmulDescDestroy, (LtDesc))                                       \
        X(desc_set, cublasLtMatmulDescSetAttribute, (LtDesc, int, const void *, size_t))           \
        X(layout_create, cublasLtMatrixLayoutCreate,                                               \
          (LtLayout *, int type, uint64_t rows, uint64_t columns, int64_t ld))                     \
        X(layout_destroy, cublasLtMatrixLayoutDestroy, (LtLayout))                                 \
        X(layout_set, cublasLtMatrixLayoutSetAttribute, (LtLayout, int, const void *, size_t))     \
        X(preference_create, cublasLtMatmulPreferenceCreate, (LtPreference *))                     \
        X(preference_destroy, cublasLtMatmulPreferenceDestroy, (LtPreference))                     \
        X(preference_set, cublasLtMatmulPreferenceSetAttribute,                                    \
          (LtPreference, int, const void *, size_t))                                               \
        X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                               \
          (LtHandle, LtDesc, LtLayout a, LtLayout b, LtLayout c, LtLayout d, LtPreference,         \
           int n_wanted, LtHeuristic *ret_results, int *ret_n))                                    \
        X(matmul, cublasLtMatmul,                                                                  \
          (LtHandle, LtDesc, const void *alpha, const void *a, LtLayout, const void *b, LtLayout,  \
           const void *beta, const void *c, LtLayout, void *d, LtLayout, const LtAlgo *,           \
           void *workspace, size_t n_workspace, CUstream))
/* clang-format on */

#endif
