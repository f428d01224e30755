# SPDX-License-Identifier: Apache-2.0
"""Kernels that Numba and Triton compile, run through gpuqd: on a GPU, and on the CPU driver, where neither needs a GPU or its driver."""

import ctypes
import pathlib
import subprocess

import pytest

from conftest import python_with
from harness import place

HERE = pathlib.Path(__file__).parent


def compute_capability():
    """Of the first device, without a context in this process; the CPU driver does what sm_80 does."""
    if not place.on_gpu():
        return 80
    cuda = ctypes.CDLL("libcuda.so.1")
    values = [ctypes.c_int(), ctypes.c_int()]
    assert cuda.cuInit(0) == 0
    for value, attribute in zip(values, (75, 76)):
        assert cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
    return values[0].value * 10 + values[1].value


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("compiler, package", [("triton", "triton"), ("numba", "numba_cuda")])
def test_kernels_of_a_compiler_for_python(compiler, package):
    python = python_with(package, compiler)
    ended = subprocess.run([python, str(HERE / f"{compiler}_kernels.py"), str(compute_capability())],
                           capture_output=True, text=True, timeout=place.PATIENCE_S)
    assert ended.returncode == 0, ended.stdout + ended.stderr
