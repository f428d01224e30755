# SPDX-License-Identifier: Apache-2.0
"""
A producer and a consumer in two processes, with queues between them; the consumer adds on the GPU.

In PyCUDA's style, with CuPy's RawKernel instead of SourceModule. The queues carry the arrays themselves.
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


def consume(work, done):
    for a, b in iter(work.get, None):
        a_gpu, b_gpu, c_gpu = cp.asarray(a), cp.asarray(b), cp.empty(a.size, cp.float32)
        add((-(-a.size // 256), 1), (256, 1, 1), (a_gpu, b_gpu, c_gpu, np.int32(a.size)))
        done.put(cp.asnumpy(c_gpu))


def run(data, start):
    started = context(start)
    work, done = started.Queue(), started.Queue()
    consumer = started.Process(target=consume, args=(work, done))
    consumer.start()
    for a, b in data:
        work.put((a, b))
    work.put(None)
    total = sum(float(done.get(timeout=60).sum(dtype=float)) for _ in data)
    consumer.join()
    return total


def make(size=1_000_000, sets=10, start="fork"):
    return np.random.default_rng(5).random((sets, 2, size), np.float32), start


def expected(data, _):
    return data.sum(dtype=float)


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
