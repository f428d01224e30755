# SPDX-License-Identifier: Apache-2.0
"""Kernels' twins against their kernels on a GPU, for PTX that Numba writes; run.sh runs the same test for the rest."""

import os
import subprocess

import pytest

pytestmark = pytest.mark.gpu


def numba_ptx():
    numpy = pytest.importorskip("numpy")
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # older Numba asks for it, NumPy 2.5 has it no more
    cuda = pytest.importorskip("numba.cuda")
    from numba import float32, float64, int32, types

    def blend(x, y, factor, n):
        i = cuda.grid(1) + cuda.gridDim.x * cuda.blockDim.x * cuda.blockIdx.y
        if i < n:
            y[i] = y[i] * factor + ratio(x[i])

    @cuda.jit(device=True)
    def ratio(value):
        return value * value / (value + float32(3)) + float32(cuda.blockIdx.y)

    def reverse(x, out, scale):
        tile = cuda.shared.array(256, float64)
        t = cuda.threadIdx.x
        tile[t] = x[t] * scale
        cuda.syncthreads()
        out[t + 256 * cuda.blockIdx.x] = tile[cuda.blockDim.x - 1 - t]

    def text(kernel, *arguments):
        ptx, _ = cuda.compile_ptx(kernel, arguments, device=False, cc=(7, 5))
        return ptx

    pointer = types.CPointer
    return [text(blend, pointer(float32), pointer(float32), float32, int32),
            text(reverse, pointer(float64), pointer(float64), float64)]


def test_twins_of_numbas_kernels_do_as_their_kernels(tmp_path):
    program = os.path.join(os.environ["GPUQ_STAGE"], "libexec/gpuq-unit/test-twins")
    for number, ptx in enumerate(numba_ptx()):
        path = tmp_path / f"{number}.ptx"
        path.write_text(ptx)
        run = subprocess.run([program], env={**os.environ, "GPUQ_TEST_MODULE": str(path)}, capture_output=True,
                             text=True, timeout=60, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "1 kernels, 1 twins" in run.stdout + run.stderr
