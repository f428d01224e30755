/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_THREAD_H
#define GPUQ_CPU_PTX_THREAD_H

/*
 * Where a thread stands, and the image's own symbol.
 *
 * Addresses of shared memory are offsets in the block's window: first the static variables of the
 * module, then its dynamic shared memory.
 */

/* Shared memory of the system, behind that of the launch. Each block finds zeros there. */
#ifdef PTX_RESERVES
#define PTX_RESERVED_BYTES 1024
#else
#define PTX_RESERVED_BYTES 0
#endif

#define PTX_INLINE static inline __attribute__((always_inline, unused))
#define PTX_CALL   static __attribute__((noinline, unused))

extern GpuqCpuImage gpuq_cpu_image;

static __thread GpuqCpuPlace ptx_place_here;

static __attribute__((noinline)) GpuqCpuPlace *ptx_place(void) {
        return &ptx_place_here;
}

/* The arguments of the kernel. */
typedef struct PtxParams {
        void *const *values;
        const uint32_t *sizes; /* 0 behind the last one */
} PtxParams;

typedef struct PtxThread {
        const GpuqCpuPlace *place;
        unsigned char *window;
        const PtxParams *params;
        GpuqCpuIndex tid;
        uint32_t linear;
} PtxThread;

PTX_INLINE void ptx_place_next(GpuqCpuPlace *place) {
        place->thread = place->next;
        place->linear = place->n_next++;
        if (++place->next.x < place->block_dim.x)
                return;
        place->next.x = 0;
        if (++place->next.y < place->block_dim.y)
                return;
        place->next.y = 0;
        place->next.z++;
}

/* Runs the threads of a block that were not started yet. The window's address is hidden from the
 * compiler, which may not assume anything about memory that other threads change. */
#define PTX_THREADS(params, call)                                                                  \
        GpuqCpuPlace *place = ptx_place();                                                         \
        if (PTX_RESERVED_BYTES && place->n_next == 0)                                              \
                memset(PTX_WINDOW + PTX_RESERVED_AT, 0, PTX_RESERVED_BYTES);                       \
        while (place->n_next < place->n_threads) {                                                 \
                PtxThread thread;                                                                  \
                ptx_place_next(place);                                                             \
                thread = (PtxThread){place, PTX_WINDOW, &params, place->thread, place->linear};    \
                __asm__("" : "+r"(thread.window));                                                 \
                (void)call;                                                                        \
                if (__builtin_expect(place->waited, 0))                                            \
                        gpuq_cpu_image.runtime->end();                                             \
        }

PTX_INLINE uint32_t ptx_n_threads(const PtxThread *t) {
        return t->place->block_dim.x * t->place->block_dim.y * t->place->block_dim.z;
}

PTX_INLINE GpuqCpuIndex ptx_cluster_ctaid(const PtxThread *t) {
        GpuqCpuIndex dim = t->place->cluster_dim, at = t->place->block;

        return (GpuqCpuIndex){at.x % dim.x, at.y % dim.y, at.z % dim.z};
}

PTX_INLINE uint32_t ptx_cluster_rank(const PtxThread *t) {
        GpuqCpuIndex dim = t->place->cluster_dim, at = ptx_cluster_ctaid(t);

        return (at.z * dim.y + at.y) * dim.x + at.x;
}

PTX_INLINE uint32_t ptx_cluster_n(const PtxThread *t) {
        GpuqCpuIndex dim = t->place->cluster_dim;

        return dim.x * dim.y * dim.z;
}

/*
 * An address of .shared::cluster: bits 24 and up are one more than the rank of the block, or 0 for
 * the thread's own; the others are the offset in the block's window.
 */
PTX_INLINE uint64_t ptx_cluster_at(const PtxThread *t, uint64_t at) {
        uint64_t own = (uint64_t)t->window + (at & 0xffffff);

        if (at >> 24 == 0)
                return own;
        return (uint64_t)gpuq_cpu_image.runtime->shared_of((void *)own, (uint32_t)(at >> 24) - 1);
}

/* The rank of the block whose window has this address, or the number of the cluster's blocks. */
#define PTX_RANK_OF(at)                                                                            \
        ({                                                                                         \
                uint64_t rank_of = (at);                                                           \
                uint32_t rank = 0;                                                                 \
                                                                                                   \
                while (rank < ptx_cluster_n(t) &&                                                  \
                       rank_of - ptx_cluster_at(t, (uint64_t)(rank + 1) << 24) >=                  \
                               PTX_WINDOW_BYTES)                                                   \
                        rank++;                                                                    \
                rank;                                                                              \
        })

/* As an address of .shared::cluster. */
#define PTX_TO_CLUSTER(at)                                                                         \
        ({                                                                                         \
                uint64_t to = (at);                                                                \
                uint64_t first = (uint64_t)(PTX_RANK_OF(to) + 1) << 24;                            \
                                                                                                   \
                first + to - ptx_cluster_at(t, first);                                             \
        })

/* Nanoseconds: a GPU at 1 GHz. */
PTX_CALL uint64_t ptx_clock(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether an address is in an argument of the kernel. */
PTX_CALL int ptx_is_param(const PtxThread *t, uint64_t at) {
        for (uint32_t i = 0; t->params->sizes[i]; i++)
                if (at - (uint64_t)t->params->values[i] < t->params->sizes[i])
                        return 1;
        return 0;
}

/*
 * An address of which only the lower half is known, and that is less than 2 GiB away from here. The
 * compiler must not see how it is computed: it would take it for an address of what is here, and
 * keep older values of what is there.
 */
PTX_INLINE uint64_t ptx_near(uint64_t low, uint64_t here) {
        __asm__("" : "+r"(low), "+r"(here));
        return here + (uint64_t)(int64_t)(int32_t)((uint32_t)low - (uint32_t)here);
}

/* The address of a local variable, which will be known by its lower half only: see ptx_near(). */
PTX_INLINE uint64_t ptx_told(uint64_t address) {
        __asm__("" : "+r"(address));
        return address;
}

#endif
