/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_WARP_H
#define GPUQ_CPU_PTX_WARP_H

/*
 * Barriers, shuffles, votes and reductions.
 */

/*
 * Barrier 0 of all threads is that of __syncthreads(), also when their number is given. With bar.arrive
 * or fewer threads it is another barrier.
 */
PTX_INLINE uint32_t ptx_bar_popc(const PtxThread *t, uint32_t id, uint32_t n, uint8_t p) {
        if (id == 0 && (n == 0 || n == ptx_n_threads(t)))
                return gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_BLOCK, p);
        return gpuq_cpu_image.runtime->named(id, n, p, 1);
}
PTX_INLINE void ptx_bar_sync(const PtxThread *t, uint32_t id, uint32_t n) {
        (void)ptx_bar_popc(t, id, n, 0);
}
PTX_INLINE void ptx_bar_arrive(const PtxThread *t, uint32_t id, uint32_t n) {
        (void)t;
        (void)gpuq_cpu_image.runtime->named(id, n, 0, 0);
}
PTX_INLINE uint8_t ptx_bar_or(const PtxThread *t, uint32_t id, uint32_t n, uint8_t p) {
        return ptx_bar_popc(t, id, n, p) != 0;
}
PTX_INLINE uint8_t ptx_bar_and(const PtxThread *t, uint32_t id, uint32_t n, uint8_t p) {
        return ptx_bar_popc(t, id, n, !p) == 0;
}

PTX_INLINE uint64_t ptx_warp(GpuqCpuWarp operation, uint32_t mask, uint64_t value,
                             uint32_t source) {
        return gpuq_cpu_image.runtime->warp(operation, mask, value, source);
}

/* As the ISA defines it: the clamp is in bits 0 to 4 of c, the mask of segments in 8 to 12. */
#define PTX_SHUFFLE(mode, expression, in_range)                                                    \
        PTX_INLINE uint32_t ptx_shfl_##mode(const PtxThread *t, uint32_t mask, uint32_t a,         \
                                            uint32_t b_, uint32_t c, uint8_t *p) {                 \
                int lane = (int)(t->linear % 32), b = (int)(b_ & 31), clamp = (int)(c & 31),       \
                    segments = (int)(c >> 8 & 31);                                                 \
                int last = (lane & segments) | (clamp & ~segments), first = lane & segments;       \
                int j = expression;                                                                \
                                                                                                   \
                (void)first;                                                                       \
                *p = in_range;                                                                     \
                return (uint32_t)ptx_warp(GPUQ_CPU_WARP_SHUFFLE, mask, a,                          \
                                          (uint32_t)(*p ? j : lane));                              \
        }
PTX_SHUFFLE(up, lane - b, j >= last)
PTX_SHUFFLE(down, lane + b, j <= last)
PTX_SHUFFLE(bfly, lane ^ b, j <= last)
PTX_SHUFFLE(idx, first | (b & ~segments), j <= last)
#undef PTX_SHUFFLE

PTX_INLINE uint32_t ptx_vote_ballot(uint32_t mask, uint8_t p) {
        return (uint32_t)ptx_warp(GPUQ_CPU_WARP_BALLOT, mask, p, 0);
}
PTX_INLINE uint8_t ptx_vote_any(uint32_t mask, uint8_t p) {
        return ptx_vote_ballot(mask, p) != 0;
}
PTX_INLINE uint8_t ptx_vote_all(uint32_t mask, uint8_t p) {
        return ptx_vote_ballot(mask, !p) == 0;
}
PTX_INLINE uint8_t ptx_vote_uni(uint32_t mask, uint8_t p) {
        uint32_t yes = ptx_vote_ballot(mask, p), no = ptx_vote_ballot(mask, !p);

        return yes == 0 || no == 0;
}
PTX_INLINE uint32_t ptx_match_any(uint32_t mask, uint64_t a) {
        return (uint32_t)ptx_warp(GPUQ_CPU_WARP_MATCH, mask, a, 0);
}
PTX_INLINE uint32_t ptx_match_all(uint32_t mask, uint64_t a, uint8_t *p) {
        uint32_t same = ptx_match_any(mask, a), all = ptx_vote_ballot(mask, 1);

        *p = same == all;
        return *p ? all : 0;
}

PTX_INLINE uint32_t ptx_elect(const PtxThread *t, uint32_t mask, uint8_t *p) {
        uint32_t all = ptx_vote_ballot(mask, 1);
        uint32_t leader = all ? (uint32_t)__builtin_ctz(all) : 0;

        *p = t->linear % 32 == leader;
        return leader;
}

/* The bit of the mask that is the n-th from base on: up, or down for a negative n. */
PTX_INLINE uint32_t ptx_fns(uint32_t mask, uint32_t base, int32_t n) {
        int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;

        if (base > 31)
                return UINT32_MAX;
        if (n == 0)
                return mask >> base & 1 ? base : UINT32_MAX;
        for (int i = (int)base; i >= 0 && i < 32; i += step)
                if (mask >> i & 1 && --left == 0)
                        return (uint32_t)i;
        return UINT32_MAX;
}

#define PTX_REDUX(name, OPERATION)                                                                 \
        PTX_INLINE uint32_t ptx_redux_##name(uint32_t mask, uint32_t a) {                          \
                return (uint32_t)ptx_warp(GPUQ_CPU_WARP_##OPERATION, mask, a, 0);                  \
        }
PTX_REDUX(add_u32, ADD)
PTX_REDUX(add_s32, ADD)
PTX_REDUX(min_u32, MIN)
PTX_REDUX(max_u32, MAX)
PTX_REDUX(min_s32, MIN_SIGNED)
PTX_REDUX(max_s32, MAX_SIGNED)
PTX_REDUX(and_b32, AND)
PTX_REDUX(or_b32, OR)
PTX_REDUX(xor_b32, XOR)
#undef PTX_REDUX

/* Each place in the code has its own site, which tells threads at different places apart. */
#define PTX_ACTIVE()                                                                               \
        ({                                                                                         \
                static const char site;                                                            \
                gpuq_cpu_image.runtime->active(&site);                                             \
        })

#endif
