/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sort_count
 * @types  u32 u64
 * @text   c[d, i] = how many keys of part i of x have digit d, if n keys are cut into m - 1 parts: the first step of sort
 * @args   in:x:real:n out:c:u64:256,m u64:n u64:m u64:shift u64:order
 * @launch any grid and block; fastest a block of 256 for each part
 */
#include "sort.cuh"

template <class T>
static __device__ __forceinline__ void sort_count(const T *keys, u64 *counts, u64 n, u64 columns,
                                                  u64 shift, u64 order) {
        __shared__ unsigned found[SORT_DIGITS];

        for (u64 part = block_number(); part + 1 < columns; part += block_count()) {
                SortPart range = sort_part(n, columns - 1, part);

                for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                        found[digit] = 0;
                __syncthreads();
#pragma unroll 8
                for (u64 i = range.begin + thread_number(); i < range.end; i += thread_count())
                        atomicAdd(&found[sort_digit(keys[i], shift, order)], 1u);
                __syncthreads();
                for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                        counts[digit * columns + part] = found[digit];
                __syncthreads();
        }
}

extern "C" __global__ void __launch_bounds__(1024)
        sort_count_u32(const unsigned *keys, u64 *counts, u64 n, u64 columns, u64 shift, u64 order) {
        sort_count(keys, counts, n, columns, shift, order);
}

extern "C" __global__ void __launch_bounds__(1024)
        sort_count_u64(const u64 *keys, u64 *counts, u64 n, u64 columns, u64 shift, u64 order) {
        sort_count(keys, counts, n, columns, shift, order);
}
