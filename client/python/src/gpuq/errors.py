# SPDX-License-Identifier: Apache-2.0
"""Exceptions for the errors of libgpuq and gpuqd.

Each has the full message, the code of `gpuq.h` and the name of the code. Where Python has a built-in exception for the
same condition, the class derives from it too: `except ConnectionError` and `except TimeoutError` work.
"""

from __future__ import annotations

import builtins

PROTOCOL, VERSION, INVALID, NOT_FOUND, DENIED, QUOTA, NO_DEVICE = -1, -2, -3, -4, -5, -6, -7
COMPILE, IMAGE, DEPENDENCY, CYCLE, LAUNCH, FAULT, TIMEOUT = -8, -9, -10, -11, -12, -13, -14
CANCELLED, HALF_WRITTEN, VARIABLES_LOST, MEMORY, SHUTDOWN, INTERNAL = -15, -16, -17, -18, -19, -20
CONNECT, CLOSED, FORKED, AGAIN, SYSTEM = -100, -101, -102, -103, -104


class Error(Exception):
    """Base class of all errors.

    `text`: the full message of the daemon or the library; `code`: the number in `gpuq.h`, such as -6; `name`: its name,
    such as "GPUQ_E_QUOTA".
    """

    code = INTERNAL

    def __init__(self, text: str, code: int | None = None):
        super().__init__(text)
        self.text = text
        if code is not None:
            self.code = code

    @property
    def name(self) -> str:
        return _NAMES.get(self.code, f"GPUQ_E_{-self.code}")

    def __str__(self) -> str:
        return self.text

    def __reduce__(self):
        return _rebuild, (self.code, self.text)


class ProtocolError(Error):
    """Library and daemon cannot communicate; their versions may differ."""

    code = PROTOCOL


class InvalidError(Error, ValueError):
    """The request is invalid, for example because of a wrong number of arguments."""

    code = INVALID


class NotFoundError(Error, LookupError):
    """There is no such kernel, job, arena or variable. For kernels and variables, the text lists what exists."""

    code = NOT_FOUND


class DeniedError(Error, PermissionError):
    """The object belongs to another user, or the operation is not allowed."""

    code = DENIED

    __str__ = Error.__str__


class QuotaError(Error):
    """The user is over a limit; the text names it."""

    code = QUOTA


class NoDeviceError(Error):
    """There is no such device, or no device that works."""

    code = NO_DEVICE


class CompileError(Error):
    """The source does not compile; `text` is the compiler's log."""

    code = COMPILE


class ImageError(Error):
    """The device cannot load this PTX, cubin or fatbin."""

    code = IMAGE


class DependencyError(Error):
    """A job that this job depends on failed, was cancelled or is unknown."""

    code = DEPENDENCY


class LaunchError(Error):
    """The driver rejected the launch: too many threads, too much shared memory, or wrong arguments."""

    code = LAUNCH


class KernelFault(Error):
    """The kernel accessed an invalid address, trapped, or failed an assert."""

    code = FAULT


class TimeoutError(Error, builtins.TimeoutError):
    """The job exceeded its timeout (GPUQ_E_TIMEOUT), or a wait ended first (GPUQ_E_AGAIN; the job continues)."""

    code = TIMEOUT

    __str__ = Error.__str__


class HalfWrittenError(Error):
    """Another job's fault ended the worker while this job was in flight.

    The text names buffers that may be partly written.
    """

    code = HALF_WRITTEN


class VariablesLostError(Error):
    """The values of the module's variables were lost with a worker that ended; write them again."""

    code = VARIABLES_LOST


class OutOfMemoryError(Error, builtins.MemoryError):
    """Device memory or host memory is exhausted."""

    code = MEMORY


class ConnectError(Error, builtins.ConnectionError):
    """No daemon listens on the socket; the text has the path and what to do."""

    code = CONNECT

    __str__ = Error.__str__


class ClosedError(Error, builtins.ConnectionError):
    """The connection was lost, or the client was closed."""

    code = CLOSED

    __str__ = Error.__str__


class ReceiveError(Error):
    """An array that another process sent does not exist any more.

    Not an OSError: multiprocessing's pools ignore these.
    """

    code = NOT_FOUND


class ForkedError(Error):
    """A forked child used a client of its parent process."""

    code = FORKED


_CLASSES = {
    PROTOCOL: ProtocolError, VERSION: ProtocolError, INVALID: InvalidError, NOT_FOUND: NotFoundError,
    DENIED: DeniedError, QUOTA: QuotaError, NO_DEVICE: NoDeviceError, COMPILE: CompileError, IMAGE: ImageError,
    DEPENDENCY: DependencyError, CYCLE: DependencyError, LAUNCH: LaunchError, FAULT: KernelFault,
    TIMEOUT: TimeoutError, HALF_WRITTEN: HalfWrittenError, VARIABLES_LOST: VariablesLostError,
    MEMORY: OutOfMemoryError, SHUTDOWN: ClosedError, CONNECT: ConnectError, CLOSED: ClosedError,
    FORKED: ForkedError, AGAIN: TimeoutError,
}

_NAMES = {
    value: f"GPUQ_E_{name}"
    for name, value in list(globals().items()) if name.isupper() and isinstance(value, int)
}


def __getattr__(name: str):
    """Create CancelledError on demand: importing concurrent.futures takes longer than importing this package."""
    if name != "CancelledError":
        raise AttributeError(f"module 'gpuq.errors' has no attribute {name!r}")

    from concurrent.futures import CancelledError as Base

    class CancelledError(Error, Base):
        """The job was cancelled."""

        code = CANCELLED

    CancelledError.__qualname__ = "CancelledError"
    CancelledError.__module__ = "gpuq.errors"
    globals()["CancelledError"] = _CLASSES[CANCELLED] = CancelledError
    return CancelledError


def from_code(code: int, text: str) -> Error:
    """The exception for an error of the library."""
    if code == CANCELLED and code not in _CLASSES:
        __getattr__("CancelledError")
    return _CLASSES.get(code, Error)(text, code)


def _rebuild(code: int, text: str) -> Error:
    return from_code(code, text)
