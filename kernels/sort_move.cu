/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sort_move
 * @types  u32 u64
 * @text   keys of x to where c of sort_offsets says, in order within a digit, with values v of k words each: the last step of sort
 * @args   in:x:real:n in:v:u32:n,k in:c:u64:256,m out:y:real:n out:w:u32:n,k u64:n u64:k u64:m u64:shift u64:order
 * @launch any grid and block; fastest a block of 256 for each part
 */
#include "sort.cuh"

#define SORT_HALF 16u /* the values of half a digit */

/* Lanes that work on neighbours do not meet in a bank of shared memory, which has words of four bytes. */
static __device__ __forceinline__ unsigned sort_byte_place(unsigned i) {
        return i + i / TILE_ITEMS * 4;
}

static __device__ __forceinline__ unsigned sort_short_place(unsigned i) {
        return i + i / TILE_ITEMS * 2;
}

/* A block's work on a tile. Elements are numbered from the tile's begin. Arrays are in the order of their places. */
struct SortTile {
        unsigned char digits[TILE + TILE_LANES * 4];
        unsigned short order[2][TILE + TILE_LANES * 2]; /* elements, by the digits' lower halves, and by digits */
        unsigned short counters[SORT_HALF * (TILE_LANES + TILE_LANES / TILE_ITEMS * 2)];
        unsigned short first[SORT_DIGITS], behind[SORT_DIGITS]; /* in order[1], without places */
        LaneSums<unsigned> sums;
        u64 offsets[SORT_DIGITS]; /* where the next key of a digit goes */
};

/* Element i in the order that a half begins with: in the upper one it is that of the lower one. */
static __device__ __forceinline__ unsigned sort_element(const SortTile &tile, bool is_upper, unsigned i) {
        return is_upper ? tile.order[0][sort_short_place(i)] : i;
}

static __device__ __forceinline__ unsigned sort_half_digit(const SortTile &tile, bool is_upper,
                                                           unsigned element) {
        return tile.digits[sort_byte_place(element)] >> (is_upper ? 4 : 0) & (SORT_HALF - 1);
}

/* How many elements of a lane have a half, and then where the next one of them goes. */
static __device__ __forceinline__ unsigned short *sort_counter(SortTile &tile, unsigned half,
                                                               unsigned lane) {
        return &tile.counters[sort_short_place(half * TILE_LANES + lane)];
}

/* All elements in the order of half of their digits. Equal ones keep their order. */
static __device__ __forceinline__ void sort_half(SortTile &tile, bool is_upper) {
        for (EACH_IN_BLOCK(lane, TILE_LANES)) {
#pragma unroll
                for (unsigned half = 0; half < SORT_HALF; ++half)
                        *sort_counter(tile, half, lane) = 0;
#pragma unroll
                for (unsigned i = 0; i < TILE_ITEMS; ++i) {
                        unsigned element = sort_element(tile, is_upper, lane * TILE_ITEMS + i);

                        ++*sort_counter(tile, sort_half_digit(tile, is_upper, element), lane);
                }
        }
        __syncthreads();
        for (EACH_IN_BLOCK(lane, TILE_LANES)) {
                unsigned sum = 0;

#pragma unroll
                for (unsigned i = 0; i < SORT_HALF; ++i)
                        sum += tile.counters[sort_short_place(lane * SORT_HALF + i)];
                tile.sums.lanes[lane] = sum;
        }
        lanes_join(tile.sums);
        for (EACH_IN_BLOCK(lane, TILE_LANES)) {
                unsigned sum = lanes_before(tile.sums, lane, 0u);

#pragma unroll
                for (unsigned i = 0; i < SORT_HALF; ++i) {
                        unsigned short *counter = &tile.counters[sort_short_place(lane * SORT_HALF + i)];
                        unsigned count = *counter;

                        *counter = (unsigned short)sum;
                        sum += count;
                }
        }
        __syncthreads();
        for (EACH_IN_BLOCK(lane, TILE_LANES)) {
#pragma unroll
                for (unsigned i = 0; i < TILE_ITEMS; ++i) {
                        unsigned element = sort_element(tile, is_upper, lane * TILE_ITEMS + i);
                        unsigned half = sort_half_digit(tile, is_upper, element);
                        unsigned to = (*sort_counter(tile, half, lane))++;

                        tile.order[is_upper][sort_short_place(to)] = (unsigned short)element;
                }
        }
        __syncthreads();
}

/* Of the element that is number @i in the end. */
static __device__ __forceinline__ unsigned sort_sorted_digit(const SortTile &tile, unsigned i) {
        return tile.digits[sort_byte_place(tile.order[1][sort_short_place(i)])];
}

/* Where each digit's elements are, of @n elements. */
static __device__ __forceinline__ void sort_find_runs(SortTile &tile, unsigned n) {
        for (EACH_IN_BLOCK(i, n)) {
                unsigned digit = sort_sorted_digit(tile, i);

                if (i == 0 || sort_sorted_digit(tile, i - 1) != digit)
                        tile.first[digit] = (unsigned short)i;
                if (i + 1 == n || sort_sorted_digit(tile, i + 1) != digit)
                        tile.behind[digit] = (unsigned short)(i + 1);
        }
        __syncthreads();
}

/* What is behind the last key has the largest digit, and so comes last. */
template <class T>
static __device__ __forceinline__ void sort_tile(SortTile &tile, const T *keys, unsigned n, u64 shift,
                                                 u64 order) {
        for (EACH_IN_BLOCK(i, TILE))
                tile.digits[sort_byte_place(i)] = (unsigned char)(i < n ? sort_digit(keys[i], shift, order) : SORT_DIGITS - 1);
        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                tile.first[digit] = tile.behind[digit] = 0;
        __syncthreads();
#pragma unroll 1
        for (unsigned half = 0; half < 2; ++half)
                sort_half(tile, half > 0);
        sort_find_runs(tile, n);
}

/* Where keys of each digit and this part begin. */
static __device__ __forceinline__ void sort_begin(SortTile &tile, const u64 *counts, u64 columns,
                                                  u64 part) {
        __shared__ LaneSums<u64> totals;

        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                totals.lanes[digit] = counts[digit * columns + columns - 1];
        lanes_join(totals);
        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                tile.offsets[digit] = lanes_before(totals, digit, counts[digit * columns + part]);
        __syncthreads();
}

template <class T>
static __device__ __forceinline__ void sort_move(const T *keys, const unsigned *values, const u64 *counts,
                                                 T *sorted, unsigned *moved, u64 n, u64 words,
                                                 u64 columns, u64 shift, u64 order) {
        __shared__ SortTile tile;

        for (u64 part = block_number(); part + 1 < columns; part += block_count()) {
                SortPart range = sort_part(n, columns - 1, part);

                sort_begin(tile, counts, columns, part);
                for (u64 begin = range.begin; begin < range.end; begin += TILE) {
                        unsigned length = (unsigned)(range.end - begin < TILE ? range.end - begin : TILE);

                        sort_tile(tile, keys + begin, length, shift, order);
                        for (EACH_IN_BLOCK(i, length)) {
                                unsigned element = tile.order[1][sort_short_place(i)];
                                unsigned digit = tile.digits[sort_byte_place(element)];
                                u64 to = tile.offsets[digit] + i - tile.first[digit];

                                if (to >= n) /* counts of other keys */
                                        continue;
                                sorted[to] = keys[begin + element];
                                for (u64 word = 0; word < words; ++word)
                                        moved[to * words + word] = values[(begin + element) * words + word];
                        }
                        __syncthreads();
                        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                                tile.offsets[digit] += tile.behind[digit] - tile.first[digit];
                        __syncthreads();
                }
        }
}

extern "C" __global__ void __launch_bounds__(1024)
        sort_move_u32(const unsigned *keys, const unsigned *values, const u64 *counts, unsigned *sorted,
                      unsigned *moved, u64 n, u64 words, u64 columns, u64 shift, u64 order) {
        sort_move(keys, values, counts, sorted, moved, n, words, columns, shift, order);
}

extern "C" __global__ void __launch_bounds__(1024)
        sort_move_u64(const u64 *keys, const unsigned *values, const u64 *counts, u64 *sorted,
                      unsigned *moved, u64 n, u64 words, u64 columns, u64 shift, u64 order) {
        sort_move(keys, values, counts, sorted, moved, n, words, columns, shift, order);
}
