/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel random_uniform
 * @types  f32 f64
 * @text   x[i] = a random number from 0, not 0 itself, to 1: number skip + i of Philox 4x32-10 from block first on, as cuRAND's
 * @args   out:x:real:n u64:n u64:seed u64:stream u64:first u64:skip
 * @launch any grid and block
 */
#include "random.cuh"

extern "C" __global__ void __launch_bounds__(1024)
        random_uniform_f32(float *x, u64 n, u64 seed, u64 stream, u64 first, u64 skip) {
        random_numbers<RandomUniformFloat>(x, n, seed, stream, first, skip);
}

extern "C" __global__ void __launch_bounds__(1024)
        random_uniform_f64(double *x, u64 n, u64 seed, u64 stream, u64 first, u64 skip) {
        random_numbers<RandomUniformDouble>(x, n, seed, stream, first, skip);
}
