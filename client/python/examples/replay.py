# SPDX-License-Identifier: Apache-2.0
"""
Replays a CUDA graph: a job of several steps, each x = x / 2 and x = x + b, is prepared once and fired many times.

The daemon keeps the prepared job, runs its operations as a graph, and keeps the graph too. All replays write x, so the
daemon runs them in order, and the program fires them without waiting.
"""

import functools

import numpy as np

import gpuq
from common import example

SOURCE = r"""
extern "C" __global__ void halve(float *x, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                x[i] *= 0.5f;
}

extern "C" __global__ void add(float *x, const float *b, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                x[i] += b[i];
}
"""


@functools.cache
def kernels():
    """Compiled at first use."""
    module = gpuq.module(SOURCE)
    return module.get_kernel("halve"), module.get_kernel("add")


def run(b, replays, together):
    halve, add = kernels()
    config = gpuq.LaunchConfig(grid=-(-b.size // 256), block=256)
    n, x, b = b.size, gpuq.device_array(b.size, np.float32), gpuq.to_device(b)

    def steps(count):
        job = gpuq.job()
        for _ in range(count):
            job.launch(halve, config, gpuq.InOut(x), n).launch(add, config, gpuq.InOut(x), gpuq.In(b), n)
        return job

    replay = steps(together).prepare()
    jobs = [replay() for _ in range(replays // together)]
    if replays % together:
        jobs.append(steps(replays % together).submit())
    for job in jobs:
        job.wait()
    return x.get()


def make(n=10_000, replays=100, together=10):
    return np.random.default_rng(14).random(n, np.float32), replays, together


def expected(b, replays, _):
    return b * (2 - 0.5 ** (replays - 1))


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
