# SPDX-License-Identifier: Apache-2.0
"""Shared by the examples: options from make()'s parameters, times, comparison with numpy, one line of result."""

import sys
import time


def options(make, argv):
    import argparse
    import inspect
    parser = argparse.ArgumentParser(description=sys.modules[make.__module__].__doc__)
    for name, parameter in inspect.signature(make).parameters.items():
        parser.add_argument("--" + name.replace("_", "-"), dest=name, type=type(parameter.default),
                            default=parameter.default, help="(%(default)s)")
    parser.add_argument("--repeat", type=int, default=1, help="number of runs in this process (1)")
    parser.add_argument("--json", action="store_true", help="print the line as JSON")
    return vars(parser.parse_args(argv))


def context(start):
    """
    A context of multiprocessing whose processes have one BLAS thread each.

    A spawned process imports numpy again, and then numpy's OpenBLAS starts one thread per core. With many processes,
    most of the time is spent there. OPENBLAS_NUM_THREADS is not changed if it is already set.
    """
    import multiprocessing
    import os
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return multiprocessing.get_context(start)


def timed(run, data):
    start = time.perf_counter()
    result = run(*data)
    return result, time.perf_counter() - start


def line(told):
    again = f", again in {told['again_s']:.6f} s" if "again_s" in told else ""
    return f"{told['program']} ({told['way']}): {told['result']:.9g}, as numpy says; {told['first_s']:.6f} s{again}"


def example(make, run, expected, rtol=1e-5, argv=None):
    """
    The main() of every example.

    make(**sizes) gives the input, a tuple; run(*input) is timed, from numpy to numpy; expected(*input) is what
    numpy says. The first run bears the one-time costs (connecting or a CUDA context, compiling); `again` is the
    median of those that --repeat adds.
    """
    import json
    import pathlib
    import statistics

    import numpy as np
    sizes = options(make, argv)
    repeat, as_json = sizes.pop("repeat"), sizes.pop("json")
    data = make(**sizes)
    right = expected(*data)
    times = []
    for _ in range(repeat):
        result, seconds = timed(run, data)
        np.testing.assert_allclose(result, right, rtol=rtol, atol=rtol)
        times.append(seconds)

    path = pathlib.Path(sys.modules[make.__module__].__file__)
    told = {"program": path.stem, "way": "plain" if path.parent.name == "plain" else "gpuq",
            "result": float(np.sum(result)), "first_s": times[0], "times_s": times, "sizes": sizes}
    if repeat > 1:
        told["again_s"] = statistics.median(times[1:])
    print(json.dumps(told) if as_json else line(told), flush=True)
