/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our declarations of cuBLASLt and cuFFT against those of cublasLt.h and cufft.h: compiling this is the test.
 */
#include <cublasLt.h>
#include <cuda.h>
#include <cufft.h>

/* What cuda_types.h would declare is there already. */
#define GPUQ_DRIVER_CUDA_TYPES_H
#include "worker/cublaslt_types.h"
#include "worker/cufft_types.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs " is another one")
SAME(LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(LT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(LT_R_32F, CUDA_R_32F);
SAME(LT_R_64F, CUDA_R_64F);
SAME(LT_R_16F, CUDA_R_16F);
SAME(LT_R_16BF, CUDA_R_16BF);
SAME(LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(LT_COMPUTE_64F, CUBLAS_COMPUTE_64F);
SAME(LT_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(LT_OP_N, CUBLAS_OP_N);
SAME(LT_OP_T, CUBLAS_OP_T);
SAME(LT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(LT_LAYOUT_STRIDED_BATCH_OFFSET, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(LT_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(LT_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(LT_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(LT_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(LT_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(LT_PREF_MIN_ALIGNMENT_D_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(LT_REDUCTION_SCHEME_NONE, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(LT_REDUCTION_SCHEME_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(sizeof(LtAlgo), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(LtHeuristic), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(LtHeuristic, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(LtHeuristic, state), offsetof(cublasLtMatmulHeuristicResult_t, state));

SAME(FFT_FORWARD, CUFFT_FORWARD);
SAME(FFT_INVERSE, CUFFT_INVERSE);
SAME(FFT_SUCCESS, CUFFT_SUCCESS);
SAME(FFT_ALLOC_FAILED, CUFFT_ALLOC_FAILED);
SAME(FFT_C2C, CUFFT_C2C);
SAME(FFT_R2C, CUFFT_R2C);
SAME(FFT_C2R, CUFFT_C2R);
SAME(FFT_Z2Z, CUFFT_Z2Z);
SAME(FFT_D2Z, CUFFT_D2Z);
SAME(FFT_Z2D, CUFFT_Z2D);
SAME(sizeof(CufftHandle), sizeof(cufftHandle));

/* The number and kind of the arguments of cufftMakePlanMany64(), whose enum is our int. */
_Static_assert(__builtin_types_compatible_p(__typeof__(&cufftMakePlanMany64),
                                            cufftResult (*)(cufftHandle, int, long long *,
                                                            long long *, long long, long long,
                                                            long long *, long long, long long,
                                                            cufftType, long long, size_t *)),
               "cufftMakePlanMany64() takes other arguments");
