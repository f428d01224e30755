/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cooperative groups where the CUDA Toolkit's header is missing: the grid, the cluster, the block,
 * tiles of a warp and coalesced threads, with their common functions, scans, reductions and copies. Tiles
 * of several warps are missing. Names of templates are none that a user defines as a macro.
 */
#pragma once

namespace cooperative_groups {

#define GPUQ_GROUPS static __device__ __forceinline__
#define GPUQ_MEMBER __device__ __forceinline__

GPUQ_GROUPS unsigned gpuq_volume(const dim3 &dim) {
        return dim.x * dim.y * dim.z;
}
GPUQ_GROUPS unsigned gpuq_rank(const dim3 &index, const dim3 &dim) {
        return (index.z * dim.y + index.y) * dim.x + index.x;
}
#define GPUQ_SPECIAL(name, special)                                                                \
        GPUQ_GROUPS unsigned name() {                                                              \
                unsigned value;                                                                    \
                asm volatile("mov.u32 %0, %%" special ";" : "=r"(value));                          \
                return value;                                                                      \
        }
GPUQ_SPECIAL(gpuq_words_high, "envreg1")
GPUQ_SPECIAL(gpuq_words_low, "envreg2")
GPUQ_SPECIAL(gpuq_cluster_blocks_x, "cluster_nctaid.x")
GPUQ_SPECIAL(gpuq_cluster_blocks_y, "cluster_nctaid.y")
GPUQ_SPECIAL(gpuq_cluster_blocks_z, "cluster_nctaid.z")
GPUQ_SPECIAL(gpuq_cluster_block_x, "cluster_ctaid.x")
GPUQ_SPECIAL(gpuq_cluster_block_y, "cluster_ctaid.y")
GPUQ_SPECIAL(gpuq_cluster_block_z, "cluster_ctaid.z")
#undef GPUQ_SPECIAL

/* Threads of any kind. Those of a warp are a mask of its lanes; 0 stands for the block, the cluster or the grid. */
class thread_group {
      protected:
        enum Kind { WARP, BLOCK, CLUSTER, GRID } kind;
        unsigned mask;

        GPUQ_MEMBER thread_group(Kind kind_, unsigned mask_) : kind(kind_), mask(mask_) {
        }
        GPUQ_GROUPS unsigned lane() {
                return gpuq_rank(threadIdx, blockDim) % 32;
        }
        /* The lane of the rank; 32 if there is none. */
        GPUQ_MEMBER unsigned lane_of(unsigned rank) const {
                unsigned rest = mask;

                while (rank--)
                        rest &= rest - 1;
                return rest ? (unsigned)__ffs((int)rest) - 1 : 32;
        }

      public:
        GPUQ_MEMBER void sync() const;
        GPUQ_MEMBER unsigned long long thread_rank() const;
        GPUQ_MEMBER unsigned long long num_threads() const;
        GPUQ_MEMBER unsigned long long size() const {
                return num_threads();
        }
        GPUQ_MEMBER bool is_valid() const;
};

class thread_block : public thread_group {
      public:
        struct arrival_token {};

        GPUQ_MEMBER thread_block() : thread_group(BLOCK, 0) {
        }
        GPUQ_GROUPS void sync() {
                __syncthreads();
        }
        /* Stricter than it must be: nobody goes on before all wait. */
        GPUQ_GROUPS arrival_token barrier_arrive() {
                return {};
        }
        GPUQ_GROUPS void barrier_wait(arrival_token &&) {
                __syncthreads();
        }
        GPUQ_GROUPS unsigned thread_rank() {
                return gpuq_rank(threadIdx, blockDim);
        }
        GPUQ_GROUPS unsigned num_threads() {
                return gpuq_volume(blockDim);
        }
        GPUQ_GROUPS unsigned size() {
                return num_threads();
        }
        GPUQ_GROUPS dim3 group_index() {
                return blockIdx;
        }
        GPUQ_GROUPS dim3 thread_index() {
                return threadIdx;
        }
        GPUQ_GROUPS dim3 group_dim() {
                return blockDim;
        }
        GPUQ_GROUPS dim3 dim_threads() {
                return blockDim;
        }
};

class grid_group : public thread_group {
        /* What the driver has prepared for a cooperative launch: the second word is zero at first. */
        GPUQ_GROUPS unsigned *words() {
                return (unsigned *)((unsigned long long)gpuq_words_high() << 32 | gpuq_words_low());
        }

      public:
        GPUQ_MEMBER grid_group() : thread_group(GRID, 0) {
        }
        GPUQ_GROUPS bool is_valid() {
                return words() != 0;
        }
        /* Each block adds 1, and the first one what flips the upper bit when all have added. */
        GPUQ_GROUPS void sync() {
                unsigned *word = words() + 1, old;

                if (!is_valid())
                        __trap();
                __syncthreads();
                if (thread_block::thread_rank() == 0) {
                        __threadfence();
                        old = atomicAdd(word, block_rank() == 0
                                                      ? 0x80000000u - (unsigned)(num_blocks() - 1)
                                                      : 1u);
                        while (!((old ^ *(volatile unsigned *)word) & 0x80000000u))
                                ;
                        __threadfence();
                }
                __syncthreads();
        }
        GPUQ_GROUPS unsigned long long block_rank() {
                return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
                       blockIdx.x;
        }
        GPUQ_GROUPS unsigned long long num_blocks() {
                return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
        }
        GPUQ_GROUPS unsigned long long thread_rank() {
                return block_rank() * gpuq_volume(blockDim) + thread_block::thread_rank();
        }
        GPUQ_GROUPS unsigned long long num_threads() {
                return num_blocks() * gpuq_volume(blockDim);
        }
        GPUQ_GROUPS unsigned long long size() {
                return num_threads();
        }
        GPUQ_GROUPS dim3 group_dim() {
                return gridDim;
        }
        GPUQ_GROUPS dim3 dim_blocks() {
                return gridDim;
        }
        GPUQ_GROUPS dim3 block_index() {
                return blockIdx;
        }
};

class cluster_group : public thread_group {
      public:
        struct arrival_token {};

        GPUQ_MEMBER cluster_group() : thread_group(CLUSTER, 0) {
        }
        GPUQ_GROUPS arrival_token barrier_arrive() {
                asm volatile("barrier.cluster.arrive;" ::: "memory");
                return {};
        }
        GPUQ_GROUPS void barrier_wait(arrival_token &&) {
                asm volatile("barrier.cluster.wait;" ::: "memory");
        }
        GPUQ_GROUPS void sync() {
                asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
        }
        GPUQ_GROUPS dim3 dim_blocks() {
                return dim3(gpuq_cluster_blocks_x(), gpuq_cluster_blocks_y(),
                            gpuq_cluster_blocks_z());
        }
        GPUQ_GROUPS unsigned num_blocks() {
                return gpuq_volume(dim_blocks());
        }
        GPUQ_GROUPS dim3 block_index() {
                return dim3(gpuq_cluster_block_x(), gpuq_cluster_block_y(), gpuq_cluster_block_z());
        }
        GPUQ_GROUPS unsigned block_rank() {
                return gpuq_rank(block_index(), dim_blocks());
        }
        GPUQ_GROUPS unsigned thread_rank() {
                return block_rank() * gpuq_volume(blockDim) + thread_block::thread_rank();
        }
        GPUQ_GROUPS unsigned num_threads() {
                return num_blocks() * gpuq_volume(blockDim);
        }
        GPUQ_GROUPS unsigned size() {
                return num_threads();
        }
        template <class GpuqT> GPUQ_GROUPS GpuqT *map_shared_rank(GpuqT *pointer, unsigned rank) {
                unsigned long long address;

                asm volatile("mapa.u64 %0, %1, %2;"
                             : "=l"(address)
                             : "l"((unsigned long long)pointer), "r"(rank));
                return (GpuqT *)address;
        }
};

/* A value of any size, in words. */
template <class GpuqT> GPUQ_GROUPS GpuqT gpuq_shuffle(unsigned mask, GpuqT value, unsigned lane) {
        unsigned words[(sizeof(GpuqT) + 3) / 4] = {};

        __builtin_memcpy(words, &value, sizeof(GpuqT));
        for (unsigned i = 0; i < sizeof(words) / 4; i++)
                words[i] = __shfl_sync(mask, words[i], (int)lane);
        __builtin_memcpy(&value, words, sizeof(GpuqT));
        return value;
}

/* Threads of one warp, selected by a mask; ranks count the lanes in it. */
class coalesced_group : public thread_group {
        unsigned meta_rank, meta_size;

      public:
        GPUQ_MEMBER explicit coalesced_group(unsigned mask_, unsigned meta_rank_ = 0, unsigned meta_size_ = 1)
            : thread_group(WARP, mask_), meta_rank(meta_rank_), meta_size(meta_size_) {
        }
        GPUQ_MEMBER unsigned gpuq_mask() const {
                return mask;
        }
        GPUQ_MEMBER void sync() const {
                __syncwarp(mask);
        }
        GPUQ_MEMBER unsigned thread_rank() const {
                return (unsigned)__popc(mask & ((1u << lane()) - 1));
        }
        GPUQ_MEMBER unsigned num_threads() const {
                return (unsigned)__popc(mask);
        }
        GPUQ_MEMBER unsigned size() const {
                return num_threads();
        }
        GPUQ_MEMBER unsigned meta_group_rank() const {
                return meta_rank;
        }
        GPUQ_MEMBER unsigned meta_group_size() const {
                return meta_size;
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl(GpuqT value, unsigned rank) const {
                return gpuq_shuffle(mask, value, lane_of(rank % num_threads()));
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_up(GpuqT value, unsigned delta) const {
                unsigned rank = thread_rank();

                return gpuq_shuffle(mask, value, lane_of(rank >= delta ? rank - delta : rank));
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_down(GpuqT value, unsigned delta) const {
                unsigned rank = thread_rank();

                return gpuq_shuffle(mask, value, lane_of(rank + delta < num_threads() ? rank + delta : rank));
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_xor(GpuqT value, unsigned with) const {
                unsigned other = thread_rank() ^ with;

                return gpuq_shuffle(mask, value, lane_of(other < num_threads() ? other : thread_rank()));
        }
        GPUQ_MEMBER int any(int predicate) const {
                return __any_sync(mask, predicate);
        }
        GPUQ_MEMBER int all(int predicate) const {
                return __all_sync(mask, predicate);
        }
        GPUQ_MEMBER unsigned ballot(int predicate) const {
                return pack(__ballot_sync(mask, predicate));
        }
        template <class GpuqT> GPUQ_MEMBER unsigned match_any(GpuqT value) const {
                return pack(__match_any_sync(mask, value));
        }
        template <class GpuqT> GPUQ_MEMBER unsigned match_all(GpuqT value, int &predicate) const {
                return pack(__match_all_sync(mask, value, &predicate));
        }

      private:
        /* From a bit a lane to a bit a rank. */
        GPUQ_MEMBER unsigned pack(unsigned lanes) const {
                unsigned packed = 0, rank = 0;

                for (unsigned rest = mask; rest; rest &= rest - 1)
                        packed |= (lanes >> (__ffs((int)rest) - 1) & 1u) << rank++;
                return packed;
        }
};

template <unsigned gpuq_n, class GpuqParent = void> class thread_block_tile;

template <unsigned gpuq_n> class thread_block_tile<gpuq_n, void> : public coalesced_group {
        static_assert(gpuq_n >= 1 && gpuq_n <= 32 && (gpuq_n & (gpuq_n - 1)) == 0,
                      "a tile lies within a warp: larger ones need NVRTC");

      public:
        GPUQ_MEMBER thread_block_tile()
            : coalesced_group((gpuq_n == 32 ? 0xffffffffu : (1u << gpuq_n % 32) - 1) << lane() / gpuq_n * gpuq_n) {
        }
        GPUQ_MEMBER unsigned thread_rank() const {
                return lane() % gpuq_n;
        }
        GPUQ_GROUPS constexpr unsigned num_threads() {
                return gpuq_n;
        }
        GPUQ_GROUPS constexpr unsigned size() {
                return gpuq_n;
        }
        /* Of the block; a tile of a tile counts in that. */
        GPUQ_MEMBER unsigned meta_group_rank() const {
                return thread_block::thread_rank() / gpuq_n;
        }
        GPUQ_MEMBER unsigned meta_group_size() const {
                return (gpuq_volume(blockDim) + gpuq_n - 1) / gpuq_n;
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl(GpuqT value, unsigned rank) const {
                return gpuq_shuffle(mask, value, lane() / gpuq_n * gpuq_n + rank % gpuq_n);
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_up(GpuqT value, unsigned delta) const {
                return gpuq_shuffle(mask, value, thread_rank() >= delta ? lane() - delta : lane());
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_down(GpuqT value, unsigned delta) const {
                return gpuq_shuffle(mask, value, thread_rank() + delta < gpuq_n ? lane() + delta : lane());
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_xor(GpuqT value, unsigned with) const {
                return gpuq_shuffle(mask, value, (thread_rank() ^ with) < gpuq_n ? lane() ^ with : lane());
        }
};

template <unsigned gpuq_n, class GpuqParent>
class thread_block_tile : public thread_block_tile<gpuq_n, void> {};

template <unsigned gpuq_n, unsigned gpuq_parent, class GpuqGrandparent>
class thread_block_tile<gpuq_n, thread_block_tile<gpuq_parent, GpuqGrandparent>>
    : public thread_block_tile<gpuq_n, void> {
        static_assert(gpuq_n <= gpuq_parent, "a tile is not larger than what it is a part of");

      public:
        GPUQ_MEMBER unsigned meta_group_rank() const {
                return thread_block::thread_rank() % gpuq_parent / gpuq_n;
        }
        GPUQ_MEMBER unsigned meta_group_size() const {
                return gpuq_parent / gpuq_n;
        }
};

GPUQ_GROUPS thread_block this_thread_block() {
        return thread_block();
}
GPUQ_GROUPS grid_group this_grid() {
        return grid_group();
}
GPUQ_GROUPS cluster_group this_cluster() {
        return cluster_group();
}
GPUQ_GROUPS coalesced_group coalesced_threads() {
        return coalesced_group(__activemask());
}
GPUQ_GROUPS coalesced_group this_thread() {
        return coalesced_group(1u << thread_block::thread_rank() % 32);
}

GPUQ_MEMBER void thread_group::sync() const {
        if (kind == GRID)
                grid_group::sync();
        else if (kind == CLUSTER)
                cluster_group::sync();
        else if (kind == BLOCK)
                __syncthreads();
        else
                __syncwarp(mask);
}
GPUQ_MEMBER unsigned long long thread_group::thread_rank() const {
        return kind == GRID      ? grid_group::thread_rank()
               : kind == CLUSTER ? cluster_group::thread_rank()
               : kind == BLOCK   ? thread_block::thread_rank()
                                 : (unsigned)__popc(mask & ((1u << lane()) - 1));
}
GPUQ_MEMBER unsigned long long thread_group::num_threads() const {
        return kind == GRID      ? grid_group::num_threads()
               : kind == CLUSTER ? cluster_group::num_threads()
               : kind == BLOCK   ? thread_block::num_threads()
                                 : (unsigned)__popc(mask);
}
GPUQ_MEMBER bool thread_group::is_valid() const {
        return kind != GRID || grid_group::is_valid();
}

/* The lanes with the caller's quotient of rank and @n. */
GPUQ_GROUPS unsigned gpuq_part_mask(unsigned mask, unsigned n) {
        unsigned lane = thread_block::thread_rank() % 32, part = 0, rank = 0;
        unsigned own = (unsigned)__popc(mask & ((1u << lane) - 1)) / n;

        for (unsigned rest = mask; rest; rest &= rest - 1, rank++)
                if (rank / n == own)
                        part |= rest & -rest;
        return part;
}
GPUQ_GROUPS coalesced_group tiled_partition(const coalesced_group &group, unsigned n) {
        return coalesced_group(gpuq_part_mask(group.gpuq_mask(), n), group.thread_rank() / n,
                               (group.num_threads() + n - 1) / n);
}
/* Of a block as of its warps, whose lanes are all there but for those of the last one. */
GPUQ_GROUPS thread_group tiled_partition(const thread_block &block, unsigned n) {
        unsigned first = block.thread_rank() / 32 * 32, rest = block.num_threads() - first;

        if (n > 32)
                __trap();
        return coalesced_group(gpuq_part_mask(rest < 32 ? (1u << rest) - 1 : 0xffffffffu, n));
}
template <unsigned gpuq_n>
GPUQ_GROUPS thread_block_tile<gpuq_n, thread_block> tiled_partition(const thread_block &) {
        return thread_block_tile<gpuq_n, thread_block>();
}
template <unsigned gpuq_n, unsigned gpuq_parent, class GpuqGrandparent>
GPUQ_GROUPS thread_block_tile<gpuq_n, thread_block_tile<gpuq_parent, GpuqGrandparent>>
tiled_partition(const thread_block_tile<gpuq_parent, GpuqGrandparent> &) {
        return thread_block_tile<gpuq_n, thread_block_tile<gpuq_parent, GpuqGrandparent>>();
}
GPUQ_GROUPS coalesced_group binary_partition(const coalesced_group &group, bool predicate) {
        unsigned mask = group.gpuq_mask(), lanes = __ballot_sync(mask, predicate);

        if (lanes == mask || lanes == 0)
                return coalesced_group(mask);
        return coalesced_group(predicate ? lanes : mask & ~lanes, predicate, 2);
}
/* Parts are counted in the order of their first threads. */
template <class GpuqT>
GPUQ_GROUPS coalesced_group labeled_partition(const coalesced_group &group, GpuqT label) {
        unsigned mask = group.gpuq_mask(), lanes = __match_any_sync(mask, label), first = lanes & -lanes;
        unsigned firsts = __ballot_sync(mask, first == 1u << thread_block::thread_rank() % 32);

        return coalesced_group(lanes, (unsigned)__popc(firsts & (first - 1)), (unsigned)__popc(firsts));
}
GPUQ_GROUPS coalesced_group labeled_partition(const coalesced_group &group, bool label) {
        return binary_partition(group, label);
}

template <class GpuqGroup> GPUQ_GROUPS void sync(const GpuqGroup &group) {
        group.sync();
}
template <class GpuqGroup> GPUQ_GROUPS unsigned long long thread_rank(const GpuqGroup &group) {
        return group.thread_rank();
}
template <class GpuqGroup> GPUQ_GROUPS unsigned long long group_size(const GpuqGroup &group) {
        return group.num_threads();
}
template <class GpuqGroup, class GpuqFunction, class... GpuqArguments>
GPUQ_GROUPS void invoke_one(const GpuqGroup &group, GpuqFunction &&function, GpuqArguments &&...arguments) {
        if (group.thread_rank() == 0)
                function(arguments...);
}

#define GPUQ_OPERATION(name, expression)                                                           \
        template <class GpuqT> struct name {                                                           \
                GPUQ_MEMBER GpuqT operator()(GpuqT a, GpuqT b) const {                                         \
                        return expression;                                                         \
                }                                                                                  \
        };
GPUQ_OPERATION(plus, a + b)
GPUQ_OPERATION(less, b < a ? b : a)
GPUQ_OPERATION(greater, a < b ? b : a)
GPUQ_OPERATION(bit_and, a &b)
GPUQ_OPERATION(bit_or, a | b)
GPUQ_OPERATION(bit_xor, a ^ b)
#undef GPUQ_OPERATION

/* Every thread adds up in the order of ranks, so all get the same bits. */
template <class GpuqGroup, class GpuqT, class GpuqOperation>
GPUQ_GROUPS GpuqT reduce(const GpuqGroup &group, GpuqT value, GpuqOperation operation) {
        GpuqT result = group.shfl(value, 0);

        for (unsigned rank = 1; rank < group.num_threads(); rank++)
                result = operation(result, group.shfl(value, rank));
        return result;
}

/* Of the values with ranks up to the caller's, in this order. */
template <class GpuqGroup, class GpuqT, class GpuqOperation>
GPUQ_GROUPS GpuqT inclusive_scan(const GpuqGroup &group, GpuqT value, GpuqOperation operation) {
        GpuqT result = group.shfl(value, 0);

        for (unsigned rank = 1; rank < group.num_threads(); rank++) {
                GpuqT next = group.shfl(value, rank);

                if (rank <= group.thread_rank())
                        result = operation(result, next);
        }
        return result;
}
template <class GpuqGroup, class GpuqT>
GPUQ_GROUPS GpuqT inclusive_scan(const GpuqGroup &group, GpuqT value) {
        return inclusive_scan(group, value, plus<GpuqT>());
}
template <class GpuqGroup, class GpuqT, class GpuqOperation>
GPUQ_GROUPS GpuqT exclusive_scan(const GpuqGroup &group, GpuqT value, GpuqOperation operation) {
        GpuqT before = group.shfl_up(inclusive_scan(group, value, operation), 1);

        return group.thread_rank() ? before : GpuqT();
}
template <class GpuqGroup, class GpuqT>
GPUQ_GROUPS GpuqT exclusive_scan(const GpuqGroup &group, GpuqT value) {
        return exclusive_scan(group, value, plus<GpuqT>());
}

/* Copies are done at once; wait() makes them seen by the group. */
template <class GpuqGroup, class GpuqT>
GPUQ_GROUPS void memcpy_async(const GpuqGroup &group, GpuqT *to, const GpuqT *from, size_t n_bytes) {
        const char *source = (const char *)from;
        char *target = (char *)to;

        if ((((unsigned long long)source | (unsigned long long)target | n_bytes) & 3) == 0)
                for (size_t i = group.thread_rank(); i < n_bytes / 4; i += group.num_threads())
                        ((unsigned *)target)[i] = ((const unsigned *)source)[i];
        else
                for (size_t i = group.thread_rank(); i < n_bytes; i += group.num_threads())
                        target[i] = source[i];
}
template <class GpuqGroup, class GpuqT>
GPUQ_GROUPS void memcpy_async(const GpuqGroup &group, GpuqT *to, size_t n_to, const GpuqT *from, size_t n_from) {
        memcpy_async(group, to, from, (n_to < n_from ? n_to : n_from) * sizeof(GpuqT));
}
template <class GpuqGroup> GPUQ_GROUPS void wait(const GpuqGroup &group) {
        group.sync();
}
template <unsigned gpuq_stages, class GpuqGroup> GPUQ_GROUPS void wait_prior(const GpuqGroup &group) {
        group.sync();
}

#undef GPUQ_GROUPS
#undef GPUQ_MEMBER

}
