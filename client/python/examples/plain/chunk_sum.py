# SPDX-License-Identifier: Apache-2.0
"""Eight processes prepare the chunks of an array, then the GPU sums it: a pool, pipes and CuPy."""

import cupy as cp
import numpy as np

from common import context, example


def prepare(chunk):
    return np.sqrt(chunk)


def run(data, processes, start):
    with context(start).Pool(processes) as pool:
        prepared = np.concatenate(pool.map(prepare, np.array_split(data, processes)))
    with cp.cuda.Device(0):
        return cp.asnumpy(cp.sum(cp.asarray(prepared)))


def make(n=1_000_000, processes=8, start="fork"):
    return np.random.default_rng(1).random(n), processes, start


def expected(data, *_):
    return np.sqrt(data).sum()


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
