# SPDX-License-Identifier: Apache-2.0
"""Squares of tasks through an executor whose work runs on the GPU: a kernel is submitted where a function would be."""

import functools

import numpy as np

import gpuq
from common import example

SOURCE = r"""
extern "C" __global__ void square(const float *tasks, float *squares, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                squares[i] = tasks[i] * tasks[i];
}
"""


@functools.cache
def kernel():
    """Compiled at its first use."""
    return gpuq.module(SOURCE).get_kernel("square")


def run(tasks, batches):
    futures = []
    with gpuq.Executor() as executor:
        for batch in np.array_split(tasks, batches):
            config = gpuq.LaunchConfig(grid=-(-batch.size // 256), block=256)
            squares = gpuq.empty(batch.size, np.float32)
            futures.append(executor.submit(kernel(), config, gpuq.In(batch), gpuq.Out(squares), batch.size))
        return np.concatenate([future.result() for future in futures])


def make(n=100_000, batches=8):
    return np.arange(1, n + 1, dtype=np.float32), batches


def expected(tasks, _):
    return tasks ** 2


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
