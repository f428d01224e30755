# SPDX-License-Identifier: Apache-2.0
"""Array: a numpy array in memory shared with the daemon, which jobs use without a copy."""

from __future__ import annotations

import operator

import numpy as np

from . import client as clients
from . import memory
from .convert import as_numpy


class Array(np.ndarray):
    """A numpy array in memory shared with gpuqd. Create it with `gpuq.array`, `gpuq.empty` or `gpuq.zeros`.

    All numpy functions work on it; their results are ordinary arrays. Jobs also use contiguous slices of it without a
    copy. Do not access it from the submission of a job that uses it until the job has ended.

    It is pickled by reference: the process that unpickles it sees the same memory, including later changes. To pickle
    the values instead, pickle `numpy.array(a)`.
    """

    _whole = None  # the Memory, if this array is all of it; views find it by their base

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if self is array:
            return array
        if return_scalar or array.ndim == 0:
            return array[()]
        return array.view(np.ndarray)

    def __reduce_ex__(self, protocol):
        held = memory.of(self)
        if held is None or not self.flags.c_contiguous:
            return np.array(self).__reduce_ex__(protocol)

        ticket = memory.send(held)
        offset = self.ctypes.data - held.address
        return _receive, (held.client.path, held.name(), ticket, held.nbytes, offset, self.shape, self.dtype)

    __reduce__ = None

    def __repr__(self) -> str:
        held = memory.of(self)
        if held is None:
            where = "not in gpuqd's memory"
        elif held.client.closed:
            where = "client closed"
        else:
            where = f"{self.nbytes} bytes in gpuqd's memory"
        return f"<gpuq.Array {where}>\n{np.ndarray.__repr__(self.view(np.ndarray))}"


def wrap(held: memory.Memory, shape, dtype, offset: int = 0) -> Array:
    """An Array for host memory or a part of it."""
    dtype = np.dtype(dtype)
    raw = np.asarray(held)
    nbytes = _count(shape) * dtype.itemsize
    if offset or nbytes != held.nbytes:
        return raw[offset:offset + nbytes].view(dtype).reshape(shape).view(Array)
    array = raw.view(dtype).reshape(shape).view(Array)
    array._whole = held
    return array


def _count(shape) -> int:
    if isinstance(shape, tuple):
        n = 1
        for length in shape:
            n *= length
        return n
    return shape


def count_bytes(shape, dtype: np.dtype) -> int:
    nbytes = _count(shape) * dtype.itemsize
    if nbytes >= 1 << 63:  # the library counts in 64 bits
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has {nbytes >> 60} EiB, more than any memory: check its shape")
    return nbytes


def check_shape(shape) -> tuple[int, ...]:
    try:
        shape = (operator.index(shape),)
    except TypeError:
        shape = tuple(map(operator.index, shape))
    if any(length < 0 for length in shape):
        raise ValueError(f"a shape cannot have a negative length: {shape}")
    return shape


def check_dtype(dtype) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError("an array of Python objects cannot be sent to a GPU: convert it to a numeric dtype, "
                        "such as a.astype(numpy.float64)")
    if not dtype.isnative:
        raise TypeError(f"dtype {dtype} has the wrong byte order: convert it with a.astype(a.dtype.newbyteorder('='))")
    if dtype.itemsize == 0:
        raise TypeError(f"dtype {dtype} has no size")
    return dtype


def zeros(shape, dtype=float, *, client=None) -> Array:
    """Create an Array filled with zeros.

    `shape`: int or tuple; `dtype`: any numeric numpy dtype. Raises QuotaError, ConnectError, or TypeError for object
    dtypes.
    """
    return _new(shape, dtype, client, True)


def empty(shape, dtype=float, *, client=None) -> Array:
    """Create an Array with undefined contents, to be overwritten by you or by a job.

    It contains zeros, or the contents of a deleted array of this client, but never data of others. Otherwise as
    `zeros`.
    """
    return _new(shape, dtype, client, False)


def _new(shape, dtype, client, zeroed: bool) -> Array:
    shape = check_shape(shape)
    dtype = check_dtype(dtype)
    return wrap(memory.new_host(client or clients.default_client(), count_bytes(shape, dtype), zeroed), shape, dtype)


def array(a, dtype=None, *, client=None) -> Array:
    """Create an Array with a copy of an array, buffer, DLPack CPU tensor or (nested) sequence, in row-major order.

    `dtype`: dtype of the copy; None: that of `a`. Raises the same exceptions as `zeros`.
    """
    a = as_numpy(a, sequences=True)
    dtype = a.dtype if dtype is None else np.dtype(dtype)
    new = empty(a.shape, dtype, client=client)
    new[...] = a
    return new


def _receive(path, name, ticket, nbytes, offset, shape, dtype) -> Array:
    held = memory.receive(clients.for_path(path), name, ticket, nbytes)
    return wrap(held, shape, dtype, offset)
