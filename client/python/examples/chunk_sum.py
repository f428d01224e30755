# SPDX-License-Identifier: Apache-2.0
"""Eight processes prepare the chunks of an array, then the GPU sums it. The processes work in shared memory."""

import numpy as np

import gpuq
from common import context, example


def prepare(chunk):
    np.sqrt(chunk, out=chunk)


def run(data, processes, start):
    shared, total = gpuq.array(data), gpuq.empty(1)
    with context(start).Pool(processes) as pool:
        pool.map(prepare, np.array_split(shared, processes))
    gpuq.builtin().get_kernel("sum_f64").run((1, 1024), gpuq.In(shared), gpuq.Out(total), shared.size)
    return total[0]


def make(n=1_000_000, processes=8, start="fork"):
    return np.random.default_rng(1).random(n), processes, start


def expected(data, *_):
    return np.sqrt(data).sum()


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
