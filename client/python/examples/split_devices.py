# SPDX-License-Identifier: Apache-2.0
"""
Splits one sum of squares over all GPUs of the machine, with several jobs for each, all in flight together.

While a GPU computes one part, this process copies the next one to shared memory.
"""

import numpy as np

import gpuq
from common import example


def run(x, jobs_each):
    client = gpuq.default_client()
    parts = np.array_split(x, jobs_each * client.devices)
    sums = client.empty(len(parts))
    kernel = client.builtin().get_kernel("sum_of_squares_f64")
    jobs = [kernel.submit((1, 1024), gpuq.In(part), gpuq.Out(sums[i:i + 1]), part.size, device=i % client.devices)
            for i, part in enumerate(parts)]
    for job in jobs:
        job.wait()
    return sums.sum()


def make(n=1_000_000, jobs_each=4):
    return np.random.default_rng(11).random(n), jobs_each


def expected(x, _):
    return np.sum(x ** 2)


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
