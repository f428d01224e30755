/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sum_of_squares
 * @text   s[0] = sum of x[i]^2 for i < n, accumulated in f64
 * @args   in:x:real:n out:s:real:1 u64:n
 * @launch grid 1, any block, fastest 1024; for n > 65536 gpuq uses the whole device; the result is the same
 */
#include "reduce.cuh"

template <class T> struct SumOfSquares : SumOfTaken<T> {
        const T *x;

        __device__ __forceinline__ SumOfSquares(const T *from) : x(from) {
        }
        __device__ __forceinline__ T take(u64 i) const {
                return x[i];
        }
        __device__ __forceinline__ bool is_aligned() const {
                return is_row_address(x);
        }
        __device__ __forceinline__ void take_row(u64 i, T *to) const {
                load_row(x + i, to);
        }
        static __device__ __forceinline__ double add(double value, T taken, u64) {
                return fma((double)taken, (double)taken, value);
        }
};

extern "C" __global__ void __launch_bounds__(1024)
        sum_of_squares_f32(const float *x, float *s, u64 n) {
        reduce(SumOfSquares<float>(x), s, n);
}

extern "C" __global__ void __launch_bounds__(1024)
        sum_of_squares_f64(const double *x, double *s, u64 n) {
        reduce(SumOfSquares<double>(x), s, n);
}

WIDE(sum_of_squares_f32)(const float *x, float *s, u64 n, WideMemory *memory) {
        reduce_wide(SumOfSquares<float>(x), s, n, memory);
}

WIDE(sum_of_squares_f64)(const double *x, double *s, u64 n, WideMemory *memory) {
        reduce_wide(SumOfSquares<double>(x), s, n, memory);
}
