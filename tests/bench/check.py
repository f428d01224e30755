#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `check=True` costs kernels: each runs in turn as a checked job and as an ordinary one.

    python3 tests/bench/check.py --prefix build/stage [--device gpu] [--kernels add,gemm,stencil,histogram] [--size 1.0]

Prints a table as that of fence.py, with its kernels and data: the times are the device's, so what gpuqd does around a
checked job is not in them. Both results are compared.
"""

import os
import pathlib
import sys
import tempfile

import fence


def compare(arguments):
    from services import Daemon
    sys.path.insert(0, str(fence.PACKAGE))
    os.environ["GPUQ_LIBRARY"] = str(pathlib.Path(arguments.prefix).resolve() / "lib" / "libgpuq.so.0")
    import gpuq
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(arguments.prefix, arguments.device, folder, [])
        try:
            with gpuq.Client(daemon.socket) as client:
                print("| kernel | n | plain, ms | checked, ms | quartiles | longer |\n|" + "---|" * 6)
                for name in arguments.kernels:
                    n = fence.length(name, arguments)
                    ways = [(client, {}), (client, {"check": True})]
                    fence.print_row(name, n, *fence.measure(name, n, ways, arguments.rounds))
        finally:
            daemon.end()


if __name__ == "__main__":
    fence.main(__doc__, compare)
