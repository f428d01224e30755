/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cooperative groups where the CUDA Toolkit's header is missing: the grid, the cluster, the block,
 * tiles of a warp and coalesced threads, with their common functions. Names of templates are none that
 * a user defines as a macro.
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

class thread_block {
      public:
        GPUQ_GROUPS void sync() {
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

class grid_group {
        /* What the driver has prepared for a cooperative launch: the second word is zero at first. */
        GPUQ_GROUPS unsigned *words() {
                return (unsigned *)((unsigned long long)gpuq_words_high() << 32 | gpuq_words_low());
        }

      public:
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

class cluster_group {
      public:
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

/* Threads of one warp, selected by a mask; ranks count the lanes in it. */
class coalesced_group {
      protected:
        unsigned mask;

        GPUQ_GROUPS unsigned lane() {
                return thread_block::thread_rank() % 32;
        }
        GPUQ_MEMBER unsigned lane_of(unsigned rank) const {
                unsigned rest = mask;

                while (rank--)
                        rest &= rest - 1;
                return rest ? (unsigned)__ffs((int)rest) - 1 : 32;
        }

      public:
        GPUQ_MEMBER explicit coalesced_group(unsigned mask_) : mask(mask_) {
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
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl(GpuqT value, unsigned rank) const {
                return __shfl_sync(mask, value, (int)lane_of(rank % num_threads()));
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_up(GpuqT value, unsigned delta) const {
                unsigned rank = thread_rank();

                return __shfl_sync(mask, value, (int)lane_of(rank >= delta ? rank - delta : rank));
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_down(GpuqT value, unsigned delta) const {
                unsigned rank = thread_rank();

                return __shfl_sync(mask, value,
                                   (int)lane_of(rank + delta < num_threads() ? rank + delta : rank));
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_xor(GpuqT value, unsigned with) const {
                unsigned other = thread_rank() ^ with;

                return __shfl_sync(mask, value,
                                   (int)lane_of(other < num_threads() ? other : thread_rank()));
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

      private:
        /* From a bit a lane to a bit a rank. */
        GPUQ_MEMBER unsigned pack(unsigned lanes) const {
                unsigned packed = 0, rank = 0;

                for (unsigned rest = mask; rest; rest &= rest - 1)
                        packed |= (lanes >> (__ffs((int)rest) - 1) & 1u) << rank++;
                return packed;
        }
};

template <unsigned gpuq_n, class GpuqParent = void> class thread_block_tile : public coalesced_group {
        static_assert(gpuq_n >= 1 && gpuq_n <= 32 && (gpuq_n & (gpuq_n - 1)) == 0, "a tile lies within a warp");

      public:
        GPUQ_MEMBER thread_block_tile()
            : coalesced_group((gpuq_n == 32 ? 0xffffffffu : (1u << gpuq_n % 32) - 1) << lane() / gpuq_n * gpuq_n) {
        }
        GPUQ_MEMBER unsigned thread_rank() const {
                return lane() % gpuq_n;
        }
        GPUQ_MEMBER unsigned meta_group_rank() const {
                return thread_block::thread_rank() / gpuq_n;
        }
        GPUQ_MEMBER unsigned meta_group_size() const {
                return (gpuq_volume(blockDim) + gpuq_n - 1) / gpuq_n;
        }
        GPUQ_GROUPS constexpr unsigned num_threads() {
                return gpuq_n;
        }
        GPUQ_GROUPS constexpr unsigned size() {
                return gpuq_n;
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl(GpuqT value, unsigned rank) const {
                return __shfl_sync(mask, value, (int)rank, gpuq_n);
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_up(GpuqT value, unsigned delta) const {
                return __shfl_up_sync(mask, value, delta, gpuq_n);
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_down(GpuqT value, unsigned delta) const {
                return __shfl_down_sync(mask, value, delta, gpuq_n);
        }
        template <class GpuqT> GPUQ_MEMBER GpuqT shfl_xor(GpuqT value, unsigned with) const {
                return __shfl_xor_sync(mask, value, (int)with, gpuq_n);
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
template <unsigned gpuq_n, class GpuqParent>
GPUQ_GROUPS thread_block_tile<gpuq_n, GpuqParent> tiled_partition(const GpuqParent &) {
        return thread_block_tile<gpuq_n, GpuqParent>();
}
template <class GpuqGroup> GPUQ_GROUPS void sync(const GpuqGroup &group) {
        group.sync();
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

#undef GPUQ_GROUPS
#undef GPUQ_MEMBER

}
