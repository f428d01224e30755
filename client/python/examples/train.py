# SPDX-License-Identifier: Apache-2.0
"""
Trains a linear layer for 1,000 iterations of SGD, as one replayed graph.

x, y and the weights stay on the GPU. A job contains many iterations of forward, backward and update. The daemon runs
it as one CUDA graph, and keeps the graph for the next job, which has the same shape.
"""

import functools

import numpy as np

import gpuq
from common import example

SOURCE = r"""
/* The error of each of the n rows; w ends with the bias. */
extern "C" __global__ void forward(const float *x, const float *y, const float *w, float *error, int n, int d)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = w[d];

        if (i >= n)
                return;
        for (int j = 0; j < d; j++)
                sum += x[i * d + j] * w[j];
        error[i] = sum - y[i];
}

/* The gradient of the mean of the squared errors, followed by that mean; one thread each. */
extern "C" __global__ void backward(const float *x, const float *error, float *gradient, int n, int d)
{
        int j = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = 0;

        if (j > d + 1)
                return;
        for (int i = 0; i < n; i++)
                sum += error[i] * (j < d ? x[i * d + j] : j == d ? 1 : error[i]);
        gradient[j] = j <= d ? 2 * sum / n : sum / n;
}

extern "C" __global__ void update(float *w, const float *gradient, float rate, int d)
{
        int j = blockIdx.x * blockDim.x + threadIdx.x;

        if (j <= d)
                w[j] -= rate * gradient[j];
}
"""


@functools.cache
def kernels():
    """Compiled at first use."""
    module = gpuq.module(SOURCE)
    return [module.get_kernel(name) for name in ("forward", "backward", "update")]


def run(x, y, w, iterations, together, rate):
    n, d = x.shape
    forward, backward, update = kernels()
    rows = gpuq.LaunchConfig(grid=-(-n // 64), block=64)
    columns = gpuq.LaunchConfig(grid=-(-(d + 2) // 64), block=64)
    x, y, w = gpuq.to_device(x), gpuq.to_device(y), gpuq.to_device(w)
    error, gradient = gpuq.device_array(n, np.float32), gpuq.device_array(d + 2, np.float32)

    def iterate(count):
        job = gpuq.job()
        for _ in range(count):
            job.launch(forward, rows, gpuq.In(x), gpuq.In(y), gpuq.In(w), gpuq.Out(error), n, d)
            job.launch(backward, columns, gpuq.In(x), gpuq.In(error), gpuq.Out(gradient), n, d)
            job.launch(update, columns, gpuq.InOut(w), gpuq.In(gradient), rate, d)
        return job.submit()

    jobs = [iterate(min(together, iterations - done)) for done in range(0, iterations, together)]
    for job in jobs:
        job.wait()
    return w.get()


def make(n=64, d=10, iterations=1000, together=100, rate=0.01):
    rng = np.random.default_rng(17)
    x, weights = rng.standard_normal((n, d), np.float32), rng.standard_normal(d, np.float32)
    y = x @ weights + 0.5 + 0.1 * rng.standard_normal(n, np.float32)
    return x, y, np.zeros(d + 1, np.float32), iterations, together, rate


def expected(x, y, w, iterations, together, rate):
    x = np.column_stack([x, np.ones(len(x))])
    for _ in range(iterations):
        w = w - rate * 2 * x.T @ (x @ w - y) / len(x)
    return w


def main():
    example(make, run, expected, rtol=1e-3)


if __name__ == "__main__":
    main()
