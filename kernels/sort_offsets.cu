/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sort_offsets
 * @types  u64
 * @text   in each row of c, a count becomes the sum of those before it, and the last number the sum of all
 * @args   inout:c:u64:256,m u64:m
 * @launch any grid and block; fastest 256 blocks of 256
 */
#include "sort.cuh"

extern "C" __global__ void __launch_bounds__(1024) sort_offsets_u64(u64 *counts, u64 columns) {
        __shared__ LaneSums<u64> joined;
        u64 parts = columns - 1, share = parts / TILE_LANES + (parts % TILE_LANES > 0);

        for (u64 digit = block_number(); digit < SORT_DIGITS && columns > 0; digit += block_count()) {
                u64 *row = counts + digit * columns;

                for (EACH_IN_BLOCK(lane, TILE_LANES)) {
                        u64 sum = 0;

                        for (u64 i = lane * share; i < (lane + 1) * share && i < parts; ++i)
                                sum += row[i];
                        joined.lanes[lane] = sum;
                }
                lanes_join(joined);
                for (EACH_IN_BLOCK(lane, TILE_LANES)) {
                        u64 sum = lanes_before(joined, lane, (u64)0);

                        for (u64 i = lane * share; i < (lane + 1) * share && i < parts; ++i) {
                                u64 count = row[i];

                                row[i] = sum;
                                sum += count;
                        }
                }
                if (thread_number() == 0)
                        row[parts] = lanes_before(joined, TILE_LANES, (u64)0);
                __syncthreads();
        }
}
