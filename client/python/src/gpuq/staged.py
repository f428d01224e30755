# SPDX-License-Identifier: Apache-2.0
"""Staged: copies of a job's arrays that are not in memory shared with the daemon. They exist as long as the job."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _native as native
from . import memory


class Staged:
    """The copy of one array."""

    __slots__ = ("array", "held", "writes", "start", "end")

    def __init__(self, client, array: np.ndarray, reads: bool):
        self.array = array
        self.start = array.__array_interface__["data"][0]
        self.end = self.start + array.nbytes
        self.held = memory.new_host(client, array.nbytes, zeroed=False)
        self.writes = False
        if reads:
            ctypes.memmove(self.held.address, self.start, array.nbytes)

    def back(self) -> None:
        """Copy the results back to the array."""
        if self.writes:
            ctypes.memmove(self.start, self.held.address, self.array.nbytes)


def stage(staged: dict, client, array: np.ndarray, direction: int, where: str) -> int:
    """Copy an array for a job, unless `staged` has a copy. Returns the handle.

    Raises ValueError if the array overlaps another one and one of them is written.
    """
    key = (array.__array_interface__["data"][0], array.nbytes)
    copy = staged.get(key)
    if copy is None:
        copy = Staged(client, array, reads=direction in (native.IN, native.INOUT))
        _check_overlap(staged, copy, direction, where)
        staged[key] = copy
    copy.writes = copy.writes or direction != native.IN
    return copy.held.handle


def _check_overlap(staged: dict, new: Staged, direction: int, where: str) -> None:
    for other in staged.values():
        if new.start < other.end and other.start < new.end and (other.writes or direction != native.IN):
            raise ValueError(f"{where}: the array overlaps another array of this job, and the job writes one of them; copies "
                             "would separate them: put them in one gpuq.array() and pass slices of it")
