# SPDX-License-Identifier: Apache-2.0
"""Two streams: one array is doubled on each, with CuPy's RawKernel."""

import cupy as cp
import numpy as np

from common import example

SOURCE = r"""
extern "C" __global__ void double_all(int *data, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                data[i] *= 2;
}
"""
kernel = cp.RawKernel(SOURCE, "double_all")


def run(*arrays):
    streams = [cp.cuda.Stream(non_blocking=True) for _ in arrays]
    results = []
    for stream, array in zip(streams, arrays):
        with stream:
            data = cp.asarray(array)
            kernel((-(-data.size // 256),), (256,), (data, np.int32(data.size)))
            results.append(data)
    for stream in streams:
        stream.synchronize()
    return np.stack([cp.asnumpy(data) for data in results])


def make(n=1_000_000):
    return np.arange(n, dtype=np.int32), np.arange(n, 0, -1, dtype=np.int32)


def expected(first, second):
    return np.stack([first * 2, second * 2])


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
