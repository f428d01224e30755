# SPDX-License-Identifier: Apache-2.0
"""Client: a connection to gpuqd, and the default client of a process.

The default client connects at its first use. It connects again in a forked child, and after the connection was lost.
Objects created from it stay valid: modules are loaded again, and arrays are opened by reference. A client that you
create yourself does not reconnect; in a forked child it raises ForkedError.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import weakref
from ctypes import byref, c_uint64, c_void_p

from . import _native as native
from . import errors, memory
from .image import Images
from .result import JobId
from .spare import Spares

_epochs = itertools.count(1)
_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()
_lock = threading.RLock()
_default: "Client | None" = None
_by_path: "dict[str, Client]" = {}


class Client:
    """A session with gpuqd. Create it with `gpuq.connect()`. All threads may use it.

    As a context manager it closes at the end of the block. Closing cancels unfinished jobs and releases the memory.
    Arrays that still exist keep their values, but jobs cannot use them.
    """

    def __init__(self, path: str | os.PathLike | None = None, *, _follows: bool = False):
        self._path = None if path is None else os.fspath(path)
        self._follows = _follows  # reconnects automatically
        self._handle = None
        self._epoch = 0
        self._closed = False
        self._forked = False
        self._lost_reason = None  # why the last connection ended
        self._opened = []  # handles of all connections so far: other threads may still use those that have ended
        self._dispatcher_ = None
        self._outbox_ = None
        self._builtin = None
        self._images = Images()
        self._spares = Spares()
        self._lock = threading.RLock()
        _clients.add(self)
        if not _follows:
            self._connect()

    # ---- life ----

    def _connect(self) -> None:
        handle = c_void_p()
        path = None if self._path is None else os.fsencode(self._path)
        native.check(native.connect(path, byref(handle)))
        self._opened.append(handle.value)
        self._handle = handle.value
        self._epoch = next(_epochs)
        self._forked = False
        _linger_at_exit()

    def _revive(self) -> None:
        """Connect again, or raise the reason why this is not possible."""
        with self._lock:
            if self._handle is not None:
                return
            if self._closed:
                raise errors.ClosedError("this client is closed: use gpuq.connect() for a new one", errors.CLOSED)
            if self._forked and not self._follows:
                raise errors.ForkedError("this client belongs to the parent process and cannot be used after fork(): "
                                         "call gpuq.connect() in the child, or use the default client, which connects there by itself",
                                         errors.FORKED)
            if self._lost_reason and not self._follows:
                raise errors.ClosedError(f"{self._lost_reason}; use gpuq.connect() for a new connection", errors.CLOSED)
            self._connect()

    def _connection(self) -> int:
        if self._handle is None:
            self._revive()
        return self._handle

    def _check(self, r: int) -> int:
        if r < 0:
            raise self._error(r, native.text())
        return r

    def _error(self, code: int, text: str) -> errors.Error:
        """The exception for an error. After a lost connection, the next use reconnects or raises the reason."""
        if code in (errors.CLOSED, errors.SHUTDOWN) and self._handle is not None:
            self._lose(text)
            text += ("; the next use of the default client connects again" if self._follows else
                     "; use gpuq.connect() for a new connection")
        return errors.from_code(code, text)

    def _lose(self, text: str) -> None:
        with self._lock:
            if self._handle is None:
                return
            self._handle = None
            self._lost_reason = text
            self._outbox_ = None
            self._dispatcher_ = None
        self._spares.release()

    def _after_fork(self) -> None:
        """In the child: free the parent's handles, which does not affect the parent's session."""
        self._lock = threading.RLock()
        self._handle = None
        self._forked = True
        self._dispatcher_ = None
        self._outbox_ = None
        self._images.after_fork()
        self._spares = Spares()  # those of the parent are unusable here
        self._free_opened()

    def _free_opened(self) -> None:
        while self._opened:
            native.client_free(self._opened.pop())

    def close(self) -> None:
        """End the session and cancel its unfinished jobs.

        A second call has no effect, unless a Ctrl-C interrupted the first: then it does the rest.
        """
        with self._lock:
            self._closed = True
            self._handle = None
            self._outbox_ = None
            self._builtin = None
            self._images.forget()
            self._spares.release()
            dispatcher = self._dispatcher_
        if dispatcher is not None:
            dispatcher.stop()
        self._free_opened()
        if dispatcher is not None:
            dispatcher.abandon()
        self._dispatcher_ = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __del__(self):
        if not sys.is_finalizing():  # the session ends with the process
            self.close()

    def __reduce__(self):
        return for_path, (self._path,)

    def __repr__(self) -> str:
        if self._closed:
            state = "closed"
        elif self._handle is not None:
            state = f"session {self.session}, {self.devices} device{'s' if self.devices != 1 else ''}"
        elif self._forked:
            state = "of the parent process"
        else:
            state = f"not connected: {self._lost_reason}" if self._lost_reason else "not connected yet"
        return f"<gpuq.Client {self._path or 'default path'}: {state}>"

    # ---- what it is ----

    @property
    def path(self) -> str | None:
        """The path of the socket; None: the default, see `gpuq.connect`."""
        return self._path

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def session(self) -> int:
        """The number of this session, which is the first part of its jobs' ids."""
        return native.client_session(self._connection())

    @property
    def devices(self) -> int:
        """The number of devices of the daemon."""
        return native.client_devices(self._connection())

    # ---- memory ----

    def array(self, a, dtype=None):
        """As `gpuq.array`."""
        from .arrays import array
        return array(a, dtype, client=self)

    def empty(self, shape, dtype=float):
        """As `gpuq.empty`."""
        from .arrays import empty
        return empty(shape, dtype, client=self)

    def zeros(self, shape, dtype=float):
        """As `gpuq.zeros`."""
        from .arrays import zeros
        return zeros(shape, dtype, client=self)

    def device_array(self, shape, dtype=float, device: int | None = None):
        """As `gpuq.device_array`."""
        from .device import DeviceArray
        return DeviceArray._new(self, shape, dtype, device)

    def to_device(self, a, device: int | None = None):
        """As `gpuq.to_device`."""
        from .device import to_device
        return to_device(a, device, client=self)

    def _outbox(self):
        with self._lock:
            if self._outbox_ is None:
                self._outbox_ = memory.Outbox(self)
            return self._outbox_

    # ---- modules and jobs ----

    def module(self, code: str | bytes, code_type: str | None = None, options=(), name: str | None = None):
        """As `gpuq.module`."""
        from .modules import Module
        return Module(code, code_type, options, name, client=self)

    def builtin(self):
        """As `gpuq.builtin`."""
        from .modules import Module
        if self._builtin is None:
            self._builtin = Module._of_builtins(self)
        return self._builtin

    def job(self, **options):
        """As `gpuq.job`."""
        from .jobs import Job
        return Job(self, **options)

    def scan(self, x, out=None, **options):
        """As `gpuq.scan`."""
        from .series import scan
        return scan(x, out, client=self, **options)

    def sort(self, keys, values=None, out=None, values_out=None, **options):
        """As `gpuq.sort`."""
        from .series import sort
        return sort(keys, values, out, values_out, client=self, **options)

    def random(self, shape, dtype="float32", **options):
        """As `gpuq.random`."""
        from .series import random
        return random(shape, dtype, client=self, **options)

    def matmul(self, a, b, out=None, **options):
        """As `gpuq.matmul`."""
        from .linalg import matmul
        return matmul(a, b, out, client=self, **options)

    def fft(self, a, out=None, **options):
        """As `gpuq.fft`."""
        from .linalg import fft
        return fft(a, out, client=self, **options)

    def ifft(self, a, out=None, **options):
        """As `gpuq.ifft`."""
        from .linalg import ifft
        return ifft(a, out, client=self, **options)

    def _dispatcher(self):
        from .dispatcher import Dispatcher
        with self._lock:
            if self._dispatcher_ is None:
                self._dispatcher_ = Dispatcher(self._connection())
            return self._dispatcher_

    # ---- the daemon's state ----

    def cancel(self, *ids) -> int:
        """Cancel jobs of any process of this user by id, such as "12.3"; without ids, all its unfinished jobs.

        Returns the number of jobs that this call cancels. Raises NotFoundError if a job is unknown, DeniedError if it
        belongs to another user.
        """
        numbers = (c_uint64 * len(ids))(*map(job_id, ids))
        told = native.Cancelled()
        self._check(native.cancel_ids(self._connection(), numbers, len(ids), byref(told)))
        if told.n_denied:
            raise errors.DeniedError(f"permission denied: {_some(told.n_denied, numbers)} of another user")
        if told.n_unknown:
            raise errors.NotFoundError(f"{_some(told.n_unknown, numbers)} unknown, or ended too long ago")
        return told.n_ended

    def wait_id(self, id, timeout: float | None = None):
        """Wait for a job of any process of this user, by id, such as "12.3". Returns or raises as `Job.wait` does."""
        from .waiting import wait_id
        return wait_id(self, job_id(id), timeout)

    def status(self):
        """The state of the daemon: see `gpuq.status`."""
        from .daemon import status
        return status(self)

    def queue(self, everybody: bool = False):
        """The waiting and running jobs of this user, or of all users: see `gpuq.queue`."""
        from .daemon import queue
        return queue(self, everybody)


def _some(n: int, numbers) -> str:
    if len(numbers) == 1:
        return f"job {JobId(numbers[0])} is"
    return f"{n} of these {len(numbers)} jobs {'is' if n == 1 else 'are'}"


def job_id(job) -> int:
    """The id of a Job, a number, or text such as "12.3"."""
    if isinstance(job, str):
        value = c_uint64()
        native.check(native.id_parse(job.encode(), byref(value)))
        return value.value
    number = getattr(job, "id", job)
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"expected a job or a job id such as \"12.3\", not {job!r}")
    if number == 0:
        raise ValueError("this job was not submitted, so it has no id: submit it first")
    return number


# ---- the default client ------------------------------------------------------------------


def connect(path: str | os.PathLike | None = None) -> Client:
    """Open a session.

    `path`: the daemon's socket; None: $GPUQ_SOCKET, else $XDG_RUNTIME_DIR/gpuq.sock if it exists, else
    /run/gpuq/gpuqd.sock. Raises ConnectError, DeniedError or QuotaError.
    """
    return Client(path)


def default_client() -> Client:
    """The default client of this process, which the functions of the package use. A forked child has its own."""
    global _default
    client = _default
    if client is None or client._closed:
        with _lock:
            if _default is None or _default._closed:
                _default = Client(None, _follows=True)
            client = _default
    return client


def for_path(path: str | None) -> Client:
    """The client for unpickled arrays and modules: the default client, or one for that socket."""
    if path is None:
        return default_client()
    with _lock:
        client = _by_path.get(path)
        if client is None or client._closed:
            client = _by_path[path] = Client(path, _follows=True)
        return client


def _before_fork() -> None:
    memory.name_all()


def _in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for client in list(_clients):
        client._after_fork()


os.register_at_fork(before=_before_fork, after_in_child=_in_child)


def _linger() -> None:
    for client in list(_clients):
        if client._outbox_ is not None and client._handle is not None:
            client._outbox_.linger()


def _linger_at_exit() -> None:
    """Register a finalizer with multiprocessing, whose processes end by os._exit() after its finalizers.

    The feeder threads of its queues end at priority -5 and pickle until then, so this finalizer runs later.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _linger, exitpriority=-100)


atexit.register(_linger)
