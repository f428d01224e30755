# SPDX-License-Identifier: Apache-2.0
"""Prepared: a job that the daemon keeps, and that the client fires many times with other arrays and scalars.

To fire a job, the client sends only its number and what has changed, instead of building, packing and sending a whole
job. Changed arguments are identified by the names of the kernels' parameters, so a Prepared has a table of these.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from ctypes import byref

import numpy as np

from . import _native as native
from . import errors, memory
from .argument import Argument
from .device import DeviceArray
from .jobs import Job, Nothing
from .result import Result

_FIRE = struct.Struct("=QQQQQQ")  # a gpuq_fire_args: swaps and their number, sets and their number, func, userdata
_SWAP = struct.Struct("=QQ")  # a gpuq_swap: was, now
_SET = struct.Struct("=QQ")  # a gpuq_set, up to its gpuq_arg
_ARG_SIZE = 32


class Slot:
    """One argument of a prepared job: `array` and the `handle` of its buffer; both are None for a scalar."""

    __slots__ = ("operation", "name", "index", "packer", "direction", "array", "handle", "shape", "nbytes")

    def __init__(self, operation: int, name: str, index: int, packer, direction: int = native.IN, array=None, *, shape=None,
                 nbytes: int | None = None):
        self.operation = operation
        self.name = name
        self.index = index
        self.packer = packer
        self.direction = direction
        self.array = array
        self.handle = None
        self.shape = shape  # required shape of a replacement array; None: any
        self.nbytes = nbytes  # its required size

    def checked(self, value):
        """Check a replacement array, and unwrap it from In, Out or InOut."""
        if isinstance(value, Argument):
            if _WORDS[value.direction] != _WORDS[self.direction]:
                raise TypeError(f"{self.packer.where} was prepared as {_WORDS[self.direction]} and cannot become {value!r}")
            value = value.value
        if self.shape is not None and tuple(np.shape(value)) != self.shape:
            raise ValueError(f"{self.packer.where} was prepared with an array of shape {self.shape}, not {np.shape(value)}")
        if self.nbytes is not None and _nbytes(value) != self.nbytes:
            raise ValueError(f"{self.packer.where} was prepared with an array of {self.nbytes} bytes, not {_nbytes(value)}")
        return value


_WORDS = {native.IN: "In", native.OUT: "Out", native.INOUT: "InOut", native.OUT_WHOLE: "Out"}


def _is_same(a, b) -> bool:
    """Whether two arrays are the same memory."""
    if a is b:
        return True
    if isinstance(a, DeviceArray) and isinstance(b, DeviceArray):
        return (a._memory, a._offset, a.nbytes) == (b._memory, b._offset, b.nbytes)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.nbytes == b.nbytes and a.__array_interface__["data"] == b.__array_interface__["data"]
    return False


def _nbytes(array) -> int:
    nbytes = getattr(array, "nbytes", None)
    return memoryview(array).nbytes if nbytes is None else nbytes


def _slots(operation: int, kernel, args) -> list[Slot]:
    """The slots of one recorded operation."""
    if kernel is not None:
        return kernel._slots(operation, args)
    return [Slot(operation, name, 0, Nothing(where), direction, array, nbytes=_nbytes(array))
            for name, array, direction, where in args]


def _is_plain(array) -> bool:
    """Whether the array must be copied for each job."""
    return not isinstance(array, DeviceArray) and not (isinstance(array, np.ndarray) and memory.of(array) is not None)


class Prepared:
    """A prepared job. Create it with `kernel.prepare(config, *args)` or `gpuq.job()...prepare()`.

    `p.fire()` submits it as it was prepared; `p.fire(x=b, n=5)` submits it with another array and scalar. `p(...)` is
    the same as `p.fire(...)`. Each call returns a Job like any other, which runs in order with all others. Firing takes
    a quarter of the time of creating and submitting a job, and sends few bytes. A Prepared ends with its client's
    connection, or with the last reference to it.
    """

    def __init__(self, job: Job):
        self._client = client = job._client
        self._handle = native.Prepared()
        client._check(native.prepare(job._building(), byref(self._handle)))
        self._epoch = job._epoch
        self._label = job._label
        self._lock = threading.Lock()
        self._slots = [slot for i, (kernel, args) in enumerate(job._recorded) for slot in _slots(i, kernel, args)]
        self._arrays = [slot for slot in self._slots if slot.array is not None]
        self._find_handles(job)
        self._held = [*(job._held or ()), *(job._staged or {}).values()]  # memory that no array of the slots keeps
        self._names = {}  # slots by name, cached
        self._plain = any(_is_plain(slot.array) for slot in self._arrays)
        self._outputs = _outputs(self._arrays, {})

    def _find_handles(self, job: Job) -> None:
        """Set the handles of the slots. Slots with the same array have the same handle."""
        found = []
        for slot in self._arrays:
            like = next((other for other in found if _is_same(other.array, slot.array)), None)
            if like is None:
                slot.handle = job._handle_of(slot.packer, slot.array, slot.direction)[0]
                found.append(slot)
            else:
                slot.handle = like.handle

    # ---- firing ----

    def fire(self, *swaps: tuple, **new) -> Job:
        """Submit the prepared job once more, without waiting for it.

        `new`: arguments that differ in this job only, by name. An array replaces the prepared array everywhere in the
        job, with the same direction. A scalar is replaced in all launches that have a scalar of this name. Names are:

        - those in the source, or in the descriptions of built-in kernels;
        - `to` and `from_` of a copy, and `a` of a fill;
        - "arg3" for a parameter without a name;
        - "1.n" for the argument `n` of operation 1 only.

        `swaps`: pairs (was, now) of arrays, for arrays that have no single name. Arrays outside of shared memory are
        copied for each job, and copied back when it has ended. Raises TypeError, ValueError or OverflowError if an
        argument does not match.
        """
        job = Job._fired(self._client, self._epoch, self._label)
        if not new and not swaps and not self._plain:
            job._outputs = self._outputs
            return self._send(job, None)
        keep = []
        arrays, sets = self._sorted(swaps, new, keep)
        return self._send(job, self._packed(job, arrays, sets, keep))

    __call__ = fire

    def run(self, *swaps: tuple, **new) -> Result:
        """Fire the job and wait for it. Returns or raises as `Job.wait` does."""
        return self.fire(*swaps, **new).wait()

    def _send(self, job: Job, args: bytes | None) -> Job:
        client = self._client
        job._handle = handle = native.Job()
        if self._epoch != client._epoch or client._handle is None:
            self._stale()
        with self._lock:
            r = native.fire(self._handle, args, byref(handle))
        if r < 0:
            client._check(r)
        return job

    def _stale(self):
        self._client._connection()
        raise errors.ForkedError("this job was prepared on another connection, before fork() or before gpuqd ended: "
                                 "prepare it again", errors.FORKED)

    # ---- replaced arguments ----

    def _sorted(self, swaps, new, keep: list) -> tuple[dict, list[bytes]]:
        """{prepared handle: new array}, and the packed gpuq_sets."""
        arrays, sets = {}, []
        for was, now in swaps:
            self._put(arrays, self._slot_of(was), now)
        for name, value in new.items():
            slots = self._names.get(name) or self._named(name)
            if slots[0].array is not None:
                self._put(arrays, slots[0], value)
            else:
                sets += [_SET.pack(slot.operation, slot.index) + slot.packer.scalar(value, keep) for slot in slots]
        return arrays, sets

    @staticmethod
    def _put(arrays: dict, slot: Slot, value) -> None:
        value = slot.checked(value)
        there = arrays.setdefault(slot.handle, value)
        if not _is_same(there, value):
            raise ValueError(f"{slot.packer.where}: two different arrays were passed for one array of the prepared job")

    def _slot_of(self, array) -> Slot:
        for slot in self._arrays:
            if _is_same(slot.array, array):
                return slot
        raise ValueError("the prepared job does not use the array that is to be swapped")

    def _named(self, name: str) -> list[Slot]:
        operation, dot, rest = name.partition(".")
        if dot and operation.isdigit():
            slots = [slot for slot in self._slots if slot.name == rest and slot.operation == int(operation)]
        else:
            slots = [slot for slot in self._slots if slot.name == name]
        if not slots:
            raise TypeError(f"the prepared job has no argument {name!r}; it has: {', '.join(self.names) or 'none'}")
        if any(slot.handle != slots[0].handle for slot in slots):
            raise ValueError(f"{name!r} is ambiguous in the prepared job: name its operation, as in "
                             f"**{{\"{slots[0].operation}.{slots[0].name}\": a}}, or pass a pair (old, new)")
        self._names[name] = slots
        return slots

    def _packed(self, job: Job, arrays: dict, sets: list[bytes], keep: list) -> bytes:
        """The packed gpuq_fire_args. The job keeps the arrays, and copies those that are not in shared memory."""
        pairs = self._swapped(job, arrays) if arrays or self._plain else {}
        job._outputs = _outputs(self._arrays, arrays) if arrays else self._outputs
        swaps_at, sets_at = (_address(b"".join(parts), keep) for parts in ([_SWAP.pack(*pair) for pair in pairs.items()], sets))
        return _FIRE.pack(swaps_at, len(pairs), sets_at, len(sets), 0, 0)

    def _swapped(self, job: Job, arrays: dict) -> dict:
        """{prepared handle: new handle}"""
        pairs = {}
        for slot in self._arrays:
            array = arrays.get(slot.handle, slot.array)
            if array is not slot.array or _is_plain(array):
                pairs[slot.handle] = job._handle_of(slot.packer, array, slot.direction)[0]
        return pairs

    # ---- what it is ----

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments that `fire` can replace."""
        return tuple(dict.fromkeys(slot.name for slot in self._slots))

    @property
    def client(self):
        return self._client

    def __repr__(self) -> str:
        label = f" ({self._label})" if self._label else ""
        return f"<gpuq.Prepared{label}: {', '.join(self.names) or 'no arguments'}>"


def _outputs(slots: list[Slot], arrays: dict) -> list:
    return [arrays.get(slot.handle, slot.array) for slot in slots if slot.direction != native.IN]


def _address(packed: bytes, keep: list) -> int:
    if not packed:
        return 0
    held = ctypes.create_string_buffer(packed, len(packed))
    keep.append(held)
    return ctypes.addressof(held)
