# SPDX-License-Identifier: Apache-2.0
"""
The GPU adds two vectors; a pool of processes works on pieces of the result.

In PyCUDA's style, with CuPy's RawKernel instead of SourceModule. Pipes carry the pieces.
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


def postprocess(chunk):
    return float(np.sqrt(chunk, dtype=float).sum())


def run(a, b, chunks, processes, start):
    a_gpu, b_gpu, c_gpu = cp.asarray(a), cp.asarray(b), cp.empty(a.size, cp.float32)
    add((-(-a.size // 256), 1), (256, 1, 1), (a_gpu, b_gpu, c_gpu, np.int32(a.size)))
    c = cp.asnumpy(c_gpu)
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
