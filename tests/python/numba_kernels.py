# SPDX-License-Identifier: Apache-2.0
"""What Numba's CUDA examples do, with kernels of our own, each run through gpuqd and compared with numpy."""

import cmath
import enum
import math
import pathlib
import pickle
import tempfile

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks for it, numpy 2.5 has removed it
    np.row_stack = np.vstack

from numba import cuda, float32, from_dtype, int32, typeof, types  # noqa: E402 pylint: disable=wrong-import-position
from numba.cuda.random import (  # noqa: E402 pylint: disable=wrong-import-position
    init_xoroshiro128p_states_cpu, xoroshiro128p_dtype, xoroshiro128p_uniform_float32)

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


def polynomials():
    @cuda.jit(device=True)
    def polynomial(x):
        return x ** 2 + 2 * x + 1

    def over_all(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = polynomial(x[i])

    x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    gpuq.from_numba(over_all, "void(float32[::1], float32[::1])").run((-(-N // 256), 256), gpuq.In(x), gpuq.Out(out))
    np.testing.assert_allclose(out, x ** 2 + 2 * x + 1, rtol=1e-6)


# ---- types that take several parameters, or none of their own ----

POINT = np.dtype([("x", np.float32), ("y", np.float64), ("n", np.int32, (2,))], align=True)


def records():
    def move(points, by, offset):
        i = cuda.grid(1)
        if i < points.size:
            points[i].x += by.x
            points[i].y = by.y * points[i].n[1] + offset.real
        if i == 0:
            by.x = offset.imag

    record = from_dtype(POINT)
    kernel = gpuq.from_numba(move, types.void(record[::1], record, types.complex64))
    points, by = np.zeros(70, POINT), np.zeros(1, POINT)
    points["x"], points["n"], by["x"], by["y"] = np.arange(70), np.arange(140).reshape(70, 2), 0.5, 2
    kernel.run((3, 32), gpuq.InOut(points), gpuq.InOut(by), 10 - 3j)
    np.testing.assert_array_equal(points["y"], 2 * points["n"][:, 1] + 10)
    assert by["x"][0] == -3  # while others read it, or before
    assert np.isin(points["x"] - np.arange(70), (0.5, -3)).all()


def tuples():
    def apply(pair, nested, out):
        first, factor = pair
        i = cuda.grid(1)
        if i < out.size:
            out[i] = first[i] * factor + nested[1][0] - nested[0]

    floats = types.float64[::1]
    kernel = gpuq.from_numba(apply, types.void(types.Tuple((floats, types.float32)), types.Tuple((types.int8, types.UniTuple(types.int64, 2))),
                                               floats))
    x, out = DICE.random(50), np.zeros(50)
    kernel.run((2, 32), (gpuq.In(x), 2.0), (-3, (1 << 40, 7)), gpuq.Out(out))
    np.testing.assert_array_equal(out, x * 2 + (1 << 40) + 3)
    kernel.prepare((2, 32), (gpuq.In(x), 2.0), (-3, (0, 7)), gpuq.Out(out)).run(**{"pair[1]": 4.0})
    np.testing.assert_array_equal(out, x * 4 + 3)


def complex_numbers():
    def turn(z, by, out):
        i = cuda.grid(1)
        if i < z.size:
            out[i] = cmath.exp(z[i] * by) + abs(by)

    z, out = DICE.random(40) + 1j * DICE.random(40), np.zeros(40, complex)
    gpuq.from_numba(turn, "void(complex128[:], complex128, complex128[:])").run((2, 32), gpuq.In(z), 3 - 4j, gpuq.Out(out))
    np.testing.assert_allclose(out, np.exp(z * (3 - 4j)) + 5, rtol=1e-10)


def halves():
    """Arithmetic of float16 is CUDA C++, which Numba links."""
    def scale(x, factor, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] * factor + x[i]

    x, out = DICE.random(40).astype(np.float16), np.zeros(40, np.float16)
    kernel = gpuq.from_numba(scale, "void(float16[::1], float16, float16[::1])")
    for factor in (2.5, np.float16(2.5)):
        out[:] = 0
        kernel.run((2, 32), gpuq.In(x), factor, gpuq.Out(out))
        np.testing.assert_allclose(out, x * np.float16(2.5) + x, rtol=2e-3)


def layouts():
    def outer(a, b, out):
        i, j = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = a[i, j] - b[j, i]

    a, b = np.asfortranarray(DICE.random((5, 9))), DICE.random((9, 5))
    kernel = gpuq.from_numba(outer, "void(float64[::1, :], float64[:, :], float64[::1, :])")
    for other in (b, np.asfortranarray(b)):
        out = np.zeros((5, 9), order="F")
        kernel.run(((1, 1), (8, 16)), gpuq.In(a), gpuq.In(other), gpuq.Out(out))
        np.testing.assert_array_equal(out, a - b.T)


def times():
    def later(when, step, flag, out):
        i = cuda.grid(1)
        if i < when.size and flag == Flag.LATER:
            out[i] = when[i] + step

    class Flag(enum.IntEnum):
        LATER = 3

    when, out = np.arange(20).astype("datetime64[s]"), np.zeros(20, "datetime64[s]")
    kernel = gpuq.from_numba(later, types.void(types.NPDatetime("s")[::1], types.NPTimedelta("s"), typeof(Flag.LATER), types.NPDatetime("s")[::1]))
    kernel.run((1, 32), gpuq.In(when), np.timedelta64(60, "s"), Flag.LATER, gpuq.Out(out))
    assert (out == when + np.timedelta64(60, "s")).all()


def pointers():
    def add_one(x, n):
        i = cuda.grid(1)
        if i < n:
            x[i] += 1

    kernel = gpuq.from_numba(add_one, types.void(types.CPointer(types.uint8), types.uint32))
    d = gpuq.to_device(np.arange(10, dtype=np.uint8))
    kernel.run((1, 32), d, 10)
    kernel.run((1, 32), d.address, 9, uses=d)
    assert d.get().tolist() == [*range(2, 11), 10]


# ---- grids that meet ----

def heat():
    def spread(now, after, steps, k):
        i = cuda.grid(1)
        if i >= len(now):
            return
        grid = cuda.cg.this_grid()
        for step in range(steps):
            of, to = (now, after) if step % 2 == 0 else (after, now)
            left = of[i - 1] if i > 0 else 0.0
            right = of[i + 1] if i < len(of) - 1 else 0.0
            to[i] = of[i] + k * (left - 2 * of[i] + right)
            grid.sync()

    size, steps = 101, 40
    wanted = np.zeros(size)
    wanted[size // 2] = 100
    now, after = wanted.copy(), np.zeros(size)
    kernel = gpuq.from_numba(spread, "void(float64[::1], float64[::1], int64, float64)")
    kernel.run((4, 32), gpuq.InOut(now), gpuq.InOut(after), steps, 0.25)
    for _ in range(steps):
        padded = np.pad(wanted, 1)
        wanted = wanted + 0.25 * (padded[:-2] - 2 * wanted + padded[2:])
    np.testing.assert_allclose(now, wanted, rtol=1e-12)


# ---- random numbers, and what Numba links ----

def random_numbers():
    def estimate(states, out, rounds):
        i = cuda.grid(1)
        inside = 0
        for _ in range(rounds):
            x, y = xoroshiro128p_uniform_float32(states, i), xoroshiro128p_uniform_float32(states, i)
            if x * x + y * y <= 1:
                inside += 1
        out[i] = 4 * inside / rounds

    states = np.zeros(64, xoroshiro128p_dtype)
    init_xoroshiro128p_states_cpu(states, 1, 0)
    out, again = np.zeros(64, np.float32), np.zeros(64, np.float32)
    kernel = gpuq.from_numba(estimate, types.void(from_dtype(xoroshiro128p_dtype)[::1], types.float32[::1], types.int32))
    for to in (out, again):
        kernel.run((2, 32), gpuq.InOut(states.copy()), gpuq.Out(to), 200)
    assert abs(out.mean() - np.pi) < 0.1 and (out == again).all() and len(set(out)) > 10


def links():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "product.cu")
        path.write_text("""extern "C" __device__ int product(float *result, float a, float b)
                           {
                                   *result = a * b;
                                   return 0;
                           }
                        """)
        product = cuda.declare_device("product", "float32(float32, float32)", link=str(path))

        def multiply(x, y, out):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = product(x[i], y[i])

        kernel = gpuq.from_numba(multiply, "void(float32[::1], float32[::1], float32[::1])")
    x, y, out = DICE.random(40, np.float32), DICE.random(40, np.float32), np.zeros(40, np.float32)
    kernel.run((2, 32), gpuq.In(x), gpuq.In(y), gpuq.Out(out))
    np.testing.assert_array_equal(out, x * y)


def raises(kind, words, run, *args):
    try:
        run(*args)
    except kind as error:
        assert all(word in str(error) for word in words), error
        return error
    raise AssertionError(f"no {kind.__name__}")


class OfTwo(Exception):
    """Takes other arguments than a text and the rest."""

    def __init__(self, text, *, kind):
        super().__init__(text)
        self.kind = kind


def exceptions():
    @cuda.jit(debug=True, opt=False)
    def divide(x, n):
        i = cuda.grid(1)
        if i >= n:
            raise ValueError("too far", 3)
        assert x[i] >= 0, "must not be negative"
        x[i] = 100 // x[i]

    line = divide.py_func.__code__.co_firstlineno
    kernel = gpuq.from_numba(divide, "void(int32[::1], int64)")
    x = gpuq.to_device(np.full(8, 7, np.int32))
    for run in kernel.run, pickle.loads(pickle.dumps(kernel)).run:
        x.set(np.full(8, 7, np.int32))
        run((2, 4), x, 8)
        assert (x.get() == 14).all()
        error = raises(ValueError, ["In function 'divide', file ", f"numba_kernels.py, line {line + 4}, ", "tid=[0, 0, 3] ctaid=[0, 0, 1]: too far"],
                       run, (2, 4), x, 7)
        assert error.args[1] == 3 and error.job.state == "done"
        run((2, 4), x, 8)  # the job before has left nothing

    x.set(np.array([1, 2, 0, 4, 5, 6, 7, 8], np.int32))
    raises(ZeroDivisionError, ["tid=[0, 0, 2] ctaid=[0, 0, 0]: integer division by zero"], kernel.run, (2, 4), x, 8)
    x.set(np.array([1, 2, 3, 4, 5, -6, 7, 8], np.int32))
    raises(AssertionError, [f"line {line + 5}, ", "tid=[0, 0, 1] ctaid=[0, 0, 1]: must not be negative"], kernel.run, (2, 4), x, 8)

    x.set(np.full(8, 7, np.int32))
    jobs = [kernel.submit((2, 4), x, n) for n in (8, 7, 8, 6)]  # each tells its own
    jobs[0].wait(), jobs[2].wait()
    raises(ValueError, ["tid=[0, 0, 3]"], jobs[1].wait)
    raises(ValueError, ["ctaid=[0, 0, 1]"], jobs[3].wait)
    job = gpuq.job().launch(kernel, (2, 4), x, 7).launch(kernel, (2, 4), x, 8)
    raises(ValueError, ["tid=[0, 0, 3]"], job.run)
    with gpuq.Executor() as executor:
        future = executor.submit(kernel, (2, 4), gpuq.InOut(np.full(8, 7, np.int32)), 7)
        raises(ValueError, ["too far"], future.result)
    raises(TypeError, ["a prepared job does not tell what a kernel raises"], kernel.prepare, (2, 4), x, 8)

    @cuda.jit(debug=True, opt=False)
    def refuse(x):
        raise OfTwo("first", 2)

    raises(RuntimeError, ["OfTwo: In function 'refuse'"], gpuq.from_numba(refuse, "void(int32[::1])").run, (1, 1), x)

    silent = gpuq.from_numba(divide, "void(int32[::1], int64)", debug=False)
    silent.run((2, 4), x, 7)
    told = gpuq.from_numba(divide.py_func, "void(int32[::1], int64)", debug=True)
    raises(ValueError, ["too far"], told.run, (2, 4), x, 7)


for test in (vectors, matrices, sums, warps, histograms, functions, mathematics, polynomials, records, tuples, complex_numbers, halves,
             layouts, times, pointers, heat, random_numbers, links,
             exceptions):
    print(test.__name__, flush=True)
    test()
