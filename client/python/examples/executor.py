# SPDX-License-Identifier: Apache-2.0
"""
Solves equations a x + b = 0 in a pool of processes, one per task.

This file exists twice, with and without gpuq. Only the import differs. Functions run as before; the executor of gpuq
also accepts kernels.
"""

from gpuq import Executor as ProcessPoolExecutor

import numpy as np

from common import example


def solve(equation):
    a, b = equation
    return -b / a


def run(equations, processes):
    with ProcessPoolExecutor(max_workers=processes) as executor:
        return list(executor.map(solve, equations, chunksize=16))


def make(n=1000, processes=8):
    return [(float(a), float(a + 1)) for a in range(1, n + 1)], processes


def expected(equations, _):
    a, b = np.array(equations).T
    return -b / a


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
