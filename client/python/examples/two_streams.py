# SPDX-License-Identifier: Apache-2.0
"""Two jobs that share no array run in parallel, as if on two streams, without any code for streams."""

import functools

import numpy as np

import gpuq
from common import example

SOURCE = r"""
extern "C" __global__ void double_all(int *data, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                data[i] *= 2;
}
"""


@functools.cache
def kernel():
    """Compiled at first use."""
    return gpuq.module(SOURCE).get_kernel("double_all")


def run(first, second):
    arrays = [gpuq.array(first), gpuq.array(second)]
    jobs = [kernel().submit((-(-a.size // 256), 256), gpuq.InOut(a), a.size) for a in arrays]
    for job in jobs:
        job.wait()
    return np.stack(arrays)


def make(n=1_000_000):
    return np.arange(n, dtype=np.int32), np.arange(n, 0, -1, dtype=np.int32)


def expected(first, second):
    return np.stack([first * 2, second * 2])


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
