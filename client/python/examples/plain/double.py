# SPDX-License-Identifier: Apache-2.0
"""Two processes double one array at once: CuPy, a copy of the array and a context for each process."""

import cupy as cp
import numpy as np

from common import context, example


def double(data):
    return cp.asnumpy(cp.asarray(data) * 2)


def run(data, processes, start):
    with context(start).Pool(processes) as pool:
        return np.array(pool.map(double, [data] * processes, chunksize=1))


def make(n=1_000_000, processes=2, start="fork"):
    return np.arange(1.0, n + 1), processes, start


def expected(data, processes, _):
    return np.tile(data * 2, (processes, 1))


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
