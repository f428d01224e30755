# SPDX-License-Identifier: Apache-2.0
"""Spares: device memory of arrays that are gone, kept a while for the next ones of the same size.

New device memory takes a round trip through the daemon to a worker, which allocates and maps it: a hundred times what
clearing it takes, and programs make the same arrays again and again. Host memory is kept likewise, by the library. Few, small
and for a short time, since other processes want the device's memory too; and never what another process may know by name.

Arrays end in finalizers, at any place in any thread, so there is no lock: one step of a list is one step.
"""

from __future__ import annotations

import time

from . import _native as native

MAX_N = 16
MAX_BYTES = 32 << 20  # of all
MAX_S = 5.0  # without having been of use; looked at when one comes or goes


class Spares:
    """Of one connection."""

    def __init__(self):
        self._kept = []  # (bytes, device, handle, since), the longest kept first

    def put(self, nbytes: int, device: int, handle: int) -> bool:
        """Keep a buffer. False: it is too large, and stays the caller's."""
        if nbytes > MAX_BYTES // 2:
            return False
        self._kept.append((nbytes, device, handle, time.monotonic()))
        self._trim()
        return True

    def take(self, nbytes: int, device: int | None) -> int | None:
        """The handle of one of that size, the caller's; not cleared. `device`: None for any."""
        self._trim()
        for entry in reversed(self._kept[:]):
            if entry[0] == nbytes and device in (None, entry[1]) and self._remove(entry):
                return entry[2]
        return None

    def release(self) -> bool:
        """Give all back. Were there any?"""
        kept = self._kept[:]
        for entry in kept:
            self._free(entry)
        return bool(kept)

    def _trim(self) -> None:
        kept = self._kept[:]
        n_bytes = sum(entry[0] for entry in kept)
        since = time.monotonic() - MAX_S
        for i, entry in enumerate(kept):
            if len(kept) - i <= MAX_N and n_bytes <= MAX_BYTES and entry[3] > since:
                break
            n_bytes -= entry[0]
            self._free(entry)

    def _free(self, entry) -> None:
        if self._remove(entry):
            native.buffer_free(entry[2])

    def _remove(self, entry) -> bool:
        """Of two that want it one gets it."""
        try:
            self._kept.remove(entry)
        except ValueError:
            return False
        return True
