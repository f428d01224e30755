# SPDX-License-Identifier: Apache-2.0
"""
A producer and a consumer in two processes, with queues between them; the consumer adds on the GPU, asynchronously.

The queues carry references: both processes and the daemon share the same memory. The consumer submits all jobs before
it waits for the first one.
"""

import numpy as np

import gpuq
from common import context, example


def consume(work, done):
    add = gpuq.builtin().get_kernel("add_f32")
    jobs = []
    for a, b, c in iter(work.get, None):
        jobs.append(add.submit((-(-a.size // 256), 256), gpuq.In(a), gpuq.In(b), gpuq.Out(c), a.size))
    for number, job in enumerate(jobs):
        job.wait()
        done.put(number)


def run(data, start):
    started = context(start)
    work, done = started.Queue(), started.Queue()
    consumer = started.Process(target=consume, args=(work, done))
    consumer.start()
    sets = gpuq.empty((len(data), 3, data.shape[2]), np.float32)
    for number, (a, b) in enumerate(data):
        sets[number, :2] = a, b
        work.put(tuple(sets[number]))
    work.put(None)
    total = sum(float(sets[done.get(timeout=60), 2].sum(dtype=float)) for _ in data)
    consumer.join()
    return total


def make(size=1_000_000, sets=10, start="fork"):
    return np.random.default_rng(5).random((sets, 2, size), np.float32), start


def expected(data, _):
    return data.sum(dtype=float)


def main():
    example(make, run, expected)


if __name__ == "__main__":
    main()
