#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The built-in gemm beside cuBLAS: TFLOP/s of square products on data that is on the device.

    python3 tests/bench/gemm_bench.py --prefix build/stage [--device gpu] [--sizes 256,1024,4096] [--blocks 256,128,1024]

A figure is the best of --repeats batches of products, by wall-clock time. CuPy and PyTorch are measured where they can be
imported, with TF32 off. Each product by gpuq is compared with numpy in a few rows.
"""

import argparse
import os
import pathlib
import sys
import time

import numpy as np

from services import Daemon, public_folder

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {"f32": np.float32, "f64": np.float64}
TILE = 32  # of the grid that the kernel's text names


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--prefix", default="build/stage", help="the installed tree")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--sizes", type=numbers, help="64,256,512,1024,4096; on the CPU 64,256,512")
    parser.add_argument("--blocks", type=numbers, default=[256, 128, 1024], help="threads of a block of gpuq's (256,128,1024)")
    parser.add_argument("--batch-s", type=float, default=0.2, help="seconds of a batch (0.2)")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    arguments.sizes = arguments.sizes or ([64, 256, 512, 1024, 4096] if arguments.device == "gpu" else [64, 256, 512])
    return arguments


def best_s(run, arguments):
    """Seconds of one product; run(count) makes so many and returns when they are done."""
    run(1)
    start = time.perf_counter()
    run(1)
    count = min(1000, max(1, int(arguments.batch_s / (time.perf_counter() - start))))
    seconds = []
    for _ in range(arguments.repeats):
        start = time.perf_counter()
        run(count)
        seconds.append((time.perf_counter() - start) / count)
    return min(seconds)


def check(a, b, c):
    rows = [0, len(a) // 2, len(a) - 1]
    tolerance = 4 * np.finfo(a.dtype).eps * a.shape[1]
    np.testing.assert_allclose(c[rows], a[rows].astype(np.float64) @ b, rtol=tolerance, atol=tolerance)


def by_gpuq(block):
    def ready(a, b):
        import gpuq
        n, name = len(a), "gemm_f32" if a.dtype == np.float32 else "gemm_f64"
        kernel = gpuq.builtin().get_kernel(name)
        config = gpuq.LaunchConfig(grid=(-(-n // TILE), -(-n // TILE)), block=block)
        on_device = gpuq.to_device(a), gpuq.to_device(b)
        c = gpuq.device_array(a.shape, a.dtype)

        def run(count):
            job = gpuq.job()
            for _ in range(count):
                job.launch(kernel, config, gpuq.In(on_device[0]), gpuq.In(on_device[1]), gpuq.InOut(c), n, n, n, 1.0, 0.0)
            job.run()

        run(1)
        check(a, b, c.get())
        return run
    return ready


def by_cupy(a, b):
    os.environ["CUPY_TF32"] = "0"
    import cupy
    a, b = cupy.asarray(a), cupy.asarray(b)
    c = cupy.empty_like(a)

    def run(count):
        for _ in range(count):
            cupy.matmul(a, b, out=c)
        cupy.cuda.Device().synchronize()
    return run


def by_torch(a, b):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    c = torch.empty_like(a)

    def run(count):
        for _ in range(count):
            torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
    return run


def measure(arguments):
    ways = {f"gpuq, block {block}": by_gpuq(block) for block in arguments.blocks}
    if arguments.device == "gpu":
        ways |= {"CuPy": by_cupy, "PyTorch": by_torch}
    random = np.random.default_rng(5)
    for name, dtype in TYPES.items():
        for n in arguments.sizes:
            a, b = random.random((2, n, n)).astype(dtype)
            for way, ready in ways.items():
                try:
                    seconds = best_s(ready(a, b), arguments)
                except ImportError as error:
                    print(f"{name} {n:5} {way:16} {error}", flush=True)
                    continue
                print(f"{name} {n:5} {way:16} {2e-12 * n ** 3 / seconds:9.4f} TFLOP/s {1e6 * seconds:12.1f} us", flush=True)


def main():
    arguments = parse()
    prefix = pathlib.Path(arguments.prefix).resolve()
    sys.path.insert(0, str(HERE.parents[1] / "client" / "python" / "src"))
    with public_folder() as folder:
        daemon = Daemon(prefix, arguments.device, folder, private=os.getuid() != 0)
        os.environ |= {"GPUQ_SOCKET": daemon.socket, "GPUQ_LIBRARY": str(prefix / "lib/libgpuq.so.0")}
        try:
            measure(arguments)
        finally:
            daemon.end()


if __name__ == "__main__":
    main()
