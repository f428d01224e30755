/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CUFFT_TYPES_H
#define GPUQ_WORKER_CUFFT_TYPES_H

/*
 * cuFFT's types
 *
 * As far as they are used, declared anew so that building needs no CUDA Toolkit. Versions 11 and 12 have the same;
 * tests/unit/worker compares them with cufft.h wherever that is installed.
 */

#include <stddef.h>

#include "driver/cuda_types.h"

typedef int CufftHandle;

enum {
        FFT_FORWARD = -1,
        FFT_INVERSE = 1,

        FFT_SUCCESS = 0,
        FFT_ALLOC_FAILED = 2,

        FFT_C2C = 0x29,
        FFT_R2C = 0x2a,
        FFT_C2R = 0x2c,
        FFT_Z2Z = 0x69,
        FFT_D2Z = 0x6a,
        FFT_Z2D = 0x6c,
};

/* X(member, symbol, arguments): each returns FFT_SUCCESS or another status. */
/* clang-format off */
#define CUFFT_FUNCTIONS(X)                                                                         \
        X(create, cufftCreate, (CufftHandle *ret_plan))                                            \
        X(destroy, cufftDestroy, (CufftHandle plan))                                               \
        X(set_auto_allocation, cufftSetAutoAllocation, (CufftHandle plan, int is_on))              \
        X(set_stream, cufftSetStream, (CufftHandle plan, CUstream stream))                         \
        X(set_work_area, cufftSetWorkArea, (CufftHandle plan, void *area))                         \
        X(make_plan, cufftMakePlanMany64,                                                          \
          (CufftHandle plan, int rank, long long *lengths, long long *in_embed, long long in_step, \
           long long in_apart, long long *out_embed, long long out_step, long long out_apart,      \
           int type, long long batch, size_t *ret_n_area))                                         \
        X(exec_c2c, cufftExecC2C, (CufftHandle plan, void *from, void *to, int direction))         \
        X(exec_z2z, cufftExecZ2Z, (CufftHandle plan, void *from, void *to, int direction))         \
        X(exec_r2c, cufftExecR2C, (CufftHandle plan, void *from, void *to))                        \
        X(exec_d2z, cufftExecD2Z, (CufftHandle plan, void *from, void *to))                        \
        X(exec_c2r, cufftExecC2R, (CufftHandle plan, void *from, void *to))                        \
        X(exec_z2d, cufftExecZ2D, (CufftHandle plan, void *from, void *to))
/* clang-format on */

#endif
