#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
One measurement in a process of its own, told as a line of JSON; python_bench.py runs these.

    python_measure.py hundred EXAMPLES --processes 100 --start spawn    100 tasks of a pool, with gpuq or CuPy, or - for neither
    python_measure.py import                                            import of gpuq after numpy's
    python_measure.py job --data copies [--prepared]                    one small job at a time
"""

import argparse
import functools
import json
import multiprocessing
import os
import sys
import time

NO_GPU = "-"  # as EXAMPLES: each process computes with numpy, which tells what the processes alone cost


def sum_in_numpy(data):
    return float((data ** 2).sum())


def in_pool(examples, barrier):
    global gate, sum_of_squares
    gate, sum_of_squares = barrier, sum_in_numpy
    if examples != NO_GPU:
        sys.path.insert(0, examples)
        from hundred_tasks import sum_of_squares


def one_task(data):
    """Ends only when every process of the pool has done one, so that none does two."""
    total = sum_of_squares(data)
    if gate:
        gate.wait(300)
    return total


def hundred(arguments):
    """From before the first process starts to the last result, and to the end of the last process."""
    if arguments.lone:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np
    sys.path.insert(0, arguments.examples)
    multiprocessing.set_forkserver_preload(["numpy", "gpuq"])
    if arguments.examples != NO_GPU:
        import hundred_tasks  # noqa: F401 - a script has its imports done; and a missing package is told here, not by each process
    rng = np.random.default_rng(2)
    datasets = [rng.random(10_000) for _ in range(arguments.tasks)]
    context = multiprocessing.get_context(arguments.start)
    start = time.perf_counter()
    gate = context.Barrier(arguments.processes) if arguments.processes == arguments.tasks else None
    with context.Pool(arguments.processes, in_pool, (arguments.examples, gate)) as pool:
        totals = pool.map(one_task, datasets, chunksize=1)
        seconds = time.perf_counter() - start
    closed = time.perf_counter() - start
    np.testing.assert_allclose(totals, [np.sum(data ** 2) for data in datasets], rtol=1e-12)
    return {"seconds": seconds, "closed_s": closed}


def import_time(_):
    import numpy  # noqa: F401
    start = time.perf_counter()
    import gpuq
    imported = time.perf_counter()
    # The package imports its parts when they are named: those of a first program.
    assert all((gpuq.empty, gpuq.In, gpuq.Out, gpuq.LaunchConfig, gpuq.builtin, gpuq.default_client))
    return {"import_s": imported - start, "in_use_s": time.perf_counter() - start}


def small_jobs(run, check, seconds):
    clock, times = time.perf_counter, []
    end = clock() + seconds
    number = 0
    while clock() < end:
        number += 1
        check.before(number)
        start = clock()
        run()
        times.append(clock() - start)
        check.after()
    return times


class Check:
    """In host memory each job gets an input of its own, so that a stale result shows."""

    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c

    def before(self, number):
        self.b[0] = number % 1000000

    def after(self):
        for i in (0, self.a.size // 2, self.a.size - 1):
            assert self.c[i] == self.a[i] + self.b[i]


class NoCheck:
    """On the device the result is read back once, at the end."""

    def before(self, number):
        pass

    def after(self):
        pass


def job(arguments):
    """c = a + b, as gpuq-bench does it with one job in flight."""
    import statistics

    import gpuq
    import numpy as np
    n = arguments.n
    a, b, c = gpuq.empty(n, np.float32), gpuq.empty(n, np.float32), gpuq.empty(n, np.float32)
    a[:], b[:] = np.arange(n) % 4096 * 0.5, np.arange(n) % 1021
    check, arrays = Check(a, b, c), (a, b, c)
    if arguments.data == "device":
        check, arrays = NoCheck(), (gpuq.to_device(a), gpuq.to_device(b), gpuq.device_array(n, np.float32))
    kernel = gpuq.builtin().get_kernel("add_f32")
    config = gpuq.LaunchConfig(grid=-(-n // 256), block=256)
    given = gpuq.In(arrays[0]), gpuq.In(arrays[1]), gpuq.Out(arrays[2]), n
    run = kernel.prepare(config, *given).run if arguments.prepared else functools.partial(kernel.run, config, *given)
    small_jobs(run, check, min(0.1, arguments.seconds))
    times = small_jobs(run, check, arguments.seconds)
    if arguments.data == "device":
        np.testing.assert_array_equal(arrays[2].get(), a + b)
    times.sort()
    return {"p50_us": 1e6 * statistics.median(times), "p99_us": 1e6 * times[len(times) * 99 // 100], "jobs": len(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("hundred")
    verb.add_argument("examples", help="the folder of hundred_tasks.py, or -")
    verb.add_argument("--processes", type=int, default=100)
    verb.add_argument("--tasks", type=int, default=100)
    verb.add_argument("--start", default="fork")
    verb.add_argument("--lone", action="store_true", help="OPENBLAS_NUM_THREADS=1: importing numpy starts no threads")
    verb.set_defaults(measure=hundred)
    verbs.add_parser("import").set_defaults(measure=import_time)
    verb = verbs.add_parser("job")
    verb.add_argument("--data", default="copies", choices=["copies", "device"])
    verb.add_argument("--n", type=int, default=10000)
    verb.add_argument("--seconds", type=float, default=1.0)
    verb.add_argument("--prepared", action="store_true", help="prepared once and fired")
    verb.set_defaults(measure=job)
    arguments = parser.parse_args()
    print(json.dumps(arguments.measure(arguments)))


if __name__ == "__main__":
    main()
