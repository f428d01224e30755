# SPDX-License-Identifier: Apache-2.0
"""Waiting for jobs of any process by id. Does not import numpy, because processes that only use ids do not need it."""

from __future__ import annotations

import math
import threading
import time
from ctypes import byref

from . import _native as native
from . import errors
from .result import Result

SLICE_MS = 50  # how long a wait of the main thread keeps Python's signal handlers waiting


def shorter(a_ms: int, b_ms: int) -> int:
    """The shorter of two time limits; -1 means no limit."""
    if a_ms < 0:
        return b_ms
    return a_ms if b_ms < 0 else min(a_ms, b_ms)


def interruptibly(function, *args) -> tuple[int, str]:
    """Call a function of the library that may wait for long. Returns its result and the text of an error.

    Python runs signal handlers only between bytecodes of its main thread, so another thread makes the call there. After
    a Ctrl-C that thread goes on until the daemon answers, and then drops what it got.
    """
    def call() -> tuple[int, str]:
        return function(*args), native.text()

    if threading.current_thread() is not threading.main_thread():
        return call()

    from queue import SimpleQueue
    answers = SimpleQueue()

    def answer() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # such as ctypes.ArgumentError: the caller waits for any answer
            answers.put((None, error))

    threading.Thread(target=answer, name="gpuq-call", daemon=True).start()
    result, error = answers.get()
    if error is not None:
        raise error
    return result


def wait_id(client, id: int, timeout: float | None) -> Result:
    """See `Client.wait_id`."""
    end = None if timeout is None else time.monotonic() + timeout
    told = native.Result()
    while True:
        left_ms = -1 if end is None else max(0, math.ceil((end - time.monotonic()) * 1000))
        r = native.wait_id(client._connection(), id, shorter(left_ms, SLICE_MS), byref(told))
        if r == errors.AGAIN and not 0 <= left_ms <= SLICE_MS:
            continue
        if r == errors.AGAIN or told.error == 0:
            client._check(r)
        result = Result(id, told)
        if told.error:
            raise errors.from_code(told.error, result.text)
        return result
