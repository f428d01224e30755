/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel argmax
 * @text   s[0] = the first i < n with the largest x[i], or the first NaN; 2^64 - 1 if n is 0
 * @args   in:x:real:n out:s:u64:1 u64:n
 * @launch grid 1, any block, fastest 1024; for n > 65536 gpuq uses the whole device; the result is the same
 */
#include "reduce.cuh"

extern "C" __global__ void __launch_bounds__(1024) argmax_f32(const float *x, u64 *s, u64 n) {
        reduce(PlaceOf<float, true>(x), s, n);
}

extern "C" __global__ void __launch_bounds__(1024) argmax_f64(const double *x, u64 *s, u64 n) {
        reduce(PlaceOf<double, true>(x), s, n);
}

WIDE(argmax_f32)(const float *x, u64 *s, u64 n, WideMemory *memory) {
        reduce_wide(PlaceOf<float, true>(x), s, n, memory);
}

WIDE(argmax_f64)(const double *x, u64 *s, u64 n, WideMemory *memory) {
        reduce_wide(PlaceOf<double, true>(x), s, n, memory);
}
