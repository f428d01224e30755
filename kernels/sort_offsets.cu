/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel sort_offsets
 * @types  u64
 * @text   in each row of counts, a count becomes the sum of those before it, and the last column the sum of all
 * @args   inout:counts:u64:256,columns u64:columns
 * @launch any grid, any block; 256 blocks of 256 threads are fastest
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
