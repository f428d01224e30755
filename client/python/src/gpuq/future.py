# SPDX-License-Identifier: Apache-2.0
"""JobFuture: a job as a concurrent.futures.Future, whose cancel() reaches the daemon.

Who asks such a future for its result waits for the job himself, which takes no thread and no switch between threads. The
client's dispatcher sees to those that must be told of the end: done callbacks, `concurrent.futures.wait` and
`as_completed`, asyncio.
"""

from __future__ import annotations

from concurrent.futures import Future, wait
from concurrent.futures import _base

from . import errors

_OVER = (_base.CANCELLED_AND_NOTIFIED, _base.FINISHED)


class _Waiters(list):
    """What concurrent.futures.wait and as_completed put on a future's list of waiters is to be told of its end."""

    def __init__(self, future: "JobFuture"):
        self._future = future

    def append(self, waiter) -> None:
        super().append(waiter)
        self._future._watch()


class JobFuture(Future):
    """`job`: the Job. It counts as not running until it has ended, since the daemon can cancel it at any time."""

    def __init__(self, job, value):
        super().__init__()
        self.job = job
        self._value = value  # of the ended job: what result() gives
        self._told = False
        self._waiters = _Waiters(self)

    def result(self, timeout: float | None = None):
        """As of concurrent.futures. A Ctrl-C leaves the job as it is."""
        return super().result(self._join(timeout))

    def exception(self, timeout: float | None = None):
        """As of concurrent.futures."""
        return super().exception(self._join(timeout))

    def done(self) -> bool:
        """Has it ended, or been cancelled? Does not wait."""
        self._look()
        return super().done()

    def cancel(self) -> bool:
        """Cancel it, running or not. Returns False if it has ended already."""
        self._look()
        if not super().cancel():
            return False
        try:
            self.job.cancel()
        except errors.Error:
            pass  # its connection is gone, and the job with it
        return True

    def add_done_callback(self, fn) -> None:
        """As of concurrent.futures; a thread of the package calls it, unless the future is done."""
        super().add_done_callback(fn)
        self._watch()

    # ---- learning of the end ----

    def _join(self, timeout: float | None) -> float | None:
        """Wait for the job here, unless it is the dispatcher's. Returns how long is to be waited for word of it then."""
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
        """Until the job has ended, also where the future is cancelled already."""
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
        """Have the dispatcher tell of the end."""
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
        """The job has ended, or cannot be asked any more. By whoever learns of it, once."""
        with self._condition:
            if self._told or self._state in _OVER:
                return
            self._told = True
        try:
            if self._state == _base.RUNNING or self.set_running_or_notify_cancel():
                self._settle(error or self.job._error)
        except BaseException:  # a Ctrl-C: the next look tells it
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
