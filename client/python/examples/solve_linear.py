# SPDX-License-Identifier: Apache-2.0
"""
Solves many equations a x + b = 0 at once: x = -b / a over vectors, in cuda.core's syntax.

The vectors are processed in parts, without waiting. While the GPU computes one part, this process copies the next one
to shared memory.
"""

import functools

import numpy as np

import gpuq
from common import example

SOURCE = r"""
extern "C" __global__ void solve(const float *a, const float *b, float *x, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                x[i] = -b[i] / a[i];
}
"""


@functools.cache
def kernel():
    """Compiled at first use."""
    return gpuq.Program(SOURCE, code_type="c++").compile().get_kernel("solve")


def run(a, b, parts):
    x, jobs = gpuq.empty(a.size, np.float32), []
    for a, b, part in zip(*(np.array_split(v, parts) for v in (a, b, x))):
        config = gpuq.LaunchConfig(grid=-(-a.size // 256), block=256)
        jobs.append(gpuq.launch(None, config, kernel(), gpuq.In(a), gpuq.In(b), gpuq.Out(part), np.int32(a.size)))
    for job in jobs:
        job.wait()
    return x


def make(n=1_000_000, parts=4):
    return (*np.random.default_rng(7).uniform(1, 2, (2, n)).astype(np.float32), parts)


def expected(a, b, _):
    return -b / a


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
