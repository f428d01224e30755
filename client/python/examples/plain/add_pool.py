# SPDX-License-Identifier: Apache-2.0
"""
A pool of processes adds vectors with a kernel from source, a CUDA context in each.

In PyCUDA's style, with CuPy's RawKernel instead of SourceModule: the same kernel, allocations and copies.
"""

import cupy as cp
import numpy as np

from common import context, example

SOURCE = r"""
extern "C" __global__ void add(float *a, float *b, float *c, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                c[i] = a[i] + b[i];
}
"""
add = cp.RawKernel(SOURCE, "add")


def generate(number, size):
    return np.random.default_rng(number).random((2, size), np.float32)


def add_chunk(number, size):
    a, b = generate(number, size)
    a_gpu, b_gpu, c_gpu = cp.asarray(a), cp.asarray(b), cp.empty(size, cp.float32)
    add((-(-size // 256), 1), (256, 1, 1), (a_gpu, b_gpu, c_gpu, np.int32(size)))
    return cp.asnumpy(c_gpu)


def run(size, chunks, processes, start):
    with context(start).Pool(processes) as pool:
        return np.concatenate(pool.starmap(add_chunk, [(number, size) for number in range(chunks)]))


def make(size=1_000_000, chunks=10, processes=8, start="fork"):
    return size, chunks, processes, start


def expected(size, chunks, *_):
    return np.concatenate([generate(number, size).sum(axis=0) for number in range(chunks)])


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
