# SPDX-License-Identifier: Apache-2.0
"""The GPU adds two vectors; a pool of processes works on the result without copying it."""

import numpy as np

import gpuq
from common import context, example


def postprocess(chunk):
    return float(np.sqrt(chunk, dtype=float).sum())


def run(a, b, chunks, processes, start):
    c = gpuq.empty(a.size, np.float32)
    add = gpuq.builtin().get_kernel("add_f32")
    add.run((-(-a.size // 256), 256), gpuq.In(a), gpuq.In(b), gpuq.Out(c), a.size)
    with context(start).Pool(processes) as pool:
        return sum(pool.map(postprocess, np.array_split(c, chunks)))


def make(n=10_000_000, chunks=10, processes=8, start="fork"):
    return (*np.random.default_rng(6).random((2, n), np.float32), chunks, processes, start)


def expected(a, b, *_):
    return np.sqrt(a + b, dtype=float).sum()


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
