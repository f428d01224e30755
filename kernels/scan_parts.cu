/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel scan_parts
 * @types  u32 u64 f32 f64
 * @text   s[i] = sum of part i of x, if n numbers are cut into p parts: the first step of scan
 * @args   in:x:real:n out:s:u64:p u64:n u64:p
 * @launch any grid and block; fastest a block of 256 for each part
 */
#include "lanes.cuh"

/* What a lane has of a part of @n numbers. */
template <class T, class Sum>
static __device__ __forceinline__ Sum scan_sum_lane(const T *x, u64 lane, u64 n, Sum sum) {
        u64 i = lane;

        for (; i + TILE - TILE_LANES < n; i += TILE) {
                T taken[TILE_ITEMS];

#pragma unroll
                for (unsigned k = 0; k < TILE_ITEMS; ++k)
                        taken[k] = x[i + k * TILE_LANES];
#pragma unroll
                for (unsigned k = 0; k < TILE_ITEMS; ++k)
                        sum += taken[k];
        }
#pragma unroll 1
        for (; i < n; i += TILE_LANES)
                sum += x[i];
        return sum;
}

template <class T, class Sum>
static __device__ __forceinline__ void scan_parts(const T *x, Sum *sums, u64 n, u64 parts) {
        __shared__ LaneSums<Sum> joined;
        u64 length = tile_part_length(n, parts);

        for (u64 part = block_number(); part < parts; part += block_count()) {
                u64 begin = part * length < n ? part * length : n; /* the last parts may be empty */
                u64 end = n - begin < length ? n : begin + length;

                for (EACH_IN_BLOCK(lane, TILE_LANES))
                        joined.lanes[lane] = scan_sum_lane(x + begin, lane, end - begin, (Sum)0);
                lanes_join(joined);
                if (thread_number() == 0)
                        sums[part] = lanes_before(joined, TILE_LANES, (Sum)0);
                __syncthreads();
        }
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_parts_u32(const unsigned *x, u64 *sums, u64 n, u64 parts) {
        scan_parts<unsigned, u64>(x, sums, n, parts);
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_parts_u64(const u64 *x, u64 *sums, u64 n, u64 parts) {
        scan_parts<u64, u64>(x, sums, n, parts);
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_parts_f32(const float *x, double *sums, u64 n, u64 parts) {
        scan_parts<float, double>(x, sums, n, parts);
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_parts_f64(const double *x, double *sums, u64 n, u64 parts) {
        scan_parts<double, double>(x, sums, n, parts);
}
