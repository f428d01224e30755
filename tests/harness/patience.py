# SPDX-License-Identifier: Apache-2.0
"""Waiting for what has no event of its own, bounded."""

import time

from . import place


def until(condition, what, timeout_s=None):
    """Asks until the answer is true, and returns it; fails with `what` when patience ends."""
    end = time.monotonic() + (timeout_s or place.PATIENCE_S)
    pause = 0.002
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


def while_short(condition, timeout_s=5):
    """Gives what ends by itself the time to do so."""
    end = time.monotonic() + timeout_s
    while condition() and time.monotonic() < end:
        time.sleep(0.01)
