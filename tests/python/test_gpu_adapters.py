# SPDX-License-Identifier: Apache-2.0
"""Kernels that Numba and Triton compile, run through gpuqd on a GPU."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.gpu
N = 10_000
GRID = -(-N // 256)


def test_a_numba_kernel(gpuq, monkeypatch):
    monkeypatch.setattr(np, "row_stack", np.vstack, raising=False)  # numba-cuda 0.30 asks numpy 2.5 for what is no more there
    pytest.importorskip("numba")
    cuda = pytest.importorskip("numba.cuda")

    def axpy(r, a, x, m, flag):
        """r = a x + m[0]"""
        i = cuda.grid(1)
        if i < r.shape[0] and flag:
            r[i] = a * x[i] + m[0, i]

    kernel = gpuq.from_numba(axpy, "void(float32[::1], float32, float32[:], float64[:,::1], boolean)")
    x, m, r = np.random.rand(N).astype(np.float32), np.random.rand(2, N), np.zeros(N, np.float32)
    kernel.run((GRID, 256), gpuq.Out(r), 3.0, gpuq.In(x), gpuq.In(m), True)
    np.testing.assert_allclose(r, 3 * x + m[0], rtol=1e-6)
    assert kernel.doc == "r = a x + m[0]" and kernel.name == "axpy"
    d = gpuq.to_device(r)
    gpuq.from_numba(cuda.jit(axpy), "void(float32[::1], float32, float32[:], float64[:,::1], boolean)").run(
        (GRID, 256), d, np.float32(1), d, gpuq.to_device(m), True)
    np.testing.assert_allclose(d.get(), r + m[0], rtol=1e-6)


TRITON = """
import sys
import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def axpy(x, y, out, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

@triton.jit
def row_sum(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out + row, tl.sum(tl.load(x + row * n + at, mask=at < n, other=0.0), 0))

def compile(fn, types, constants):
    signature = dict(zip(fn.arg_names, types))
    target = GPUTarget("cuda", CC, 32)
    try:
        source = ASTSource(fn, signature={**signature, **{name: "constexpr" for name in constants}},
                           constexprs={(fn.arg_names.index(name),): value for name, value in constants.items()})
    except TypeError:
        source = ASTSource(fn, signature=signature, constants=constants)
    return triton.compile(source, target=target)

import gpuq
N, ROWS = 10000, 7
x, y, out = np.random.rand(N).astype(np.float32), np.random.rand(N).astype(np.float32), np.zeros(N, np.float32)
kernel = gpuq.from_triton(compile(axpy, ["*fp32", "*fp32", "*fp32", "fp32", "i32"], {"BLOCK": 1024}))
kernel.run(-(-N // 1024), gpuq.In(x), gpuq.In(y), gpuq.Out(out), 2.5, N)
np.testing.assert_allclose(out, 2.5 * x + y, rtol=1e-6)
out[:] = 0
kernel.run((-(-N // 1024),), gpuq.In(x), gpuq.In(y), gpuq.Out(out), 2.5, N, 1024)
np.testing.assert_allclose(out, 2.5 * x + y, rtol=1e-6)

m, s = np.random.rand(ROWS, 700).astype(np.float32), np.zeros(ROWS, np.float32)
gpuq.from_triton(compile(row_sum, ["*fp32", "*fp32", "i32"], {"BLOCK": 1024})).run(ROWS, gpuq.In(m), gpuq.Out(s), 700)
np.testing.assert_allclose(s, m.sum(1), rtol=1e-5)
"""


def compute_capability():
    """Of the first device, without a context in this process."""
    cuda = ctypes.CDLL("libcuda.so.1")
    values = [ctypes.c_int(), ctypes.c_int()]
    assert cuda.cuInit(0) == 0
    for value, attribute in zip(values, (75, 76)):
        assert cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
    return values[0].value * 10 + values[1].value


def test_triton_kernels(gpuq, tmp_path):
    """In a process of their own: Triton reads the kernels' source from a file."""
    pytest.importorskip("triton")
    path = tmp_path / "kernels.py"
    path.write_text(TRITON.replace("CC,", f"{compute_capability()},"))
    ended = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
