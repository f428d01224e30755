# SPDX-License-Identifier: Apache-2.0
"""DeviceArray: an array in GPU memory that persists between jobs."""

from __future__ import annotations

import operator
from ctypes import byref, c_uint64

import numpy as np

from . import _native as native
from . import arrays
from . import client as clients
from . import memory
from .convert import as_numpy


class DeviceArray:
    """An array in GPU memory. Create it with `gpuq.device_array` or `gpuq.to_device`.

    Jobs use it without a copy, in the order of their submission. `get` and `set` copy it and wait. Slices of the first
    axis, such as `a[2:5]`, are views. It is pickled by reference, but the module `copy` copies its values.
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
        return cls(memory.new_device(client, arrays.count_bytes(shape, dtype), device, zeroed), shape, dtype)

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
        """The index of its device."""
        return self._memory.device

    @property
    def address(self) -> int:
        """The address of its first element, as kernels see it; it stays the same as long as the array exists.

        Store it in structs and arrays of pointers. A job whose kernels follow such a pointer names the array with
        `uses=` or `Job.use`. Raises OutOfMemoryError if this memory has no fixed address.
        """
        address = c_uint64()
        client = self._memory.client
        client._check(native.buffer_address(self._memory.handle_for(client), byref(address)))
        return address.value + self._offset

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a DeviceArray without axes has no length")
        return self.shape[0]

    # ---- copies ----

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        """Copy it to host memory, after all jobs submitted before. `out`: an existing numpy array to copy to."""
        to = arrays.empty(self.shape, self.dtype, client=self._memory.client)
        if self.size:
            self._memory.client.job().copy(to, self).run()
        if out is None:
            return to
        if out.shape != self.shape:
            raise ValueError(f"out has shape {out.shape}, but the array has shape {self.shape}")
        out[...] = to
        return out

    def set(self, a) -> "DeviceArray":
        """Copy an array of the same shape to it, after all jobs submitted before. Converts the dtype as numpy does."""
        client = self._memory.client
        if isinstance(a, DeviceArray):
            return self._copy_from(a)
        source = self._source(a, client)
        if self.size:
            client.job().copy(self, source).run()
        return self

    def _source(self, a, client) -> np.ndarray:
        """An array that a job can copy to this one: `a` itself if it is in memory shared with the daemon."""
        if isinstance(a, arrays.Array) and a.shape == self.shape and a.dtype == self.dtype and a.flags.c_contiguous:
            return a
        a = np.asarray(as_numpy(a, sequences=True))
        try:
            filling = np.broadcast_to(a, self.shape)
        except ValueError:
            raise ValueError(f"an array of shape {a.shape} does not fill one of shape {self.shape}") from None
        return arrays.array(filling, self.dtype, client=client)

    def _copy_from(self, a: "DeviceArray") -> "DeviceArray":
        if (a.shape, a.dtype) != (self.shape, self.dtype):
            raise ValueError(f"shape or dtype differs: {a.shape} {a.dtype} instead of {self.shape} {self.dtype}")
        if self.size:
            self._memory.client.job().copy(self, a).run()
        return self

    def copy(self, device: int | None = None) -> "DeviceArray":
        """Create a DeviceArray with the same values, on the same device or on the one with this index."""
        device = self.device if device is None else device
        return DeviceArray._new(self._memory.client, self.shape, self.dtype, device, False)._copy_from(self)

    def __copy__(self) -> "DeviceArray":
        return self.copy()

    def __deepcopy__(self, memo: dict) -> "DeviceArray":
        return self.copy()

    def fill(self, value) -> "DeviceArray":
        """Set all elements to a value. Dtypes of 1, 2 or 4 bytes need no copy from the host."""
        self._memory.client.job().fill(self, value).run()
        return self

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        host = self.get()
        return host if dtype is None else host.astype(dtype)

    # ---- views ----

    def reshape(self, *shape) -> "DeviceArray":
        """A view of the same memory with another shape. One length may be -1."""
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        pattern = np.broadcast_to(np.int8(0), self.shape).reshape(shape)
        return DeviceArray(self._memory, pattern.shape, self.dtype, self._offset)

    def view(self, dtype) -> "DeviceArray":
        """A view of the same memory with another dtype of the same size."""
        dtype = arrays.check_dtype(dtype)
        if dtype.itemsize != self.dtype.itemsize:
            raise ValueError(f"view: {dtype} must have the same size as {self.dtype}")
        return DeviceArray(self._memory, self.shape, dtype, self._offset)

    def __getitem__(self, key) -> "DeviceArray":
        """A view of a contiguous part: an index, or a slice with step 1, of the first axis."""
        if not self.shape:
            raise IndexError("a DeviceArray without axes cannot be indexed")
        row = self.dtype.itemsize * arrays._count(self.shape[1:])
        if isinstance(key, slice):
            start, stop, step = key.indices(self.shape[0])
            if step != 1:
                raise IndexError("a DeviceArray can be sliced with step 1 only: copy it to the host with .get() for more")
            return DeviceArray(self._memory, (max(0, stop - start), *self.shape[1:]), self.dtype, self._offset + start * row)
        try:
            i = operator.index(key)
        except TypeError:
            raise IndexError("a DeviceArray can be indexed by an int or a slice of its first axis only: "
                             "copy it to the host with .get() for more") from None
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
    """Create an array in GPU memory, filled with zeros.

    `device`: index; None: the daemon chooses. Raises QuotaError or OutOfMemoryError.
    """
    return DeviceArray._new(clients.default_client(), shape, dtype, device)


def to_device(a, device: int | None = None, *, client=None) -> DeviceArray:
    """Copy an array, buffer or sequence to GPU memory, and wait for the copy."""
    a = as_numpy(a, sequences=True)
    return DeviceArray._new(client or clients.default_client(), a.shape, a.dtype, device, False).set(a)
