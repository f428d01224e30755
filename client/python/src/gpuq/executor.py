# SPDX-License-Identifier: Apache-2.0
"""Executor: a concurrent.futures executor whose callables may be kernels.

It sends kernels to the daemon. It runs all other callables in a pool of processes or threads, which it creates at first
use. A program can therefore replace `ProcessPoolExecutor()` by `gpuq.Executor()` first, and functions by kernels later.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import threading
import time
import weakref
from concurrent import futures

import numpy as np

from .config import LaunchConfig
from .jobs import Job, submit_many
from .kernel import Kernel
from .prepared import Prepared


TOGETHER_N = 64  # jobs of a map in one message
LAZY_N = 64  # up to this many jobs are completed on demand; above it, a thread completes all

_executors: "weakref.WeakSet[Executor]" = weakref.WeakSet()


class Executor(futures.Executor):
    """Runs kernels through gpuqd, and other callables in a pool.

    `client`: a Client, or None for the default client. `max_workers`, `mp_context`, `initializer` and `initargs`
    configure the pool, as in concurrent.futures; `processes`: False for a pool of threads.
    """

    def __init__(self, max_workers: int | None = None, mp_context=None, initializer=None, initargs=(), *, client=None,
                 processes: bool = True):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._client = client
        self._processes = processes
        self._pool_options = {"max_workers": max_workers, "initializer": initializer, "initargs": initargs}
        if processes and mp_context is not None:
            self._pool_options["mp_context"] = mp_context
        self._pool = None
        self._lock = threading.Lock()
        self._cond = threading.Condition(self._lock)
        self._pending = set()
        self._n_done = 0
        self._is_shut = False
        _executors.add(self)

    # ---- submitting ----

    def submit(self, fn, /, *args, **kwargs) -> futures.Future:
        """Schedule a call.

        - Kernel: `submit(kernel, config, *args, **options)`, as for `Kernel.submit`. The future's result is the array
          given as Out or InOut, or a tuple of several. Without such an array it is the job's Result.
        - Prepared: `submit(prepared, *swaps, **new)`, as for `Prepared.fire`. The result is the same as for a kernel.
        - Job: the result is the job's Result.
        - Anything else: `fn(*args, **kwargs)` is called in the pool.

        Raises RuntimeError after shutdown.
        """
        kernel = _kernel_of(fn)
        with self._lock:
            self._check_open()
            if kernel is None and not isinstance(fn, (Job, Prepared)):
                return self._pool_made().submit(fn, *args, **kwargs)
        if isinstance(fn, Job):
            return self._watch(fn._future(lambda job: job._result))
        if kernel is None:
            return self._watch(_future(fn.fire(*args, **kwargs)))
        return self._watch(self._launch(kernel, args, kwargs))

    def _launch(self, kernel: Kernel, args, options) -> futures.Future:
        if not args:
            raise TypeError("submit(kernel, config, *args): the LaunchConfig is missing")
        job = Job(self._client or kernel.module.client, **options).launch(kernel, *args)
        return _future(job)

    def _watch(self, future: futures.Future) -> futures.Future:
        with self._lock:
            self._pending.add(future)
            n, pending = len(self._pending), ()
            if n > LAZY_N:
                pending = list(self._pending) if n == LAZY_N + 1 else [future]
        futures.Future.add_done_callback(future, self._on_done)  # bypasses JobFuture's own, which starts the dispatcher
        for one in pending:
            one._watch()
        return future

    def _on_done(self, future: futures.Future) -> None:
        with self._cond:
            self._pending.discard(future)
            self._n_done += 1
            self._cond.notify_all()

    def _pool_made(self) -> futures.Executor:
        if self._pool is None:
            kind = futures.ProcessPoolExecutor if self._processes else futures.ThreadPoolExecutor
            self._pool = kind(**self._pool_options)
        return self._pool

    # ---- map ----

    def map(self, fn, *iterables, timeout: float | None = None, chunksize: int = 1, progress=None, **options):
        """Like the built-in `map`, but all calls are submitted at once. Results are in order.

        For a kernel: `map(kernel, configs, as, bs, …)`. A single LaunchConfig applies to all launches, and so does a
        Python or numpy scalar. `options`: as for `gpuq.job`. `progress`: a function that is called as progress(1) for
        each ended call, such as `tqdm.update`; or an object with such an `update`, such as a tqdm. `timeout`: seconds
        for all calls, then TimeoutError.
        """
        progress = getattr(progress, "update", progress)
        if _kernel_of(fn) is None:
            return self._map_calls(fn, iterables, timeout, chunksize, progress)
        if not iterables:
            raise TypeError("map(kernel, configs, *iterables): the LaunchConfig is missing")
        columns = [itertools.repeat(column) if _is_single(column) else column for column in iterables]
        if all(_is_single(column) for column in iterables):
            raise TypeError("map(kernel, configs, *iterables): one of them must be an iterable, to tell how many")
        end = None if timeout is None else time.monotonic() + timeout
        return _results(self._launch_all(fn, columns, options, progress), end)

    def _launch_all(self, fn, columns, options, progress) -> list[futures.Future]:
        """Submit the launches, several in a message."""
        kernel, launched = _kernel_of(fn), []
        rows = zip(*columns)
        try:
            while rows_now := list(itertools.islice(rows, TOGETHER_N)):
                with self._lock:
                    self._check_open()
                jobs = [Job(self._client or kernel.module.client, **options).launch(kernel, *row) for row in rows_now]
                submit_many(jobs)
                launched += [_tell(self._watch(_future(job)), progress) for job in jobs]
        except BaseException:
            for future in launched:
                future.cancel()
            raise
        return launched

    def _check_open(self) -> None:
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def _submit_all(self, fn, columns, options, progress) -> list[futures.Future]:
        submitted = []
        try:
            for args in zip(*columns):
                submitted.append(_tell(self.submit(fn, *args, **options), progress))
        except BaseException:
            for future in submitted:
                future.cancel()
            raise
        return submitted

    def _map_calls(self, fn, iterables, timeout, chunksize, progress):
        if progress is not None:
            end = None if timeout is None else time.monotonic() + timeout
            return _results(self._submit_all(fn, iterables, {}, progress), end)
        with self._lock:
            self._check_open()
            pool = self._pool_made()
        return pool.map(fn, *iterables, timeout=timeout, chunksize=chunksize)

    # ---- the end ----

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more submissions.

        `wait`: wait until all calls have ended. `cancel_futures`: cancel unfinished calls, including jobs in the
        daemon; calls that already run in the pool continue.
        """
        with self._lock:
            self._is_shut = True
            pool, pending = self._pool, list(self._pending)
        if cancel_futures:
            for future in pending:
                future.cancel()
        if pool is not None:
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)
        if wait:
            for future in pending:
                future._await_end()  # a cancelled job may still use its arrays for a moment

    def __repr__(self) -> str:
        state = "shut down" if self._is_shut else "open"
        return f"<gpuq.Executor {state}: {len(self._pending)} jobs pending, {self._n_done} ended>"


def _kernel_of(fn) -> Kernel | None:
    if isinstance(fn, Kernel):
        return fn
    kernel = getattr(fn, "kernel", None)  # of RawKernel, PyCUDA's Function
    return kernel if isinstance(kernel, Kernel) else None


def _future(job: Job) -> futures.Future:
    """A future for the arrays that the job's Out and InOut named."""
    outputs = _unique(job._outputs)
    return job._future(lambda ended: _value(ended, outputs))


def _unique(outputs) -> tuple:
    return tuple({id(output): output for output in outputs}.values())


def _value(job: Job, outputs: tuple):
    if not outputs:
        return job._result
    return outputs[0] if len(outputs) == 1 else outputs


def _is_single(column) -> bool:
    return column is None or isinstance(column, (LaunchConfig, int, float, np.generic, ctypes._SimpleCData))


def _tell(future: futures.Future, progress) -> futures.Future:
    if progress is not None:
        future.add_done_callback(lambda _: progress(1))
    return future


def _results(submitted: list[futures.Future], end: float | None):
    """The results in order. Cancels the remaining calls when the consumer stops."""
    submitted.reverse()
    try:
        while submitted:
            left = None if end is None else end - time.monotonic()
            yield submitted[-1].result(left)
            submitted.pop()
    finally:
        for future in submitted:
            future.cancel()


def _at_exit() -> None:
    """As in concurrent.futures, submitted calls are finished before the process ends."""
    for executor in list(_executors):
        executor.shutdown()


atexit.register(_at_exit)
