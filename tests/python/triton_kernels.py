# SPDX-License-Identifier: Apache-2.0
"""What Triton's tutorials do, with kernels of our own: each is compiled for a compute capability, run through gpuqd and compared with numpy.

    python3 triton_kernels.py 80

A file of its own, because Triton reads the kernels' source from it.
"""

import math
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")  # Triton tells of defaults that will change

import triton  # noqa: E402 pylint: disable=wrong-import-position
import triton.language as tl  # noqa: E402 pylint: disable=wrong-import-position
from triton.backends.compiler import GPUTarget  # noqa: E402 pylint: disable=wrong-import-position
from triton.language.extra import libdevice  # noqa: E402 pylint: disable=wrong-import-position
from triton.compiler import ASTSource  # noqa: E402 pylint: disable=wrong-import-position

import gpuq  # noqa: E402 pylint: disable=wrong-import-position

DICE = np.random.default_rng(1)


def load(fn, types, constants, most=999):
    """gpuq's kernel of a @triton.jit function. `constants`: by name, or of an element of a tuple by its path; `most`: compute capability."""
    signature = dict(zip(fn.arg_names, types))
    target = GPUTarget("cuda", min(int(sys.argv[1]), most), 32)
    try:
        source = ASTSource(fn, signature={**signature, **{name: "constexpr" for name in constants if isinstance(name, str)}},
                           constexprs={(fn.arg_names.index(name),) if isinstance(name, str) else name: value
                                       for name, value in constants.items()})
    except TypeError:  # an older Triton
        source = ASTSource(fn, signature=signature, constants=constants)
    return gpuq.from_triton(triton.compile(source, target=target))


def close(got, wanted, tolerance=1e-5):
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


# ---- vectors ----

@triton.jit
def axpy(x, y, out, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def vectors():
    n = 10_000
    x, y, out = DICE.random(n, np.float32), DICE.random(n, np.float32), np.zeros(n, np.float32)
    kernel = load(axpy, ["*fp32", "*fp32", "*fp32", "fp32", "i32"], {"BLOCK": 1024})
    kernel.run(-(-n // 1024), gpuq.In(x), gpuq.In(y), gpuq.Out(out), 2.5, n)
    close(out, 2.5 * x + y)
    out[:] = 0
    kernel.run((-(-n // 1024),), gpuq.In(x), gpuq.In(y), gpuq.Out(out), 2.5, n, 1024)  # the constant, too
    close(out, 2.5 * x + y)


# ---- rows ----

@triton.jit
def soften(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * stride
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row + at, mask=at < n, other=-float("inf"))
    part = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + at, part / tl.sum(part, 0), mask=at < n)


def softmax():
    x = DICE.standard_normal((7, 700), np.float32)
    out = np.zeros_like(x)
    load(soften, ["*fp32", "*fp32", "i32", "i32"], {"BLOCK": 1024}).run(7, gpuq.In(x), gpuq.Out(out), 700, 700)
    part = np.exp(x - x.max(1, keepdims=True))
    close(out, part / part.sum(1, keepdims=True))


@triton.jit
def normalize(x, y, weight, bias, mean, scale, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    middle = tl.sum(value, 0) / n
    away = tl.where(at < n, value - middle, 0.0)
    factor = 1 / tl.sqrt(tl.sum(away * away, 0) / n + eps)
    tl.store(mean + row, middle)
    tl.store(scale + row, factor)
    tl.store(y + row * n + at, away * factor * tl.load(weight + at, mask=at < n) + tl.load(bias + at, mask=at < n), mask=at < n)


def layer_norm():
    x, weight, bias = (DICE.standard_normal(size, np.float32) for size in ((5, 300), 300, 300))
    y, mean, scale = np.zeros_like(x), np.zeros(5, np.float32), np.zeros(5, np.float32)
    load(normalize, ["*fp32"] * 6 + ["i32", "fp32"], {"BLOCK": 512}).run(
        5, gpuq.In(x), gpuq.Out(y), gpuq.In(weight), gpuq.In(bias), gpuq.Out(mean), gpuq.Out(scale), 300, 1e-5)
    away = x - x.mean(1, keepdims=True)
    close(mean, x.mean(1))
    close(y, away / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias, 1e-4)


# ---- random numbers, scans, atomics ----

@triton.jit
def drop(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=at < n) / (1 - p), 0.0), mask=at < n)


def dropout():
    n = 4000
    x, out, again = DICE.random(n, np.float32) + 1, np.zeros(n, np.float32), np.zeros(n, np.float32)
    kernel = load(drop, ["*fp32", "*fp32", "i32", "fp32", "i32"], {"BLOCK": 256})
    for to in (out, again):
        kernel.run(-(-n // 256), gpuq.In(x), gpuq.Out(to), n, 0.25, 123)
    close(out[out != 0], x[out != 0] / 0.75)
    assert 0.2 < (out == 0).mean() < 0.3 and (out == again).all()


@triton.jit
def sum_up(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at, mask=at < n, other=0.0), 0), mask=at < n)


def scan():
    x, out = DICE.random(900, np.float32), np.zeros(900, np.float32)
    load(sum_up, ["*fp32", "*fp32", "i32"], {"BLOCK": 1024}).run(1, gpuq.In(x), gpuq.Out(out), 900)
    close(out, np.cumsum(x, dtype=np.float64), 1e-4)


@triton.jit
def count(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


def histogram():
    x, out = DICE.integers(0, 10, 3000).astype(np.int32), np.zeros(10, np.int32)
    load(count, ["*i32", "*i32", "i32"], {"BLOCK": 256}).run(12, gpuq.In(x), gpuq.InOut(out), 3000)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=10))


# ---- matrices, by the instructions for them ----

@triton.jit
def multiply(a, b, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, KIND: tl.constexpr):
    rows, columns = tl.program_id(0) * TM + tl.arange(0, TM), tl.program_id(1) * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    total = tl.zeros((TM, TN), KIND)
    from_a, from_b = a + rows[:, None] * K + depth[None, :], b + depth[:, None] * N + columns[None, :]
    for k in range(0, K, TK):
        left = tl.load(from_a, mask=(rows[:, None] < M) & (depth[None, :] < K - k), other=0)
        right = tl.load(from_b, mask=(depth[:, None] < K - k) & (columns[None, :] < N), other=0)
        total = tl.dot(left, right, total, out_dtype=KIND)
        from_a += TK
        from_b += TK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


def matrices():
    size = M, N, K = 75, 48, 90
    for name, dtype, to, kind, tolerance in (("fp16", np.float16, "fp32", tl.float32, 1e-3), ("fp32", np.float32, "fp32", tl.float32, 2e-2),
                                             ("i8", np.int8, "i32", tl.int32, 0)):
        values = (DICE.integers(-9, 9, shape) if dtype == np.int8 else DICE.random(shape) for shape in ((M, K), (K, N)))
        a, b = (value.astype(dtype) for value in values)
        c = np.zeros((M, N), np.int32 if dtype == np.int8 else np.float32)
        kernel = load(multiply, [f"*{name}", f"*{name}", f"*{to}", "i32", "i32", "i32"], {"TM": 32, "TN": 32, "TK": 32, "KIND": kind})
        kernel.run((3, 2), gpuq.In(a), gpuq.In(b), gpuq.Out(c), *size)
        close(c, a.astype(np.float64) @ b.astype(np.float64), tolerance)


@triton.jit
def attend(q, k, v, out, scale, L, D: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr):
    rows, depth = tl.program_id(0) * TM + tl.arange(0, TM), tl.arange(0, D)
    ours = tl.load(q + rows[:, None] * D + depth[None, :])
    most, weight = tl.full((TM,), -float("inf"), tl.float32), tl.zeros((TM,), tl.float32)
    total = tl.zeros((TM, D), tl.float32)
    for j in range(0, L, TN):
        others = j + tl.arange(0, TN)
        match = tl.dot(ours, tl.trans(tl.load(k + others[:, None] * D + depth[None, :]))) * scale
        higher = tl.maximum(most, tl.max(match, 1))
        part, fade = tl.exp(match - higher[:, None]), tl.exp(most - higher)
        weight = weight * fade + tl.sum(part, 1)
        total = tl.dot(part.to(tl.float16), tl.load(v + others[:, None] * D + depth[None, :]), total * fade[:, None])
        most = higher
    tl.store(out + rows[:, None] * D + depth[None, :], total / weight[:, None])


def attention():
    L, D = 128, 32
    q, k, v = (DICE.standard_normal((L, D)).astype(np.float16) for _ in range(3))
    out = np.zeros((L, D), np.float32)
    load(attend, ["*fp16"] * 3 + ["*fp32", "fp32", "i32"], {"D": D, "TM": 32, "TN": 32}).run(
        L // 32, gpuq.In(q), gpuq.In(k), gpuq.In(v), gpuq.Out(out), D ** -0.5, L)
    match = (q.astype(np.float32) @ k.astype(np.float32).T) * D ** -0.5
    part = np.exp(match - match.max(1, keepdims=True))
    close(out, part / part.sum(1, keepdims=True) @ v.astype(np.float32), 5e-3)


# ---- what takes pointers from memory ----

@triton.jit
def multiply_groups(a_ptrs, b_ptrs, c_ptrs, sizes, n_groups, PROGRAMS: tl.constexpr, T: tl.constexpr):
    tile, before = tl.program_id(0), 0
    for g in range(n_groups):
        size = tl.load(sizes + g)
        across = tl.cdiv(size, T)
        while tile >= before and tile < before + across * across:
            a, b = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16)), tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float32))
            rows, columns = (tile - before) // across * T + tl.arange(0, T), (tile - before) % across * T + tl.arange(0, T)
            total = tl.zeros((T, T), tl.float32)
            for k in range(0, size, T):
                depth = k + tl.arange(0, T)
                total = tl.dot(tl.load(a + rows[:, None] * size + depth[None, :]), tl.load(b + depth[:, None] * size + columns[None, :]), total)
            tl.store(c + rows[:, None] * size + columns[None, :], total)
            tile += PROGRAMS
        before += across * across


def arrays_of_pointers():
    sizes = 64, 32, 96
    a, b = ([gpuq.to_device(DICE.random((n, n)).astype(np.float16)) for n in sizes] for _ in range(2))
    c = [gpuq.device_array((n, n), np.float32) for n in sizes]
    tables = [gpuq.to_device(np.array([each.address for each in arrays], np.int64)) for arrays in (a, b, c)]
    kernel = load(multiply_groups, ["*i64"] * 3 + ["*i32", "i32"], {"PROGRAMS": 3, "T": 32})
    kernel.run(3, *tables, gpuq.In(np.array(sizes, np.int32)), len(sizes), uses=[*map(gpuq.In, a + b), *c])
    for left, right, got in zip(a, b, c):
        close(got.get(), left.get().astype(np.float64) @ right.get().astype(np.float64), 1e-3)


@triton.jit
def multiply_tiles(a, b, c, M, N, K, PROGRAMS: tl.constexpr, T: tl.constexpr):
    left = tl.make_tensor_descriptor(a, (M, K), (K, 1), (T, T))
    right = tl.make_tensor_descriptor(b, (N, K), (K, 1), (T, T))
    to = tl.make_tensor_descriptor(c, (M, N), (N, 1), (T, T))
    across = tl.cdiv(N, T)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, T) * across, PROGRAMS, flatten=True):
        row, column = tile // across * T, tile % across * T
        total = tl.zeros((T, T), tl.float32)
        for k in range(0, K, T):
            total = tl.dot(left.load([row, k]), right.load([column, k]).T, total)
        to.store([row, column], total.to(tl.float16))


def descriptors():
    """Made by the kernel. Those of the host are refused: see test_forms.py."""
    M, N, K = 72, 48, 80
    a, b, c = DICE.random((M, K)).astype(np.float16), DICE.random((N, K)).astype(np.float16), np.zeros((M, N), np.float16)
    load(multiply_tiles, ["*fp16"] * 3 + ["i32"] * 3, {"PROGRAMS": 2, "T": 32}).run(2, gpuq.In(a), gpuq.In(b), gpuq.Out(c), M, N, K)
    close(c, a.astype(np.float64) @ b.T.astype(np.float64), 2e-3)


# ---- locks between programs ----

@triton.jit
def add_columns(x, sums, lock, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    ours = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    first = tl.load(lock + 1) == 0
    if first:
        tl.atomic_xchg(lock + 1, 1)
    else:
        ours += tl.load(sums + at, mask=at < n)
    tl.store(sums + at, ours, mask=at < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def locks():
    x, sums, lock = DICE.random((40, 100), np.float32), np.full(100, 7, np.float32), np.zeros(2, np.int32)
    load(add_columns, ["*fp32", "*fp32", "*i32", "i32"], {"BLOCK": 128}).run(40, gpuq.In(x), gpuq.InOut(sums), gpuq.InOut(lock), 100)
    close(sums, x.sum(0), 1e-4)


# ---- tuples, and descriptors of the host ----

@triton.jit
def combine(xs, more, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(xs[0] + at) * xs[1] + tl.load(xs[2][0] + at) * xs[2][1]
    for i in tl.static_range(len(more)):
        value += tl.load(more[i] + at)
    tl.store(out[0] + at, value)
    tl.store(out[1] + at, -value)


def tuples():
    n = 128
    a, b, c, d = DICE.random((4, n), np.float32)
    out, negative = np.zeros(n, np.float32), np.zeros(n, np.float32)
    kernel = load(combine, [("*fp32", "fp32", ("*fp32", "constexpr")), ("*fp32", "*fp32"), ("*fp32", "*fp32")],
                  {"BLOCK": n, (0, 2, 1): 3})
    kernel.run(1, (gpuq.In(a), 2.0, (gpuq.In(b), 3)), (gpuq.In(c), gpuq.In(d)), (gpuq.Out(out), gpuq.Out(negative)))
    close(out, 2 * a + 3 * b + c + d)
    close(negative, -out)
    prepared = kernel.prepare(1, (gpuq.In(a), 2.0, (gpuq.In(b), 3)), (gpuq.In(c), gpuq.In(d)), (gpuq.Out(out), gpuq.Out(negative)))
    prepared.run(**{"xs[1]": 4.0, "more[0]": d})
    close(out, 4 * a + 3 * b + 2 * d)


@triton.jit
def scale_tiles(x, out, factor, T: tl.constexpr):
    row, column = tl.program_id(0) * T, tl.program_id(1) * T
    out.store([row, column], x.load([row, column]) * factor)


def host_descriptors():
    x = DICE.random((70, 48), np.float32)
    out = np.zeros_like(x)
    kernel = load(scale_tiles, ["tensordesc<fp32[32,32]>", "tensordesc<fp32[32,32]>", "fp32"], {"T": 32}, most=80)
    kernel.run((3, 2), gpuq.In(x), gpuq.Out(out), 3.0)
    close(out, 3 * x)
    to = gpuq.zeros((70, 48), np.float32)
    kernel.run((3, 2), gpuq.to_device(x), gpuq.Out(to), 5.0)
    close(to, 5 * x)


# ---- scalars of all types ----

@triton.jit
def store_scalars(out, a, b, c, d, e, f, g, h, i):
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e.to(tl.float64))
    tl.store(out + 5, f.to(tl.float64))
    tl.store(out + 6, g.to(tl.float64))
    tl.store(out + 7, h.to(tl.float64))
    tl.store(out + 8, i.to(tl.float64))


def scalars():
    out = np.zeros(9)
    kernel = load(store_scalars, ["*fp64", "i1", "i8", "i16", "u32", "i64", "u64", "fp64", "fp16", "bf16"], {})
    values = (True, -3, -300, 4000000000, -(1 << 40), 1 << 63, 0.1, 1.5, -2.5)
    kernel.run(1, gpuq.Out(out), *values)
    assert out.tolist() == [float(value) for value in values]
    kernel.run(1, gpuq.Out(out), *values[:7], np.float16(0.5), 1 + 2 ** -8 + 2 ** -20)  # cut to 8 bits, as Triton does
    assert out[7] == 0.5 and out[8] == 1


# ---- other functions ----

@triton.jit
def multiply_add(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def use_functions(x, out, whole, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(out + at, tl.sort(value))
    tl.store(out + N + at, tl.associative_scan((value, value), 0, multiply_add)[1])
    tl.store(out + 2 * N + at, tl.gather(value, N - 1 - at, 0))
    left, right = tl.split(tl.reshape(value, (N // 2, 2)))
    tl.store(out + 3 * N + at, tl.interleave(right, left))
    tl.store(out + 4 * N + at, libdevice.asin(value) + libdevice.tgamma(value + 1) + tl.erf(value))
    tl.store(out + 5 * N + at, value.to(tl.bfloat16).to(tl.float32))
    tl.store(out + 6 * N + at, tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=r,r", [value], dtype=tl.float32, is_pure=True, pack=1))
    same = (value * 8).to(tl.int32)
    tl.store(whole + at, tl.histogram(same, N))
    tl.store(whole + N, tl.argmax(value, 0))
    tl.atomic_max(whole + N + 1 + at * 0, same)
    tl.atomic_xor(whole + N + 2 + at * 0, same)
    tl.device_assert(value < 2)


def library_functions():
    n = 64
    x, out, whole = DICE.random(n, np.float32), np.zeros((7, n), np.float32), np.zeros(n + 3, np.int32)
    load(use_functions, ["*fp32", "*fp32", "*i32"], {"N": n}).run(1, gpuq.In(x), gpuq.Out(out), gpuq.InOut(whole))
    scanned = [x[0]]
    for each in x[1:]:
        scanned.append(scanned[-1] * each + each)
    upper = ((x.view(np.uint32) + 0x7FFF + ((x.view(np.uint32) >> 16) & 1)) & 0xFFFF0000).view(np.float32)
    functions = [math.asin(v) + math.gamma(v + 1) + math.erf(v) for v in x.tolist()]
    for got, wanted in zip(out, [np.sort(x), scanned, x[::-1], x.reshape(-1, 2)[:, ::-1].ravel(), functions, upper, 2 * x]):
        close(got, wanted)
    same = (x * 8).astype(np.int32)
    np.testing.assert_array_equal(whole, [*np.bincount(same, minlength=n), x.argmax(), same.max(), np.bitwise_xor.reduce(same)])


for test in (vectors, softmax, layer_norm, dropout, scan, histogram, matrices, attention, arrays_of_pointers, descriptors, tuples,
             host_descriptors, locks, scalars, library_functions):
    print(test.__name__, flush=True)
    test()
