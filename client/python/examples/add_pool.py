# SPDX-License-Identifier: Apache-2.0
"""A pool of processes adds vectors with a kernel from source, launched as in PyCUDA."""

import functools

import numpy as np

import gpuq
from common import context, example

SOURCE = r"""
__global__ void add(float *a, float *b, float *c, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                c[i] = a[i] + b[i];
}
"""


def generate(number, size):
    return np.random.default_rng(number).random((2, size), np.float32)


@functools.cache
def add():
    """Loaded at first use in each process. The daemon compiles it once."""
    return gpuq.SourceModule(SOURCE).get_function("add")


def add_chunk(number, c):
    a, b = generate(number, c.size)
    add()(gpuq.In(a), gpuq.In(b), gpuq.Out(c), np.int32(c.size), block=(256, 1, 1), grid=(-(-c.size // 256), 1))


def run(size, chunks, processes, start):
    c = gpuq.empty((chunks, size), np.float32)
    with context(start).Pool(processes) as pool:
        pool.starmap(add_chunk, enumerate(c))
    return c.reshape(-1)


def make(size=1_000_000, chunks=10, processes=8, start="fork"):
    return size, chunks, processes, start


def expected(size, chunks, *_):
    return np.concatenate([generate(number, size).sum(axis=0) for number in range(chunks)])


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
