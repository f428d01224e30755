/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel scale
 * @text   y[i] = a * x[i] for i < n
 * @args   real:a in:x:real:n out:y:real:n u64:n
 * @launch any grid and block
 */
#include "common.cuh"

template <class T> static __device__ inline void scale(T a, const T *x, T *y, u64 n) {
        for (EACH(i, n))
                y[i] = a * x[i];
}

extern "C" __global__ void scale_f32(float a, const float *x, float *y, u64 n) {
        scale(a, x, y, n);
}

extern "C" __global__ void scale_f64(double a, const double *x, double *y, u64 n) {
        scale(a, x, y, n);
}
