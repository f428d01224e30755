# SPDX-License-Identifier: Apache-2.0
"""What Numba's CUDA examples do, with kernels of our own, each run through gpuqd and compared with numpy."""

import math

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks for it, numpy 2.5 has removed it
    np.row_stack = np.vstack

from numba import cuda, float32, int32  # noqa: E402 pylint: disable=wrong-import-position

import gpuq  # noqa: E402 pylint: disable=wrong-import-position

DICE = np.random.default_rng(1)
N, TILE = 10_000, 8


def vectors():
    def axpy(r, a, x, m, flag):
        """r = a x + m[0]"""
        i = cuda.grid(1)
        if i < r.shape[0] and flag:
            r[i] = a * x[i] + m[0, i]

    signature, grid = "void(float32[::1], float32, float32[:], float64[:,::1], boolean)", -(-N // 256)
    kernel = gpuq.from_numba(axpy, signature)
    x, m, r = DICE.random(N, np.float32), DICE.random((2, N)), np.zeros(N, np.float32)
    kernel.run((grid, 256), gpuq.Out(r), 3.0, gpuq.In(x), gpuq.In(m), True)
    np.testing.assert_allclose(r, 3 * x + m[0], rtol=1e-6)
    assert kernel.doc == "r = a x + m[0]" and kernel.name == "axpy"
    d = gpuq.to_device(r)
    gpuq.from_numba(cuda.jit(axpy), signature).run((grid, 256), d, np.float32(1), d, gpuq.to_device(m), True)
    np.testing.assert_allclose(d.get(), r + m[0], rtol=1e-6)


def matrices():
    def multiply(a, b, c):
        left, right = cuda.shared.array((TILE, TILE), float32), cuda.shared.array((TILE, TILE), float32)
        x, y = cuda.grid(2)
        i, j = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for k in range((a.shape[1] + TILE - 1) // TILE):
            left[i, j] = a[x, k * TILE + j] if x < a.shape[0] and k * TILE + j < a.shape[1] else 0
            right[i, j] = b[k * TILE + i, y] if y < b.shape[1] and k * TILE + i < b.shape[0] else 0
            cuda.syncthreads()
            for n in range(TILE):
                total += left[i, n] * right[n, j]
            cuda.syncthreads()
        if x < c.shape[0] and y < c.shape[1]:
            c[x, y] = total

    a, b, c = DICE.random((30, 45), np.float32), DICE.random((45, 20), np.float32), np.zeros((30, 20), np.float32)
    kernel = gpuq.from_numba(multiply, "void(float32[:,::1], float32[:,::1], float32[:,::1])")
    kernel.run(((4, 3), (TILE, TILE)), gpuq.In(a), gpuq.In(b), gpuq.Out(c))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def sums():
    def add_up(x, total):
        parts = cuda.shared.array(256, float32)
        at = cuda.threadIdx.x
        own = float32(0)
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            own += x[i]
        parts[at] = own
        cuda.syncthreads()
        step = 128
        while step:
            if at < step:
                parts[at] += parts[at + step]
            cuda.syncthreads()
            step //= 2
        if at == 0:
            cuda.atomic.add(total, 0, parts[0])

    x, total = DICE.random(N, np.float32), np.zeros(1, np.float32)
    gpuq.from_numba(add_up, "void(float32[::1], float32[::1])").run((4, 256), gpuq.In(x), gpuq.InOut(total))
    np.testing.assert_allclose(total[0], x.sum(), rtol=1e-4)


def warps():
    def sum_of_each(x, out):
        value = x[cuda.grid(1)]
        step = 16
        while step:
            value += cuda.shfl_down_sync(0xffffffff, value, step)
            step //= 2
        if cuda.laneid == 0:
            out[cuda.grid(1) // 32] = value

    x, out = DICE.integers(0, 100, 128).astype(np.int32), np.zeros(4, np.int32)
    gpuq.from_numba(sum_of_each, "void(int32[::1], int32[::1])").run((1, 128), gpuq.In(x), gpuq.Out(out))
    np.testing.assert_array_equal(out, x.reshape(4, 32).sum(1))


def histograms():
    def count(x, bins):
        own = cuda.local.array(4, int32)
        for k in range(4):
            own[k] = 0
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            own[x[i] % 4] += 1
        for k in range(4):
            cuda.atomic.add(bins, k, own[k])

    x, bins = DICE.integers(0, 4, N).astype(np.int32), np.zeros(4, np.int32)
    gpuq.from_numba(count, "void(int32[::1], int32[::1])").run((2, 64), gpuq.In(x), gpuq.InOut(bins))
    np.testing.assert_array_equal(bins, np.bincount(x))


def functions():
    @cuda.jit(device=True)
    def escape(x, y, most):
        c, z = complex(x, y), 0j
        for i in range(most):
            z = z * z + c
            if z.real * z.real + z.imag * z.imag >= 4:
                return i
        return most

    def mandelbrot(image, least_x, least_y, step):
        x, y = cuda.grid(2)
        if x < image.shape[0] and y < image.shape[1]:
            image[x, y] = escape(least_x + x * step, least_y + y * step, 50)

    image = np.zeros((40, 30), np.int32)
    gpuq.from_numba(mandelbrot, "void(int32[:,::1], float64, float64, float64)").run(
        ((5, 4), (8, 8)), gpuq.Out(image), -2.0, -1.0, 0.07)
    z, steps = np.zeros((40, 30), complex), np.full((40, 30), 50)
    c = -2.0 + 0.07 * np.arange(40)[:, None] + 1j * (-1.0 + 0.07 * np.arange(30)[None, :])
    for i in range(50):
        z = np.where(steps == 50, z * z + c, z)
        steps[(steps == 50) & (np.abs(z) >= 2)] = i
    assert (image != steps).mean() < 0.01  # where rounding decides


def mathematics():
    def compute(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = math.exp(-x[i]) * math.sin(x[i]) + math.sqrt(math.fabs(x[i])) + math.pow(x[i], 1.5) + math.erf(x[i])

    x, out = DICE.random(N), np.zeros(N)
    gpuq.from_numba(compute, "void(float64[::1], float64[::1])").run((-(-N // 128), 128), gpuq.In(x), gpuq.Out(out))
    np.testing.assert_allclose(out, np.exp(-x) * np.sin(x) + np.sqrt(x) + x ** 1.5 + [math.erf(v) for v in x], rtol=1e-12)


for test in (vectors, matrices, sums, warps, histograms, functions, mathematics):
    print(test.__name__, flush=True)
    test()
