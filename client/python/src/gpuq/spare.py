# SPDX-License-Identifier: Apache-2.0
"""Spares: a cache of the device memory of deleted arrays, for new arrays of the same size.

Allocating device memory takes a round trip through the daemon to a worker, which allocates and maps it. That takes a
hundred times as long as clearing memory, and programs often create the same arrays again. The library caches host
memory in the same way. The cache is small and keeps memory only for a short time, because other processes need device
memory too. It never keeps memory that another process may have a reference to.

Arrays are finalized at any place in any thread, so there is no lock: single operations on a list are atomic.
"""

from __future__ import annotations

import time

from . import _native as native

MAX_N = 16
MAX_BYTES = 32 << 20  # of all
MAX_S = 5.0  # maximum time without use; checked when memory is added or taken


class Spares:
    """The cache of one connection."""

    def __init__(self):
        self._kept = []  # (bytes, device, handle, since), oldest first

    def put(self, nbytes: int, device: int, handle: native.Buffer) -> None:
        """Keep a buffer, unless it is too large."""
        if nbytes > MAX_BYTES // 2:
            return
        self._kept.append((nbytes, device, handle, time.monotonic()))
        self._trim()

    def take(self, nbytes: int, device: int | None) -> native.Buffer | None:
        """Take a buffer of this size, not cleared. `device`: None: any."""
        self._trim()
        for entry in reversed(self._kept[:]):
            if entry[0] == nbytes and device in (None, entry[1]) and self._remove(entry):
                return entry[2]
        return None

    def release(self) -> bool:
        """Free all buffers. Returns whether there were any."""
        kept = self._kept[:]
        for entry in kept:
            self._remove(entry)
        return bool(kept)

    def _trim(self) -> None:
        kept = self._kept[:]
        n_bytes = sum(entry[0] for entry in kept)
        since = time.monotonic() - MAX_S
        for i, entry in enumerate(kept):
            if len(kept) - i <= MAX_N and n_bytes <= MAX_BYTES and entry[3] > since:
                break
            n_bytes -= entry[0]
            self._remove(entry)

    def _remove(self, entry) -> bool:
        """Remove an entry; its buffer is freed with the last reference. If two threads try, only one succeeds."""
        try:
            self._kept.remove(entry)
        except ValueError:
            return False
        return True
