# SPDX-License-Identifier: Apache-2.0
"""JobFuture: a concurrent.futures.Future for a job. Its cancel() also cancels the job in the daemon.

A thread that asks for the result waits for the job itself, so no other thread and no thread switch is needed. The
client's dispatcher thread handles everything that must be notified of the end: done callbacks,
`concurrent.futures.wait`, `as_completed` and asyncio.
"""

from __future__ import annotations

from concurrent.futures import Future, wait
from concurrent.futures import _base

from . import errors

_OVER = (_base.CANCELLED_AND_NOTIFIED, _base.FINISHED)


class _Waiters(list):
    """The waiters that concurrent.futures.wait and as_completed register with a future."""

    def __init__(self, future: "JobFuture"):
        self._future = future

    def append(self, waiter) -> None:
        super().append(waiter)
        self._future._watch()


class JobFuture(Future):
    """`job`: the Job. `running()` is False until the job has ended, because the daemon can cancel it at any time."""

    def __init__(self, job, value):
        super().__init__()
        self.job = job
        self._value = value  # a function from the ended job to the value of result()
        self._told = False
        self._waiters = _Waiters(self)

    def result(self, timeout: float | None = None):
        """As in concurrent.futures. A Ctrl-C does not cancel the job."""
        return super().result(self._join(timeout))

    def exception(self, timeout: float | None = None):
        """As in concurrent.futures."""
        return super().exception(self._join(timeout))

    def done(self) -> bool:
        """Whether it has ended or was cancelled. Does not wait."""
        self._look()
        return super().done()

    def cancel(self) -> bool:
        """Cancel the job, waiting or running. Returns False if it has already ended."""
        self._look()
        if not super().cancel():
            return False
        try:
            self.job.cancel()
        except errors.Error:
            pass  # the connection was lost, and the job with it
        return True

    def add_done_callback(self, fn) -> None:
        """As in concurrent.futures. A thread of the package calls `fn`, unless the future is already done."""
        super().add_done_callback(fn)
        self._watch()

    # ---- learning of the end ----

    def _join(self, timeout: float | None) -> float | None:
        """Wait for the job in this thread, unless the dispatcher does.

        Returns the remaining time to wait for the future.
        """
        if self._state not in (_base.PENDING, _base.RUNNING) or self.job._watched:
            return timeout
        try:
            self.job._wait(timeout)
        except errors.TimeoutError:
            return 0
        except errors.Error as error:
            self._tell(error)
        else:
            self._tell()
        return None

    def _await_end(self) -> None:
        """Wait until the job has ended, even if the future is already cancelled."""
        if self.job._watched:
            wait([self])
            return
        try:
            self.job._wait(None)
        except errors.Error as error:
            self._tell(error)
        else:
            self._tell()

    def _look(self) -> None:
        if self._state in _OVER or self.job._watched:
            return
        try:
            if self.job.done():
                self._tell()
        except errors.Error as error:
            self._tell(error)

    def _watch(self) -> None:
        """Have the dispatcher complete this future."""
        if self._state in _OVER or self.job._watched:
            return
        try:
            if not self.job._ended:
                self.job._client._dispatcher().watch(self.job)
                return
        except errors.Error as error:
            self._tell(error)
        self._tell()

    def _tell(self, error: BaseException | None = None) -> None:
        """Complete the future, once: the job has ended, or its state cannot be queried any more."""
        with self._condition:
            if self._told or self._state in _OVER:
                return
            self._told = True
        try:
            if self._state == _base.RUNNING or self.set_running_or_notify_cancel():
                self._settle(error or self.job._error)
        except BaseException:  # a Ctrl-C: the next check completes it
            self._told = False
            raise

    def _settle(self, error: BaseException | None) -> None:
        if error is not None:
            self.set_exception(error)
            return
        try:
            value = self._value(self.job)
        except Exception as failed:
            self.set_exception(failed)
        else:
            self.set_result(value)
