/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel argmin
 * @text   s[0] = the first i < n with the smallest x[i], or the first NaN; 2^64 - 1 if n is 0
 * @args   in:x:real:n out:s:u64:1 u64:n
 * @launch grid 1, any block, fastest 1024; for n > 65536 gpuq uses the whole device; the result is the same
 */
#include "reduce.cuh"

extern "C" __global__ void __launch_bounds__(1024) argmin_f32(const float *x, u64 *s, u64 n) {
        reduce(PlaceOf<float, false>(x), s, n);
}

extern "C" __global__ void __launch_bounds__(1024) argmin_f64(const double *x, u64 *s, u64 n) {
        reduce(PlaceOf<double, false>(x), s, n);
}

WIDE(argmin_f32)(const float *x, u64 *s, u64 n, WideMemory *memory) {
        reduce_wide(PlaceOf<float, false>(x), s, n, memory);
}

WIDE(argmin_f64)(const double *x, u64 *s, u64 n, WideMemory *memory) {
        reduce_wide(PlaceOf<double, false>(x), s, n, memory);
}
