# SPDX-License-Identifier: Apache-2.0
"""x² + 2x + 1 on a million elements: Numba's vectorize for CUDA."""

import functools

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # numba-cuda 0.30 asks numpy 2.5 for what is no more there

from numba import vectorize  # noqa: E402

from common import example  # noqa: E402


@functools.cache
def polynomial():
    """Compiled at first use."""
    @vectorize(["float32(float32)"], target="cuda")
    def polynomial_of(v):
        return v * v + np.float32(2) * v + np.float32(1)

    return polynomial_of


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
