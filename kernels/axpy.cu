/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel axpy
 * @text   y[i] = a * x[i] + y[i] for i < n
 * @args   real:a in:x:real:n inout:y:real:n u64:n
 * @launch any grid and block
 */
#include "common.cuh"

template <class T> static __device__ inline void axpy(T a, const T *x, T *y, u64 n) {
        for (EACH(i, n))
                y[i] = a * x[i] + y[i];
}

extern "C" __global__ void axpy_f32(float a, const float *x, float *y, u64 n) {
        axpy(a, x, y, n);
}

extern "C" __global__ void axpy_f64(double a, const double *x, double *y, u64 n) {
        axpy(a, x, y, n);
}
