# SPDX-License-Identifier: Apache-2.0
"""A product of two matrices, 1000 × 1000, with the built-in kernel."""

import numpy as np

import gpuq
from common import example


def run(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = gpuq.empty((m, n), np.float32)
    config = gpuq.LaunchConfig(grid=(-(-n // 32), -(-m // 32)), block=256)
    gemm = gpuq.builtin().get_kernel("gemm_f32")
    gemm.run(config, gpuq.In(a), gpuq.In(b), gpuq.Out(c), m, n, k, 1.0, 0.0)
    return c


def make(n=1000):
    return tuple(np.random.default_rng(16).random((2, n, n), np.float32))


def expected(a, b):
    return a @ b


def main():
    example(make, run, expected, rtol=1e-4)


if __name__ == "__main__":
    main()
