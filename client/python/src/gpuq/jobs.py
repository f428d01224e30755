# SPDX-License-Identifier: Apache-2.0
"""Job: a list of operations on arrays. It is submitted, runs asynchronously, and ends once.

A waiting thread calls the library directly, unless the client's dispatcher thread is active. In that case only the
dispatcher runs callbacks. Otherwise a Ctrl-C in a waiting thread could interrupt a callback.
"""

from __future__ import annotations

import math
import os
import threading
import time
from ctypes import byref, c_void_p

import numpy as np

from . import _native as native
from . import client as clients
from . import errors, memory
from .argument import Argument, check_array, pack_buffer
from .arrays import Array
from .config import INT_MAX, whole_number
from .convert import as_numpy
from .device import DeviceArray
from .result import JobId, Result
from .staged import stage
from .waiting import SLICE_MS, shorter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .prepared import Prepared

_main_thread = threading.main_thread().ident
_READABLE, _WRITABLE = 0x001, 0x401  # of numpy.ndarray.flags.num: C_CONTIGUOUS; and WRITEABLE
_Lock = threading.Lock
_get_ident = threading.get_ident


def _text(value, name: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} must not contain a null character: {value!r}")
    return value.encode()


class Nothing:
    """Takes the place of a parameter for operations without a kernel: copies, fills, variables."""

    def __init__(self, where: str):
        self.where = where
        self.takes_buffer = True

    def check_direction(self, direction: int) -> None:
        pass

    check_dtype = check_offset = check_direction

    def as_rows(self, array: np.ndarray) -> np.ndarray:
        return array


class Job:
    """A job. Create it with `gpuq.job(**options)`, append operations, and submit it once.

    The methods that append return the job, so that calls can be chained. The operations of a job run in order; several
    operations run as one CUDA graph. `await job` submits the job if necessary, and returns its Result.
    """

    # Defaults that most jobs never change. Creating a small job is most of Python's overhead.
    _id = 0
    _submitted = False
    _ended = False
    _result = None
    _error = None
    _event = None
    _futures = None
    _watched = False
    _staged = None
    _held = None
    _label = None
    _handle = None
    _checks = None  # {what may find an exception of the kernels: the record that it reads}

    def __init__(self, client=None, *, after=(), timeout: float | None = None, priority: int = 0,
                 label: str | None = None, device: int | None = None, repeatable: bool = False, timed: bool = False,
                 check: bool = False, uses=()):
        if client is None:
            client = clients.default_client()
        self._client = client
        self._handle = handle = native.Job()
        r = native.job_new(client._handle or client._connection(), byref(handle))
        if r < 0:
            client._check(r)
        self._epoch = client._epoch
        self._lock = _Lock()
        self._outputs = []
        self._recorded = []  # (kernel, args) of each operation, until it is submitted: for prepare()
        if check:
            client._check(native.job_set_checked(handle, True))
        if timeout is not None or priority or label is not None or device is not None or repeatable or timed or after:
            self._set(after, timeout, priority, label, device, repeatable, timed)
        if uses:
            self.use(*(uses if isinstance(uses, (list, tuple, set)) else (uses,)))

    def _set(self, after, timeout, priority, label, device, repeatable, timed) -> None:
        check, handle = self._client._check, self._handle
        if timeout is not None:
            if not isinstance(timeout, (int, float, np.number)):
                raise TypeError(f"timeout must be a number of seconds, not {timeout!r}")
            if not timeout > 0:
                raise ValueError(f"timeout must be a number of seconds above 0, not {timeout!r}")
            check(native.job_set_timeout(handle, min(math.ceil(timeout * 1000), 0xFFFFFFFF)))
        if priority:
            check(native.job_set_priority(handle, whole_number(priority, "priority", -INT_MAX)))
        if label is not None:
            self._label = label
            check(native.job_set_label(handle, _text(label, "label")))
        if device is not None:
            check(native.job_set_device(handle, whole_number(device, "device", -1)))
        if repeatable:
            check(native.job_set_repeatable(handle, True))
        if timed:
            check(native.job_set_timed(handle, True))
        self.after(*(after if isinstance(after, (list, tuple, set)) else (after,)))

    @classmethod
    def _fired(cls, client, epoch: int, label: str | None) -> "Job":
        """A job from a prepared job; the caller sets its handle."""
        self = cls.__new__(cls)
        self._client = client
        self._epoch = epoch
        self._lock = _Lock()
        self._outputs = []
        self._submitted = True
        if label is not None:
            self._label = label
        return self

    # ---- building ----

    def _building(self) -> native.Job:
        if self._submitted:
            raise errors.InvalidError("this job was already submitted: create another one")
        if self._epoch != self._client._epoch or self._client._handle is None:
            self._stale()
        return self._handle

    def _stale(self) -> None:
        self._client._connection()
        raise errors.ForkedError("this job was created on another connection, before fork() or before gpuqd "
                                 "ended: create it again", errors.FORKED)

    def launch(self, kernel, config, *args) -> "Job":
        """Append a launch. `config` and `args`: as for `Kernel.submit`."""
        handle = self._building()
        config = kernel._config(config)
        self._grid = config.grid
        keep = []
        packed, n_args = kernel._pack(self, args, keep)
        module = kernel.module._handle_for(self._client)
        r = native.job_launch(handle, module, kernel._symbol, config._packed, packed, n_args)
        if r < 0:
            raise self._refused(r)
        self._recorded.append((kernel, args))
        return self

    def _refused(self, r: int) -> Exception:
        """The exception for a rejected launch: a TypeError if the library's check of arguments failed, but for sizes."""
        error = self._client._error(r, native.text())
        if type(error) is errors.InvalidError and "argument" in error.text and " needs " not in error.text:
            return TypeError(error.text)
        return error

    def copy(self, to, from_) -> "Job":
        """Append a copy between arrays of the same size in bytes, in host or device memory."""
        self._building()
        to_handle, to_bytes = self._place(to, native.OUT, "copy, to")
        from_handle, from_bytes = self._place(from_, native.IN, "copy, from")
        if to_bytes != from_bytes:
            raise ValueError(f"copy: from has {from_bytes} bytes, but to has {to_bytes}")
        self._client._check(native.job_copy(self._handle, to_handle, 0, from_handle, 0, to_bytes))
        self._record(("to", to, native.OUT, "copy, to"), ("from_", from_, native.IN, "copy, from"))
        return self

    def fill(self, a, value) -> "Job":
        """Append an operation that sets all elements to a value.

        Dtypes wider than 4 bytes need a copy of the whole array.
        """
        self._building()
        dtype = np.dtype(getattr(a, "dtype", np.uint8))
        one = np.asarray(value, dtype)
        if one.ndim:
            raise ValueError(f"fill: expected a single value, not an array of shape {one.shape}")
        raw = one.tobytes()
        for width in (1, 2, 4):
            if dtype.itemsize % width == 0 and raw == raw[:width] * (dtype.itemsize // width):
                handle, nbytes = self._place(a, native.OUT, "fill")
                self._client._check(native.job_fill(self._handle, handle, 0, nbytes, int.from_bytes(raw[:width], "little"),
                                                    width))
                self._record(("a", a, native.OUT, "fill"))
                return self
        return self.copy(a, np.full(a.shape, one))

    def matmul(self, a, b, out, *, alpha: float = 1, beta: float = 0, tf32: bool = False) -> "Job":
        """Append a matrix product, out = alpha a b + beta out, or a batch of them. See `gpuq.matmul`."""
        from . import linalg
        return linalg.append(self, a, b, out, alpha, beta, tf32)

    def fft(self, a, out, *, ndim: int = 1, inverse: bool = False, scale: float = 1) -> "Job":
        """Append Fourier transforms of the last `ndim` axes of `a`, times `scale`. See `gpuq.fft`.

        If `a` has real numbers, `out` has the first half of the last axis; if `out` has real numbers, `a` has. `inverse`
        is for complex numbers alone: from a half to real numbers it is always the inverse.
        """
        from . import linalg
        return linalg.append_fft(self, a, out, ndim, inverse, scale)

    def scan(self, x, out, *, exclusive: bool = False) -> "Job":
        """Append prefix sums of all elements of `x`. `out` may be `x`. See `gpuq.scan`."""
        from . import series
        return series.append_scan(self, x, out, exclusive)

    def sort(self, keys, out, values=None, values_out=None, *, descending: bool = False) -> "Job":
        """Append a sort of all elements of `keys`. `out` may be `keys`, and `values_out` may be `values`. See `gpuq.sort`."""
        from . import series
        return series.append_sort(self, keys, out, values, values_out, descending)

    def random(self, out, distribution: str | None = None, *, seed: int = 0, stream: int = 0, offset: int = 0) -> "Job":
        """Append random numbers for all elements of `out`. See `gpuq.random`."""
        from . import series
        return series.append_random(self, out, distribution, seed, stream, offset)

    def read_variable(self, variable, to, offset: int = 0) -> "Job":
        """Append a copy from a module's variable to an array. It starts `offset` bytes into the variable."""
        self._building()
        handle, nbytes = self._place(to, native.OUT, f"read_variable {variable.name}")
        module = variable.module._handle_for(self._client)
        self._client._check(native.job_read_variable(self._handle, module, variable.name.encode(), offset, handle, 0, nbytes))
        self._record(("to", to, native.OUT, f"read_variable {variable.name}"))
        return self

    def write_variable(self, variable, from_, offset: int = 0) -> "Job":
        """Append a copy from an array to a module's variable. It starts `offset` bytes into the variable."""
        self._building()
        handle, nbytes = self._place(from_, native.IN, f"write_variable {variable.name}")
        module = variable.module._handle_for(self._client)
        self._client._check(native.job_write_variable(self._handle, module, variable.name.encode(), offset, handle, 0, nbytes))
        self._record(("from_", from_, native.IN, f"write_variable {variable.name}"))
        return self

    def use(self, *arrays) -> "Job":
        """Name DeviceArrays that the kernels reach by `DeviceArray.address`, through pointers in other memory.

        `arrays`: each a DeviceArray, or In, Out or InOut of one; InOut if it says nothing. The job's place in the
        order, and what `check` allows, depend on them as on arguments.
        """
        self._building()
        for value in arrays:
            direction = native.INOUT
            if isinstance(value, Argument):
                value, direction = value.value, value.direction
            if not isinstance(value, DeviceArray):
                raise TypeError(f"use: expected a DeviceArray, not {type(value).__name__}: only device memory has an address")
            handle, _ = self._place(value, direction, "use")
            self._client._check(native.job_use(self._handle, handle, direction))
            self._hold(value)
        return self

    def after(self, *jobs) -> "Job":
        """Run only after other jobs of this user: Jobs, or ids of jobs of any process.

        If one of them fails or is cancelled, this job fails with DependencyError.
        """
        for job in jobs:
            if isinstance(job, Job) and job._submitted and job._ended and job._error is None:
                continue
            self._client._check(native.job_after(self._handle, clients.job_id(job)))
        return self

    def prepare(self) -> "Prepared":
        """Create a Prepared from this job, which can be fired many times.

        Afterwards the job itself may be changed, submitted or deleted. It may not depend on other jobs, and may have at
        most 256 arrays and about 200 launches.
        """
        from .prepared import Prepared
        return Prepared(self)

    def _record(self, *arrays) -> None:
        """Record an operation without a kernel. `arrays`: (name, array, direction, where) of each array."""
        self._recorded.append((None, arrays))

    # ---- arrays ----

    def _place(self, a, direction: int, where: str) -> tuple[int, int]:
        handle, nbytes = self._handle_of(Nothing(where), a, direction)
        return handle, nbytes

    def _buffer(self, packer, value, direction: int) -> bytes:
        """The packed argument for an array of any kind."""
        kind = type(value)
        if kind is Array or kind is DeviceArray:
            packed = self._packed_again(packer, value, direction, kind is Array)
            if packed is not None:
                return packed
        if not packer.takes_buffer:
            raise TypeError(f"{packer.where} must be a {packer.wanted}, not {type(value).__name__}")
        packer.check_direction(direction)
        handle = self._handle_of(packer, value, direction)[0]
        dtype = getattr(value, "dtype", None)
        if dtype is not None:
            packer.let_pass(dtype, direction)
        return pack_buffer(handle, direction)

    def _packed_again(self, packer, value, direction: int, is_host: bool) -> bytes | None:
        """The fast path for most arrays: a whole Memory of this connection, like one that passed the checks before.

        Returns None if the array must be checked.
        """
        held = value._whole
        if held is None or held.epoch != self._epoch or value.dtype is not packer.passed_dtype or not packer.passed[direction]:
            return None
        if is_host:
            wanted = _READABLE if direction == native.IN else _WRITABLE
            if value.flags.num & wanted != wanted or value.nbytes != held.nbytes:
                return None
        packed = held.packed[direction]
        if packed is None:
            packed = held.packed[direction] = pack_buffer(held.handle, direction)
        if direction != native.IN:
            self._outputs.append(value)
        return packed

    def _handle_of(self, packer, value, direction: int) -> tuple[int, int]:
        if direction != native.IN:
            self._outputs.append(value)
        if isinstance(value, DeviceArray):
            packer.check_dtype(value.dtype)
            return self._part(packer, value._memory, value._offset, value.nbytes), value.nbytes

        array = packer.as_rows(value if isinstance(value, np.ndarray) else self._converted(packer, value, direction))
        check_array(array, direction, packer.where)
        packer.check_dtype(array.dtype)
        nbytes = array.nbytes
        held = array._whole if type(array) is Array else None
        if held is not None and nbytes == held.nbytes:
            return (held.handle if held.epoch == self._epoch else held.handle_for(self._client)), nbytes
        held = memory.of(array)
        if held is None:
            return self._stage(array, direction, packer.where), nbytes
        return self._part(packer, held, array.__array_interface__["data"][0] - held.address, nbytes), nbytes

    @staticmethod
    def _converted(packer, value, direction: int) -> np.ndarray:
        try:
            return as_numpy(value, writes=direction != native.IN)
        except TypeError as error:
            raise TypeError(f"{packer.where}: {error}") from None

    def _part(self, packer, held: memory.Memory, offset: int, nbytes: int) -> int:
        packer.check_offset(offset)
        handle = held.handle_for(self._client)
        if offset == 0 and nbytes == held.nbytes:
            return handle
        slice_ = native.Buffer()
        self._client._check(native.buffer_slice(handle, offset if nbytes else 0, nbytes or 1, byref(slice_)))
        self._hold(slice_)
        return slice_.value

    def _hold(self, held) -> None:
        """Keep memory that only this job names until the job has ended, or as long as a Prepared of it exists."""
        if self._held is None:
            self._held = []
        self._held.append(held)

    def _stage(self, array: np.ndarray, direction: int, where: str) -> int:
        if self._staged is None:
            self._staged = {}
        return stage(self._staged, self._client, array, direction, where)

    # ---- submitting and waiting ----

    def submit(self) -> "Job":
        """Submit the job without waiting for it. Do not access its arrays until it has ended."""
        handle = self._building()
        if self._checks:
            self._read_checks()
        self._submitted = True  # set first, so that a Ctrl-C in between sees it
        r = native.submit(handle)
        if r < 0:
            self._submitted = False
            self._client._check(r)
        self._recorded = None
        return self

    def _read_checks(self) -> None:
        for check, record in self._checks.items():
            check.read(self, record)

    def _raised(self) -> Exception | None:
        """What the kernels of a job that is done have raised."""
        for check, record in self._checks.items():
            error = check.found(record)
            if error is not None:
                error.job = self._result
                return error
        return None

    def run(self) -> Result:
        """Submit the job and wait for it: see `wait`."""
        try:
            return self.submit().wait()
        except KeyboardInterrupt:
            self._give_up()
            raise

    def wait(self, timeout: float | None = None) -> Result:
        """Wait until the job has ended, at most `timeout` seconds. Returns the Result.

        If the job failed, raises the reason: KernelFault, TimeoutError, CancelledError, LaunchError, DependencyError
        and so on, or an exception of a kernel that Numba compiled with debug=True. If it has not ended in time, raises
        TimeoutError; the job continues. Ctrl-C cancels the job.
        """
        if not self._ended:
            if not self._submitted:
                raise errors.InvalidError("this job was not submitted: call submit() or run()")
            try:
                self._wait(timeout)
            except KeyboardInterrupt:
                self._give_up()
                raise
        if self._error is not None:
            raise self._error
        return self._result

    def _wait(self, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        in_main = _get_ident() == _main_thread
        while not self._ended:
            dispatcher = self._client._dispatcher_
            if dispatcher is not None and dispatcher.busy and not dispatcher.is_here():
                self._wait_beside(dispatcher, end)
                return
            left_ms = -1 if end is None else max(0, math.ceil((end - time.monotonic()) * 1000))
            limit_ms = SLICE_MS if in_main or dispatcher is not None else -1
            r = native.wait(self._alive(), limit_ms if end is None else shorter(left_ms, limit_ms))
            if r == 0:
                self._end_well()
            elif r != errors.AGAIN:
                self._finish()
            elif 0 <= left_ms <= SLICE_MS:
                raise errors.from_code(r, f"{self._words()} has not ended within {timeout} s; it goes on: "
                                          "wait again or cancel() it")

    def _alive(self) -> native.Job:
        if self._handle is None or self._epoch != self._client._epoch or self._client._handle is None:
            self._lost()
        return self._handle

    def _lost(self) -> None:
        """The connection was lost: the library has ended the job. In a forked child, raises ForkedError."""
        if self._client._forked or self._client._closed or self._handle is None:
            self._client._connection()
        if self._handle is not None and self._try_finish():
            return
        raise errors.ForkedError(f"{self._words()} was submitted by the parent process: wait for it by its id, with "
                                 "gpuq.wait_id(id)", errors.FORKED)

    def _wait_beside(self, dispatcher, end: float | None) -> None:
        with self._lock:
            if self._event is None:
                self._event = threading.Event()
        dispatcher.watch(self)
        left = None if end is None else max(0.0, end - time.monotonic())
        if not self._event.wait(left) and not self._ended:
            raise errors.from_code(errors.AGAIN, f"{self._words()} has not ended within the timeout; it goes on")

    def _give_up(self) -> None:
        try:
            self.cancel()
        except errors.Error:
            pass

    def done(self) -> bool:
        """Whether the job has ended in any way. Does not wait."""
        if self._ended or not self._submitted:
            return self._ended
        dispatcher = self._client._dispatcher_
        if dispatcher is not None and dispatcher.busy:
            return self._ended
        if native.poll(self._alive()) != 0:
            self._finish()
        return self._ended

    def cancel(self) -> None:
        """Ask the daemon to cancel the job, waiting or running. `wait()` tells how it ended."""
        if self._submitted and not self._ended:
            self._client._check(native.cancel(self._alive()))

    # ---- the end ----

    def _end_well(self) -> None:
        """The job is done. The Result fetches the details on demand."""
        with self._lock:
            if self._ended:
                return
            self._bring_back()
            self._result = Result._of_done(self._handle)
            if self._checks:
                self._error = self._raised()
            self._ended = True
            self._close()
        self._tell()

    def _tell(self) -> None:
        """Notify events and futures of the end."""
        if self._event is not None:
            self._event.set()
        futures, self._futures = self._futures, None
        for future in futures or ():
            future._tell()

    def _bring_back(self) -> None:
        for staged in (self._staged or {}).values():
            staged.back()

    def _close(self) -> None:
        """Release what the job needed. After a Ctrl-C in between, the rest is released with the job."""
        self._handle = None
        self._staged = None
        self._held = None

    def _try_finish(self) -> bool:
        """Get the result, if the job has ended. Returns whether it has."""
        with self._lock:
            if self._ended:
                return True
            told = native.Result()
            if native.job_get_result(self._handle, byref(told)) < 0:
                return False
            self._id = native.job_id(self._handle)
            self._result = Result(self._id, told)
            if told.error:
                self._error = self._failure(told.error, self._result.text)
            else:
                self._bring_back()
                if self._checks:
                    self._error = self._raised()
            self._ended = True
            self._close()
        self._tell()
        return True

    def _failure(self, code: int, text: str) -> errors.Error:
        error = self._client._error(code, text) if self._epoch == self._client._epoch else errors.from_code(code, text)
        error.job = self._result
        return error

    def _finish(self) -> None:
        if not self._try_finish():
            self._client._check(native.wait(self._handle, 0))

    def _on_end(self) -> None:
        """Called by the dispatcher in its thread."""
        if self._try_finish():
            self._tell()
            return
        futures, self._futures = self._futures, None
        for future in futures or ():
            future._tell(errors.ForkedError(f"{self._words()} was submitted by another process, which alone can "
                                            "wait for it", errors.FORKED))

    def future(self):
        """A concurrent.futures.Future for the Result.

        Submits the job if necessary. Cancelling the future cancels the job.
        """
        return self._future(lambda job: job._result)

    def _future(self, value):
        from .future import JobFuture
        if not self._submitted:
            self.submit()
        future = JobFuture(self, value)
        with self._lock:
            ended = self._ended
            if not ended:
                self._futures = [*(self._futures or ()), future]
        if ended:
            future._tell()
        return future

    def __await__(self):
        import asyncio
        return asyncio.wrap_future(self.future()).__await__()

    # ---- what it is ----

    @property
    def id(self) -> int:
        """The id, for `after`, `gpuq.cancel` and `gpuq.wait_id`; 0 before the job is submitted.

        It is printed as `gpuq queue` prints it, such as "12.3", which these functions take too.
        """
        if not self._id and self._submitted:
            if self._handle is not None:
                self._id = JobId(native.job_id(self._handle))
            elif self._result is not None:
                self._id = self._result.id
        return self._id

    @property
    def state(self) -> str:
        """ "building", "pending", "done", "failed" or "cancelled". Does not wait."""
        if not self._submitted:
            return "building"
        return self._result.state if self.done() else "pending"

    @property
    def result(self) -> Result | None:
        """The Result, or None if the job has not ended. Does not wait, and does not raise the reason of a failure."""
        return self._result if self.done() else None

    @property
    def client(self):
        return self._client

    def _words(self) -> str:
        label = f" ({self._label})" if self._label else ""
        return f"job {self.id}{label}" if self.id else f"a job{label}"

    def __repr__(self) -> str:
        state = self._result.state if self._ended else "pending" if self._submitted else "building"
        return f"<gpuq.Job {self._words()}: {state}{': ' + str(self._error) if self._error else ''}>"


def job(**options) -> Job:
    """Create an empty job.

    - `after`: a Job or id, or several; the job runs only if they succeed
    - `timeout`: maximum running time in seconds; waiting does not count
    - `priority`: among this user's jobs, from -100 (last) to 100 (first)
    - `label`: a text for `gpuq queue`, at most 64 bytes
    - `device`: index of the device; None: the daemon chooses
    - `repeatable`: running the job twice is harmless, although it changes device arrays in place
    - `timed`: measure `Result.gpu_time`
    - `check`: compare each access of the kernels with the job's arrays; the first one outside, or the first load in an Out array of
      what nobody wrote, raises KernelFault. `scan`, `sort` and `random` are kernels, too; of `matmul` and `fft` only the shapes of
      the arrays are compared, as in every job
    - `uses`: DeviceArrays that the kernels reach by address: see `Job.use`
    """
    return Job(**options)


def submit_many(jobs) -> list[Job]:
    """Submit several jobs of one client in this order, in one message. On failure, none is submitted."""
    jobs = list(jobs)
    if not jobs:
        return jobs
    handles = (c_void_p * len(jobs))(*(job._building() for job in jobs))
    for job in jobs:
        if job._checks:
            job._read_checks()
    jobs[0]._client._check(native.submit_many(handles, len(jobs)))
    for job in jobs:
        job._submitted = True
        job._recorded = None
    return jobs


def _in_child() -> None:
    global _main_thread
    _main_thread = threading.get_ident()


os.register_at_fork(after_in_child=_in_child)
