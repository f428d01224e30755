# SPDX-License-Identifier: Apache-2.0
"""x² + 2x + 1 on a million elements: Numba's vectorize for CUDA."""

import functools

import numpy as np
from numba import vectorize

from common import example


@functools.cache
def polynomial():
    """Compiled once, at its first use."""
    return vectorize(["float32(float32)"], target="cuda")(lambda v: v * v + np.float32(2) * v + np.float32(1))


def run(x):
    return polynomial()(x)


def make(n=1_000_000):
    return (np.arange(n, dtype=np.float32),)


def expected(x):
    return x ** 2 + 2 * x + 1


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
