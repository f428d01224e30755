/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sort_count
 * @types  u32 u64
 * @text   c[d, i] = how many keys of part i of x have digit d, if n keys are cut into m - 1 parts: the first step of sort
 * @args   in:x:real:n out:c:u64:256,m u64:n u64:m u64:shift u64:order
 * @launch any grid and block; fastest a block of 256 for each part
 */
#include "sort.cuh"

#define SORT_LOADS 16u /* of a thread, in flight at once */

template <class T>
static __device__ __forceinline__ void sort_count_part(const T *keys, SortPart part, SortDigits<T> digits,
                                                       unsigned *found) {
        u64 i = part.begin + thread_number(), step = thread_count();
        T taken[SORT_LOADS];

#pragma unroll 1
        for (; i + (SORT_LOADS - 1) * step < part.end; i += SORT_LOADS * step) {
#pragma unroll
                for (unsigned k = 0; k < SORT_LOADS; ++k)
                        taken[k] = keys[i + k * step];
#pragma unroll
                for (unsigned k = 0; k < SORT_LOADS; ++k)
                        atomicAdd(&found[digits.of(taken[k])], 1u);
        }
#pragma unroll 1
        for (; i < part.end; i += step)
                atomicAdd(&found[digits.of(keys[i])], 1u);
}

template <class T>
static __device__ __forceinline__ void sort_count(const T *keys, u64 *counts, u64 n, u64 columns,
                                                  u64 shift, u64 order) {
        __shared__ unsigned found[SORT_DIGITS];

        for (u64 part = block_number(); part + 1 < columns; part += block_count()) {
                SortPart range = sort_part(n, columns - 1, part);

                for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                        found[digit] = 0;
                __syncthreads();
                sort_count_part(keys, range, SortDigits<T>(shift, order), found);
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
