/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel min
 * @text   s[0] = the smallest x[i] for i < n; NaN if there is one, infinity if n is 0
 * @args   in:x:real:n out:s:real:1 u64:n
 * @launch grid 1, any block, fastest 1024; for n > 65536 gpuq uses the whole device; the result is the same
 */
#include "reduce.cuh"

extern "C" __global__ void __launch_bounds__(1024) min_f32(const float *x, float *s, u64 n) {
        reduce(ExtremeOf<float, false>(x), s, n);
}

extern "C" __global__ void __launch_bounds__(1024) min_f64(const double *x, double *s, u64 n) {
        reduce(ExtremeOf<double, false>(x), s, n);
}

WIDE(min_f32)(const float *x, float *s, u64 n, WideMemory *memory) {
        reduce_wide(ExtremeOf<float, false>(x), s, n, memory);
}

WIDE(min_f64)(const double *x, double *s, u64 n, WideMemory *memory) {
        reduce_wide(ExtremeOf<double, false>(x), s, n, memory);
}
