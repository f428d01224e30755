/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile of sort, by warps: for blocks of TILE_LANES threads, where this is faster than by lanes (sort_lanes.cuh)
 *
 * Warp i has the i-th share of a tile's keys, in TILE_ITEMS rows. It goes through them row by row: the lanes whose keys
 * have the same digit find each other by votes, and one of them counts them all. How many keys of a digit there were
 * before, in the warp and in those before it, is a key's place among those of its digit.
 */
#pragma once
#include "sort.cuh"

#define SORT_WARP       32u /* threads */
#define SORT_WARPS      (TILE_LANES / SORT_WARP)
#define SORT_DIGIT_BITS 8u
#define SORT_ALL        0xffffffffu /* lanes */

template <class T> struct SortWarps {
        T keys[TILE];                                   /* sorted */
        unsigned short elements[TILE];                  /* which they were */
        unsigned short counts[SORT_WARPS][SORT_DIGITS]; /* of a warp's keys; then where the first of a digit goes */
        unsigned sums[SORT_WARPS];                      /* of the digits that a warp adds up */
};

/* What a thread knows of its keys, of which it has one in each row. */
template <class T> struct SortRows {
        T keys[TILE_ITEMS];
        unsigned ranks[TILE_ITEMS]; /* a digit, and above it the rank among the warp's keys of this digit */
};

/* The lanes with this lane's digit, as bits. */
static __device__ __forceinline__ unsigned sort_peers(unsigned digit) {
        unsigned peers = SORT_ALL;

#pragma unroll
        for (unsigned bit = 0; bit < SORT_DIGIT_BITS; ++bit) {
                bool is_set = digit & 1u << bit;
                unsigned lanes = __ballot_sync(SORT_ALL, is_set);

                peers &= is_set ? lanes : ~lanes;
        }
        return peers;
}

template <class T>
static __device__ __forceinline__ void sort_rank(SortRows<T> &rows, unsigned short *counts, unsigned lane) {
        const unsigned lanes_below = (1u << lane) - 1;

        for (unsigned digit = lane; digit < SORT_DIGITS; digit += SORT_WARP)
                counts[digit] = 0;
        __syncwarp();
#pragma unroll
        for (unsigned row = 0; row < TILE_ITEMS; ++row) {
                unsigned digit = rows.ranks[row], peers = sort_peers(digit);
                unsigned count = counts[digit], n_before = __popc(peers & lanes_below);

                rows.ranks[row] = digit | (count + n_before) << SORT_DIGIT_BITS;
                __syncwarp();
                if (n_before == 0)
                        counts[digit] = (unsigned short)(count + __popc(peers));
                __syncwarp();
        }
}

/* What this thread's number and those below it add up to in its warp. */
static __device__ __forceinline__ unsigned sort_warp_sum(unsigned number, unsigned lane) {
#pragma unroll
        for (unsigned step = 1; step < SORT_WARP; step *= 2) {
                unsigned below = __shfl_up_sync(SORT_ALL, number, step);

                if (lane >= step)
                        number += below;
        }
        return number;
}

/* Of the digit that is this thread's number: how many keys have it. Counts become places. */
template <class T>
static __device__ __forceinline__ unsigned sort_count_digit(SortWarps<T> &tile, unsigned digit,
                                                            unsigned *ret_first) {
        unsigned warp = digit / SORT_WARP, lane = digit % SORT_WARP, n = 0, sum;

#pragma unroll
        for (unsigned i = 0; i < SORT_WARPS; ++i) {
                unsigned count = tile.counts[i][digit];

                tile.counts[i][digit] = (unsigned short)n;
                n += count;
        }
        sum = sort_warp_sum(n, lane);
        if (lane == SORT_WARP - 1)
                tile.sums[warp] = sum;
        __syncthreads();
        for (unsigned i = 0; i < warp; ++i)
                sum += tile.sums[i];
#pragma unroll
        for (unsigned i = 0; i < SORT_WARPS; ++i)
                tile.counts[i][digit] = (unsigned short)(tile.counts[i][digit] + sum - n);
        *ret_first = sum - n;
        return n;
}

/* What is behind the last key has the largest digit, and so comes last. */
template <class T>
static __device__ __forceinline__ void sort_load(SortRows<T> &rows, const SortMove<T> &move, u64 begin,
                                                 unsigned share, unsigned n) {
        if (n == TILE) {
#pragma unroll
                for (unsigned row = 0; row < TILE_ITEMS; ++row)
                        rows.keys[row] = move.keys[begin + share + row * SORT_WARP];
        } else {
#pragma unroll
                for (unsigned row = 0; row < TILE_ITEMS; ++row)
                        rows.keys[row] = share + row * SORT_WARP < n
                                                 ? move.keys[begin + share + row * SORT_WARP]
                                                 : 0;
        }
#pragma unroll
        for (unsigned row = 0; row < TILE_ITEMS; ++row)
                rows.ranks[row] = share + row * SORT_WARP < n ? move.digits.of(rows.keys[row])
                                                              : SORT_DIGITS - 1;
}

/* Takes a tile of @n keys to where they go. @offsets: of each digit, where its next key goes. */
template <class T>
static __device__ __forceinline__ void sort_tile_by_warps(SortWarps<T> &tile, const SortMove<T> &move,
                                                          u64 begin, unsigned n, u64 *offsets) {
        unsigned thread = (unsigned)thread_number(), warp = thread / SORT_WARP, lane = thread % SORT_WARP;
        unsigned share = warp * SORT_WARP * TILE_ITEMS + lane, first, count;
        unsigned places[TILE_ITEMS];
        SortRows<T> rows;

        sort_load(rows, move, begin, share, n);
        sort_rank(rows, tile.counts[warp], lane);
        __syncthreads();
        count = sort_count_digit(tile, thread, &first);
        offsets[thread] -= first; /* now a place in the tile is added */
        __syncthreads();
#pragma unroll
        for (unsigned row = 0; row < TILE_ITEMS; ++row) {
                unsigned digit = rows.ranks[row] & (SORT_DIGITS - 1);

                places[row] = tile.counts[warp][digit] + (rows.ranks[row] >> SORT_DIGIT_BITS);
                tile.keys[places[row]] = rows.keys[row];
        }
        if (move.words > 0) {
#pragma unroll
                for (unsigned row = 0; row < TILE_ITEMS; ++row)
                        tile.elements[places[row]] = (unsigned short)(share + row * SORT_WARP);
        }
        __syncthreads();
        for (unsigned i = thread; i < n; i += TILE_LANES)
                move.take(tile.keys[i], begin + tile.elements[i], offsets[move.digits.of(tile.keys[i])] + i);
        __syncthreads();
        offsets[thread] += first + count;
}
