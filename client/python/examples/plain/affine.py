# SPDX-License-Identifier: Apache-2.0
"""y = w @ x + b with matrices w and x and a column b: PyTorch."""

import numpy as np
import torch

from common import example


def run(w, x, b):
    w, x, b = (torch.from_numpy(v).cuda() for v in (w, x, b))
    return (torch.matmul(w, x) + b).cpu().numpy()


def make(n=1000):
    rng = np.random.default_rng(9)
    return rng.random((n, n), np.float32), rng.random((n, n), np.float32), rng.random((n, 1), np.float32)


def expected(w, x, b):
    return w @ x + b


def main():
    example(make, run, expected, rtol=1e-4)


if __name__ == "__main__":
    main()
