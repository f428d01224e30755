# SPDX-License-Identifier: Apache-2.0
"""Squares of tasks, moved to the GPU batch by batch: PyTorch."""

import numpy as np
import torch

from common import example


def compute_on_gpu(batch):
    return (torch.tensor(batch, device="cuda") ** 2).cpu().numpy()


def run(tasks, batches):
    return np.concatenate([compute_on_gpu(batch) for batch in np.array_split(tasks, batches)])


def make(n=100_000, batches=8):
    return np.arange(1, n + 1, dtype=np.float32), batches


def expected(tasks, _):
    return tasks ** 2


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
