#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The built-in reductions on data in device memory, beside CuPy's and PyTorch's where they can be imported.

    python3 tests/bench/reductions.py --prefix build/stage [--device gpu] [--n 1000,100000,10000000,100000000]
                                      [--kernels sum_f32,dot_f32] [--ways gpuq,CuPy,PyTorch]

Prints a table: of one call at a time, until its end is known, the median; of many in flight, the time of each and the
bytes that it reads in that time. Each way runs in a process of its own, with the same numbers.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "client" / "python" / "src"
IN_FLIGHT = 32


# ---- one way: begin() starts a call, end() waits for all that were started, result() reads it ----


class OfGpuq:
    def __init__(self, kernel, numbers):
        import gpuq
        import numpy
        self.out = gpuq.device_array(1, numpy.uint64 if kernel.startswith("arg") else numbers[0].dtype)
        given = [*(gpuq.In(gpuq.to_device(values)) for values in numbers), gpuq.Out(self.out), numbers[0].size]
        config = gpuq.LaunchConfig(grid=1, block=1024)
        self.prepared, self.jobs = gpuq.builtin()[kernel].prepare(config, *given), []
        self.result = lambda: numpy.asarray(self.out.get())[0]

    def begin(self):
        self.jobs.append(self.prepared.fire())

    def end(self):
        for job in self.jobs:
            job.wait()
        self.jobs.clear()


class OfCuPy:
    def __init__(self, kernel, numbers):
        import cupy
        given = [cupy.asarray(values) for values in numbers]
        call = {"sum": cupy.sum, "dot": cupy.dot, "min": cupy.min, "max": cupy.max, "mean": cupy.mean, "argmin": cupy.argmin,
                "argmax": cupy.argmax, "sum_of_squares": lambda x: cupy.dot(x, x)}[kernel.rpartition("_")[0]]
        self.call, self.end = lambda: call(*given), cupy.cuda.get_current_stream().synchronize
        self.result = lambda: self.call().get()

    def begin(self):
        self.call()


class OfPyTorch:
    def __init__(self, kernel, numbers):
        import torch
        given = [torch.from_numpy(values).cuda() for values in numbers]
        call = {"sum": torch.sum, "dot": torch.dot, "min": torch.min, "max": torch.max, "mean": torch.mean, "argmin": torch.argmin,
                "argmax": torch.argmax, "sum_of_squares": lambda x: torch.dot(x, x)}[kernel.rpartition("_")[0]]
        self.call, self.end = lambda: call(*given), torch.cuda.synchronize
        self.result = lambda: self.call().cpu().numpy()

    def begin(self):
        self.call()


WAYS = {"gpuq": OfGpuq, "CuPy": OfCuPy, "PyTorch": OfPyTorch}


def time_calls(call, seconds):
    times, clock = [], time.perf_counter
    end = clock() + seconds
    while not times or clock() < end:
        start = clock()
        call()
        times.append(clock() - start)
    return times


def measure(way, kernel, n, seconds):
    import numpy
    random = numpy.random.default_rng(1)
    dtype = {"f32": numpy.float32, "f64": numpy.float64}[kernel.rpartition("_")[2]]
    numbers = [random.random(n, numpy.float32).astype(dtype) for _ in range(1 + kernel.startswith("dot"))]
    contender = WAYS[way](kernel, numbers)

    def one():
        contender.begin()
        contender.end()

    def many():
        for _ in range(IN_FLIGHT):
            contender.begin()
        contender.end()

    time_calls(many, seconds / 4)
    alone, together = time_calls(one, seconds), time_calls(many, seconds)
    return {"p50_us": 1e6 * statistics.median(alone), "each_us": 1e6 * statistics.median(together) / IN_FLIGHT,
            "bytes": sum(values.nbytes for values in numbers), "result": float(contender.result())}


# ---- all ways ----


def run(way, kernel, n, arguments, environment):
    command = [sys.executable, __file__, "--measure", way, "--kernels", kernel, "--n", str(n), "--seconds", str(arguments.seconds)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        return {"reason": (process.stderr.strip().split("\n")[-1] or f"exit status {process.returncode}")[:100]}
    return json.loads(process.stdout)


def print_row(kernel, n, way, row):
    if "reason" in row:
        print(f"| {kernel} | {n:,} | {way} | – | – | – | {row['reason']} |", flush=True)
        return
    speed = row["bytes"] / row["each_us"] / 1e3
    print(f"| {kernel} | {n:,} | {way} | {row['p50_us']:,.1f} | {row['each_us']:,.2f} | {speed:,.0f} | {row['result']:.9g} |", flush=True)


def compare(arguments):
    from services import Daemon
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(arguments.prefix, arguments.device, folder)
        path = os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "GPUQ_SOCKET": daemon.socket, "PYTHONPATH": path,
                       "GPUQ_LIBRARY": str(pathlib.Path(arguments.prefix).resolve() / "lib" / "libgpuq.so.0")}
        try:
            print(f"| kernel | n | way | one at a time: p50, µs | {IN_FLIGHT} in flight: µs each | GB/s | result |\n|" + "---|" * 7)
            for kernel in arguments.kernels:
                for n in arguments.n:
                    for way in arguments.ways:
                        print_row(kernel, n, way, run(way, kernel, n, arguments, environment))
        finally:
            daemon.end()


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="build/stage")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--n", type=lambda text: [int(float(word)) for word in words(text)], default=[10**3, 10**5, 10**7, 10**8])
    parser.add_argument("--kernels", type=words, default=["sum_f32", "dot_f32"])
    parser.add_argument("--ways", type=words, default=list(WAYS))
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # in a process of its own
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.kernels[0], arguments.n[0], arguments.seconds)))
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
