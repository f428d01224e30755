#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for gpuqd-compiler beside a worker that compute-sanitizer watches: starts NAME.real without the
libraries that the checker puts into every process, in which that one's sandbox would hang. The C library's own exec
would put them back, so the kernel is asked itself."""

import ctypes
import os
import platform
import sys

EXECVE = {"x86_64": 59, "aarch64": 221}[platform.machine()]
GIVEN = ("PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_CACHE_DISABLE")


def words(texts):
    return (ctypes.c_char_p * (len(texts) + 1))(*map(os.fsencode, texts), None)


real = os.path.realpath(__file__) + ".real"
environment = words([f"{name}={os.environ[name]}" for name in GIVEN if name in os.environ])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(ctypes.c_long(EXECVE), os.fsencode(real), words([real, *sys.argv[1:]]), environment)
sys.exit(f"{real}: {os.strerror(ctypes.get_errno())}")
