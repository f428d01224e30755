# SPDX-License-Identifier: Apache-2.0
"""What Triton's tutorials do, with kernels of our own: each is compiled for a compute capability, run through gpuqd and compared with numpy.

    python3 triton_kernels.py 80

A file of its own, because Triton reads the kernels' source from it.
"""

import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")  # Triton tells of defaults that will change

import triton  # noqa: E402 pylint: disable=wrong-import-position
import triton.language as tl  # noqa: E402 pylint: disable=wrong-import-position
from triton.backends.compiler import GPUTarget  # noqa: E402 pylint: disable=wrong-import-position
from triton.compiler import ASTSource  # noqa: E402 pylint: disable=wrong-import-position

import gpuq  # noqa: E402 pylint: disable=wrong-import-position

DICE = np.random.default_rng(1)


def load(fn, types, constants):
    """gpuq's kernel of a @triton.jit function."""
    signature = dict(zip(fn.arg_names, types))
    target = GPUTarget("cuda", int(sys.argv[1]), 32)
    try:
        source = ASTSource(fn, signature={**signature, **{name: "constexpr" for name in constants}},
                           constexprs={(fn.arg_names.index(name),): value for name, value in constants.items()})
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


for test in (vectors, softmax, layer_norm, dropout, scan, histogram, matrices, attention):
    print(test.__name__, flush=True)
    test()
