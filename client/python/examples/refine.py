# SPDX-License-Identifier: Apache-2.0
"""
Square roots by Newton's method, each step in another process and each depending on the last.

The estimate stays on the GPU. The processes pass on only the id of a job: each submits its step after the previous
one, and only the last one is waited for.
"""

import functools

import numpy as np

import gpuq
from common import context, example

SOURCE = r"""
extern "C" __global__ void refine(const double *a, double *x, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                x[i] = 0.5 * (x[i] + a[i] / x[i]);
}
"""


@functools.cache
def kernel():
    """Loaded at first use in each process. The daemon compiles it once."""
    return gpuq.module(SOURCE).get_kernel("refine")


def step(a, x, last):
    return kernel().submit((-(-x.size // 256), 256), gpuq.In(a), gpuq.InOut(x), x.size, after=last).id


def run(a, steps, start):
    a, x = gpuq.to_device(a), gpuq.to_device(np.ones_like(a))
    last = ()
    with context(start).Pool(steps) as pool:
        for _ in range(steps):
            last = pool.apply(step, (a, x, last))
        gpuq.wait_id(last)
    return x.get()


def make(n=100_000, steps=8, start="fork"):
    return np.random.default_rng(3).uniform(0.5, 4, n), steps, start


def expected(a, steps, _):
    x = np.ones_like(a)
    for _ in range(steps):
        x = 0.5 * (x + a / x)
    return x


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
