/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sum
 * @text   s[0] = sum of x[i] for i < n, accumulated in f64
 * @args   in:x:real:n out:s:real:1 u64:n
 * @launch grid 1, any block, fastest 1024; for n > 65536 gpuq uses the whole device; the result is the same
 */
#include "reduce.cuh"

extern "C" __global__ void __launch_bounds__(1024) sum_f32(const float *x, float *s, u64 n) {
        reduce(SumOf<float>(x), s, n);
}

extern "C" __global__ void __launch_bounds__(1024) sum_f64(const double *x, double *s, u64 n) {
        reduce(SumOf<double>(x), s, n);
}

WIDE(sum_f32)(const float *x, float *s, u64 n, WideMemory *memory) {
        reduce_wide(SumOf<float>(x), s, n, memory);
}

WIDE(sum_f64)(const double *x, double *s, u64 n, WideMemory *memory) {
        reduce_wide(SumOf<double>(x), s, n, memory);
}
