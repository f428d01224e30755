/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_SYNC_H
#define GPUQ_CPU_KERNEL_SYNC_H

/*
 * Barriers of a block, shuffles and votes of a warp, fences, clocks.
 */

static inline void __syncthreads() {
        gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_BLOCK, 0);
}

static inline int __syncthreads_count(int predicate) {
        return (int)gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_BLOCK, predicate != 0);
}

static inline int __syncthreads_and(int predicate) {
        return gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_BLOCK, predicate == 0) == 0;
}

static inline int __syncthreads_or(int predicate) {
        return gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_BLOCK, predicate != 0) != 0;
}

static inline uint64_t gpuq_cpu_warp(GpuqCpuWarp operation, unsigned int mask, uint64_t value,
                                     unsigned int source = 0) {
        return gpuq_cpu_image.runtime->warp(operation, mask, value, source);
}

static inline void __syncwarp(unsigned int mask = 0xffffffff) {
        gpuq_cpu_warp(GPUQ_CPU_WARP_SYNC, mask, 0);
}

/* A lane asks for the value of any lane; the source is `lane` unless it lies out of its segment. */
template <class T>
static inline T gpuq_cpu_shuffle(unsigned int mask, T value, unsigned int source) {
        static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value,
                      "a shuffle takes a number of at most 8 bytes");
        uint64_t bits = 0;

        memcpy(&bits, &value, sizeof(T));
        bits = gpuq_cpu_warp(GPUQ_CPU_WARP_SHUFFLE, mask, bits, source);
        memcpy(&value, &bits, sizeof(T));
        return value;
}

template <class T>
static inline T __shfl_sync(unsigned int mask, T value, int source, int width = 32) {
        unsigned int lane = gpuq_cpu_lane();

        return gpuq_cpu_shuffle(mask, value, (lane & ~(width - 1u)) | (source & (width - 1u)));
}

template <class T>
static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
        unsigned int lane = gpuq_cpu_lane(), first = lane & ~(width - 1u);

        return gpuq_cpu_shuffle(mask, value, lane - first >= delta ? lane - delta : lane);
}

template <class T>
static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
        unsigned int lane = gpuq_cpu_lane(), first = lane & ~(width - 1u);

        return gpuq_cpu_shuffle(mask, value,
                                lane - first + (uint64_t)delta < (unsigned)width ? lane + delta
                                                                                 : lane);
}

template <class T>
static inline T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = 32) {
        unsigned int lane = gpuq_cpu_lane(), other = lane ^ (unsigned int)lane_mask;

        /* Lanes of a later segment cannot be reached, those of an earlier one can. */
        return gpuq_cpu_shuffle(mask, value, other < (lane & ~(width - 1u)) + width ? other : lane);
}

static inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_BALLOT, mask, predicate != 0);
}

static inline int __any_sync(unsigned int mask, int predicate) {
        return __ballot_sync(mask, predicate) != 0;
}

static inline int __all_sync(unsigned int mask, int predicate) {
        return __ballot_sync(mask, !predicate) == 0;
}

static inline int __uni_sync(unsigned int mask, int predicate) {
        unsigned int yes = __ballot_sync(mask, predicate), no = __ballot_sync(mask, !predicate);

        return yes == 0 || no == 0;
}

template <class T> static inline unsigned int __match_any_sync(unsigned int mask, T value) {
        uint64_t bits = 0;

        static_assert(sizeof(T) <= 8, "a match takes a number of at most 8 bytes");
        memcpy(&bits, &value, sizeof(T));
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_MATCH, mask, bits);
}

template <class T>
static inline unsigned int __match_all_sync(unsigned int mask, T value, int *predicate) {
        unsigned int same = __match_any_sync(mask, value);
        unsigned int all = __ballot_sync(mask, 1);

        *predicate = same == all;
        return same == all ? all : 0;
}

static inline unsigned int __reduce_add_sync(unsigned int mask, unsigned int value) {
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_ADD, mask, value);
}
static inline int __reduce_add_sync(unsigned int mask, int value) {
        return (int)gpuq_cpu_warp(GPUQ_CPU_WARP_ADD, mask, (unsigned int)value);
}
static inline unsigned int __reduce_min_sync(unsigned int mask, unsigned int value) {
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_MIN, mask, value);
}
static inline int __reduce_min_sync(unsigned int mask, int value) {
        return (int)gpuq_cpu_warp(GPUQ_CPU_WARP_MIN_SIGNED, mask, (unsigned int)value);
}
static inline unsigned int __reduce_max_sync(unsigned int mask, unsigned int value) {
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_MAX, mask, value);
}
static inline int __reduce_max_sync(unsigned int mask, int value) {
        return (int)gpuq_cpu_warp(GPUQ_CPU_WARP_MAX_SIGNED, mask, (unsigned int)value);
}
static inline unsigned int __reduce_and_sync(unsigned int mask, unsigned int value) {
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_AND, mask, value);
}
static inline unsigned int __reduce_or_sync(unsigned int mask, unsigned int value) {
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_OR, mask, value);
}
static inline unsigned int __reduce_xor_sync(unsigned int mask, unsigned int value) {
        return (unsigned int)gpuq_cpu_warp(GPUQ_CPU_WARP_XOR, mask, value);
}

/* Never inlined: the place that it returns to tells calls from each other. */
static __attribute__((noinline)) unsigned int gpuq_cpu_active() {
        return gpuq_cpu_image.runtime->active(__builtin_return_address(0));
}
static inline __attribute__((always_inline)) unsigned int __activemask() {
        return gpuq_cpu_active();
}

static inline void __threadfence() {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block() {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system() {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void __nanosleep(unsigned int) {
        gpuq_cpu_image.runtime->relax(1);
}

/* Nanoseconds: a GPU at 1 GHz. */
static inline long long clock64() {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000000ll + now.tv_nsec;
}
#define clock() ((clock_t)clock64())

static inline void __trap() {
        gpuq_cpu_image.runtime->trap();
}
static inline void __brkpt() {
}

#endif
