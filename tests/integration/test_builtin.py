# SPDX-License-Identifier: Apache-2.0
"""Every built-in kernel against numpy: odd sizes, nothing at all, both widths, the same bits each time."""

import struct

import numpy
import pytest

from harness.client import In, InOut, Job, Out, f32, f64, u64
from harness.kernels import assert_failed
from harness.messages import pb

SIZES = [0, 1, 7, 255, 256, 1025, 10007]
TYPES = ["f32", "f64"]
CHECKED = ["--check"]  # the same, and each access is compared with the job's buffers
BLOCK = 128


def dtype_of(name):
    return {"f32": numpy.float32, "f64": numpy.float64}[name]


def real(name, value):
    return {"f32": f32, "f64": f64}[name](value)


def grid_of(n):
    return max(1, -(-n // BLOCK))


class Bench:
    """Runs one kernel on fresh buffers."""

    def __init__(self, client, type_name, options):
        self.client, self.type_name, self.dtype = client, type_name, dtype_of(type_name)
        self.module = client.builtin(options)
        self.random = numpy.random.default_rng(17)

    def values(self, *shape):
        return self.random.uniform(-2, 2, shape).astype(self.dtype)

    def input(self, values):
        return In(self.client.array(values).slice(0, values.nbytes))

    def output(self, n):
        arena = self.client.arena(max(1, n * numpy.dtype(self.dtype).itemsize))
        return arena, Out(arena.slice(0, n * numpy.dtype(self.dtype).itemsize))

    def run(self, kernel, args, grid, block=BLOCK):
        self.client.run_well(Job().launch(self.module, f"{kernel}_{self.type_name}", args, grid, block))

    def real(self, value):
        return real(self.type_name, value)

    def result(self, arena, n):
        return arena.array(self.dtype, n) if n else numpy.zeros(0, self.dtype)

    def close_to(self, got, wanted, terms=1):
        tolerance = 4 * numpy.finfo(self.dtype).eps * max(1, terms)
        numpy.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=[(name, options) for options in ([], CHECKED) for name in TYPES],
                ids=[*TYPES, *(f"{name}-checked" for name in TYPES)])
def bench(client, request):
    return Bench(client, *request.param)


def test_every_promised_kernel_is_there_in_both_widths(client):
    names = {kernel.name for kernel in client.builtin().kernels}
    for kernel in ("add", "axpy", "scale", "polynomial", "sum", "sum_of_squares", "dot", "gemm", "gemv",
                   "divide", "mean", "min", "max", "argmin", "argmax"):
        for type_name in TYPES:
            assert f"{kernel}_{type_name}" in names


def test_each_kernel_says_what_it_takes(client):
    for kernel in client.builtin().kernels:
        assert kernel.text and kernel.kinds_known and kernel.max_block >= 1024  # "any grid and block"
        assert kernel.parameters


def test_add_and_divide(bench):
    for n in SIZES:
        a, b = bench.values(n), bench.values(n)
        for kernel, wanted in (("add", a + b), ("divide", a / b)):
            arena, out = bench.output(n)
            bench.run(kernel, [bench.input(a), bench.input(b), out, u64(n)], grid_of(n))
            bench.close_to(bench.result(arena, n), wanted)


def test_divide_by_zero_is_as_ieee_754_says(bench):
    a, b = bench.values(3), numpy.zeros(3, bench.dtype)
    a[:] = [1, -1, 0]
    arena, out = bench.output(3)
    bench.run("divide", [bench.input(a), bench.input(b), out, u64(3)], 1)
    got = bench.result(arena, 3)
    assert got[0] == numpy.inf and got[1] == -numpy.inf and numpy.isnan(got[2])


def test_scale_and_axpy(bench):
    for n in SIZES:
        x, y = bench.values(n), bench.values(n)
        arena, out = bench.output(n)
        bench.run("scale", [bench.real(2.5), bench.input(x), out, u64(n)], grid_of(n))
        bench.close_to(bench.result(arena, n), bench.dtype(2.5) * x)

        arena = bench.client.array(y)
        bench.run("axpy", [bench.real(2.5), bench.input(x), InOut(arena.slice(0, y.nbytes)), u64(n)],
                  grid_of(n))
        bench.close_to(bench.result(arena, n), bench.dtype(2.5) * x + y, 4)


def test_polynomial(bench):
    for n in SIZES:
        for degree in (0, 1, 5):
            x, c = bench.values(n), bench.values(degree)
            arena, out = bench.output(n)
            bench.run("polynomial", [bench.input(c), u64(degree), bench.input(x), out, u64(n)], grid_of(n))
            wanted = numpy.polynomial.polynomial.polyval(x, c) if degree else numpy.zeros(n)
            bench.close_to(bench.result(arena, n), wanted, 64)


def test_reductions(bench):
    for n in SIZES:
        x, y = bench.values(n), bench.values(n)
        wide_x, wide_y = x.astype(numpy.float64), y.astype(numpy.float64)
        wanted = {"sum": wide_x.sum(), "sum_of_squares": (wide_x ** 2).sum(), "dot": (wide_x * wide_y).sum()}
        for kernel, value in wanted.items():
            inputs = [bench.input(x)] + ([bench.input(y)] if kernel == "dot" else [])
            arena, out = bench.output(1)
            bench.run(kernel, [*inputs, out, u64(n)], 1)
            bench.close_to(bench.result(arena, 1)[0], value, n ** 0.5)


def test_reductions_give_the_same_bits_each_time_and_for_each_block(bench):
    n = 10007
    x = bench.values(n)
    seen = set()
    for block in (1024, 1024, 256, 32, 1):
        arena, out = bench.output(1)
        bench.run("sum", [bench.input(x), out, u64(n)], 1, block)
        seen.add(bench.result(arena, 1).tobytes())
    assert len(seen) == 1


# ---- reductions of many numbers work in all blocks, with the result of one ----

LANES, ROW, PART, PARTS_MAX, ONE_PART = 1024, 4, 32768, 2048, 65536  # kernels/reduce.cuh
WIDE_SIZES = [0, 1, 1023, 1024, 1025, ONE_PART - 1, ONE_PART, ONE_PART + 1, 10 * PART + 1, 1_000_007]


def tree(lanes):
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


def in_lanes(terms, row=ROW):
    """Each lane its rows in order, then the tree."""
    lanes = numpy.zeros(LANES)
    for rows in numpy.pad(terms, (0, -len(terms) % (LANES * row))).reshape(-1, LANES, row):
        for numbers in rows.T:
            lanes = lanes + numbers
    return tree(lanes)


def fixed_order(terms):
    """The sum in the order that kernels/reduce.cuh promises."""
    n = len(terms)
    length = n if n <= ONE_PART else -(-n // (PART * PARTS_MAX)) * PART
    parts = [in_lanes(terms[begin:begin + length]) for begin in range(0, n, max(1, length))]
    return in_lanes(numpy.array(parts), 1)


def in_device(client, values):
    """The values in device memory."""
    host, arena = client.array(values), client.device_arena(max(1, values.nbytes))
    if values.nbytes:
        client.run_well(Job().copy(arena.slice(0, values.nbytes), host.slice(0, values.nbytes), values.nbytes))
    return arena.slice(0, values.nbytes)


def reduction_data(bench, n):
    """Numbers whose products are exact in f64: so it does not matter whether they are rounded before they are added."""
    x, y = (bench.random.uniform(-2, 2, n).astype(numpy.float32).astype(bench.dtype) for _ in range(2))
    return x, y, x.astype(numpy.float64), y.astype(numpy.float64)


def test_reductions_have_the_bits_of_their_fixed_order(bench):
    for n in WIDE_SIZES:
        x, y, wide_x, wide_y = reduction_data(bench, n)
        wanted = {"sum": wide_x, "sum_of_squares": wide_x * wide_x, "dot": wide_x * wide_y}
        for kernel, terms in wanted.items():
            inputs = [x] + ([y] if kernel == "dot" else [])
            arena, out = bench.output(1)
            bench.run(kernel, [*map(bench.input, inputs), out, u64(n)], 1, 1024)
            assert bench.result(arena, 1)[0].tobytes() == bench.dtype(fixed_order(terms)).tobytes(), (kernel, n)


def test_means_have_the_bits_of_their_sums(bench):
    for n in (1, 1025, ONE_PART + 1, 300_001):
        x = bench.values(n)
        arena, out = bench.output(1)
        bench.run("mean", [bench.input(x), out, u64(n)], 1, 1024)
        wanted = fixed_order(x.astype(numpy.float64)) / n
        assert bench.result(arena, 1)[0].tobytes() == bench.dtype(wanted).tobytes(), n


def extremes(bench, x):
    """min, max, argmin and argmax of the values."""
    results = []
    for kernel, dtype in (("min", bench.dtype), ("max", bench.dtype), ("argmin", numpy.uint64), ("argmax", numpy.uint64)):
        arena = bench.client.arena(8)
        bench.run(kernel, [bench.input(x), Out(arena.slice(0, numpy.dtype(dtype).itemsize)), u64(len(x))], 1, 256)
        results.append(arena.array(dtype, 1)[0])
    return results


def test_extremes_are_those_of_numpy(bench):
    for n in (1, 2, 1025, ONE_PART, ONE_PART + 1, 10 * PART + 1, 300_001):
        x = numpy.round(bench.values(n), 2)  # with many equal ones, of which the first counts
        assert extremes(bench, x) == [x.min(), x.max(), x.argmin(), x.argmax()], n
        x[bench.random.integers(n, size=2)] = numpy.inf, -numpy.inf
        assert extremes(bench, x) == [x.min(), x.max(), x.argmin(), x.argmax()], n


def test_nan_comes_before_all_numbers(bench):
    for n in (1, 2000, 100_001):
        x = bench.values(n)
        at = bench.random.integers(n, size=3)
        x[at] = numpy.nan
        least, most, *places = extremes(bench, x)
        assert numpy.isnan(least) and numpy.isnan(most)
        assert places == [at.min()] * 2


def test_extremes_and_mean_of_nothing(bench):
    x = bench.values(0)
    assert extremes(bench, x) == [numpy.inf, -numpy.inf, 2**64 - 1, 2**64 - 1]
    arena, out = bench.output(1)
    bench.run("mean", [bench.input(x), out, u64(0)], 1)
    assert numpy.isnan(bench.result(arena, 1)[0])
    infinite = numpy.full(3, numpy.inf, bench.dtype)
    assert extremes(bench, infinite) == [numpy.inf, numpy.inf, 0, 0]


def test_lanes_add_up_several_parts_of_very_many_numbers(client):
    n = (LANES + 1) * PART + 5
    x = numpy.random.default_rng(6).uniform(-2, 2, n).astype(numpy.float32)
    arena = client.arena(8)
    for grid, block in ((1, 1024), (7, 32)):
        client.run_well(Job().launch(client.builtin(), "sum_f32", [In(client.array(x)), Out(arena.slice(0, 4)), u64(n)],
                                     grid, block))
        assert arena.array(numpy.float32)[0] == numpy.float32(fixed_order(x.astype(numpy.float64)))


def test_neither_geometry_nor_place_change_the_bits_of_a_reduction(bench):
    for n in (ONE_PART, ONE_PART + 1, 300_001):
        x = bench.values(n)
        near, far = bench.input(x), In(in_device(bench.client, x))
        seen = set()
        for place in (near, far):
            for grid, block in ((1, 1024), (1, 32), ((3, 2), (8, 4, 2)), (200, 256)):
                arena, out = bench.output(1)
                bench.run("sum", [place, out, u64(n)], grid, block)
                seen.add(bench.result(arena, 1).tobytes())
        assert seen == {bench.dtype(fixed_order(x.astype(numpy.float64))).tobytes()}


def test_wide_reductions_in_a_chain_with_other_kernels(client):
    """They share memory for their parts, and what is written before and read after is in order."""
    n, module = 300_001, client.builtin()
    x = numpy.random.default_rng(3).uniform(-2, 2, n)
    data, twice, sums = In(in_device(client, x)), client.device_arena(8 * n), client.arena(24)
    for _ in range(5):
        job = Job().launch(module, "sum_f64", [data, Out(sums.slice(0, 8)), u64(n)], 1, 1024)
        job.launch(module, "scale_f64", [f64(2), data, Out(twice), u64(n)], 100, 256)
        job.launch(module, "sum_f64", [Out(twice), Out(sums.slice(8, 8)), u64(n)], 1, 1024)
        job.launch(module, "dot_f64", [data, data, Out(sums.slice(16, 8)), u64(1000)], 1, 1024)
        client.run_well(job)
        assert list(sums.array(numpy.float64)[:2]) == [fixed_order(x), fixed_order(2 * x)]
        numpy.testing.assert_allclose(sums.array(numpy.float64)[2], (x[:1000] ** 2).sum())


def test_wide_reductions_at_once_do_not_mix(client):
    """Many jobs on all streams, large and small: each stream has memory of its own for parts."""
    module, n_max = client.builtin(), 200_000
    x = numpy.random.default_rng(4).uniform(-2, 2, n_max)
    data = in_device(client, x)
    sizes = [n_max - 1000 * i if i % 3 else 1000 + i for i in range(60)]
    sums = client.arena(64 * len(sizes))
    ids = client.submit(*(Job().launch(module, "sum_f64", [In(data), Out(sums.slice(64 * i, 8)), u64(n)], 1, 1024)
                          for i, n in enumerate(sizes)))
    for id in ids:
        assert client.wait(id).state == pb.DONE
    assert list(sums.array(numpy.float64)[::8]) == [fixed_order(x[:n]) for n in sizes]


def test_a_prepared_reduction_is_fired_with_another_length(client):
    module, n_max = client.builtin(), 200_000
    x = numpy.random.default_rng(5).uniform(-2, 2, n_max)
    data, sums = in_device(client, x), client.arena(8)
    job = Job().launch(module, "sum_f64", [In(data), Out(sums), u64(n_max)], 1, 1024).message
    number = client.call(prepare=pb.Prepare(job=job)).prepared.prepared
    at = job.operations.index(struct.pack("<Q", n_max))
    for n in (n_max, 1000, ONE_PART, ONE_PART + 1, 0, n_max - 1, n_max):
        client.tag += 1
        client.tell(fires=pb.Fires(fires=[pb.Fire(prepared=number, tag=client.tag, patches=[at, 8],
                                                  values=struct.pack("<Q", n))]))
        assert client.wait(client.session << 32 | client.tag).state == pb.DONE
        assert sums.array(numpy.float64)[0] == fixed_order(x[:n])


# ---- the other kernels ----


def test_gemv(bench):
    for m, n in ((1, 1), (3, 5), (17, 1000), (65, 33), (4, 0), (0, 4)):
        a, x = bench.values(m, n), bench.values(n)
        arena, out = bench.output(m)
        bench.run("gemv", [bench.input(a), bench.input(x), out, u64(m), u64(n)], max(1, m))
        bench.close_to(bench.result(arena, m), a.astype(numpy.float64) @ x, max(1, n))


# Rows, columns and what is summed up. The first are computed in small tiles; the last have at least 96 large tiles of
# 64 rows and 128 columns (f64: 64), with edges on both sides.
GEMM_SMALL = [(1, 1, 1), (3, 5, 7), (33, 31, 65), (64, 64, 64), (2, 3, 0), (0, 3, 2), (31, 97, 32), (95, 34, 17)]
GEMM_LARGE = [(6081, 3, 5), (2, 12161, 19), (130, 3973, 9), (65, 6145, 0)]


def gemm(bench, a, b, c, beta, grid=None, block=256):
    """1.5 a b + beta c, as one flat array."""
    (m, k), n = a.shape, b.shape[1]
    arena = bench.client.array(c)
    args = [bench.input(a), bench.input(b), InOut(arena.slice(0, c.nbytes)), u64(m), u64(n), u64(k),
            bench.real(1.5), bench.real(beta)]
    bench.run("gemm", args, grid or (max(1, -(-n // 32)), max(1, -(-m // 32))), block)
    return bench.result(arena, m * n)


@pytest.mark.parametrize("shapes", [GEMM_SMALL, GEMM_LARGE], ids=["small", "large"])
@pytest.mark.parametrize("block", [256, 96])
def test_gemm(bench, shapes, block):
    for m, n, k in shapes:
        a, b, c = bench.values(m, k), bench.values(k, n), bench.values(m, n)
        for beta in (0.0, 0.5):
            wanted = 1.5 * (a.astype(numpy.float64) @ b) + beta * c
            bench.close_to(gemm(bench, a, b, c, beta, block=block), wanted.reshape(-1), 16 * max(1, k))


@pytest.mark.parametrize("block", [256, 96])
def test_gemm_does_not_read_c_if_beta_is_0(bench, block):
    for m, n, k in ((33, 31, 65), (5, 3, 0), (6081, 3, 5)):
        a, b, c = bench.values(m, k), bench.values(k, n), numpy.full((m, n), numpy.nan, bench.dtype)
        wanted = 1.5 * (a.astype(numpy.float64) @ b)
        bench.close_to(gemm(bench, a, b, c, 0.0, block=block), wanted.reshape(-1), 16 * max(1, k))
        assert numpy.isnan(gemm(bench, a, b, c, 0.5, block=block)).all()


@pytest.mark.parametrize("shape", [(33, 65, 47), (130, 3973, 9)], ids=["small", "large"])
def test_gemm_gives_the_same_bits_for_each_geometry(bench, shape):
    """Some products are so small that they are rounded to 0 and -0: what pads an edge must not change the sign."""
    m, n, k = shape
    a, b, c = bench.values(m, k), bench.values(k, n), bench.values(m, n)
    a[::3] *= numpy.sqrt(numpy.finfo(bench.dtype).tiny) / 1e9
    b[:, ::3] *= numpy.sqrt(numpy.finfo(bench.dtype).tiny) / 1e9
    for beta in (0.0, 0.5):
        results = {gemm(bench, a, b, c, beta, grid, block).tobytes()
                   for grid, block in ((None, 256), (1, (16, 16)), ((2, 3), (4, 8, 8)), (7, 1), ((3, 2), (7, 3)),
                                       (None, 128), (5, 512), (None, (32, 32)))}
        assert len(results) == 1


def test_the_geometry_does_not_change_the_result(bench):
    n = 1025
    a, b = bench.values(n), bench.values(n)
    results = set()
    for grid, block in ((1, 1), (5, 7), ((2, 3), (4, 2, 2)), (9, 256)):
        arena, out = bench.output(n)
        bench.run("add", [bench.input(a), bench.input(b), out, u64(n)], grid, block)
        results.add(bench.result(arena, n).tobytes())
    assert len(results) == 1


def test_output_starts_as_zeros(client):
    arena = client.array(numpy.full(100, 7.0))
    zeros = In(client.array(numpy.zeros(10)))
    client.run_well(Job().launch(client.builtin(), "add_f64", [zeros, zeros, Out(arena), u64(10)], 1, 32))
    assert not arena.array(numpy.float64).any()


def test_the_builtin_module_is_one_for_all_sessions_and_may_be_loaded_twice(client):
    first, second = client.builtin(), client.builtin()
    assert [kernel.name for kernel in first.kernels] == [kernel.name for kernel in second.kernels]
    client.tell(module_unload=pb.ModuleUnload(module=first.module))
    n = 3
    values = client.array(numpy.arange(n, dtype=numpy.float64))
    out = client.arena(8 * n)
    client.run_well(Job().launch(second, "scale_f64", [f64(2), In(values), Out(out), u64(n)], 1, 32))
    assert list(out.array(numpy.float64)) == [0, 2, 4]


# ---- buffers that are too small: the raw client sends what libgpuq would refuse ----

M, NN, K = 3, 5, 7  # different, so that no length can stand for another
LENGTHS = {"n": NN, "m": M, "k": K, "p": 2}


def described(kernel):
    """Its arguments from its text, as (direction or type, dtype, elements) each."""
    for word in kernel.text.split("\n")[1].split():
        first, _, *array = word.split(":")
        if array:
            yield first, array[0], int(numpy.prod([LENGTHS.get(length) or int(length) for length in array[1].split(",")]))
        else:
            yield first, None, LENGTHS.get(word.split(":")[1], 1)


def launch_of(client, module, kernel, arena, short=None):
    """A launch with slices of one arena, just as long as the kernel needs; argument `short` lacks a byte."""
    args, at = [], 0
    for i, (first, dtype, n) in enumerate(described(kernel)):
        if dtype is None:
            args.append({"u64": u64, "f32": f32, "f64": f64}[first](n))
            continue
        n_bytes = n * int(dtype[1:]) // 8
        args.append({"in": In, "out": Out, "inout": InOut}[first](arena.slice(at, n_bytes - (i == short))))
        at += -(-n_bytes // 1024) * 1024
    return Job().launch(module, kernel.name, args, 1, 32)


def test_every_buffer_of_every_kernel_may_be_as_small_as_it_says_and_no_smaller(client):
    module, arena = client.builtin(), client.arena(16384)
    for kernel in module.kernels:
        client.run_well(launch_of(client, module, kernel, arena))
        for i, (_, dtype, n) in enumerate(described(kernel)):
            if dtype is None:
                continue
            size = int(dtype[1:]) // 8
            assert_failed(client.run(launch_of(client, module, kernel, arena, short=i)), pb.E_INVALID,
                          f"argument {i + 1} of {kernel.name} needs {n * size} bytes ({n} elements of {size} bytes), "
                          f"but its buffer has {n * size - 1}")


def test_a_length_beyond_the_buffer_writes_over_no_neighbour(client):
    """It wrote over them, and reported success."""
    module, x = client.builtin(), client.array(numpy.ones(1000, numpy.float32))
    arena = client.array(numpy.full(2000, 7, numpy.float32))
    job = Job().launch(module, "scale_f32", [f32(2), In(x), Out(arena.slice(0, 40)), u64(1000)], 4, 256)
    assert_failed(client.run(job), pb.E_INVALID, "argument 3 of scale_f32 needs 4000 bytes")
    assert (arena.array(numpy.float32, 2000) == 7).all()


def test_lengths_whose_product_is_beyond_all_numbers(client):
    module, arena = client.builtin(), client.arena(4096)
    for m, n in ((1 << 63, 2), (1 << 62, 4), (1 << 32, 1 << 32), ((1 << 64) - 1, (1 << 64) - 1)):
        args = [In(arena.slice(0, 64)), In(arena.slice(0, 64)), Out(arena.slice(2048, 64)), u64(m), u64(n)]
        assert_failed(client.run(Job().launch(module, "gemv_f32", args, 1, 32)), pb.E_INVALID,
                      "argument 1 of gemv_f32 needs more than 2^64 bytes")


def test_of_several_operations_the_bad_one_is_named(client):
    module, arena = client.builtin(), client.arena(4096)
    job = Job().launch(module, "scale_f32", [f32(2), In(arena.slice(0, 40)), Out(arena.slice(1024, 40)), u64(10)])
    job.launch(module, "sum_f32", [In(arena.slice(0, 40)), Out(arena.slice(2048, 4)), u64(11)])
    assert_failed(client.run(job), pb.E_INVALID, "operation 2: argument 1 of sum_f32 needs 44 bytes")


def test_the_same_launch_with_smaller_buffers_is_checked_anew(client):
    """A worker keeps the programs of launches; equal ones differ in their buffers alone."""
    module, x = client.builtin(), client.array(numpy.ones(10, numpy.float32))
    arena = client.array(numpy.full(1000, 7, numpy.float32))

    def job(n_bytes):
        return Job().launch(module, "scale_f32", [f32(2), In(x), Out(arena.slice(0, n_bytes)), u64(10)], 1, 32)

    for _ in range(3):
        client.run_well(job(40))
        assert_failed(client.run(job(36)), pb.E_INVALID, "argument 3 of scale_f32 needs 40 bytes")
    assert (arena.array(numpy.float32, 1000)[10:] == 7).all()


def test_of_jobs_that_share_a_launch_only_the_bad_ones_fail(client):
    module, x = client.builtin(), client.array(numpy.ones(16, numpy.float32))
    arena = client.array(numpy.full(64 * 16, 7, numpy.float32))
    jobs = [Job().launch(module, "scale_f32", [f32(2), In(x), Out(arena.slice(64 * i, 32 if i % 8 == 5 else 64)), u64(16)],
                         1, 32) for i in range(64)]
    ids = client.submit(*jobs)
    for i, id in enumerate(ids):
        completion = client.wait(id)
        if i % 8 == 5:
            assert_failed(completion, pb.E_INVALID, "argument 3 of scale_f32 needs 64 bytes")
        else:
            assert completion.state == pb.DONE, completion
    values = arena.array(numpy.float32, 64 * 16).reshape(64, 16)
    assert all((values[i] == (7 if i % 8 == 5 else 2)).all() for i in range(64))


def test_a_prepared_job_is_checked_with_what_it_is_fired_with(client):
    module, x = client.builtin(), client.array(numpy.ones(1000, numpy.float32))
    arena = client.array(numpy.full(1000, 7, numpy.float32))
    job = Job().launch(module, "scale_f32", [f32(2), In(x), Out(arena.slice(0, 40)), u64(10)], 1, 32).message
    number = client.call(prepare=pb.Prepare(job=job)).prepared.prepared

    def fire(**fields):
        client.tag += 1
        client.tell(fires=pb.Fires(fires=[pb.Fire(prepared=number, tag=client.tag, **fields)]))
        return client.wait(client.session << 32 | client.tag)

    assert fire().state == pb.DONE
    at = job.operations.index(struct.pack("<Q", 10))
    assert_failed(fire(patches=[at, 8], values=struct.pack("<Q", 1000)), pb.E_INVALID, "needs 4000 bytes")
    assert_failed(fire(slices=[1, arena.id, 0, 36]), pb.E_INVALID, "argument 3 of scale_f32 needs 40 bytes")
    assert fire(slices=[1, arena.id, 0, 4000], patches=[at, 8], values=struct.pack("<Q", 20)).state == pb.DONE
