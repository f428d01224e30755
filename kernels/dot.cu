/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel dot
 * @text   s[0] = sum of x[i] * y[i] for i < n, accumulated in f64
 * @args   in:x:real:n in:y:real:n out:s:real:1 u64:n
 * @launch grid 1 (only block 0 works), any block, fastest 1024; the block size does not change the result
 */
#include "common.cuh"

template <class T> static __device__ inline void dot(const T *x, const T *y, T *s, u64 n) {
        __shared__ double lanes[LANES];

        if (block_number() > 0)
                return;

        for (u64 lane = thread_number(); lane < LANES; lane += thread_count()) {
                double value = 0;

                for (u64 i = lane; i < n; i += LANES)
                        value += (double)x[i] * y[i];
                lanes[lane] = value;
        }
        reduce_lanes(lanes);
        if (thread_number() == 0)
                *s = (T)lanes[0];
}

extern "C" __global__ void dot_f32(const float *x, const float *y, float *s, u64 n) {
        dot(x, y, s, n);
}

extern "C" __global__ void dot_f64(const double *x, const double *y, double *s, u64 n) {
        dot(x, y, s, n);
}
