/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile of sort, by lanes of TILE_ITEMS neighbours, for blocks of any size: by the lower half of the digit, then by
 * the upper one
 */
#pragma once
#include "sort.cuh"

#define SORT_HALF 16u /* the values of half a digit */

/* Lanes that work on neighbours do not meet in a bank of shared memory, which has words of four bytes. */
static __device__ __forceinline__ unsigned sort_byte_place(unsigned i) {
        return i + i / TILE_ITEMS * 4;
}

static __device__ __forceinline__ unsigned sort_short_place(unsigned i) {
        return i + i / TILE_ITEMS * 2;
}

/* Elements are numbered from the tile's begin. Arrays are in the order of their places. */
struct SortLanes {
        unsigned char digits[TILE + TILE_LANES * 4];
        unsigned short order[2][TILE + TILE_LANES * 2]; /* elements, by the digits' lower halves, and by digits */
        unsigned short counters[SORT_HALF * (TILE_LANES + TILE_LANES / TILE_ITEMS * 2)];
        unsigned short first[SORT_DIGITS], behind[SORT_DIGITS]; /* in order[1], without places */
        LaneSums<unsigned> sums;
};

/* Element i in the order that a half begins with: in the upper one it is that of the lower one. */
static __device__ __forceinline__ unsigned sort_element(const SortLanes &tile, bool is_upper, unsigned i) {
        return is_upper ? tile.order[0][sort_short_place(i)] : i;
}

static __device__ __forceinline__ unsigned sort_half_digit(const SortLanes &tile, bool is_upper,
                                                           unsigned element) {
        return tile.digits[sort_byte_place(element)] >> (is_upper ? 4 : 0) & (SORT_HALF - 1);
}

/* How many elements of a lane have a half, and then where the next one of them goes. */
static __device__ __forceinline__ unsigned short *sort_counter(SortLanes &tile, unsigned half,
                                                               unsigned lane) {
        return &tile.counters[sort_short_place(half * TILE_LANES + lane)];
}

/* All elements in the order of half of their digits. Equal ones keep their order. */
static __device__ __forceinline__ void sort_half(SortLanes &tile, bool is_upper) {
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
static __device__ __forceinline__ unsigned sort_sorted_digit(const SortLanes &tile, unsigned i) {
        return tile.digits[sort_byte_place(tile.order[1][sort_short_place(i)])];
}

/* Where each digit's elements are, of @n elements. */
static __device__ __forceinline__ void sort_find_runs(SortLanes &tile, unsigned n) {
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
static __device__ __forceinline__ void sort_lanes(SortLanes &tile, const SortMove<T> &move, u64 begin,
                                                  unsigned n) {
        for (EACH_IN_BLOCK(i, TILE))
                tile.digits[sort_byte_place(i)] =
                        (unsigned char)(i < n ? move.digits.of(move.keys[begin + i]) : SORT_DIGITS - 1);
        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                tile.first[digit] = tile.behind[digit] = 0;
        __syncthreads();
#pragma unroll 1
        for (unsigned half = 0; half < 2; ++half)
                sort_half(tile, half > 0);
        sort_find_runs(tile, n);
}

/* Takes a tile of @n keys to where they go. @offsets: of each digit, where its next key goes. */
template <class T>
static __device__ __forceinline__ void sort_tile_by_lanes(SortLanes &tile, const SortMove<T> &move,
                                                          u64 begin, unsigned n, u64 *offsets) {
        sort_lanes(tile, move, begin, n);
        for (EACH_IN_BLOCK(i, n)) {
                unsigned element = tile.order[1][sort_short_place(i)];
                unsigned digit = tile.digits[sort_byte_place(element)];

                move.take(move.keys[begin + element], begin + element, offsets[digit] + i - tile.first[digit]);
        }
        __syncthreads();
        for (EACH_IN_BLOCK(digit, SORT_DIGITS))
                offsets[digit] += tile.behind[digit] - tile.first[digit];
        __syncthreads();
}
