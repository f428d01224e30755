/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel scan
 * @types  u32 u64 f32 f64
 * @text   y[i] = sum of x[j] for j <= i, or for j < i if e is not 0; f32 accumulated in f64; y may be x
 * @args   in:x:real:n in:s:u64:p out:y:real:n u64:n u64:p u64:e
 * @launch any grid and block, with s and p of scan_parts; or grid 1, with p = 0 and any s
 */
#include "lanes.cuh"

template <class T, class Sum> struct ScanMemory {
        LaneSums<Sum> joined;
        T items[TILE + TILE / TILE_ITEMS];
};

/* Lanes that work on neighbours do not meet in a bank of shared memory. */
static __device__ __forceinline__ unsigned scan_place(unsigned i) {
        return i + i / TILE_ITEMS;
}

/* The sum of the parts before this one. */
template <class Sum>
static __device__ __forceinline__ Sum scan_parts_before(const Sum *sums, u64 part,
                                                        LaneSums<Sum> &joined) {
        Sum total;

        for (EACH_IN_BLOCK(lane, TILE_LANES)) {
                Sum sum = 0;

                for (u64 i = lane; i < part; i += TILE_LANES)
                        sum += sums[i];
                joined.lanes[lane] = sum;
        }
        lanes_join(joined);
        total = lanes_before(joined, TILE_LANES, (Sum)0);
        __syncthreads();
        return total;
}

/* From what each lane has before it, the sums of its items. */
template <unsigned THREADS, class T, class Sum>
static __device__ __forceinline__ void scan_lanes(ScanMemory<T, Sum> &memory, Sum before,
                                                  bool exclusive) {
        for (EACH_IN_BLOCK_OF(THREADS, lane, TILE_LANES)) {
                Sum sum = lanes_before(memory.joined, lane, before);

#pragma unroll
                for (unsigned i = 0; i < TILE_ITEMS; ++i) {
                        T *item = &memory.items[scan_place(lane * TILE_ITEMS) + i];
                        Sum next = sum + *item;

                        *item = (T)(exclusive ? sum : next);
                        sum = next;
                }
        }
}

/* A whole tile, of a block of so many threads. */
template <unsigned THREADS, class T>
static __device__ __forceinline__ void scan_load_tile(const T *x, T *items) {
        unsigned thread = (unsigned)thread_number();
        T taken[TILE / THREADS];

#pragma unroll
        for (unsigned k = 0; k < TILE / THREADS; ++k)
                taken[k] = x[thread + k * THREADS];
#pragma unroll
        for (unsigned k = 0; k < TILE / THREADS; ++k)
                items[scan_place(thread + k * THREADS)] = taken[k];
}

/* Behind the end are zeros. */
template <unsigned THREADS, class T>
static __device__ __forceinline__ void scan_load(const T *x, unsigned n, T *items) {
        if constexpr (THREADS > 0)
                if (n == TILE) {
                        scan_load_tile<THREADS>(x, items);
                        return;
                }
#pragma unroll 4
        for (EACH_IN_BLOCK(i, TILE))
                items[scan_place(i)] = i < n ? x[i] : (T)0;
}

/* At most a tile. Return: the sum of all before and in it. */
template <unsigned THREADS, class T, class Sum>
static __device__ __forceinline__ Sum scan_tile(const T *x, T *y, unsigned n, Sum before,
                                                bool exclusive, ScanMemory<T, Sum> &memory) {
        Sum after;

        scan_load<THREADS>(x, n, memory.items);
        __syncthreads();
        for (EACH_IN_BLOCK_OF(THREADS, lane, TILE_LANES)) {
                Sum sum = 0;

#pragma unroll
                for (unsigned i = 0; i < TILE_ITEMS; ++i)
                        sum += memory.items[scan_place(lane * TILE_ITEMS) + i];
                memory.joined.lanes[lane] = sum;
        }
        lanes_join(memory.joined);
        scan_lanes<THREADS>(memory, before, exclusive);
        after = lanes_before(memory.joined, TILE_LANES, before);
        __syncthreads();
#pragma unroll 4
        for (EACH_IN_BLOCK_OF(THREADS, i, n))
                y[i] = memory.items[scan_place(i)];
        __syncthreads();
        return after;
}

template <unsigned THREADS, class T, class Sum>
static __device__ __forceinline__ void scan_in_blocks_of(const T *x, const Sum *sums, T *y, u64 n,
                                                         u64 parts, bool exclusive,
                                                         ScanMemory<T, Sum> &memory) {
        u64 length = tile_part_length(n, parts), blocks = parts ? block_count() : 1;

        if (block_number() >= blocks)
                return;
        for (u64 part = block_number(); part * length < n; part += blocks) {
                u64 begin = part * length, end = n - begin < length ? n : begin + length;
                Sum sum = parts ? scan_parts_before(sums, part, memory.joined) : (Sum)0;

                for (u64 i = begin; i < end; i += TILE)
                        sum = scan_tile<THREADS>(x + i, y + i,
                                                 (unsigned)(end - i < TILE ? end - i : TILE), sum,
                                                 exclusive, memory);
        }
}

template <class T, class Sum>
static __device__ __forceinline__ void scan(const T *x, const Sum *sums, T *y, u64 n, u64 parts,
                                            bool exclusive) {
        __shared__ ScanMemory<T, Sum> memory;

        if (thread_count() == TILE_LANES)
                scan_in_blocks_of<TILE_LANES>(x, sums, y, n, parts, exclusive, memory);
        else
                scan_in_blocks_of<0>(x, sums, y, n, parts, exclusive, memory);
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_u32(const unsigned *x, const u64 *sums, unsigned *y, u64 n, u64 parts, u64 exclusive) {
        scan<unsigned, u64>(x, sums, y, n, parts, exclusive != 0);
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_u64(const u64 *x, const u64 *sums, u64 *y, u64 n, u64 parts, u64 exclusive) {
        scan<u64, u64>(x, sums, y, n, parts, exclusive != 0);
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_f32(const float *x, const double *sums, float *y, u64 n, u64 parts, u64 exclusive) {
        scan<float, double>(x, sums, y, n, parts, exclusive != 0);
}

extern "C" __global__ void __launch_bounds__(1024)
        scan_f64(const double *x, const double *sums, double *y, u64 n, u64 parts, u64 exclusive) {
        scan<double, double>(x, sums, y, n, parts, exclusive != 0);
}
