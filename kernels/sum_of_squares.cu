/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sum_of_squares
 * @text   s[0] = sum of x[i]^2 for i < n, accumulated in f64
 * @args   in:x:real:n out:s:real:1 u64:n
 * @launch grid 1 (only block 0 works), any block, fastest 1024; the block size does not change the result
 */
#include "common.cuh"

template <class T> static __device__ inline void sum_of_squares(const T *x, T *s, u64 n) {
        __shared__ double lanes[LANES];

        if (block_number() > 0)
                return;

        for (u64 lane = thread_number(); lane < LANES; lane += thread_count()) {
                double value = 0;

                for (u64 i = lane; i < n; i += LANES)
                        value += (double)x[i] * x[i];
                lanes[lane] = value;
        }
        reduce_lanes(lanes);
        if (thread_number() == 0)
                *s = (T)lanes[0];
}

extern "C" __global__ void sum_of_squares_f32(const float *x, float *s, u64 n) {
        sum_of_squares(x, s, n);
}

extern "C" __global__ void sum_of_squares_f64(const double *x, double *s, u64 n) {
        sum_of_squares(x, s, n);
}
