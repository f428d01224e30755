/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scan and sort share: parts, tiles and lanes
 *
 * n cuts an array into parts, each a multiple of TILE elements but the last. A block works on a part, tile by tile,
 * with TILE_LANES lanes of TILE_ITEMS neighbours each. Whichever thread does a lane's work, its result is the same, so
 * the geometry does not change a bit. client/lib/jobs/parts.h chooses the number of parts.
 */
#pragma once
#include "common.cuh"

#define TILE_LANES  256u
#define TILE_ITEMS  16u
#define TILE        (TILE_LANES * TILE_ITEMS)
#define TILE_GROUPS 16u /* of neighbouring lanes */
#define TILE_GROUP  (TILE_LANES / TILE_GROUPS)

/* for (EACH_IN_BLOCK(i, n)): every i < n is seen by one thread of the block. */
#define EACH_IN_BLOCK(i, n) EACH_IN_BLOCK_OF(0u, i, n)
/* The same, faster, if the block's number of threads is known to the compiler. 0: it is not. */
#define EACH_IN_BLOCK_OF(threads, i, n)                                                            \
        unsigned i = (unsigned)thread_number();                                                    \
        i < (n);                                                                                   \
        i += (threads) ? (threads) : (unsigned)thread_count()

/* At least a tile. No parts count as one. */
static __device__ inline u64 tile_part_length(u64 n, u64 parts) {
        u64 most = parts == 0 ? n : n / parts + (n % parts > 0);

        return most == 0 ? TILE : (most / TILE + (most % TILE > 0)) * TILE;
}

/*
 * Kernels take whole tiles without conditions, all loads before the first use: the more bytes a thread has asked for, the
 * less it waits for memory. clang makes a branch of each load that has a condition, behind which the next one waits.
 */

/* What the lanes of a block sum up together. */
template <class Sum> struct LaneSums {
        Sum lanes[TILE_LANES];
        Sum groups[TILE_GROUPS];
};

/* All threads call it after they set all lanes. */
template <class Sum> static __device__ __forceinline__ void lanes_join(LaneSums<Sum> &sums) {
        __syncthreads();
        for (EACH_IN_BLOCK(group, TILE_GROUPS)) {
                Sum sum = 0;

#pragma unroll
                for (unsigned i = 0; i < TILE_GROUP; ++i)
                        sum += sums.lanes[group * TILE_GROUP + i];
                sums.groups[group] = sum;
        }
        __syncthreads();
}

/* @sum, and all lanes before this one, in a fixed order. For lane TILE_LANES: all. */
template <class Sum>
static __device__ __forceinline__ Sum lanes_before(const LaneSums<Sum> &sums, unsigned lane,
                                                   Sum sum) {
        for (unsigned i = 0; i < lane / TILE_GROUP; ++i)
                sum += sums.groups[i];
        for (unsigned i = lane / TILE_GROUP * TILE_GROUP; i < lane; ++i)
                sum += sums.lanes[i];
        return sum;
}
