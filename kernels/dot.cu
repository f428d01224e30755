/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel dot
 * @text   s[0] = sum of x[i] * y[i] for i < n, accumulated in f64
 * @args   in:x:real:n in:y:real:n out:s:real:1 u64:n
 * @launch grid 1, any block, fastest 1024; for n > 65536 gpuq uses the whole device; the result is the same
 */
#include "reduce.cuh"

template <class T> struct Pair { T x, y; };

template <class T> struct Dot : SumOfTaken<Pair<T>> {
        const T *x, *y;

        __device__ __forceinline__ Dot(const T *from_x, const T *from_y) : x(from_x), y(from_y) {
        }
        __device__ __forceinline__ Pair<T> take(u64 i) const {
                return Pair<T>{x[i], y[i]};
        }
        __device__ __forceinline__ bool is_aligned() const {
                return is_row_address(x) && is_row_address(y);
        }
        __device__ __forceinline__ void take_row(u64 i, Pair<T> *to) const {
                T row_x[ROW], row_y[ROW];

                load_row(x + i, row_x);
                load_row(y + i, row_y);
#pragma unroll
                for (unsigned k = 0; k < ROW; ++k)
                        to[k] = Pair<T>{row_x[k], row_y[k]};
        }
        static __device__ __forceinline__ double add(double value, Pair<T> taken, u64) {
                return fma((double)taken.x, (double)taken.y, value);
        }
};

extern "C" __global__ void __launch_bounds__(1024)
        dot_f32(const float *x, const float *y, float *s, u64 n) {
        reduce(Dot<float>(x, y), s, n);
}

extern "C" __global__ void __launch_bounds__(1024)
        dot_f64(const double *x, const double *y, double *s, u64 n) {
        reduce(Dot<double>(x, y), s, n);
}

WIDE(dot_f32)(const float *x, const float *y, float *s, u64 n, WideMemory *memory) {
        reduce_wide(Dot<float>(x, y), s, n, memory);
}

WIDE(dot_f64)(const double *x, const double *y, double *s, u64 n, WideMemory *memory) {
        reduce_wide(Dot<double>(x, y), s, n, memory);
}
