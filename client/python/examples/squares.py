# SPDX-License-Identifier: Apache-2.0
"""
Squares tasks through an executor that runs a kernel on the GPU, instead of a function.

The tasks are copied to shared memory once. Batches and their squares are slices of it, which jobs use without a copy.
"""

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
    """Compiled at first use."""
    return gpuq.module(SOURCE).get_kernel("square")


def run(tasks, batches):
    squares = gpuq.empty(tasks.size, np.float32)
    ins, outs = np.array_split(gpuq.array(tasks), batches), np.array_split(squares, batches)
    config = gpuq.LaunchConfig(grid=-(-ins[0].size // 256), block=256)
    with gpuq.Executor() as executor:
        list(executor.map(kernel(), config, map(gpuq.In, ins), map(gpuq.Out, outs), [batch.size for batch in ins]))
    return squares


def make(n=100_000, batches=8):
    return np.arange(1, n + 1, dtype=np.float32), batches


def expected(tasks, _):
    return tasks ** 2


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
