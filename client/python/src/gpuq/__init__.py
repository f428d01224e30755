# SPDX-License-Identifier: Apache-2.0
"""gpuq: run kernels on this machine's shared GPUs through gpuqd.

Processes that use this package do not create a CUDA context. They send kernels and data to a daemon, which has one.

    import numpy as np
    import gpuq

    a, b = np.random.rand(2, 10000)
    c = np.empty_like(a)
    add = gpuq.builtin().get_kernel("add_f64")
    add.run(gpuq.LaunchConfig(grid=40, block=256), gpuq.In(a), gpuq.In(b), gpuq.Out(c), a.size)

The package imports its modules at first use. Before a fork() it imports everything that a job needs, so that the
children need not do it.
"""

from __future__ import annotations

import importlib
import os

TYPE_CHECKING = False  # as typing's, whose import takes as long as all of this

__version__ = "0.1.0"

_HOME = {
    "arrays": ("Array", "array", "empty", "zeros"),
    "argument": ("In", "InOut", "Local", "Out"),
    "client": ("Client", "connect", "default_client"),
    "config": ("LaunchConfig",),
    "cupy_style": ("RawKernel", "RawModule"),
    "device": ("DeviceArray", "device_array", "to_device"),
    "errors": ("CancelledError", "ClosedError", "CompileError", "ConnectError", "DeniedError", "DependencyError", "Error",
               "ForkedError", "HalfWrittenError", "ImageError", "InvalidError", "KernelFault", "LaunchError",
               "NoDeviceError", "NotFoundError", "OutOfMemoryError", "ProtocolError", "QuotaError", "ReceiveError", "TimeoutError",
               "VariablesLostError"),
    "executor": ("Executor",),
    "linalg": ("fft", "ifft", "matmul"),
    "series": ("random", "scan", "sort"),
    "jobs": ("Job", "job", "submit_many"),
    "prepared": ("Prepared",),
    "kernel": ("Kernel",),
    "cuda_style": ("ObjectCode", "Program", "ProgramOptions", "launch"),
    "modules": ("Module", "Variable", "builtin", "module"),
    "numba_adapter": ("from_numba",),
    "pycuda_style": ("SourceModule",),
    "result": ("Result",),
    "texture": ("Texture",),
    "daemon": ("cancel", "explain", "queue", "status", "trace", "wait_id"),
    "triton_adapter": ("from_triton",),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from .argument import In, InOut, Local, Out
    from .arrays import Array, array, empty, zeros
    from .client import Client, connect, default_client
    from .config import LaunchConfig
    from .cupy_style import RawKernel, RawModule
    from .device import DeviceArray, device_array, to_device
    from .errors import (CancelledError, ClosedError, CompileError, ConnectError, DeniedError, DependencyError, Error,
                         ForkedError, HalfWrittenError, ImageError, InvalidError, KernelFault, LaunchError, NoDeviceError,
                         NotFoundError, OutOfMemoryError, ProtocolError, QuotaError, ReceiveError, TimeoutError,
                         VariablesLostError)
    from .executor import Executor
    from .jobs import Job, job, submit_many
    from .linalg import fft, ifft, matmul
    from .prepared import Prepared
    from .series import random, scan, sort
    from .kernel import Kernel
    from .cuda_style import ObjectCode, Program, ProgramOptions, launch
    from .modules import Module, Variable, builtin, module
    from .numba_adapter import from_numba
    from .pycuda_style import SourceModule
    from .result import Result
    from .texture import Texture
    from .daemon import cancel, explain, queue, status, trace, wait_id
    from .triton_adapter import from_triton


def __getattr__(name: str):
    home = _WHERE.get(name)
    if home is None:
        raise AttributeError(f"module 'gpuq' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gpuq.{home}"), name)


def _before_fork() -> None:
    try:
        from . import _native, convert, modules, signature  # noqa: F401
        _native.load()
    except Exception:
        pass  # reported at first use


os.register_at_fork(before=_before_fork)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
