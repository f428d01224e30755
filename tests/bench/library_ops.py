#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix products, Fourier transforms, scans, sorts and random numbers as operations of a job, on data in device memory, beside
CuPy's and PyTorch's.

    python3 tests/bench/library_ops.py --prefix build/stage [--device gpu] [--sizes 256,1024,4096] [--types f32,tf32,f16,fft,scan,sort,pairs,uniform,normal]
                                       [--ways gpuq,gpuq-kernels,CuPy,PyTorch]

Prints a table: of one product at a time, until its end is known, the median; of many in flight, the time of each and its
TFLOP/s; of the first one, which also loads the library, the time, and the device memory that the worker then has more. fft are
transforms of n complex64 numbers, so many that all have 4 Mi numbers. scan, sort, pairs (a sort that moves an int64 with each
key), uniform and normal are of n^2 float32 numbers, and have 10^9 numbers/s instead of TFLOP/s. gpuq-kernels is gpuq with `libraries = none`. CuPy and
PyTorch are measured where they can be imported. Each way runs in a process of its own, with the same numbers, and is compared with numpy in a few rows.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from reductions import IN_FLIGHT, PACKAGE, time_calls, words

FFT_NUMBERS = 1 << 22
SERIES = {"scan", "sort", "pairs", "uniform", "normal"}  # of n^2 numbers
TYPES = {"f16": "float16", "f32": "float32", "tf32": "float32", "f64": "float64"}
TOLERANCES = {"f16": 2e-3, "f32": 1e-6, "tf32": 2e-3, "f64": 1e-14}  # times the number of products that are summed


# ---- one way: begin() starts a product, end() waits for all that were started, result() reads it ----


class OfGpuq:
    def __init__(self, kind, a, b):
        import gpuq
        self.gpuq, self.jobs = gpuq, []
        if kind in SERIES:
            self._begin_series(gpuq, kind, gpuq.to_device(a))
            return
        if kind == "fft":
            a = gpuq.to_device(a)
            self.out = gpuq.device_array(a.shape, a.dtype)
            self.prepared, self.jobs, self.result = gpuq.job().fft(a, self.out).prepare(), [], self.out.get
            return
        a, b = gpuq.to_device(a), gpuq.to_device(b)
        self.out = gpuq.device_array((a.shape[0], b.shape[1]), a.dtype)
        self.prepared, self.jobs = gpuq.job().matmul(a, b, self.out, tf32=kind == "tf32").prepare(), []
        self.result = self.out.get

    def _begin_series(self, gpuq, kind, a):
        self.out, job = gpuq.device_array(a.shape, a.dtype), gpuq.job()
        if kind == "scan":
            job.scan(a, self.out)
        elif kind == "sort":
            job.sort(a, self.out)
        elif kind == "pairs":
            index, moved = gpuq.to_device(index_of(a)), gpuq.device_array(a.shape, "int64")
            job.sort(a, self.out, index, moved)
        else:
            job.random(self.out, kind, seed=1)
        self.prepared, self.result = job.prepare(), self.out.get

    def memory(self):
        return sum(worker.memory for worker in self.gpuq.status().workers)

    def begin(self):
        self.jobs.append(self.prepared.fire())

    def end(self):
        for job in self.jobs:
            job.wait()
        self.jobs.clear()


class OfCuPy:
    def __init__(self, kind, a, b):
        if kind == "tf32":
            os.environ["CUPY_TF32"] = "1"
        import cupy
        self.end = cupy.cuda.get_current_stream().synchronize
        if kind in SERIES:
            a = cupy.asarray(a)
            call = {"scan": lambda: cupy.cumsum(a), "sort": lambda: cupy.sort(a), "pairs": lambda: a[cupy.argsort(a)],
                    "uniform": lambda: cupy.random.random(a.size, dtype="f4"),
                    "normal": lambda: cupy.random.standard_normal(a.size, dtype="f4")}[kind]
            self.begin, self.result = lambda: setattr(self, "out", call()), lambda: self.out.get()
            return
        if kind == "fft":
            a = cupy.asarray(a)
            self.begin, self.result = lambda: setattr(self, "out", cupy.fft.fft(a)), lambda: self.out.get()
            return
        a, b = cupy.asarray(a), cupy.asarray(b)
        self.out = cupy.empty((a.shape[0], b.shape[1]), a.dtype)
        self.begin, self.result = lambda: cupy.matmul(a, b, out=self.out), self.out.get


class OfPyTorch:
    def __init__(self, kind, a, b):
        import torch
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        self.end, self.result = torch.cuda.synchronize, lambda: self.out.cpu().numpy()
        if kind in SERIES:
            a = torch.from_numpy(a).cuda()
            call = {"scan": lambda: torch.cumsum(a, 0), "sort": lambda: torch.sort(a)[0], "pairs": lambda: torch.sort(a)[0],
                    "uniform": lambda: torch.rand(len(a), device="cuda"), "normal": lambda: torch.randn(len(a), device="cuda")}[kind]
            self.begin = lambda: setattr(self, "out", call())
            return
        if kind == "fft":
            a = torch.from_numpy(a).cuda()
            self.out = torch.empty_like(a)
            self.begin = lambda: torch.fft.fft(a, out=self.out)
            return
        a, b = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
        self.out = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device="cuda")
        self.begin = lambda: torch.matmul(a, b, out=self.out)


WAYS = {"gpuq": OfGpuq, "gpuq-kernels": OfGpuq, "CuPy": OfCuPy, "PyTorch": OfPyTorch}


def index_of(a):
    import numpy
    return numpy.arange(a.size)


def check(kind, a, b, c):
    import numpy
    if kind == "scan":
        numpy.testing.assert_allclose(c, numpy.cumsum(a, dtype=numpy.float64), rtol=1e-4, atol=0)
    elif kind in ("sort", "pairs"):
        assert numpy.array_equal(c, numpy.sort(a))
    elif kind in SERIES:
        assert len(c) == len(a) and abs(c.mean() - 0.5 * (kind == "uniform")) < 5 / len(c)**0.5
    if kind in SERIES:
        return
    if kind == "fft":
        numpy.testing.assert_allclose(c[-1], numpy.fft.fft(a[-1]), rtol=0, atol=1e-5 * a.shape[1])
        return
    rows = [0, len(a) // 2, len(a) - 1]
    wanted = a[rows].astype(numpy.float64) @ b.astype(numpy.float64)
    numpy.testing.assert_allclose(c[rows].astype(numpy.float64), wanted, rtol=0, atol=TOLERANCES[kind] * len(b))


def measure(way, kind, n, seconds):
    import numpy
    random = numpy.random.default_rng(1)
    if kind in SERIES:
        a, b = random.uniform(0, 1, n * n).astype(numpy.float32), None
    elif kind == "fft":
        a, b = random.uniform(-1, 1, (max(1, FFT_NUMBERS // n), 2 * n)).astype(numpy.float32).view(numpy.complex64), None
    else:
        a, b = (random.uniform(-1, 1, (n, n)).astype(TYPES[kind]) for _ in range(2))
    contender = WAYS[way](kind, a, b)

    def one():
        contender.begin()
        contender.end()

    def many():
        for _ in range(IN_FLIGHT):
            contender.begin()
        contender.end()

    has_memory = hasattr(contender, "memory")
    before, start = contender.memory() if has_memory else 0, time.perf_counter()
    one()
    first_s = time.perf_counter() - start
    check(kind, a, b, contender.result())
    alone, together = time_calls(one, seconds), time_calls(many, seconds)
    time.sleep(1.5 * has_memory)  # until the worker has told its memory
    return {"first_ms": 1e3 * first_s, "p50_us": 1e6 * statistics.median(alone), "each_us": 1e6 * statistics.median(together) / IN_FLIGHT,
            "more_mib": (contender.memory() - before) / (1 << 20) if has_memory else None}


# ---- all ways ----


def run(way, kind, n, arguments, environment):
    command = [sys.executable, __file__, "--measure", way, "--types", kind, "--sizes", str(n), "--seconds", str(arguments.seconds)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        return {"reason": (process.stderr.strip().split("\n")[-1] or f"exit status {process.returncode}")[:100]}
    return json.loads(process.stdout)


def print_row(kind, n, way, row):
    if "reason" in row:
        print(f"| {kind} | {n:,} | {way} | – | – | – | – | {row['reason']} |", flush=True)
        return
    flops = 5 * n * math.log2(n) * max(1, FFT_NUMBERS // n) if kind == "fft" else 2 * n**3
    speed = n * n / row["each_us"] / 1e3 if kind in SERIES else flops / row["each_us"] / 1e6
    more = "" if row["more_mib"] is None else f"{row['more_mib']:,.0f}"
    print(f"| {kind} | {n:,} | {way} | {row['p50_us']:,.1f} | {row['each_us']:,.1f} | {speed:,.1f} | {row['first_ms']:,.0f} | {more} |", flush=True)


def compare_on(way, arguments):
    from services import Daemon
    with tempfile.TemporaryDirectory() as folder:
        folders = "none" if way == "gpuq-kernels" else os.environ.get("GPUQ_TEST_LIBRARIES", "")
        daemon = Daemon(arguments.prefix, arguments.device, folder, [f"libraries={folders}"])
        path = os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "GPUQ_SOCKET": daemon.socket, "PYTHONPATH": path,
                       "GPUQ_LIBRARY": str(pathlib.Path(arguments.prefix).resolve() / "lib" / "libgpuq.so.0")}
        try:
            for kind in arguments.types:
                for n in arguments.sizes:
                    print_row(kind, n, way, run(way, kind, n, arguments, environment))
        finally:
            daemon.end()


def numbers(text):
    return [int(word) for word in words(text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="build/stage")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--sizes", type=numbers, default=[256, 1024, 4096])
    parser.add_argument("--types", type=words, default=["f32", "tf32", "f16", "fft"])
    parser.add_argument("--ways", type=words, default=list(WAYS))
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # in a process of its own
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.types[0], arguments.sizes[0], arguments.seconds)))
        return
    print(f"| type | n | way | one at a time: p50, µs | {IN_FLIGHT} in flight: µs each | TFLOP/s, or 10^9 numbers/s | the first: ms | MiB more |\n|" + "---|" * 8)
    for way in arguments.ways:
        compare_on(way, arguments)


if __name__ == "__main__":
    main()
