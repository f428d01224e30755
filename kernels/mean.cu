/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel mean
 * @text   s[0] = mean of x[i] for i < n, accumulated in f64; NaN if n is 0
 * @args   in:x:real:n out:s:real:1 u64:n
 * @launch grid 1, any block, fastest 1024; for n > 65536 gpuq uses the whole device; the result is the same
 */
#include "reduce.cuh"

extern "C" __global__ void __launch_bounds__(1024) mean_f32(const float *x, float *s, u64 n) {
        reduce(MeanOf<float>(x), s, n);
}

extern "C" __global__ void __launch_bounds__(1024) mean_f64(const double *x, double *s, u64 n) {
        reduce(MeanOf<double>(x), s, n);
}

WIDE(mean_f32)(const float *x, float *s, u64 n, WideMemory *memory) {
        reduce_wide(MeanOf<float>(x), s, n, memory);
}

WIDE(mean_f64)(const double *x, double *s, u64 n, WideMemory *memory) {
        reduce_wide(MeanOf<double>(x), s, n, memory);
}
