# SPDX-License-Identifier: Apache-2.0
"""Result: how a job ended, and its times."""

from __future__ import annotations

import os
import struct
import threading
from ctypes import byref

from . import _native as native

_NUMBERS = struct.Struct("=ii16x3Qi4x")  # of a gpuq_result: state, error, the times, device
_lock = threading.Lock()


class JobId(int):
    """The id of a job. It is printed as `gpuq queue` prints it: "12.3"."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self >> 32}.{self & 0xFFFFFFFF}"

    def __repr__(self) -> str:
        return f"'{self}'"


class Result:
    """How a job ended.

    - `state`: "done", "failed" or "cancelled"
    - `error`: 0, or the code in `gpuq.h`
    - `text`: the reason of a failure
    - `output`: what the kernels printed
    - `waited`, `ran`: seconds, measured by the daemon
    - `gpu_time`: seconds on the GPU, for a job with timed=True
    - `device`: the index of the device where it ran
    - `id`: the id of the job, which is printed as "12.3"

    The package may know that a job is done before it knows the other members. It then fetches them at first use, which
    may take some microseconds. In a child of the process that ran the job, this raises ForkedError.
    """

    __slots__ = ("state", "error", "text", "_id", "_numbers", "_output", "_handle", "__weakref__")

    def __init__(self, id: int, told: native.Result):
        state, self.error, *self._numbers = _NUMBERS.unpack_from(told)
        self.state = native.STATE_NAMES[state]
        self.text = native.decode(told.text) if self.error else ""
        self._output = native.decode(told.output)
        self._id = id
        self._handle = None

    @classmethod
    def _of_done(cls, handle: "native.Job | None") -> "Result":
        """The result of a job that is done. It refers to the job's handle until it has fetched the rest."""
        self = cls.__new__(cls)
        self.state = "done"
        self.error = 0
        self.text = ""
        self._id = 0
        self._numbers = None
        self._handle = handle
        return self

    def _told(self) -> list:
        """[microseconds waited, microseconds ran, nanoseconds on the GPU, device]"""
        with _lock:
            if self._numbers is None:
                self._fetch()
            return self._numbers

    def _fetch(self) -> None:
        told = native.Result()
        native.check(native.job_get_result(self._handle, byref(told)))
        _, _, *numbers = _NUMBERS.unpack_from(told)
        self._output = native.decode(told.output)
        self._id = native.job_id(self._handle)
        self._numbers = numbers
        self._handle = None

    @property
    def id(self) -> JobId:
        handle = self._handle
        return JobId(self._id or (native.job_id(handle) if handle is not None else self._id))

    @property
    def output(self) -> str:
        self._told()
        return self._output

    @property
    def waited(self) -> float:
        return self._told()[0] / 1e6

    @property
    def ran(self) -> float:
        return self._told()[1] / 1e6

    @property
    def gpu_time(self) -> float:
        return self._told()[2] / 1e9

    @property
    def device(self) -> int:
        return self._told()[3]

    def __reduce__(self):
        return _rebuild, (self.id, self.state, self.error, self.text, self.output, self._numbers)

    def __repr__(self) -> str:
        return (f"<gpuq.Result of job {self.id}: {self.state} on device {self.device}, waited "
                f"{self.waited * 1e3:.3f} ms, ran {self.ran * 1e3:.3f} ms>")


def _rebuild(id, state, error, text, output, numbers) -> Result:
    self = Result._of_done(None)
    self.state, self.error, self.text, self._output, self._numbers, self._id = state, error, text, output, numbers, id
    return self


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_in_child)
