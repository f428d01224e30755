# SPDX-License-Identifier: Apache-2.0
"""Errors: what libgpuq and gpuqd say, as exceptions.

Each carries the daemon's full text, the code of `gpuq.h` and its name. Where Python has a word for the
same thing, the exception is that too: `except ConnectionError`, `except TimeoutError` work.
"""

from __future__ import annotations

import builtins

PROTOCOL, VERSION, INVALID, NOT_FOUND, DENIED, QUOTA, NO_DEVICE = -1, -2, -3, -4, -5, -6, -7
COMPILE, IMAGE, DEPENDENCY, CYCLE, LAUNCH, FAULT, TIMEOUT = -8, -9, -10, -11, -12, -13, -14
CANCELLED, HALF_WRITTEN, VARIABLES_LOST, MEMORY, SHUTDOWN, INTERNAL = -15, -16, -17, -18, -19, -20
CONNECT, CLOSED, FORKED, AGAIN, SYSTEM = -100, -101, -102, -103, -104


class Error(Exception):
    """What went wrong.

    `text` is what the daemon or the library says, in full; `code` the number of `gpuq.h`, such as -6;
    `name` its name, such as "GPUQ_E_QUOTA".
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
    """Library and daemon do not understand each other; their versions may differ."""

    code = PROTOCOL


class InvalidError(Error, ValueError):
    """A request that cannot be right, such as a wrong number of arguments."""

    code = INVALID


class NotFoundError(Error, LookupError):
    """No such kernel, job, arena or variable; the text lists what there is."""

    code = NOT_FOUND


class DeniedError(Error, PermissionError):
    """Not yours, or not allowed to you."""

    code = DENIED

    __str__ = Error.__str__


class QuotaError(Error):
    """Over a limit of this user; the text names it."""

    code = QUOTA


class NoDeviceError(Error):
    """No such device, or none that is in order."""

    code = NO_DEVICE


class CompileError(Error):
    """The source does not compile; `text` is the compiler's log."""

    code = COMPILE


class ImageError(Error):
    """PTX, cubin or fatbin that the device cannot load."""

    code = IMAGE


class DependencyError(Error):
    """A job that this one waits for did not end well."""

    code = DEPENDENCY


class LaunchError(Error):
    """The driver refused the launch: too many threads, too much shared memory, wrong arguments."""

    code = LAUNCH


class KernelFault(Error):
    """The kernel read or wrote where it may not, trapped, or failed an assert."""

    code = FAULT


class TimeoutError(Error, builtins.TimeoutError):
    """The job ran longer than its timeout (GPUQ_E_TIMEOUT), or has not ended within the time that a wait
    was given (GPUQ_E_AGAIN; it goes on then)."""

    code = TIMEOUT

    __str__ = Error.__str__


class HalfWrittenError(Error):
    """The job was in flight when another one's fault ended the worker; the text names the buffers that may be half written."""

    code = HALF_WRITTEN


class VariablesLostError(Error):
    """The module's variables went with a worker that ended; write them again."""

    code = VARIABLES_LOST


class OutOfMemoryError(Error, builtins.MemoryError):
    """No memory of the device, or of the machine."""

    code = MEMORY


class ConnectError(Error, builtins.ConnectionError):
    """No daemon there; the text has the path and what to do."""

    code = CONNECT

    __str__ = Error.__str__


class ClosedError(Error, builtins.ConnectionError):
    """The connection ended or the client was closed."""

    code = CLOSED

    __str__ = Error.__str__


class ReceiveError(Error):
    """An array that another process sent cannot be had. No OSError, which multiprocessing's pools would swallow."""

    code = NOT_FOUND


class ForkedError(Error):
    """A client of the parent process, used in a forked child."""

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
    """CancelledError is also concurrent.futures', whose import takes longer than all of this package's."""
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
