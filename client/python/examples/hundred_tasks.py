# SPDX-License-Identifier: Apache-2.0
"""A hundred independent tasks from a pool of a hundred processes, which share the daemon's CUDA context."""

import numpy as np

import gpuq
from common import context, example


def sum_of_squares(data):
    total = gpuq.empty(1)
    kernel = gpuq.builtin().get_kernel("sum_of_squares_f64")
    kernel.run((1, 256), gpuq.In(data), gpuq.Out(total), data.size)
    return float(total[0])


def run(datasets, processes, start):
    with context(start).Pool(processes) as pool:
        return pool.map(sum_of_squares, datasets, chunksize=1)


def make(n=10_000, tasks=100, processes=100, start="fork"):
    rng = np.random.default_rng(2)
    return [rng.random(n) for _ in range(tasks)], processes, start


def expected(datasets, *_):
    return [np.sum(data ** 2) for data in datasets]


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
