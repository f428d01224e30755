# SPDX-License-Identifier: Apache-2.0
"""Library operations on all elements of an array, in the order of memory: prefix sums.

gpuq's own kernels compute them, as several launches of a job.
"""

from __future__ import annotations

from ctypes import byref

import numpy as np

from . import _native as native
from .device import DeviceArray
from .jobs import Job
from .linalg import _client_of, _new_like

_TYPES = {"float32": 2, "float64": 3, "int32": 4, "uint32": 5, "int64": 6, "uint64": 7}


def _type_of(operation: str, name: str, array) -> int:
    if not isinstance(array, (np.ndarray, DeviceArray)):
        raise TypeError(f"{operation}: {name} must be a numpy array or a DeviceArray, not {type(array).__name__}")
    dtype = np.dtype(array.dtype)
    if dtype.name not in _TYPES or not dtype.isnative:
        raise TypeError(f"{operation}: dtype {dtype} of {name} is none of {', '.join(_TYPES)}")
    return _TYPES[dtype.name]


def _check_like(operation: str, name: str, array, like_name: str, like) -> None:
    if np.dtype(array.dtype) != np.dtype(like.dtype) or tuple(array.shape) != tuple(like.shape):
        raise ValueError(f"{operation}: {name} has dtype {array.dtype} and shape {tuple(array.shape)}, but {like_name} has {like.dtype} "
                         f"and {tuple(like.shape)}")


def _appended(job: Job, r: int, places) -> Job:
    """Record an operation, which has as many launches as the library says: those of a Prepared are counted."""
    job._client._check(r)
    job._record(*places)
    job._recorded.extend([(None, ())] * (r - 1))
    return job


def append_scan(job: Job, x, out, exclusive: bool) -> Job:
    """Job.scan()"""
    handle = job._building()
    kind = _type_of("scan", "x", x)
    _type_of("scan", "out", out)
    _check_like("scan", "out", out, "x", x)
    if x.size == 0:
        raise ValueError("scan: the arrays have no elements")
    places = [("x", x, native.IN, "scan: x"), ("out", out, native.OUT, "scan: out")]
    handles = [job._place(array, direction, where)[0] for _, array, direction, where in places]
    return _appended(job, native.job_scan(handle, byref(native.Scan(kind, bool(exclusive), x.size, *handles))), places)


def scan(x, out=None, *, exclusive: bool = False, client=None, **options):
    """Prefix sums of all elements of `x`, in the order of memory, as numpy.cumsum. Waits. Returns `out`.

    `x`: an array of dtype int32, uint32, int64, uint64, float32 or float64, whose sums have the same dtype: integers wrap around.
    `out`: of the same shape, or `x` itself; None: a new DeviceArray if `x` is one, else a new Array. `exclusive`: each sum is of the
    elements before. float32 is added up in float64. The bits are the same on every device. `options`: as for `gpuq.job`.
    """
    client = _client_of(client, x, out)
    if out is None:
        out = _new_like(x, x.shape, x.dtype, client)
    client.job(**options).scan(x, out, exclusive=exclusive).run()
    return out
