# SPDX-License-Identifier: Apache-2.0
"""Two processes double one array at once: one array in memory, and one context on the GPU."""

import numpy as np

import gpuq
from common import context, example


def double(data, result):
    kernel = gpuq.builtin().get_kernel("scale_f64")
    kernel.run((-(-data.size // 256), 256), 2.0, gpuq.In(data), gpuq.Out(result), data.size)


def run(data, processes, start):
    shared, results = gpuq.array(data), gpuq.empty((processes, data.size))
    with context(start).Pool(processes) as pool:
        pool.starmap(double, [(shared, result) for result in results], chunksize=1)
    return results


def make(n=1_000_000, processes=2, start="fork"):
    return np.arange(1.0, n + 1), processes, start


def expected(data, processes, _):
    return np.tile(data * 2, (processes, 1))


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
