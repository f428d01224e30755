# SPDX-License-Identifier: Apache-2.0
"""Many equations a x + b = 0 at once: x = -b / a over vectors, in PyTorch."""

import numpy as np
import torch

from common import example


def run(a, b):
    a, b = (torch.from_numpy(v).cuda() for v in (a, b))
    return (-b / a).cpu().numpy()


def make(n=1_000_000):
    return tuple(np.random.default_rng(7).uniform(1, 2, (2, n)).astype(np.float32))


def expected(a, b):
    return -b / a


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
