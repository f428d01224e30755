# SPDX-License-Identifier: Apache-2.0
"""DeviceArray: an array that stays on the GPU between jobs."""

from __future__ import annotations

import operator

import numpy as np

from . import arrays
from . import client as clients
from . import memory


class DeviceArray:
    """An array in a GPU's memory; make it with `gpuq.device_array` or `gpuq.to_device`.

    Jobs take it as it is, in order; `get` and `set` copy and wait. Slices of the first axis are views, as `a[2:5]`.
    It pickles by reference.
    """

    __slots__ = ("shape", "dtype", "_memory", "_offset", "_whole", "__weakref__")
    __array_priority__ = 100

    def __init__(self, held: memory.Memory, shape, dtype, offset: int = 0):
        self._memory = held
        self.shape = shape
        self.dtype = dtype
        self._offset = offset
        self._whole = held if offset == 0 and self.nbytes == held.nbytes else None

    @classmethod
    def _new(cls, client, shape, dtype, device, zeroed: bool = True) -> "DeviceArray":
        shape = arrays.check_shape(shape)
        dtype = arrays.check_dtype(dtype)
        return cls(memory.new_device(client, arrays._count(shape) * dtype.itemsize, device, zeroed), shape, dtype)

    # ---- what it is ----

    @property
    def size(self) -> int:
        return arrays._count(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> int:
        """Index of the device it is on."""
        return self._memory.device

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a DeviceArray without axes has no length")
        return self.shape[0]

    # ---- copies ----

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        """A copy in host memory, once the jobs submitted before have ended. `out`: a numpy array to copy to instead."""
        to = arrays.empty(self.shape, self.dtype, client=self._memory.client)
        if self.size:
            self._memory.client.job().copy(to, self).run()
        if out is None:
            return to
        if out.shape != self.shape:
            raise ValueError(f"out has shape {out.shape}; the array has {self.shape}")
        out[...] = to
        return out

    def set(self, a) -> "DeviceArray":
        """Copy an array of the same shape to it, after the jobs submitted before; converts to its dtype as numpy does."""
        client = self._memory.client
        if isinstance(a, DeviceArray):
            return self._copy_from(a)
        source = self._source(a, client)
        if self.size:
            client.job().copy(self, source).run()
        return self

    def _source(self, a, client) -> np.ndarray:
        """An array that a job copies to this one: `a` itself where that is in the daemon's memory."""
        if isinstance(a, arrays.Array) and a.shape == self.shape and a.dtype == self.dtype and a.flags.c_contiguous:
            return a
        a = np.asarray(a)
        try:
            filling = np.broadcast_to(a, self.shape)
        except ValueError:
            raise ValueError(f"an array of shape {a.shape} does not fill one of shape {self.shape}") from None
        return arrays.array(filling, self.dtype, client=client)

    def _copy_from(self, a: "DeviceArray") -> "DeviceArray":
        if (a.shape, a.dtype) != (self.shape, self.dtype):
            raise ValueError(f"shape and dtype differ: {a.shape} {a.dtype}, {self.shape} {self.dtype}")
        if self.size:
            self._memory.client.job().copy(self, a).run()
        return self

    def copy(self) -> "DeviceArray":
        """Another DeviceArray with the same values."""
        return DeviceArray._new(self._memory.client, self.shape, self.dtype, self.device, False)._copy_from(self)

    def fill(self, value) -> "DeviceArray":
        """Set every element to a value; dtypes of 1, 2 or 4 bytes without a copy."""
        self._memory.client.job().fill(self, value).run()
        return self

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        host = self.get()
        return host if dtype is None else host.astype(dtype)

    # ---- views ----

    def reshape(self, *shape) -> "DeviceArray":
        """The same memory with another shape; one length may be -1."""
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        pattern = np.broadcast_to(np.int8(0), self.shape).reshape(shape)
        return DeviceArray(self._memory, pattern.shape, self.dtype, self._offset)

    def view(self, dtype) -> "DeviceArray":
        """The same memory with another dtype of the same size."""
        dtype = arrays.check_dtype(dtype)
        if dtype.itemsize != self.dtype.itemsize:
            raise ValueError(f"view: {dtype} is not as wide as {self.dtype}")
        return DeviceArray(self._memory, self.shape, dtype, self._offset)

    def __getitem__(self, key) -> "DeviceArray":
        """A part that is contiguous: an index, or a slice of step 1 of the first axis."""
        if not self.shape:
            raise IndexError("a DeviceArray without axes has no parts")
        row = self.dtype.itemsize * arrays._count(self.shape[1:])
        if isinstance(key, slice):
            start, stop, step = key.indices(self.shape[0])
            if step != 1:
                raise IndexError("a DeviceArray is sliced with step 1 only: .get() it for the rest")
            return DeviceArray(self._memory, (max(0, stop - start), *self.shape[1:]), self.dtype, self._offset + start * row)
        try:
            i = operator.index(key)
        except TypeError:
            raise IndexError("a DeviceArray is indexed by an int or a slice of its first axis: .get() it for the rest") from None
        if not -self.shape[0] <= i < self.shape[0]:
            raise IndexError(f"index {i} is out of bounds for length {self.shape[0]}")
        return DeviceArray(self._memory, self.shape[1:], self.dtype, self._offset + (i % self.shape[0]) * row)

    def __reduce__(self):
        held = self._memory
        ticket = memory.send(held)
        return _receive, (held.client.path, held.name(), ticket, held.nbytes, self._offset, self.shape, self.dtype)

    def __repr__(self) -> str:
        state = ", client closed" if self._memory.client.closed else ""
        return f"<gpuq.DeviceArray {self.dtype} {self.shape} on device {self.device}{state}>"


def _receive(path, name, ticket, nbytes, offset, shape, dtype) -> DeviceArray:
    return DeviceArray(memory.receive(clients.for_path(path), name, ticket, nbytes), shape, dtype, offset)


def device_array(shape, dtype=float, device: int | None = None) -> DeviceArray:
    """A new array on a GPU, zeros at first. `device`: index; None: the daemon's choice. Raises QuotaError, OutOfMemoryError."""
    return DeviceArray._new(clients.default_client(), shape, dtype, device)


def to_device(a, device: int | None = None, *, client=None) -> DeviceArray:
    """A copy of an array, buffer or sequence on a GPU; waits until it is there."""
    if not isinstance(a, np.ndarray):
        from .convert import as_numpy
        a = as_numpy(a, sequences=True)
    return DeviceArray._new(client or clients.default_client(), a.shape, a.dtype, device, False).set(a)
