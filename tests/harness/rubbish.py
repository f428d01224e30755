# SPDX-License-Identifier: Apache-2.0
"""Writes into a worker's half of the memory that it shares with the supervisor, as a worker gone mad would, and
rings the bell each time. Needs root: a worker's memory is nobody else's."""

import contextlib
import ctypes
import os
import signal
import struct

from . import processes

PIDFD_OPEN, PIDFD_GETFD = 434, 438
BELL = 4  # the worker's number of its end: its channel is 3 to 5
HEAD, TAIL, DATA = 0, 64, 256  # of a ring (proto/ring.c)


def _channel(pid):
    """Where its two rings are: (address, bytes of one ring)."""
    for line in processes.maps(pid).splitlines():
        words = line.split()
        if words[5:6] == ["/memfd:gpuq-channel"]:
            start, end = (int(word, 16) for word in words[0].split("-"))
            return start, (end - start) // 2
    raise AssertionError(f"process {pid} has no channel mapped")


def _open_bell(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
    bell = libc.syscall(PIDFD_GETFD, pidfd, BELL, 0)
    assert pidfd >= 0 and bell >= 0, os.strerror(ctypes.get_errno())
    os.close(pidfd)
    return bell


class Rings:
    def __init__(self, pid, memory):
        self.pid, self.memory = pid, memory
        self.to_worker, size = _channel(pid)
        self.to_supervisor = self.to_worker + size
        self.capacity = 1 << (size.bit_length() - 1)

    def read_u32(self, address):
        return struct.unpack("<I", os.pread(self.memory, 4, address))[0]

    def write(self, address, data):
        bell = _open_bell(self.pid)
        os.pwrite(self.memory, data, address)
        with contextlib.suppress(BrokenPipeError):  # a supervisor that polls has found it out already
            os.write(bell, b"!")
        os.close(bell)

    # ---- kinds of rubbish ----

    def set_head(self, value):
        self.write(self.to_supervisor + HEAD, struct.pack("<I", value & 0xffffffff))

    def add_record(self, length, data=b""):
        """A record of that length behind what is there; only `data` is written of it."""
        head = self.read_u32(self.to_supervisor + HEAD)
        at = self.to_supervisor + DATA + head % self.capacity
        self.write(at, struct.pack("<I", length & 0xffffffff) + data)
        self.set_head(head + ((4 + min(length, 1 << 16) + 7) & ~7))

    def set_tail(self, value):
        """How far the worker says to have read."""
        self.write(self.to_worker + TAIL, struct.pack("<I", value & 0xffffffff))


@contextlib.contextmanager
def rings(pid):
    """The worker stands still meanwhile, so that it does not write over it."""
    processes.stop(pid)
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    try:
        yield Rings(pid, memory)
    finally:
        os.close(memory)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
