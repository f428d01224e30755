/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel random_bits
 * @types  u32
 * @text   x[i] = 32 random bits: word skip + i of Philox 4x32-10 from block first on
 * @args   out:x:real:n u64:n u64:seed u64:stream u64:first u64:skip
 * @launch any grid and block
 */
#include "random.cuh"

extern "C" __global__ void __launch_bounds__(1024)
        random_bits_u32(unsigned *x, u64 n, u64 seed, u64 stream, u64 first, u64 skip) {
        random_numbers<RandomBits>(x, n, seed, stream, first, skip);
}
