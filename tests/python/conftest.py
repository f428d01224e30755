# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the Python package's tests: the package over the library under test, its default client at a daemon of the test's own."""

import importlib.util
import os
import sys

import numpy as np
import pytest

from harness import place

SOURCES = place.ROOT / "client" / "python" / "src"
if not SOURCES.exists():  # a packed tree has it installed
    SOURCES = place.STAGE / "lib" / "python3" / "dist-packages"
SOURCES = str(SOURCES)
sys.path.insert(0, SOURCES)

SOURCE = r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                c[i] = a[i] + b[i];
}

extern "C" __global__ void twice(float *x, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                x[i] *= 2;
}

extern "C" __global__ void add_int(const int *in, int *out, int k, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = in[i] + k;
}

extern "C" __global__ void forever(int *out)
{
        for (volatile int i = 0; i >= 0; i = 0)
                ;
        out[0] = 1;
}

extern "C" __global__ void thrice(const int *in, int *out)
{
        out[0] = 3 * in[0];
}

extern "C" __global__ void gated(const volatile int *open, const int *in, int *out)
{
        while (*open == 0)
                ;
        out[0] = 3 * in[0];
}

extern "C" __global__ void wild(int *data, unsigned long long index)
{
        data[index] = 1;
}
"""


COMPILERS = place.BUILD / "kernel-compilers" / "bin" / "python3"  # of tests/setup.sh ci


def python_with(package: str, name: str) -> str:
    """An interpreter that has a compiler of kernels, or the test is skipped."""
    python = sys.executable if importlib.util.find_spec(package) else str(COMPILERS)
    if not os.path.exists(python):
        pytest.skip(f"no {name} here: sh tests/setup.sh ci")
    return python


class Gate:
    """What jobs of the kernel `gated` wait for: `flag`, a word on the device, until open()."""

    def __init__(self, gpuq):
        self._gpuq = gpuq
        self.flag = gpuq.In(gpuq.device_array(1, np.int32))

    def open(self):
        """By another connection: in one and the same it would come behind those that wait."""
        with self._gpuq.connect() as other:
            other.job().fill(self.flag.value, 1).run()


def pytest_collection_modifyitems(items):
    if place.SANITIZED:
        for item in items:
            if "tests/python" in str(item.path):
                item.add_marker(pytest.mark.skip(reason="the interpreter is not built with the sanitizers"))


@pytest.fixture
def environment(gpuqd, monkeypatch):
    """This process and its children find the library under test and the test's daemon."""
    monkeypatch.setenv("GPUQ_LIBRARY", str(place.STAGE / "lib" / "libgpuq.so.0"))
    monkeypatch.setenv("GPUQ_SOCKET", str(gpuqd.socket))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [SOURCES, os.environ.get("PYTHONPATH")])))


@pytest.fixture
def gpuq(environment):
    """The package. Its default client is new for each test."""
    import gpuq
    from gpuq import client
    yield gpuq
    for other in list(client._clients):
        if not other.closed:
            other.close()


@pytest.fixture
def module(gpuq):
    """The kernels above, in the default client."""
    return gpuq.module(SOURCE)


@pytest.fixture
def gate(gpuq):
    """Open at the end at the latest: a kernel that spins for ever takes its worker with it."""
    gate = Gate(gpuq)
    yield gate
    gate.open()


@pytest.fixture
def add(module):
    return module.get_kernel("add")
