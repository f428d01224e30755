# SPDX-License-Identifier: Apache-2.0
"""JobFuture: a job as a concurrent.futures.Future, whose cancel() reaches the daemon."""

from __future__ import annotations

from concurrent.futures import Future

from . import errors


class JobFuture(Future):
    """`job`: the Job. It counts as not running until it has ended, since the daemon can cancel it at any time."""

    def __init__(self, job, value):
        super().__init__()
        self.job = job
        self._value = value  # of the ended job: what result() gives

    def cancel(self) -> bool:
        """Cancel it, running or not. Returns False if it has ended already."""
        if not super().cancel():
            return False
        try:
            self.job.cancel()
        except errors.Error:
            pass  # its connection is gone, and the job with it
        return True

    def _on_end(self) -> None:
        if not self.set_running_or_notify_cancel():
            return
        if self.job._error is not None:
            self.set_exception(self.job._error)
            return
        try:
            value = self._value(self.job)
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(value)
