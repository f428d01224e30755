/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_PLACE_H
#define GPUQ_CPU_KERNEL_PLACE_H

/*
 * Where a thread stands: threadIdx and its like, and the image's own symbol.
 */

extern "C" __attribute__((visibility("default"))) GpuqCpuImage gpuq_cpu_image;

static thread_local GpuqCpuPlace gpuq_cpu_place_here;

/*
 * A function without arguments whose result never changes. The compiler calls it once instead of
 * looking up a thread-local variable at every use. A kernel never changes its host thread.
 */
static __attribute__((const, noinline)) GpuqCpuPlace *gpuq_cpu_place_get() {
        return &gpuq_cpu_place_here;
}
#define gpuq_cpu_place (*gpuq_cpu_place_get())

#define threadIdx (gpuq_cpu_place.thread)
#define blockIdx  (gpuq_cpu_place.block)
#define blockDim  (gpuq_cpu_place.block_dim)
#define gridDim   (gpuq_cpu_place.grid_dim)

static constexpr int warpSize = 32;

static inline unsigned int gpuq_cpu_lane() {
        return gpuq_cpu_place.linear % 32;
}

/* `T[]` and `T[][32]` as what they are passed as: `T *` and `T (*)[32]`. */
template <class Array> using gpuq_cpu_dynamic = std::decay_t<Array>;

#endif
