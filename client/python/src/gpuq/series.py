# SPDX-License-Identifier: Apache-2.0
"""Library operations on all elements of an array, in the order of memory: prefix sums, sort, random numbers.

gpuq's own kernels compute them, as several launches of a job.
"""

from __future__ import annotations

import operator
from ctypes import byref

import numpy as np

from . import _native as native
from . import arrays
from .device import DeviceArray
from .jobs import Job
from .linalg import _check_array, _client_of, _new_like

_TYPES = {"float32": 2, "float64": 3, "int32": 4, "uint32": 5, "int64": 6, "uint64": 7}


def _type_of(operation: str, name: str, array) -> int:
    _check_array(operation, name, array)
    dtype = np.dtype(array.dtype)
    if dtype.name not in _TYPES or not dtype.isnative:
        raise TypeError(f"{operation}: dtype {dtype} of {name} is none of {', '.join(_TYPES)}")
    return _TYPES[dtype.name]


def _check_like(operation: str, name: str, array, like_name: str, like) -> None:
    if np.dtype(array.dtype) != np.dtype(like.dtype) or tuple(array.shape) != tuple(like.shape):
        raise ValueError(f"{operation}: {name} has dtype {array.dtype} and shape {tuple(array.shape)}, but {like_name} has {like.dtype} "
                         f"and {tuple(like.shape)}")


def _check_pair(operation: str, name: str, array, out) -> int:
    """The type of both."""
    kind = _type_of(operation, name, array)
    _type_of(operation, "out", out)
    _check_like(operation, "out", out, name, array)
    if array.size == 0:
        raise ValueError(f"{operation}: the arrays have no elements")
    return kind


def _appended(job: Job, r: int, places) -> Job:
    """Record an operation, which has as many launches as the library says: those of a Prepared are counted."""
    job._client._check(r)
    job._record(*places)
    job._recorded.extend([(None, ())] * (r - 1))
    return job


def append_scan(job: Job, x, out, exclusive: bool) -> Job:
    """Job.scan()"""
    handle = job._building()
    kind = _check_pair("scan", "x", x, out)
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
    _type_of("scan", "x", x)
    if out is None:
        out = _new_like(x, x.shape, x.dtype, client)
    client.job(**options).scan(x, out, exclusive=exclusive).run()
    return out


def _check_value(name: str, array) -> None:
    _check_array("sort", name, array)
    if np.dtype(array.dtype).hasobject:
        raise TypeError(f"sort: dtype {array.dtype} of {name} has Python objects")
    if np.dtype(array.dtype).itemsize % 4:
        raise TypeError(f"sort: elements of {name} have {np.dtype(array.dtype).itemsize} bytes ({array.dtype}), not a multiple of 4")


def _check_values(keys, values, values_out) -> int:
    """The bytes of a value."""
    _check_value("values", values)
    _check_value("values_out", values_out)
    if tuple(values.shape) != tuple(keys.shape):
        raise ValueError(f"sort: values has shape {tuple(values.shape)}, but keys has {tuple(keys.shape)}")
    _check_like("sort", "values_out", values_out, "values", values)
    return np.dtype(values.dtype).itemsize


def append_sort(job: Job, keys, out, values, values_out, descending: bool) -> Job:
    """Job.sort()"""
    handle = job._building()
    kind = _check_pair("sort", "keys", keys, out)
    places = [("keys", keys, native.IN, "sort: keys"), ("out", out, native.OUT, "sort: out")]
    value_bytes = 0
    if values is not None or values_out is not None:
        value_bytes = _check_values(keys, values, values_out)
        places += [("values", values, native.IN, "sort: values"), ("values_out", values_out, native.OUT, "sort: values_out")]
    handles = [job._place(array, direction, where)[0] for _, array, direction, where in places]
    given = native.Sort(kind, bool(descending), keys.size, *handles[:2], value_bytes, *handles[2:])
    return _appended(job, native.job_sort(handle, byref(given)), places)


def sort(keys, values=None, out=None, values_out=None, *, descending: bool = False, client=None, **options):
    """All elements of `keys` in order, as numpy.sort of one axis. Waits. Returns `out`, or with values (`out`, `values_out`).

    `keys`: an array of dtype int32, uint32, int64, uint64, float32 or float64. `values`: an array of the same shape, of elements
    with a multiple of 4 bytes, which move with their keys. `out`, `values_out`: like these, or these themselves; None: new
    DeviceArrays for DeviceArrays, else new Arrays. Equal keys keep their order. -0.0 equals 0.0; NaN comes last, with `descending`
    first. The bits are the same on every device. `options`: as for `gpuq.job`.
    """
    client = _client_of(client, keys, values, out, values_out)
    _type_of("sort", "keys", keys)
    if out is None:
        out = _new_like(keys, keys.shape, keys.dtype, client)
    if values is not None and values_out is None:
        _check_value("values", values)
        values_out = _new_like(values, values.shape, values.dtype, client)
    client.job(**options).sort(keys, out, values, values_out, descending=descending).run()
    return out if values is None else (out, values_out)


_DISTRIBUTIONS = {"bits": 0, "uniform": 1, "normal": 2}


def _check_number(name: str, value) -> int:
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"random: {name} must be an integer, not {type(value).__name__}") from None
    if not 0 <= value < 1 << 64:
        raise ValueError(f"random: {name} {value} is not from 0 to 2^64 - 1")
    return value


def append_random(job: Job, out, distribution: str | None, seed: int, stream: int, offset: int) -> Job:
    """Job.random()"""
    handle = job._building()
    kind = _type_of("random", "out", out)
    if distribution is None:
        distribution = "uniform" if np.dtype(out.dtype).kind == "f" else "bits"
    if distribution not in _DISTRIBUTIONS:
        raise ValueError(f"random: {distribution!r} is none of {', '.join(_DISTRIBUTIONS)}")
    if (distribution == "bits") == (np.dtype(out.dtype).kind == "f"):
        allowed = "int32, uint32, int64 and uint64" if distribution == "bits" else "float32 and float64"
        raise ValueError(f"random: distribution {distribution!r} is for {allowed}, not {out.dtype}")
    if out.size == 0:
        raise ValueError("random: the array has no elements")
    numbers = [_check_number(name, value) for name, value in (("seed", seed), ("stream", stream), ("offset", offset))]
    places = [("out", out, native.OUT, "random: out")]
    to = job._place(out, native.OUT, "random: out")[0]
    given = native.Random(_DISTRIBUTIONS[distribution], kind, out.size, *numbers, to)
    return _appended(job, native.job_random(handle, byref(given)), places)


def random(shape, dtype="float32", *, distribution: str | None = None, seed: int = 0, stream: int = 0, offset: int = 0, device=None,
           client=None, **options):
    """A new array of random numbers of Philox 4x32-10, with the conventions of cuRAND. Waits.

    `distribution`: "uniform", greater than 0 and at most 1, or "normal", of mean 0 and variance 1, for dtypes float32 and float64;
    "bits" for int32, uint32, int64 and uint64. None: "uniform" or "bits". The same arguments give the same numbers, with the same
    bits on every device: `random(n, offset=k)` is `random(n + k)[k:]`. Another `stream` is another sequence. `device`: for a
    DeviceArray there; None: an Array in host memory. `options`: as for `gpuq.job`. `Job.random` fills an array that is there.
    """
    client = _client_of(client)
    out = arrays.empty(shape, dtype, client=client) if device is None else DeviceArray._new(client, shape, np.dtype(dtype), device, False)
    client.job(**options).random(out, distribution, seed=seed, stream=stream, offset=offset).run()
    return out
