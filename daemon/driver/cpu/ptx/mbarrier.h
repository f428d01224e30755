/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_MBARRIER_H
#define GPUQ_CPU_PTX_MBARRIER_H

/*
 * mbarrier: a barrier in shared memory
 *
 * Its 64 bits, which the ISA leaves open: arrivals that the current phase still expects (20 bits),
 * those that each phase expects (20), bytes that copies still have to bring (21), and the number of
 * the phase. What an arrival returns is the barrier before it. Copies are done at once, maybe before
 * their bytes are expected: the number of bytes is negative until then.
 */

#define PTX_MBARRIER_MAX   0xfffffull
#define PTX_MBARRIER_BYTE  (1ull << 40)
#define PTX_MBARRIER_PHASE (1ull << 61)

PTX_INLINE void ptx_mbarrier_init(uint64_t at, uint32_t count) {
        uint64_t n = count & PTX_MBARRIER_MAX;

        __atomic_store_n((uint64_t *)at, n << 20 | n, __ATOMIC_RELEASE);
}

PTX_INLINE void ptx_mbarrier_inval(uint64_t at) {
        __atomic_store_n((uint64_t *)at, 0, __ATOMIC_RELEASE);
}

/* A phase is over when nothing is left of it; the next one expects as many arrivals. */
PTX_INLINE uint64_t ptx_mbarrier_next(uint64_t now) {
        uint64_t n_each = now >> 20 & PTX_MBARRIER_MAX;

        if (now & PTX_MBARRIER_MAX || now % PTX_MBARRIER_PHASE / PTX_MBARRIER_BYTE)
                return now;
        return now + PTX_MBARRIER_PHASE + n_each;
}

/* @drops: later phases expect as many less. */
PTX_CALL uint64_t ptx_mbarrier_arrive(uint64_t at, uint32_t count, uint32_t drops) {
        uint64_t old = __atomic_load_n((uint64_t *)at, __ATOMIC_RELAXED), new;

        do {
                uint64_t n_each = ((old >> 20) - (drops ? count : 0)) & PTX_MBARRIER_MAX;
                uint64_t n_left = (old - count) & PTX_MBARRIER_MAX;

                new = ptx_mbarrier_next((old & -PTX_MBARRIER_BYTE) | n_each << 20 | n_left);
        } while (!__atomic_compare_exchange_n((uint64_t *)at, &old, new, 1, __ATOMIC_ACQ_REL,
                                              __ATOMIC_RELAXED));
        return old;
}

/* @n_bytes: more are expected; fewer, if it is negative. */
PTX_CALL void ptx_mbarrier_expect(uint64_t at, int64_t n_bytes) {
        uint64_t old = __atomic_load_n((uint64_t *)at, __ATOMIC_RELAXED), new;

        do {
                uint64_t bytes = old + (uint64_t)n_bytes * PTX_MBARRIER_BYTE;

                new = ptx_mbarrier_next((old & -PTX_MBARRIER_PHASE) |
                                        (bytes & (PTX_MBARRIER_PHASE - 1)));
        } while (!__atomic_compare_exchange_n((uint64_t *)at, &old, new, 1, __ATOMIC_ACQ_REL,
                                              __ATOMIC_RELAXED));
}

/* Whether the phase is over in which somebody got this state; who polls lets others run. */
PTX_INLINE uint8_t ptx_mbarrier_test(uint64_t at, uint64_t state) {
        uint64_t now = __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE);

        if ((now ^ state) < PTX_MBARRIER_PHASE)
                ptx_relax();
        return (now ^ state) >= PTX_MBARRIER_PHASE;
}

/* Whether the phase with this parity is over. */
PTX_INLINE uint8_t ptx_mbarrier_test_parity(uint64_t at, uint32_t parity) {
        uint64_t now = __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE);

        if ((now / PTX_MBARRIER_PHASE & 1) == (parity & 1))
                ptx_relax();
        return (now / PTX_MBARRIER_PHASE & 1) != (parity & 1);
}

PTX_INLINE uint32_t ptx_mbarrier_pending(uint64_t state) {
        return (uint32_t)(state & PTX_MBARRIER_MAX);
}

#endif
