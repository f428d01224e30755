# SPDX-License-Identifier: Apache-2.0
"""x² + 2x + 1 on a million elements, with a kernel from source in CuPy's syntax."""

import numpy as np

import gpuq
from common import example

SOURCE = r"""
extern "C" __global__ void polynomial(const float *x, float *y, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                y[i] = x[i] * x[i] + 2 * x[i] + 1;
}
"""
polynomial = gpuq.RawKernel(SOURCE, "polynomial")


def run(x):
    y = gpuq.empty(x.size, np.float32)
    polynomial((-(-x.size // 256),), (256,), (gpuq.In(x), gpuq.Out(y), np.int32(x.size)))
    return y


def make(n=1_000_000):
    return (np.arange(n, dtype=np.float32),)


def expected(x):
    return x ** 2 + 2 * x + 1


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
