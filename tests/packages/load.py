# SPDX-License-Identifier: Apache-2.0
"""A user who works while packages change: adds through gpuqd until the file STOP is there. One line for each sum."""

import pathlib
import sys

import gpuq
import numpy

a, b = numpy.arange(10000.0), numpy.ones(10000)
add = gpuq.builtin().get_kernel("add_f64")
while not pathlib.Path(sys.argv[1]).exists():
    c = numpy.zeros_like(a)
    add.run(gpuq.LaunchConfig(grid=40, block=256), gpuq.In(a), gpuq.In(b), gpuq.Out(c), a.size)
    print("right" if numpy.array_equal(c, a + b) else "wrong", flush=True)
