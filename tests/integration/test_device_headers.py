# SPDX-License-Identifier: Apache-2.0
"""What kernels get from headers of the CUDA Toolkit: NVRTC has NVIDIA's, clang has gpuq's own, and both mean the same."""

import numpy
import pytest

from harness.client import In, Job, Out, Refused, i32
from harness.messages import pb

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
        out[10 * n + i] = 100 * alike.meta_group_size() + alike.meta_group_rank();
        out[11 * n + i] = 100 * label.meta_group_size() + label.meta_group_rank();
        auto all = cg::binary_partition(warp, n > 0);
        out[12 * n + i] = 100 * all.meta_group_size() + all.meta_group_rank();
        auto by_truth = cg::labeled_partition(warp, v % 2 != 0);
        out[13 * n + i] = 100 * by_truth.meta_group_size() + by_truth.meta_group_rank();
}
"""


def rank_among(keys):
    return numpy.array([list(keys[:i]).count(key) for i, key in enumerate(keys)])


def first_seen(keys):
    """For each key: how many others were seen before its first."""
    seen = list(dict.fromkeys(keys.tolist()))
    return numpy.array([seen.index(key) for key in keys.tolist()])


def by_warp(of, values):
    return numpy.concatenate([of(warp) for warp in values.reshape(-1, 32)])


def test_cooperative_groups(client):
    values = numpy.random.default_rng(4).integers(0, 100, N).astype(numpy.int32)
    arena = client.arena(14 * values.nbytes)
    client.run_well(Job().launch(client.load(GROUPS), "groups", [In(client.array(values)), Out(arena), i32(N)], 1, N))
    got = arena.array(numpy.int32, 14 * N).reshape(14, N)

    i = numpy.arange(N)
    sums = numpy.add.accumulate
    for row, wanted in enumerate([
            100 * N + i, 1600 + i % 16, 800 + i % 8, values.reshape(-1, 4).sum(1).repeat(4), by_warp(sums, values),
            (sums(values.reshape(-1, 16), 1) - values.reshape(-1, 16)).ravel(),
            by_warp(lambda warp: numpy.where(warp % 2, warp[warp % 2 != 0].sum(), warp[warp % 2 == 0].sum()), values),
            by_warp(lambda warp: 100 * numpy.bincount(warp % 3, minlength=3)[warp % 3] + rank_among(warp % 3), values),
            4 * values[i // 16 * 16 + 3], 400 + i % 16 // 4, 200 + values % 2,
            by_warp(lambda warp: 100 * numpy.unique(warp % 3).size + first_seen(warp % 3), values), 100 + 0 * i, 200 + values % 2]):
        numpy.testing.assert_array_equal(got[row], wanted, f"row {row}")


ROUND = r"""
extern "C" __global__ void whole(const float *in, float *out, double *wide)
{
        out[threadIdx.x] = rintf(in[threadIdx.x]);
        wide[threadIdx.x] = rint((double)in[threadIdx.x]);
}
"""


def test_rint_takes_the_even_number_of_two_that_are_as_near(client):
    values = numpy.arange(-N, N, 2, dtype=numpy.float32) / 4
    out, wide = client.arena(values.nbytes), client.arena(2 * values.nbytes)
    client.run_well(Job().launch(client.load(ROUND), "whole", [In(client.array(values)), Out(out), Out(wide)], 1, values.size))
    numpy.testing.assert_array_equal(out.array(numpy.float32, values.size), numpy.rint(values))
    numpy.testing.assert_array_equal(wide.array(numpy.float64, values.size), numpy.rint(values))


SMALL = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T, class T2> __device__ void calculate(const T *a, const T *b, T *out, int *less, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        T2 pair(a[i], b[i]), other(b[i], a[i]);

        out[i] = a[i] + b[i];
        out[n + i] = a[i] - b[i];
        out[2 * n + i] = (pair * other).y;
        out[3 * n + i] = a[i] / b[i];
        out[4 * n + i] = __hfma2(pair, other, pair).x;
        out[5 * n + i] = __hmax(a[i], b[i]);
        out[6 * n + i] = hsqrt(__habs(a[i]));
        out[7 * n + i] = T((double)(float)a[i] * 1.000001);
        out[8 * n + i] = __shfl_xor_sync(0xffffffffu, a[i], 1);
        less[i] = a[i] < b[i] ? 1 : a[i] == b[i] ? 2 : 0;
}

extern "C" __global__ void of_half(const half *a, const half *b, half *out, int *less, int n)
{
        calculate<half, half2>(a, b, out, less, n);
}

extern "C" __global__ void of_bfloat(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *out, int *less, int n)
{
        calculate<__nv_bfloat16, __nv_bfloat162>(a, b, out, less, n);
}
"""


def to_bfloat(values):
    """Doubles as the nearest bfloat16 numbers, as doubles; exact where a double has all bits, as here."""
    mantissa, exponent = numpy.frexp(values)
    return numpy.ldexp(numpy.rint(mantissa * 256) / 256, exponent)


def wanted_of(a, b, rounded):
    return [rounded(a + b), rounded(a - b), rounded(a * b), rounded(a / b), rounded(a * b + a), numpy.maximum(a, b),
            rounded(numpy.sqrt(abs(a))), rounded(a * 1.000001), a.reshape(-1, 2)[:, ::-1].ravel()]


@pytest.mark.parametrize("kernel, rounded, stored, back", [
    ("of_half", lambda v: v.astype(numpy.float16).astype(float), lambda v: v.astype(numpy.float16),
     lambda bits: bits.view(numpy.float16).astype(float)),
    ("of_bfloat", to_bfloat, lambda v: (v.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16),
     lambda bits: (bits.astype(numpy.uint32) << 16).view(numpy.float32).astype(float))], ids=["half", "bfloat16"])
def test_numbers_of_16_bits(client, kernel, rounded, stored, back):
    n = 1024
    a, b = (rounded(numpy.random.default_rng(seed).uniform(-8, 8, n)) for seed in (1, 2))
    out, less = client.arena(9 * 2 * n), client.arena(4 * n)
    arguments = [In(client.array(stored(a))), In(client.array(stored(b))), Out(out), Out(less), i32(n)]
    client.run_well(Job().launch(client.load(SMALL), kernel, arguments, n // N, N))

    got = back(out.array(numpy.uint16, 9 * n)).reshape(9, n)
    for row, wanted in enumerate(wanted_of(a, b, rounded)):
        numpy.testing.assert_array_equal(got[row], wanted, f"row {row}")
    numpy.testing.assert_array_equal(less.array(numpy.int32, n), numpy.where(a < b, 1, numpy.where(a == b, 2, 0)))


def run_one(client, source, arguments, out, block=N, options=()):
    """The array that the kernel `k` makes of the arguments."""
    arena = client.arena(out.nbytes)
    client.run_well(Job().launch(client.load(source, options=options), "k", [*arguments, Out(arena)], 1, block))
    return arena.array(out.dtype, out.size)


PURE = r"""
struct Shape {
        __device__ virtual int area() = 0;
};

struct Square : Shape {
        int side;
        __device__ Square(int side) : side(side) {}
        __device__ int area() override { return side * side; }
};

struct Line : Shape {
        __device__ int area() override { return 0; }
};

extern "C" __global__ void k(int *out)
{
        Shape *shape = threadIdx.x % 2 ? (Shape *)new Square(threadIdx.x) : (Shape *)new Line;
        int *copy = new int[threadIdx.x + 1];
        copy[threadIdx.x] = shape->area();
        memcpy(&out[threadIdx.x], &copy[threadIdx.x], sizeof(int));
        delete[] copy;
        delete shape;
}
"""


def test_objects_with_abstract_classes(client):
    i = numpy.arange(N, dtype=numpy.int32)
    numpy.testing.assert_array_equal(run_one(client, PURE, [], i), numpy.where(i % 2, i * i, 0))


def test_integers_need_no_include(client):
    source = 'extern "C" __global__ void k(int64_t *out) { out[threadIdx.x] = (uint8_t)((ssize_t)threadIdx.x * 9); }'
    i = numpy.arange(N)
    numpy.testing.assert_array_equal(run_one(client, source, [], i), i * 9 % 256)


def test_a_source_may_define_them_itself(client):
    source = 'typedef long int64_t;\nextern "C" __global__ void k(int64_t *out) { out[threadIdx.x] = 7; }'
    numpy.testing.assert_array_equal(run_one(client, source, [], numpy.arange(N)), 7)


def test_a_static_constant_can_be_written(client):
    module = client.load('static __constant__ int factor[2];\n'
                         'extern "C" __global__ void k(int *out) { out[threadIdx.x] = factor[threadIdx.x & 1]; }')
    out = client.arena(4 * N)
    client.run_well(Job().copy((module.module, "factor"), client.array(numpy.array([3, 4], numpy.int32)), 8)
                    .launch(module, "k", [Out(out)], 1, N))
    numpy.testing.assert_array_equal(out.array(numpy.int32, N), numpy.tile([3, 4], N // 2))


LANES = r"""
extern "C" __global__ void k(const unsigned *a, const unsigned *b, unsigned *out)
{
        int i = threadIdx.x, n = blockDim.x;
        out[i] = __vaddss4(a[i], b[i]);
        out[n + i] = __vabsdiffu2(a[i], b[i]);
        out[2 * n + i] = __vcmpgts4(a[i], b[i]);
        out[3 * n + i] = __vsadu4(a[i], b[i]);
        out[4 * n + i] = __dp4a((int)a[i], (int)b[i], 5);
        out[5 * n + i] = __dp2a_hi(a[i], b[i], 5u);
        out[6 * n + i] = __float_as_uint(__int2float_rz((int)a[i]));
        out[7 * n + i] = __float_as_uint(__fadd_ru((float)(a[i] >> 8), 1e-3f));
        out[8 * n + i] = __float_as_uint(__fsub_rn(__fmul_rn((float)a[i], (float)b[i]), (float)b[i]));
        out[9 * n + i] = (unsigned)__double_as_longlong(__dsub_rn(__dmul_rn(a[i] / 3.0, b[i] / 7.0), (double)b[i]));
}
"""


def test_functions_on_parts_of_registers_and_with_rounding(client):
    a, b = (numpy.random.default_rng(seed).integers(0, 1 << 32, N, numpy.uint32) for seed in (1, 2))
    got = run_one(client, LANES, [In(client.array(a)), In(client.array(b))], numpy.zeros(10 * N, numpy.uint32)).reshape(10, N)

    bytes_a, bytes_b = a.view(numpy.int8).astype(int), b.view(numpy.int8).astype(int)
    dots = (bytes_a * bytes_b).reshape(N, 4).sum(1) + 5
    small_a, small_b = a.view(numpy.uint8).astype(int), b.view(numpy.uint8).astype(int)
    halves_a, halves_b = a.view(numpy.uint16).astype(int), b.view(numpy.uint16).astype(int)
    high = b.view(numpy.uint8).reshape(N, 4)[:, 2:].astype(int)
    floats = a.view(numpy.int32).astype(numpy.float32)
    floats = numpy.where(abs(floats.astype(float)) > abs(a.view(numpy.int32).astype(float)),
                         numpy.nextafter(floats, numpy.float32(0)), floats)
    for row, wanted in enumerate([
            numpy.clip(bytes_a + bytes_b, -128, 127).astype(numpy.int8).view(numpy.uint32),
            abs(halves_a - halves_b).astype(numpy.uint16).view(numpy.uint32),
            numpy.where(bytes_a > bytes_b, 255, 0).astype(numpy.uint8).view(numpy.uint32),
            abs(small_a - small_b).reshape(N, 4).sum(1), dots.astype(numpy.int32).view(numpy.uint32),
            (halves_a.reshape(N, 2) * high).sum(1) + 5, floats.view(numpy.uint32)]):
        numpy.testing.assert_array_equal(got[row], wanted, f"row {row}")
    exact = (a >> 8).astype(float) + float(numpy.float32(1e-3))
    above = exact.astype(numpy.float32)
    above = numpy.where(above.astype(float) < exact, numpy.nextafter(above, numpy.float32(numpy.inf)), above)
    numpy.testing.assert_array_equal(got[7], above.view(numpy.uint32))
    # No fma() is made of what is rounded twice.
    singles_a, singles_b = a.astype(numpy.float32), b.astype(numpy.float32)
    numpy.testing.assert_array_equal(got[8], (singles_a * singles_b - singles_b).view(numpy.uint32))
    numpy.testing.assert_array_equal(got[9], ((a / 3.0) * (b / 7.0) - b).view(numpy.uint32)[::2])


MATRICES = r"""
#include <mma.h>
using namespace nvcuda::wmma;

template <class T, class Sum, class A, class B, int m, int n, int k_, class Stored>
__device__ void multiply(const Stored *a, const Stored *b, float *out)
{
        __shared__ Sum sums[m * n];
        fragment<matrix_a, m, n, k_, T, A> left;
        fragment<matrix_b, m, n, k_, T, B> right;
        fragment<accumulator, m, n, k_, Sum> sum;

        fill_fragment(sum, (Sum)1);
        load_matrix_sync(left, a, 32);
        load_matrix_sync(right, b, 32);
        mma_sync(sum, left, right, sum);
        for (int i = 0; i < sum.num_elements; i++)
                sum.x[i] = sum.x[i] + sum.x[i];
        store_matrix_sync(sums, sum, n, mem_row_major);
        __syncthreads();
        for (int i = threadIdx.x; i < m * n; i += 32)
                out[i] = (float)sums[i];
}

extern "C" __global__ void k(const int *values, float *out)
{
        __shared__ __align__(32) half h[2][1024];
        __shared__ __align__(32) __nv_bfloat16 b[2][1024];
        __shared__ __align__(32) signed char c[2][1024];
        __shared__ __align__(32) float t[2][1024];

        for (int i = threadIdx.x; i < 2048; i += 32) {
                h[0][i] = __float2half((float)values[i]);
                b[0][i] = __float2bfloat16((float)values[i]);
                c[0][i] = (signed char)values[i];
                t[0][i] = __float_to_tf32((float)values[i]);
        }
        __syncthreads();
        multiply<half, float, row_major, col_major, 16, 16, 16>(h[0], h[1], out);
        multiply<half, half, col_major, row_major, 32, 8, 16>(h[0], h[1], out + 256);
        multiply<__nv_bfloat16, float, row_major, row_major, 8, 32, 16>(b[0], b[1], out + 512);
        multiply<signed char, int, col_major, col_major, 16, 16, 16>(c[0], c[1], out + 768);
        multiply<precision::tf32, float, row_major, col_major, 16, 16, 8>(t[0], t[1], out + 1024);
}
"""


@pytest.mark.cpu  # clang makes no matrices for GPUs
def test_matrices(client):
    values = numpy.random.default_rng(6).integers(-4, 5, 2048).astype(numpy.int32)
    got = run_one(client, MATRICES, [In(client.array(values))], numpy.zeros(1280, numpy.float32), 32)
    a, b = values.reshape(2, 32, 32)
    for at, (m, n, k, left, right) in enumerate([
            (16, 16, 16, a, b.T), (32, 8, 16, a.T, b), (8, 32, 16, a, b), (16, 16, 16, a.T, b.T), (16, 16, 8, a, b.T)]):
        wanted = 2 * (left[:m, :k] @ right[:k, :n] + 1)
        numpy.testing.assert_array_equal(got[256 * at:256 * (at + 1)], wanted.ravel())


COMPLEX = r"""
#include <cuComplex.h>

#ifdef __CUDACC__
__host__ __device__
#endif
inline float half_of(float v)
{
        return v / 2;
}

extern "C" __global__ void k(const cuFloatComplex *a, const cuFloatComplex *b, cuFloatComplex *out)
{
        int i = threadIdx.x, n = blockDim.x;
        out[i] = cuCmulf(a[i], b[i]);
        out[n + i] = cuCdivf(a[i], b[i]);
        out[2 * n + i] = make_cuFloatComplex(cuCabsf(a[i]), half_of(cuCimagf(b[i])));
}
"""


def test_complex_numbers(client):
    random = numpy.random.default_rng(8)
    a, b = ((random.uniform(-3, 3, N) + 1j * random.uniform(-3, 3, N)).astype(numpy.complex64) for _ in range(2))
    got = run_one(client, COMPLEX, [In(client.array(a)), In(client.array(b))], numpy.zeros(3 * N, numpy.complex64))
    numpy.testing.assert_allclose(got, numpy.concatenate([a * b, a / b, abs(a) + 0.5j * b.imag]), rtol=1e-5, atol=1e-6)


STAGES = r"""
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

extern "C" __global__ void k(const int *in, int *out)
{
        constexpr int n = 64, stages = 2;
        __shared__ int room[stages][n];
        __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
        __shared__ cuda::barrier<cuda::thread_scope_block> met;
        auto block = cooperative_groups::this_thread_block();
        int i = threadIdx.x, sum = 0;

        if (i == 0)
                init(&met, n);
        auto shared = cuda::make_pipeline(block, &state);
        for (int step = 0; step < 5; step++) {
                shared.producer_acquire();
                cuda::memcpy_async(block, room[step % stages], in + step * n, cuda::aligned_size_t<4>(sizeof(int) * n), shared);
                shared.producer_commit();
                shared.consumer_wait();
                sum = 3 * sum + room[step % stages][n - 1 - i];
                shared.consumer_release();
        }
        met.arrive_and_wait();
        room[0][i] = sum;
        auto token = met.arrive();
        met.wait(std::move(token));
        out[i] = room[0][i ^ 1];

        auto own = cuda::make_pipeline();
        cuda::memcpy_async(&room[1][i], &in[i], sizeof(int), own);
        own.producer_commit();
        cuda::pipeline_consumer_wait_prior<0>(own);
        out[n + i] = room[1][i];
}
"""


@pytest.mark.cpu  # by clang a GPU has no mbarrier
def test_barriers_and_pipelines_of_a_block(client):
    values = numpy.random.default_rng(9).integers(0, 100, 5 * N).astype(numpy.int32)
    sums = 0
    for step in values.reshape(5, N)[:, ::-1]:
        sums = 3 * sums + step
    got = run_one(client, STAGES, [In(client.array(values))], numpy.zeros(2 * N, numpy.int32))
    numpy.testing.assert_array_equal(got, numpy.concatenate([sums[numpy.arange(N) ^ 1], values[:N]]))


TILES = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int *out) { out[threadIdx.x] = cg::tiled_partition<4>(GROUP).size(); }
"""


def test_only_blocks_and_tiles_have_tiles_of_a_constant_size(client):
    of_block = TILES.replace("GROUP", "cg::this_thread_block()")
    numpy.testing.assert_array_equal(run_one(client, of_block, [], numpy.zeros(N, numpy.int32)), 4)
    with pytest.raises(Refused) as refused:
        client.load(TILES.replace("GROUP", "cg::coalesced_threads()"))
    assert refused.value.code == pb.E_COMPILE


ARRIVALS = r"""
#include <cuda/barrier>

extern "C" __global__ void k(int *out)
{
        __shared__ cuda::barrier<cuda::thread_scope_block> met;
        if (threadIdx.x == 0) {
                init(&met, 4);
                met.arrive(TIMES);
                for (int i = 2; i < OTHERS; i++)
                        met.arrive();
                met.wait(met.arrive());
        }
        out[threadIdx.x] = 1;
}
"""


@pytest.mark.cpu  # by clang a GPU has no mbarrier
def test_a_barrier_counts_arrivals(client):
    none = "#ifdef __CUDACC_RTC__\n#define TIMES 1\n#else\n#define TIMES 0\n#endif\n"  # CUDA does not define it; gpuq's counts one
    for source in ("#define TIMES 3\n" + ARRIVALS.replace("OTHERS", "2"), none + ARRIVALS.replace("OTHERS", "4")):
        numpy.testing.assert_array_equal(run_one(client, source, [], numpy.zeros(N, numpy.int32)), 1)


SPECIAL = r"""
extern "C" __global__ void k(const float *in, const double *wide, int *out)
{
        float v = in[threadIdx.x];
        double w = wide[threadIdx.x];
        out[threadIdx.x] = (isnan(v) ? 1 : 0) | (isinf(v) ? 2 : 0) | (v != v ? 4 : 0) | (isfinite(v) ? 8 : 0) | (isnan(w) ? 16 : 0) |
                           (isinf(w) ? 32 : 0) | (w != w ? 64 : 0) | (v - v == 0 ? 128 : 0) | (v * 0 == 0 ? 256 : 0);
}
"""


@pytest.mark.parametrize("options", [(), ("--use_fast_math",)], ids=["as it is", "fast"])
def test_infinities_and_nan_are_known(client, options):
    values = numpy.array([numpy.nan, numpy.inf, -numpy.inf, 1.5], numpy.float32)
    arguments = [In(client.array(values)), In(client.array(values.astype(float)))]
    got = run_one(client, SPECIAL, arguments, numpy.zeros(4, numpy.int32), 4, options)
    numpy.testing.assert_array_equal(got, [1 | 4 | 16 | 64, 2 | 32, 2 | 32, 8 | 128 | 256])


BYTES = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> __device__ void convert(float v, int *out)
{
        out[0] = (signed char)T(v);
        out[1] = (unsigned char)T(v);
        out[2] = (char)T(v);
        out[3] = (short)T(v);
}

extern "C" __global__ void k(const float *in, int *out)
{
        convert<half>(in[threadIdx.x], out + 8 * threadIdx.x);
        convert<__nv_bfloat16>(in[threadIdx.x], out + 8 * threadIdx.x + 4);
}
"""


def test_numbers_of_16_bits_as_bytes(client):
    values = numpy.array([300, -300, numpy.nan, numpy.inf, -numpy.inf, 1.75, -1.75, 127.5, 129, -129, 255, 200], numpy.float32)
    got = run_one(client, BYTES, [In(client.array(values))], numpy.zeros(8 * values.size, numpy.int32), values.size)
    whole = numpy.trunc(numpy.nan_to_num(values, nan=0, posinf=1e6, neginf=-1e6))
    wanted = numpy.array([whole.clip(-128, 127), whole.clip(0, 255), whole.clip(-128, 127), whole.clip(-32768, 32767)])
    numpy.testing.assert_array_equal(got.reshape(-1, 2, 4), numpy.stack([wanted.T, wanted.T], 1))


LONG = r"""
#include <cuda_bf16.h>

extern "C" __global__ void k(const long long *in, unsigned short *out)
{
        int i = threadIdx.x, n = blockDim.x;
        out[i] = __bfloat16_as_ushort(__ll2bfloat16_rn(in[i]));
        out[n + i] = __bfloat16_as_ushort(__nv_bfloat16(in[i]));
        out[2 * n + i] = __bfloat16_as_ushort(__ull2bfloat16_rn((unsigned long long)in[i] << 1));
}
"""


def bfloat_of(value):
    """The bits of the nearest bfloat16 number, and of two the even one."""
    shift = max(0, abs(value).bit_length() - 8)
    kept, rest = divmod(abs(value), 1 << shift)
    kept += shift > 0 and (rest, kept & 1) > (1 << shift - 1, 0)
    return int(numpy.float32(float(kept << shift) * (-1 if value < 0 else 1)).view(numpy.uint32)) >> 16


def test_an_integer_of_64_bits_is_rounded_once(client):
    half_way = (1 << 62) + (1 << 54)
    values = [half_way + 1, half_way, half_way - 1, half_way + (2 << 54), (1 << 63) - 1, 0, 1, 257, 258]
    values += [-value for value in values] + [-(1 << 63)]
    given = In(client.array(numpy.array(values, numpy.int64)))
    got = run_one(client, LONG, [given], numpy.zeros(3 * len(values), numpy.uint16), len(values))
    signed = [bfloat_of(value) for value in values]
    assert signed[0] == 0x5e81 and signed[1] == 0x5e80
    numpy.testing.assert_array_equal(got, signed + signed + [bfloat_of((value << 1) % (1 << 64)) for value in values])


LEAST = r"""
extern "C" __global__ void k(const float *f, const double *d, double *out)
{
        int i = threadIdx.x, n = blockDim.x;
        out[i] = min(f[i], d[i]);
        out[n + i] = max(f[i], d[i]);
        out[2 * n + i] = min(d[i], f[i]);
        out[3 * n + i] = max(d[i], f[i]);
}
"""


def test_the_least_of_a_float_and_a_double(client):
    f, d = numpy.array([numpy.nan, 2, 0, -0.0, 3], numpy.float32), numpy.array([1, numpy.nan, -0.0, 0, 4])
    got = run_one(client, LEAST, [In(client.array(f)), In(client.array(d))], numpy.zeros(4 * f.size), f.size).reshape(4, -1)
    least, most = [1, 2, -0.0, -0.0, 3], [1, 2, 0, 0, 4]
    for row, wanted in enumerate([least, most, least, most]):
        numpy.testing.assert_array_equal(got[row], wanted, f"row {row}")
        numpy.testing.assert_array_equal(numpy.signbit(got[row]), numpy.signbit(wanted), f"row {row}")


WHOLE = r"""
extern "C" __global__ void k(const float *in, long long *out)
{
        int i = threadIdx.x, n = blockDim.x;
        out[i] = lrintf(in[i]);
        out[n + i] = llrintf(in[i]);
        out[2 * n + i] = lroundf(in[i]);
        out[3 * n + i] = llroundf(in[i]);
        out[4 * n + i] = llrint((double)in[i]);
        out[5 * n + i] = llround((double)in[i]);
}
"""


@pytest.mark.cpu  # by clang a GPU has no mathematical functions
def test_whole_numbers_out_of_range_are_the_nearest(client):
    values = numpy.array([numpy.inf, -numpy.inf, 1e30, -1e30, 2.5, -2.5, 3.5, 0.49999997, -7], numpy.float32)
    got = run_one(client, WHOLE, [In(client.array(values))], numpy.zeros(6 * values.size, numpy.int64), values.size).reshape(6, -1)
    edges = [(1 << 63) - 1, -(1 << 63)] * 2
    even, away = [2, -2, 4, 0, -7], [3, -3, 4, 0, -7]
    for row, ends in enumerate([even, even, away, away, even, away]):
        numpy.testing.assert_array_equal(got[row], edges + ends, f"row {row}")
