# SPDX-License-Identifier: Apache-2.0
"""
y = w @ x + b with matrices w and x and a column b, as one job of two operations.

The first operation copies b to all columns of y; the second adds the product, with a built-in kernel. Both run on the
GPU, so only one column of b is copied to it, and y is not copied to it at all.
"""

import functools

import numpy as np

import gpuq
from common import example


SOURCE = r"""
extern "C" __global__ void spread(const float *b, float *y, int m, int n)
{
        int i = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < m && j < n)
                y[i * n + j] = b[i];
}
"""


@functools.cache
def kernels():
    """Compiled at first use."""
    return gpuq.module(SOURCE).get_kernel("spread"), gpuq.builtin().get_kernel("gemm_f32")


def run(w, x, b):
    spread, gemm = kernels()
    m, k = w.shape
    n = x.shape[1]
    y = gpuq.empty((m, n), np.float32)
    job = gpuq.job().launch(spread, ((-(-n // 256), m), 256), gpuq.In(b), gpuq.Out(y), m, n)
    job.launch(gemm, ((-(-n // 32), -(-m // 32)), 256), gpuq.In(w), gpuq.In(x), gpuq.InOut(y), m, n, k, 1.0, 1.0)
    job.run()
    return y


def make(n=1000):
    rng = np.random.default_rng(9)
    return rng.random((n, n), np.float32), rng.random((n, n), np.float32), rng.random((n, 1), np.float32)


def expected(w, x, b):
    return w @ x + b


def main():
    example(make, run, expected, rtol=1e-4)


if __name__ == "__main__":
    main()
