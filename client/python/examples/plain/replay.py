# SPDX-License-Identifier: Apache-2.0
"""Replays a CUDA graph: some steps of x = x / 2 and x = x + b, captured from a stream of CuPy and launched many times."""

import cupy as cp
import numpy as np

from common import example


def run(b, replays, together):
    def step():
        cp.multiply(x, np.float32(0.5), out=x)
        cp.add(x, b, out=x)

    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        b, x = cp.asarray(b), cp.zeros(b.size, cp.float32)
        cp.multiply(x, np.float32(0.5), out=x)  # compiled before the capture; x is zeros, and stays so
        cp.add(x, cp.zeros_like(x), out=x)
        stream.synchronize()
        stream.begin_capture()
        for _ in range(together):
            step()
        graph = stream.end_capture()
        for _ in range(replays // together):
            graph.launch(stream)
        for _ in range(replays % together):
            step()
        stream.synchronize()
        return cp.asnumpy(x)


def make(n=10_000, replays=100, together=10):
    return np.random.default_rng(14).random(n, np.float32), replays, together


def expected(b, replays, _):
    return b * (2 - 0.5 ** (replays - 1))


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
