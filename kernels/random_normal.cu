/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel random_normal
 * @types  f32 f64
 * @text   x[i] = a normal random number of mean 0 and variance 1, by Box and Muller's method
 * @args   out:x:real:n u64:n u64:seed u64:stream u64:first u64:skip
 * @launch any grid and block
 */
#include "random.cuh"

extern "C" __global__ void __launch_bounds__(1024)
        random_normal_f32(float *x, u64 n, u64 seed, u64 stream, u64 first, u64 skip) {
        random_numbers<RandomNormalFloat>(x, n, seed, stream, first, skip);
}

extern "C" __global__ void __launch_bounds__(1024)
        random_normal_f64(double *x, u64 n, u64 seed, u64 stream, u64 first, u64 skip) {
        random_numbers<RandomNormalDouble>(x, n, seed, stream, first, skip);
}
