# SPDX-License-Identifier: Apache-2.0
"""One sum of squares split over the machine's GPUs: CuPy, a context on each."""

import cupy as cp
import numpy as np

from common import example


def run(x):
    sums = []
    for device, part in enumerate(np.array_split(x, cp.cuda.runtime.getDeviceCount())):
        with cp.cuda.Device(device):
            sums.append(cp.sum(cp.asarray(part) ** 2))
    return sum(float(total) for total in sums)


def make(n=1_000_000):
    return (np.random.default_rng(11).random(n),)


def expected(x):
    return np.sum(x ** 2)


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
