// SPDX-License-Identifier: Apache-2.0
// Kernels of the driver's unit tests.
#include <assert.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

struct Pair {
        double a;
        char b;
};

__device__ int counter;
__device__ float table[8];
__constant__ float factors[4] = {1, 2, 3, 4};

extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                c[i] = a[i] + b[i];
}

extern "C" __global__ void affine(float *x, float scale, float offset, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                x[i] = x[i] * scale + offset;
}

extern "C" __global__ void where(uint3 *threads, uint3 *blocks) {
        unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;

        threads[i] = threadIdx;
        blocks[i] = blockIdx;
}

// Each block waits until @want of them run at once, but no longer than @patience_ns.
extern "C" __global__ void crowd(unsigned *inside, unsigned *most, unsigned want, long long patience_ns) {
        long long until = clock64() + patience_ns;

        atomicMax(most, atomicAdd(inside, 1u) + 1);
        while (*(volatile unsigned *)most < want && clock64() < until)
                __nanosleep(1000);
        atomicSub(inside, 1u);
}

// Of each block: the SM that it runs on, and how many there are.
extern "C" __global__ void which_sm(uint2 *sms) {
        uint2 sm;

        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm.x));
        asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sm.y));
        sms[blockIdx.x] = sm;
}

extern "C" __global__ void sum_static(const float *x, float *sums) {
        __shared__ float part[256];
        unsigned t = threadIdx.x;

        part[t] = x[blockIdx.x * blockDim.x + t];
        __syncthreads();
        for (unsigned k = blockDim.x / 2; k; k /= 2) {
                if (t < k)
                        part[t] += part[t + k];
                __syncthreads();
        }
        if (t == 0)
                sums[blockIdx.x] = part[0];
}

extern "C" __global__ void reverse(int *x, int n) {
        extern __shared__ __align__(16) unsigned char memory[];
        int *turned = reinterpret_cast<int *>(memory);
        int base = blockIdx.x * n;

        for (int i = threadIdx.x; i < n; i += blockDim.x)
                turned[n - 1 - i] = x[base + i];
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x)
                x[base + i] = turned[i];
}

// The threads that stay come to fewer barriers than the block has threads.
extern "C" __global__ void leave_early(int *x) {
        __shared__ int seen;

        if (threadIdx.x == 0)
                seen = 0;
        __syncthreads();
        if (threadIdx.x % 3 == 0)
                return;
        atomicAdd(&seen, 1);
        __syncthreads();
        x[threadIdx.x] = seen;
}

extern "C" __global__ void vote_block(int *x) {
        int odd = threadIdx.x & 1;
        int count = __syncthreads_count(odd);
        int all = __syncthreads_and(odd), none = __syncthreads_or(threadIdx.x > 5000);

        x[threadIdx.x] = count * 4 + all * 2 + none;
}

extern "C" __global__ void shuffles(int *x) {
        int lane = threadIdx.x % 32, i = threadIdx.x;
        int *out = x + i * 12;
        double half = lane / 2.0;

        out[0] = __shfl_sync(~0u, i, 5);
        out[1] = __shfl_up_sync(~0u, i, 3);
        out[2] = __shfl_down_sync(~0u, i, 3);
        out[3] = __shfl_xor_sync(~0u, i, 9);
        out[4] = __shfl_sync(~0u, i, 1, 8);
        out[5] = (int)__ballot_sync(~0u, lane % 3 == 0);
        out[6] = __any_sync(~0u, lane == 31);
        out[7] = __all_sync(~0u, lane < 31);
        out[8] = (int)__match_any_sync(~0u, lane % 4);
        out[9] = (int)__reduce_add_sync(~0u, (unsigned)lane);
        out[10] = (int)(4 * __shfl_xor_sync(~0u, half, 1));
        // Halves of a warp apart, with a mask each.
        if (lane < 16)
                out[11] = __shfl_down_sync(0x0000ffffu, i, 8, 16);
        else
                out[11] = __shfl_xor_sync(0xffff0000u, i, 1);
}

static __device__ int exchange(unsigned mask, int value) {
        return __shfl_xor_sync(mask, __shfl_xor_sync(mask, value, 1), 2);
}

// Groups of one lane 0, under three masks at a time: the larger ones wait for the smaller.
extern "C" __global__ void nested_masks(int *x) {
        int lane = threadIdx.x % 32, i = threadIdx.x;
        int *out = x + i * 4;

        if (lane < 16) {
                if (lane < 4)
                        out[0] = exchange(0xfu, i);
                out[1] = exchange(0xffffu, i + 100);
        }
        out[2] = exchange(~0u, i + 200);
        out[3] = (int)__reduce_add_sync(~0u, 1u);
}

// Tiles of unequal size, and all of the warp.
extern "C" __global__ void unequal_tiles(int *x) {
        cg::thread_block block = cg::this_thread_block();
        int i = threadIdx.x, lane = i % 32;
        auto warp = cg::tiled_partition<32>(block);

        if (lane < 8)
                x[i] = cg::reduce(cg::tiled_partition<4>(block), i, cg::plus<int>());
        else if (lane < 16)
                x[i] = cg::reduce(cg::tiled_partition<8>(block), i, cg::plus<int>());
        else
                x[i] = 0;
        x[i] += 1000 * warp.shfl(i, 31);
}

// Calls that are undefined on a GPU, and would wait for ever or give wrong values.
extern "C" __global__ void masks_do_not_meet(int which) {
        int lane = threadIdx.x % 32;

        if (which == 0) // waits for those who wait for it
                __shfl_sync(lane == 0 ? 0x3u : 0x7u, lane, 0);
        else if (which == 1 && lane < 16)
                __syncwarp();
        else if (which == 2)
                __syncwarp(1u);
        else if (which == 3 && lane == 0)
                __ballot_sync(0x3u, 1);
        else if (which == 3)
                __shfl_sync(0x3u, lane, 0);
        __syncthreads();
}

extern "C" __global__ void groups(int *x) {
        cg::thread_block block = cg::this_thread_block();
        auto tile = cg::tiled_partition<8>(block);
        int sum = cg::reduce(tile, (int)threadIdx.x, cg::plus<int>());

        block.sync();
        if (threadIdx.x % 2) {
                cg::coalesced_group odd = cg::coalesced_threads();

                x[threadIdx.x] = sum * 1000 + (int)odd.size() * 10 + (int)(odd.thread_rank() == threadIdx.x % 32 / 2);
        } else {
                x[threadIdx.x] = -(int)tile.thread_rank();
        }
}

extern "C" __global__ void atomics(unsigned *u, int *i, unsigned long long *l, float *f, double *d) {
        unsigned t = blockIdx.x * blockDim.x + threadIdx.x;

        atomicAdd(&u[0], 1u);
        atomicMax(&u[1], t);
        atomicInc(&u[2], 9);
        atomicXor(&u[3], t);
        atomicAdd(i, -1);
        atomicMin(i + 1, -(int)t);
        atomicAdd(l, 1ull << 33);
        atomicAdd(f, 0.5f);
        atomicAdd(d, 0.25);
        atomicAdd(&counter, 1);
}

// A lock that threads of one block hand to each other.
extern "C" __global__ void locks(int *lock, int *value) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        int before = *(volatile int *)value;

        __syncwarp(1u << threadIdx.x % 32);
        *(volatile int *)value = before + 1;
        __threadfence();
        atomicExch(lock, 0);
}

// The second thread's flag is awaited by the first, which started before it.
extern "C" __global__ void flags_inside(int *x) {
        __shared__ int flag;

        if (threadIdx.x == 0)
                flag = 0;
        __syncwarp();
        if (threadIdx.x == 0) {
                while (atomicAdd(&flag, 0) == 0)
                        __nanosleep(100);
                x[0] = 7;
        } else if (threadIdx.x == 1) {
                atomicExch(&flag, 1);
        }
}

extern "C" __global__ void set_flag(volatile int *flag, int value) {
        *flag = value;
}

extern "C" __global__ void await_flag(volatile int *flag, int value, int *seen) {
        while (*flag != value)
                __threadfence();
        *seen = value;
}

extern "C" __global__ void spin() {
        for (volatile int i = 0;; i = i + 1) {
        }
}

extern "C" __global__ void store(int *p, long long index, int value) {
        p[index] = value;
}

extern "C" __global__ void store_behind_barrier(int *p, long long index, int value) {
        __syncthreads();
        if (threadIdx.x == blockDim.x / 2)
                p[index] = value;
        __syncthreads();
}

extern "C" __global__ void trap() {
        if (threadIdx.x == 3)
                __trap();
}

extern "C" __global__ void asserts(int limit) {
        assert((int)threadIdx.x < limit);
}

extern "C" __global__ void hello(int n) {
        int given = printf("hello %d of %s, %.2f\n", threadIdx.x, "four", n / 4.0);

        if (given != 3)
                printf("wrong\n");
}

extern "C" __global__ void deep(int *x, int n) {
        volatile char room[1 << 14];

        room[0] = (char)n;
        room[sizeof(room) - 1] = room[0];
        __syncthreads();
        x[threadIdx.x] = room[sizeof(room) - 1];
}

extern "C" __global__ void use_variables(float *x) {
        counter++;
        table[1] = factors[1] + factors[3];
        x[0] = table[1];
}

// Of a template: each module has its own.
template <class T> __device__ T of_template = 5;

extern "C" __global__ void count_shared(int *x) {
        x[0] = of_template<int>++;
}

extern "C" __global__ void parameters(char c, short s, int i, long long l, float f, double d, const int *p,
                                      Pair pair, float3 v, double *out) {
        out[0] = c + s + i + (double)l + f + d + *p + pair.a + pair.b + v.x + v.y + v.z;
}

extern "C" __global__ void grid_wait(int *x, int *out, int rounds) {
        cg::grid_group grid = cg::this_grid();
        int n = (int)grid.num_blocks(), b = (int)grid.block_rank();

        for (int round = 0; round < rounds; round++) {
                if (threadIdx.x == 0)
                        atomicAdd(x + round, 1);
                grid.sync();
                if (threadIdx.x == 1 && x[round] != n)
                        atomicAdd(out + 1, 1);
        }
        if (threadIdx.x == 0 && b == 0)
                out[0] = x[rounds - 1];
}

extern "C" __global__ void clusters(int *out) {
        __shared__ int mine;
        cg::cluster_group cluster = cg::this_cluster();
        unsigned rank = cluster.block_rank(), n = cluster.num_blocks();

        if (threadIdx.x == 0)
                mine = (int)blockIdx.x * 10;
        cluster.sync();
        int *next = cluster.map_shared_rank(&mine, (rank + 1) % n);

        if (threadIdx.x == 0)
                out[blockIdx.x] = *next + (int)n;
        cluster.sync();
}

extern "C" __global__ void maths(float *x) {
        x[0] = rsqrtf(4.0f);
        x[1] = __expf(0.0f) + __fdividef(1.0f, 4.0f);
        x[2] = min(3, 2) + max(1.5f, 2.5f);
        x[3] = (float)__popc(0xff00u) + __clz(1) + __ffs(8) + (float)(__brev(1) >> 31);
        x[4] = __int_as_float(__float_as_int(2.5f));
        x[5] = (float)__float2int_rn(2.5f) + (float)__float2int_rz(-2.9f);
        x[6] = (float)erfinv(0.5);
        x[7] = sinpif(1.0f) + cospif(0.5f) + sinpif(0.5f);
        x[8] = (float)__umulhi(0x80000000u, 6u) + (float)__byte_perm(0x04030201, 0x08070605, 0x0007);
        float4 v = make_float4(1, 2, 3, 4);

        x[9] = v.x + v.w;
        x[10] = __ldg(&factors[2]);
}
