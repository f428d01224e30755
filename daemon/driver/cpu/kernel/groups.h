/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_GROUPS_H
#define GPUQ_CPU_KERNEL_GROUPS_H

/*
 * Cooperative groups: the grid, the cluster, the block, tiles of a warp and coalesced threads,
 * with their common functions.
 */

namespace cooperative_groups {

static inline unsigned int gpuq_cpu_flat(uint3 index, uint3 dim) {
        return (index.z * dim.y + index.y) * dim.x + index.x;
}
static inline unsigned int gpuq_cpu_volume(uint3 dim) {
        return dim.x * dim.y * dim.z;
}

class thread_block {
      public:
        static void sync() {
                __syncthreads();
        }
        static unsigned int thread_rank() {
                return gpuq_cpu_place.linear;
        }
        static unsigned int num_threads() {
                return gpuq_cpu_volume(blockDim);
        }
        static unsigned int size() {
                return num_threads();
        }
        static dim3 group_index() {
                return blockIdx;
        }
        static dim3 thread_index() {
                return threadIdx;
        }
        static dim3 group_dim() {
                return blockDim;
        }
        static dim3 dim_threads() {
                return blockDim;
        }
};

class grid_group {
      public:
        static bool is_valid() {
                return true;
        }
        static void sync() {
                gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_GRID, 0);
        }
        static unsigned long long block_rank() {
                return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
                       blockIdx.x;
        }
        static unsigned long long num_blocks() {
                return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
        }
        static unsigned long long thread_rank() {
                return block_rank() * gpuq_cpu_volume(blockDim) + gpuq_cpu_place.linear;
        }
        static unsigned long long num_threads() {
                return num_blocks() * gpuq_cpu_volume(blockDim);
        }
        static unsigned long long size() {
                return num_threads();
        }
        static dim3 group_dim() {
                return gridDim;
        }
        static dim3 dim_blocks() {
                return gridDim;
        }
        static dim3 block_index() {
                return blockIdx;
        }
};

class cluster_group {
      public:
        static void sync() {
                gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_CLUSTER, 0);
        }
        static dim3 dim_blocks() {
                return gpuq_cpu_place.cluster_dim;
        }
        static unsigned int num_blocks() {
                return gpuq_cpu_volume(gpuq_cpu_place.cluster_dim);
        }
        static dim3 block_index() {
                uint3 dim = gpuq_cpu_place.cluster_dim;

                return dim3(blockIdx.x % dim.x, blockIdx.y % dim.y, blockIdx.z % dim.z);
        }
        static unsigned int block_rank() {
                return gpuq_cpu_flat(block_index(), gpuq_cpu_place.cluster_dim);
        }
        static unsigned int thread_rank() {
                return block_rank() * gpuq_cpu_volume(blockDim) + gpuq_cpu_place.linear;
        }
        static unsigned int num_threads() {
                return num_blocks() * gpuq_cpu_volume(blockDim);
        }
        static unsigned int size() {
                return num_threads();
        }
        template <class T> static T *map_shared_rank(T *pointer, unsigned int rank) {
                return (T *)gpuq_cpu_image.runtime->shared_of((void *)pointer, rank);
        }
};

/* Threads of one warp, selected by a mask; ranks count the lanes in it. */
class coalesced_group {
      protected:
        unsigned int mask;

        unsigned int lane_of(unsigned int rank) const {
                unsigned int rest = mask;

                while (rank--)
                        rest &= rest - 1;
                return rest ? (unsigned int)__builtin_ctz(rest) : 32;
        }

      public:
        explicit coalesced_group(unsigned int mask_) : mask(mask_) {
        }
        void sync() const {
                __syncwarp(mask);
        }
        unsigned int thread_rank() const {
                return (unsigned int)__popc(mask & ((1u << gpuq_cpu_lane()) - 1));
        }
        unsigned int num_threads() const {
                return (unsigned int)__popc(mask);
        }
        unsigned int size() const {
                return num_threads();
        }
        template <class T> T shfl(T value, unsigned int rank) const {
                return gpuq_cpu_shuffle(mask, value, lane_of(rank % num_threads()));
        }
        template <class T> T shfl_up(T value, unsigned int delta) const {
                unsigned int rank = thread_rank();

                return gpuq_cpu_shuffle(mask, value, lane_of(rank >= delta ? rank - delta : rank));
        }
        template <class T> T shfl_down(T value, unsigned int delta) const {
                unsigned int rank = thread_rank();

                return gpuq_cpu_shuffle(
                        mask, value, lane_of(rank + delta < num_threads() ? rank + delta : rank));
        }
        template <class T> T shfl_xor(T value, unsigned int with) const {
                unsigned int other = thread_rank() ^ with;

                return gpuq_cpu_shuffle(mask, value,
                                        lane_of(other < num_threads() ? other : thread_rank()));
        }
        int any(int predicate) const {
                return __any_sync(mask, predicate);
        }
        int all(int predicate) const {
                return __all_sync(mask, predicate);
        }
        unsigned int ballot(int predicate) const {
                return pack(__ballot_sync(mask, predicate));
        }
        template <class T> unsigned int match_any(T value) const {
                return pack(__match_any_sync(mask, value));
        }

      private:
        /* From a bit a lane to a bit a rank. */
        unsigned int pack(unsigned int lanes) const {
                unsigned int packed = 0, rank = 0;

                for (unsigned int rest = mask; rest; rest &= rest - 1)
                        packed |= (lanes >> __builtin_ctz(rest) & 1u) << rank++;
                return packed;
        }
};

template <unsigned int N, class Parent = void> class thread_block_tile : public coalesced_group {
        static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "a tile lies within a warp");

      public:
        thread_block_tile()
            : coalesced_group((N == 32 ? 0xffffffffu : (1u << N % 32) - 1)
                              << gpuq_cpu_lane() / N * N) {
        }
        unsigned int thread_rank() const {
                return gpuq_cpu_lane() % N;
        }
        unsigned int meta_group_rank() const {
                return gpuq_cpu_place.linear / N;
        }
        unsigned int meta_group_size() const {
                return (gpuq_cpu_volume(blockDim) + N - 1) / N;
        }
        static constexpr unsigned int num_threads() {
                return N;
        }
        static constexpr unsigned int size() {
                return N;
        }
};

static inline thread_block this_thread_block() {
        return thread_block();
}
static inline grid_group this_grid() {
        return grid_group();
}
static inline cluster_group this_cluster() {
        return cluster_group();
}
static inline __attribute__((always_inline)) coalesced_group coalesced_threads() {
        return coalesced_group(__activemask());
}
template <unsigned int N, class Parent>
static inline thread_block_tile<N, Parent> tiled_partition(const Parent &) {
        return thread_block_tile<N, Parent>();
}
template <class Group> static inline void sync(const Group &group) {
        group.sync();
}

template <class T> struct plus {
        T operator()(T a, T b) const {
                return a + b;
        }
};
template <class T> struct less {
        T operator()(T a, T b) const {
                return b < a ? b : a;
        }
};
template <class T> struct greater {
        T operator()(T a, T b) const {
                return a < b ? b : a;
        }
};
template <class T> struct bit_and {
        T operator()(T a, T b) const {
                return a & b;
        }
};
template <class T> struct bit_or {
        T operator()(T a, T b) const {
                return a | b;
        }
};
template <class T> struct bit_xor {
        T operator()(T a, T b) const {
                return a ^ b;
        }
};
/* Every thread adds up in the order of ranks, so all get the same bits. */
template <class Group, class T, class Operation>
static inline T reduce(const Group &group, T value, Operation operation) {
        T result = group.shfl(value, 0);

        for (unsigned int rank = 1; rank < group.num_threads(); rank++)
                result = operation(result, group.shfl(value, rank));
        return result;
}

} // namespace cooperative_groups

static inline uint3 gpuq_cpu_cluster_block() {
        return cooperative_groups::cluster_group::block_index();
}

#endif
