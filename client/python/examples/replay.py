# SPDX-License-Identifier: Apache-2.0
"""
A CUDA graph replayed: a job of two operations, x = x / 2 and x = x + b, submitted again and again.

The daemon runs a job of several operations as a graph and keeps the graph for jobs of the same shape. Each replay waits
for the one before by itself, since both write x, so all of them are submitted at once.
"""

import numpy as np

import gpuq
from common import example


def run(b, replays):
    kernels = gpuq.builtin()
    halve, add = kernels.get_kernel("scale_f32"), kernels.get_kernel("axpy_f32")
    config = gpuq.LaunchConfig(grid=-(-b.size // 256), block=256)
    b, x, half = gpuq.to_device(b), gpuq.device_array(b.size, np.float32), gpuq.device_array(b.size, np.float32)

    def replay():
        job = gpuq.job()
        job.launch(halve, config, 0.5, gpuq.In(x), gpuq.Out(half), b.size)
        job.launch(add, config, 1.0, gpuq.In(b), gpuq.InOut(half), b.size)
        return job.copy(x, half)

    jobs = [replay() for _ in range(replays)]
    gpuq.submit_many(jobs)
    for job in jobs:
        job.wait()
    return x.get()


def make(n=10_000, replays=100):
    return np.random.default_rng(14).random(n, np.float32), replays


def expected(b, replays):
    return b * (2 - 0.5 ** (replays - 1))


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
