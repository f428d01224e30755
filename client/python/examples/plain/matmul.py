# SPDX-License-Identifier: Apache-2.0
"""A product of two matrices, 1000 × 1000: CuPy."""

import cupy as cp
import numpy as np

from common import example


def run(a, b):
    return cp.asnumpy(cp.dot(cp.asarray(a), cp.asarray(b)))


def make(n=1000):
    return tuple(np.random.default_rng(16).random((2, n, n), np.float32))


def expected(a, b):
    return a @ b


def main():
    example(make, run, expected, rtol=1e-4)


if __name__ == "__main__":
    main()
