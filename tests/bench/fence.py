#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `fence = yes` costs kernels: each runs in turn on a gpuqd with and on one without, both with `isolation = shared`.

    python3 tests/bench/fence.py --prefix build/stage [--device gpu] [--kernels add,gemm,stencil,histogram] [--size 1.0]

Prints a table: the median time of the kernel on the device in both (`timed`), its quartiles fenced, and how much longer it
takes with the fence. All data is in device memory. Both results are compared.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

from reductions import PACKAGE, words

SOURCE = r"""
extern "C" __global__ void add(const float *a, const float *b, float *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = a[i] + b[i];
}

#define TILE 16
extern "C" __global__ void gemm(const float *a, const float *b, float *out, int n)
{
        __shared__ float left[TILE][TILE], right[TILE][TILE];
        int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
        float sum = 0;
        for (int k = 0; k < n; k += TILE) {
                left[y][x] = a[(long)row * n + k + x];
                right[y][x] = b[(long)(k + y) * n + column];
                __syncthreads();
                for (int i = 0; i < TILE; i++)
                        sum += left[y][i] * right[i][x];
                __syncthreads();
        }
        out[(long)row * n + column] = sum;
}

extern "C" __global__ void stencil(const float *a, const float *unused, float *out, int n)
{
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
        if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
                return;
        long i = (long)y * n + x;
        out[i] = 0.2f * (a[i] + a[i - 1] + a[i + 1] + a[i - n] + a[i + n]);
}

extern "C" __global__ void histogram(const float *a, const float *unused, unsigned *out, int n)
{
        __shared__ unsigned bins[256];
        bins[threadIdx.x] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                atomicAdd(&bins[(int)(a[i] * 256) & 255], 1u);
        __syncthreads();
        atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
"""

# elements of a and of out, grid and block for n, and n for a GPU and for the CPU driver
KERNELS = {
    "add": (lambda n: n, lambda n: n, lambda n: ((n + 255) // 256, 256), (1 << 26, 1 << 22)),
    "gemm": (lambda n: n * n, lambda n: n * n, lambda n: ((n // 16, n // 16), (16, 16)), (2048, 256)),
    "stencil": (lambda n: n * n, lambda n: n * n, lambda n: (((n + 31) // 32, (n + 7) // 8), (32, 8)), (8192, 2048)),
    "histogram": (lambda n: n, lambda n: 256, lambda n: (min(2048, n // 256), 256), (1 << 26, 1 << 22)),
}


class Side:
    """One gpuqd with a kernel and its data."""

    def __init__(self, client, name, n, numbers, **options):
        import numpy
        kernel = client.module(SOURCE)[name]
        _of_a, of_out, shape, _sizes = KERNELS[name]
        dtype = numpy.uint32 if name == "histogram" else numpy.float32
        import gpuq
        self.a, self.b = (client.to_device(values) for values in numbers)
        self.out = client.to_device(numpy.zeros(of_out(n), dtype))
        grid, block = shape(n)
        config = gpuq.LaunchConfig(grid=grid, block=block)
        self.start = lambda: kernel.submit(config, gpuq.In(self.a), gpuq.In(self.b), gpuq.InOut(self.out), n, timed=True, **options)
        self.times = []

    def run(self):
        return self.start().wait().gpu_time


def measure(name, n, ways, rounds):
    """@ways: of two, the client and the options of its jobs. Returns the times of both, in seconds."""
    import numpy
    random = numpy.random.default_rng(1)
    numbers = [random.random(KERNELS[name][0](n), numpy.float32) for _ in range(2)]
    sides = [Side(client, name, n, numbers, **options) for client, options in ways]
    for _ in range(3):
        for side in sides:
            side.run()
    for i in range(rounds):
        for side in sides if i % 2 else sides[::-1]:
            side.times.append(side.run())
    numpy.testing.assert_array_equal(sides[0].out.get(), sides[1].out.get())
    return [side.times for side in sides]


def length(name, arguments):
    n = KERNELS[name][3][arguments.device == "cpu"]
    return max(256, int(n * arguments.size) // 256 * 256)


def print_row(name, n, plain, fenced):
    medians = [statistics.median(times) for times in (plain, fenced)]
    quartiles = statistics.quantiles(fenced, n=4)
    print(f"| {name} | {n:,} | {1e3 * medians[0]:,.4f} | {1e3 * medians[1]:,.4f} | {1e3 * quartiles[0]:,.4f} to {1e3 * quartiles[2]:,.4f} "
          f"| {100 * (medians[1] / medians[0] - 1):+.1f} % |", flush=True)


def compare(arguments):
    from services import Daemon
    sys.path.insert(0, str(PACKAGE))
    os.environ["GPUQ_LIBRARY"] = str(pathlib.Path(arguments.prefix).resolve() / "lib" / "libgpuq.so.0")
    import gpuq
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as fenced:
        daemons = []
        try:
            for folder, fence in ((plain, "no"), (fenced, "yes")):
                daemons.append(Daemon(arguments.prefix, arguments.device, folder, ["isolation=shared", f"fence={fence}"]))
            clients = [gpuq.Client(daemon.socket) for daemon in daemons]
            print("| kernel | n | plain, ms | fenced, ms | quartiles | longer |\n|" + "---|" * 6)
            for name in arguments.kernels:
                n = length(name, arguments)
                print_row(name, n, *measure(name, n, [(client, {}) for client in clients], arguments.rounds))
            for client in clients:
                client.close()
        finally:
            for daemon in daemons:
                daemon.end()


def main(description=__doc__, compare=compare):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="build/stage")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--kernels", type=words, default=list(KERNELS))
    parser.add_argument("--size", type=float, default=1.0, help="of n, times the usual one")
    parser.add_argument("--rounds", type=int, default=51)
    compare(parser.parse_args())


if __name__ == "__main__":
    main()
