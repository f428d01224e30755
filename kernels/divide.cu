/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel divide
 * @text   c[i] = a[i] / b[i] for i < n; division by zero follows IEEE 754
 * @args   in:a:real:n in:b:real:n out:c:real:n u64:n
 * @launch any grid and block
 */
#include "common.cuh"

template <class T> static __device__ inline void divide(const T *a, const T *b, T *c, u64 n) {
        for (EACH(i, n))
                c[i] = a[i] / b[i];
}

extern "C" __global__ void divide_f32(const float *a, const float *b, float *c, u64 n) {
        divide(a, b, c, n);
}

extern "C" __global__ void divide_f64(const double *a, const double *b, double *c, u64 n) {
        divide(a, b, c, n);
}
