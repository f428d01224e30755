#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compile-for-cpu.py GPUQD-COMPILER source|ptx LIBEXEC SOURCE IMAGE: one source to an image for the CPU driver.

Calls gpuqd-compiler as a worker does, and takes the image out of its result
(daemon/compiler/compiled.h).
"""
import os
import struct
import subprocess
import sys

HEADER = struct.Struct('<8sII7Q')


def main():
    compiler, kind, libexec, source, image = sys.argv[1:]
    out = os.memfd_create('result')
    with open(source, 'rb') as f:
        subprocess.run([compiler, '--target', 'cpu', '--format', kind, '--in', str(f.fileno()), '--out', str(out),
                        '--libexec', libexec, '--name', os.path.basename(source)],
                       pass_fds=(f.fileno(), out), check=True)
    with open(out, 'rb') as f:
        result = f.read()
    _, status, _, _, n_image, n_log, *_ = HEADER.unpack_from(result)
    if status != 0:
        at = HEADER.size + n_image
        sys.exit(result[at:at + n_log].decode(errors='replace'))
    with open(image, 'wb') as f:
        f.write(result[HEADER.size:HEADER.size + n_image])


main()
