# SPDX-License-Identifier: Apache-2.0
"""A user who has data in gpuqd's memory, of the host and of a device, while packages change. At the end, when the file
STOP is there, the data is added up: what was put there before the packages changed must still be there."""

import pathlib
import sys
import time

import gpuq
import numpy

N = 100000
LAUNCH = gpuq.LaunchConfig(grid=400, block=256)

client = gpuq.default_client()
add = gpuq.builtin().get_kernel("add_f64")
host, device = gpuq.array(numpy.arange(float(N))), gpuq.to_device(numpy.full(N, 0.5))
both = gpuq.device_array(N, numpy.float64)
add.run(LAUNCH, gpuq.In(host), gpuq.In(device), gpuq.Out(both), N)
print("holds", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
total = numpy.zeros(N)
add.run(LAUNCH, gpuq.In(both), gpuq.In(device), gpuq.Out(total), N)
right = numpy.array_equal(host, numpy.arange(float(N))) and numpy.array_equal(total, numpy.arange(float(N)) + 1)
print("right" if right else "wrong", flush=True)
