# SPDX-License-Identifier: Apache-2.0
"""Dispatcher: a thread of a client that completes the futures of ended jobs.

It is active while such jobs exist, and sleeps otherwise. The library calls back once per ended job, in any thread. If a
signal handler interrupts a callback, the dispatcher completes that job at its next check.
"""

from __future__ import annotations

import itertools
import threading

from . import _native as native
from . import errors

_LOOK_MS = 100

_tokens = itertools.count(1)
_watched: dict = {}  # token -> (dispatcher, job), of all dispatchers


@native.JobFunc
def _job_ended(handle, token) -> None:
    entry = _watched.pop(token, None)
    if entry is not None:
        entry[0]._ended(token, entry[1])


class Dispatcher:
    """Belongs to one connection. Call `stop` before freeing the connection."""

    def __init__(self, handle: int):
        self._handle = handle
        self._cond = threading.Condition(threading.Lock())
        self._jobs = {}  # token -> job
        self._stopping = False
        self._thread = None

    @property
    def busy(self) -> bool:
        """Whether it has unfinished jobs. If so, other threads leave the dispatching to it."""
        return bool(self._jobs) and not self._stopping

    def is_here(self) -> bool:
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def watch(self, job) -> None:
        """Notify the job when it ends; from this thread if it has already ended."""
        with self._cond:
            if job._watched:
                return
            job._watched = True
            token = next(_tokens)
            self._jobs[token] = job
            _watched[token] = (self, job)
            self._start()
            self._cond.notify()
        handle = job._handle
        if handle is None or native.job_set_callback(handle, _job_ended, token) < 0:
            _watched.pop(token, None)
            self._ended(token, job)

    def _start(self) -> None:
        if self._thread is None and not self._stopping:
            self._thread = threading.Thread(target=self._run, name="gpuq-dispatcher", daemon=True)
            self._thread.start()

    def _ended(self, token: int, job) -> None:
        job._on_end()
        with self._cond:
            self._jobs.pop(token, None)

    def _run(self) -> None:
        while True:
            with self._cond:
                while not self._jobs and not self._stopping:
                    self._cond.wait()
                if self._stopping:
                    return
            r = native.dispatch(self._handle, _LOOK_MS)
            if r <= 0:
                self._look(r < 0)
            if r < 0 and not self._jobs:
                return  # the connection was lost; the next one has its own dispatcher

    def _look(self, failed: bool) -> None:
        """Find ended jobs whose callback was lost. Runs after a pause, or when the connection was lost."""
        for token, job in list(self._jobs.items()):
            if job._ended or job._try_finish():
                _watched.pop(token, None)
                self._ended(token, job)
        if failed and self._jobs:
            with self._cond:
                self._cond.wait(_LOOK_MS / 1000)

    def stop(self) -> None:
        """Stop the thread before the connection is freed. On return it has left the library."""
        with self._cond:
            self._stopping = True
            self._cond.notify_all()
        if self._thread is not None and not self.is_here() and self._thread.is_alive():
            self._thread.join()

    def abandon(self) -> None:
        """Notify the remaining jobs after the connection was freed, which ended them."""
        for token, job in list(self._jobs.items()):
            _watched.pop(token, None)
            if not job._ended and not job._try_finish():
                job._error = errors.from_code(errors.CLOSED, "the client was closed before the job ended")
                job._ended = True
            self._ended(token, job)
