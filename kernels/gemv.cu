/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel gemv
 * @text   y = A x: A has m rows and n columns, row-major; x has n elements, y has m; accumulated in f64
 * @args   in:A:real:m,n in:x:real:n out:y:real:m u64:m u64:n
 * @launch any grid and block; a block computes whole rows; fastest: grid m, block 256
 */
#include "reduce.cuh"

template <class T>
static __device__ inline void gemv(const T *A, const T *x, T *y, u64 m, u64 n) {
        __shared__ double lanes[LANES];

        for (u64 row = block_number(); row < m; row += block_count()) {
                for (u64 lane = thread_number(); lane < LANES; lane += thread_count()) {
                        double value = 0;

                        for (u64 i = lane; i < n; i += LANES)
                                value += (double)A[row * n + i] * x[i];
                        lanes[lane] = value;
                }
                join_lanes<SumOfTaken<T>>(lanes);
                if (thread_number() == 0)
                        y[row] = (T)lanes[0];
                __syncthreads(); /* lanes[0] is read before the next row changes it */
        }
}

extern "C" __global__ void gemv_f32(const float *A, const float *x, float *y, u64 m, u64 n) {
        gemv(A, x, y, m, n);
}

extern "C" __global__ void gemv_f64(const double *A, const double *x, double *y, u64 m, u64 n) {
        gemv(A, x, y, m, n);
}
