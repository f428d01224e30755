/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel polynomial
 * @text   y[i] = c[0] + c[1] x[i] + … + c[k-1] x[i]^(k-1) for i < n, by Horner's rule; 0 if k is 0
 * @args   in:c:real:k u64:k in:x:real:n out:y:real:n u64:n
 * @launch any grid and block
 */
#include "common.cuh"

template <class T>
static __device__ inline void polynomial(const T *c, u64 k, const T *x, T *y, u64 n) {
        for (EACH(i, n)) {
                T value = 0;

                for (u64 j = k; j > 0; j--)
                        value = value * x[i] + c[j - 1];
                y[i] = value;
        }
}

extern "C" __global__ void polynomial_f32(const float *c, u64 k, const float *x, float *y, u64 n) {
        polynomial(c, k, x, y, n);
}

extern "C" __global__ void polynomial_f64(const double *c, u64 k, const double *x, double *y,
                                          u64 n) {
        polynomial(c, k, x, y, n);
}
