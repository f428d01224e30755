/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the built-in kernels share
 *
 * Kernels are right for every grid and block: they ask for their thread's number
 * and how many there are, in one dimension whatever the geometry, and stride.
 */
#pragma once

typedef unsigned long long u64;

static __device__ inline u64 thread_number() {
        return threadIdx.x + (u64)blockDim.x * (threadIdx.y + (u64)blockDim.y * threadIdx.z);
}

static __device__ inline u64 thread_count() {
        return (u64)blockDim.x * blockDim.y * blockDim.z;
}

static __device__ inline u64 block_number() {
        return blockIdx.x + (u64)gridDim.x * (blockIdx.y + (u64)gridDim.y * blockIdx.z);
}

static __device__ inline u64 block_count() {
        return (u64)gridDim.x * gridDim.y * gridDim.z;
}

/* for (EACH(i, n)): every i < n is seen by one thread of the grid. */
#define EACH(i, n)                                                                                 \
        u64 i = block_number() * thread_count() + thread_number();                                 \
        i < (n);                                                                                   \
        i += block_count() * thread_count()
