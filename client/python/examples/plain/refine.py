# SPDX-License-Identifier: Apache-2.0
"""
Square roots by Newton's method, each step in another process and each depending on the last.

CuPy: each process makes a CUDA context of its own, and the estimate goes from one to the next through pipes.
"""

import cupy as cp
import numpy as np

from common import context, example


def step(a, x):
    gpu_a, gpu_x = cp.asarray(a), cp.asarray(x)
    return cp.asnumpy(0.5 * (gpu_x + gpu_a / gpu_x))


def run(a, steps, start):
    x = np.ones_like(a)
    with context(start).Pool(steps) as pool:
        for _ in range(steps):
            x = pool.apply(step, (a, x))
    return x


def make(n=100_000, steps=8, start="fork"):
    return np.random.default_rng(3).uniform(0.5, 4, n), steps, start


def expected(a, steps, _):
    x = np.ones_like(a)
    for _ in range(steps):
        x = 0.5 * (x + a / x)
    return x


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
