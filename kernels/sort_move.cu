/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sort_move
 * @types  u32 u64
 * @text   keys of x to where c of sort_offsets says, in order within a digit, with values v of k words each: the last step of sort
 * @args   in:x:real:n in:v:u32:n,k in:c:u64:256,m out:y:real:n out:w:u32:n,k u64:n u64:k u64:m u64:shift u64:order
 * @launch any grid and block; fastest a block of 256 for each part
 */
#include "sort_lanes.cuh"
#include "sort_warps.cuh"

/* A block's work on a part. */
template <class T> union SortMemory {
        LaneSums<u64> totals; /* of the digits, before the first tile */
        SortLanes lanes;
        SortWarps<T> warps;
};

/* Where keys of each digit and this part begin. */
static __device__ __forceinline__ void sort_begin(LaneSums<u64> &totals, const u64 *counts, u64 columns,
                                                  u64 part, u64 *offsets) {
        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                totals.lanes[digit] = counts[digit * columns + columns - 1];
        lanes_join(totals);
        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                offsets[digit] = lanes_before(totals, digit, counts[digit * columns + part]);
        __syncthreads();
}

template <class T>
static __device__ __forceinline__ void sort_move(const SortMove<T> &move, const u64 *counts, u64 columns) {
        __shared__ SortMemory<T> memory;
        __shared__ u64 offsets[SORT_DIGITS]; /* where the next key of a digit goes */

        for (u64 part = block_number(); part + 1 < columns; part += block_count()) {
                SortPart range = sort_part(move.n, columns - 1, part);

                sort_begin(memory.totals, counts, columns, part, offsets);
                for (u64 begin = range.begin; begin < range.end; begin += TILE) {
                        unsigned length = (unsigned)(range.end - begin < TILE ? range.end - begin : TILE);

                        if (thread_count() == TILE_LANES)
                                sort_tile_by_warps(memory.warps, move, begin, length, offsets);
                        else
                                sort_tile_by_lanes(memory.lanes, move, begin, length, offsets);
                }
                __syncthreads();
        }
}

extern "C" __global__ void __launch_bounds__(1024)
        sort_move_u32(const unsigned *keys, const unsigned *values, const u64 *counts, unsigned *sorted,
                      unsigned *moved, u64 n, u64 words, u64 columns, u64 shift, u64 order) {
        sort_move(SortMove<unsigned>{keys, values, sorted, moved, n, words, {shift, order}}, counts, columns);
}

extern "C" __global__ void __launch_bounds__(1024)
        sort_move_u64(const u64 *keys, const unsigned *values, const u64 *counts, u64 *sorted,
                      unsigned *moved, u64 n, u64 words, u64 columns, u64 shift, u64 order) {
        sort_move(SortMove<u64>{keys, values, sorted, moved, n, words, {shift, order}}, counts, columns);
}
