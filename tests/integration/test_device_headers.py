# SPDX-License-Identifier: Apache-2.0
"""What kernels get from headers of the CUDA Toolkit: NVRTC has NVIDIA's, clang has gpuq's own, and both mean the same."""

import numpy

from harness.client import In, Job, Out, i32

N = 64  # threads: two warps

GROUPS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

struct Two {
        double a;
        int b;
};

__device__ int size_and_rank(cg::thread_group group)
{
        group.sync();
        return 100 * (int)group.size() + (int)group.thread_rank();
}

extern "C" __global__ void groups(const int *in, int *out, int n)
{
        __shared__ int room[64];
        cg::thread_block block = cg::this_thread_block();
        cg::memcpy_async(block, room, in, sizeof(int) * block.size());
        cg::wait(block);

        int i = block.thread_rank(), v = room[i];
        cg::thread_block_tile<16> of_16 = cg::tiled_partition<16>(block);
        cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
        auto of_4 = cg::tiled_partition<4>(of_16);

        out[i] = size_and_rank(block);
        out[n + i] = size_and_rank(of_16);
        out[2 * n + i] = size_and_rank(cg::tiled_partition(block, 8));
        out[3 * n + i] = cg::reduce(of_4, v, cg::plus<int>());
        out[4 * n + i] = cg::inclusive_scan(warp, v, cg::plus<int>());
        out[5 * n + i] = cg::exclusive_scan(of_16, v);
        auto alike = cg::binary_partition(warp, v % 2 != 0);
        out[6 * n + i] = cg::reduce(alike, v, cg::plus<int>());
        auto label = cg::labeled_partition(warp, v % 3);
        out[7 * n + i] = 100 * label.size() + label.thread_rank();
        Two two = of_16.shfl(Two{1.5 * v, v}, 3);
        out[8 * n + i] = (int)(two.a * 2) + two.b;
        out[9 * n + i] = 100 * of_4.meta_group_size() + of_4.meta_group_rank();
}
"""


def rank_among(keys):
    return numpy.array([list(keys[:i]).count(key) for i, key in enumerate(keys)])


def by_warp(of, values):
    return numpy.concatenate([of(warp) for warp in values.reshape(-1, 32)])


def test_cooperative_groups(client):
    values = numpy.random.default_rng(4).integers(0, 100, N).astype(numpy.int32)
    arena = client.arena(10 * values.nbytes)
    client.run_well(Job().launch(client.load(GROUPS), "groups", [In(client.array(values)), Out(arena), i32(N)], 1, N))
    got = arena.array(numpy.int32, 10 * N).reshape(10, N)

    i = numpy.arange(N)
    sums = numpy.add.accumulate
    for row, wanted in enumerate([
            100 * N + i, 1600 + i % 16, 800 + i % 8, values.reshape(-1, 4).sum(1).repeat(4), by_warp(sums, values),
            (sums(values.reshape(-1, 16), 1) - values.reshape(-1, 16)).ravel(),
            by_warp(lambda warp: numpy.where(warp % 2, warp[warp % 2 != 0].sum(), warp[warp % 2 == 0].sum()), values),
            by_warp(lambda warp: 100 * numpy.bincount(warp % 3, minlength=3)[warp % 3] + rank_among(warp % 3), values),
            4 * values[i // 16 * 16 + 3], 400 + i % 16 // 4]):
        numpy.testing.assert_array_equal(got[row], wanted, f"row {row}")
