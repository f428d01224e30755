# SPDX-License-Identifier: Apache-2.0
"""y = w @ x + b with matrices w and x and a column b: the built-in product onto an array that holds b already."""

import numpy as np

import gpuq
from common import example


def run(w, x, b):
    m, k = w.shape
    n = x.shape[1]
    y = gpuq.empty((m, n), np.float32)
    y[:] = b
    config = gpuq.LaunchConfig(grid=(-(-n // 32), -(-m // 32)), block=256)
    gemm = gpuq.builtin().get_kernel("gemm_f32")
    gemm.run(config, gpuq.In(w), gpuq.In(x), gpuq.InOut(y), m, n, k, 1.0, 1.0)
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
