# SPDX-License-Identifier: Apache-2.0
"""The protocol over a ring in shared memory, spoken in Python: what proto/ring.c and wire.c do, and what
a client may do instead."""

import contextlib
import mmap
import os
import socket
import struct
import time

from . import place
from .client import HEADER, Client, Closed
from .messages import pb

HEAD, TAIL, SLEEPING, WAITING, DATA = 0, 64, 128, 192, 256  # of a ring (proto/ring.c)
SKIP = 0xffffffff
CHUNK = 8192
BELL = HEADER.pack(0, 0, b"\0\0\0")


def record_bytes(n_data):
    return (4 + n_data + 7) & ~7


class RingClient(Client):
    """A client that has a ring from the start. It looks rather than sleeps, so it is rung for descriptors only."""

    def __init__(self, path, **options):
        self.map = None
        self.from_ring = False
        super().__init__(path, **options)
        self.open_ring()

    def open_ring(self):
        reply, fds = self.answer(self.tell(ring_open=pb.RingOpen()))
        self.capacity = reply.ring_ready.capacity
        self.map = mmap.mmap(fds[0], os.fstat(fds[0]).st_size)
        os.close(fds[0])
        self.theirs, self.ours = 0, len(self.map) // 2
        self.position = 0  # ours in their ring; what is in the memory may be a test's own rubbish
        serial = self.tell(ring_begin=pb.RingBegin())
        self.to_ring = True
        self.answer(serial)
        assert not self.bytes
        self.from_ring = True
        self.socket.setblocking(False)

    to_ring = False

    # ---- memory ----

    # A word at once, as the other side reads and writes them: struct does it byte by byte.

    def get(self, ring, offset):
        return memoryview(self.map).cast("I")[(ring + offset) // 4]

    def put(self, ring, offset, value):
        memoryview(self.map).cast("I")[(ring + offset) // 4] = value & 0xffffffff

    def _copy_in(self, position, data):
        at = position % self.capacity
        first = data[:self.capacity - at]
        self.map[self.ours + DATA + at:self.ours + DATA + at + len(first)] = first
        rest = data[len(first):]
        self.map[self.ours + DATA:self.ours + DATA + len(rest)] = rest

    def _copy_out(self, position, n):
        at = position % self.capacity
        begin = self.theirs + DATA
        first = self.map[begin + at:begin + min(at + n, self.capacity)]
        return first + self.map[begin:begin + n - len(first)]

    # ---- bytes ----

    def ring_bell(self):
        # It rings already; or it has hung up, which who reads will see.
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            self.socket.send(BELL)

    def room(self):
        return self.capacity - (self.get(self.ours, HEAD) - self.get(self.ours, TAIL)) % (1 << 32)

    def _put_chunk(self, data):
        deadline = time.monotonic() + place.PATIENCE_S
        while self.room() < record_bytes(len(data)):
            assert time.monotonic() < deadline, "the daemon takes nothing from the ring"
            time.sleep(0.001)
        head = self.get(self.ours, HEAD)
        self._copy_in(head, struct.pack("<I", len(data)) + data)
        self.put(self.ours, HEAD, head + record_bytes(len(data)))
        if self.get(self.ours, SLEEPING):
            self.put(self.ours, SLEEPING, 0)
            self.ring_bell()

    def send_bytes(self, data, fds=()):
        if not self.to_ring:
            return super().send_bytes(data, fds)
        for begin in range(0, len(data), CHUNK):
            self._put_chunk(data[begin:begin + CHUNK])

    def _take_chunk(self):
        head, tail = self.get(self.theirs, HEAD), self.position
        if head == tail:
            if self.get(self.theirs, WAITING):
                self.put(self.theirs, WAITING, 0)
                self.ring_bell()
            return False
        n = struct.unpack("<I", self._copy_out(tail, 4))[0]
        if n == SKIP:
            tail += self.capacity - tail % self.capacity
            n = struct.unpack("<I", self._copy_out(tail, 4))[0]
        self.bytes += self._copy_out(tail + 4, n)
        self.position = (tail + record_bytes(n)) % (1 << 32)
        self.put(self.theirs, TAIL, self.position)
        return True

    def _listen(self):
        """Bells and descriptors; else frames of a daemon that has left the ring."""
        try:
            data, fds, _flags, _address = socket.recv_fds(self.socket, 1 << 16, 16)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data, fds = b"", []
        self.fds.extend(fds)
        if not data and not self._take_chunk():
            raise Closed("by the socket")
        while data[:4] == b"\0\0\0\0":
            data = data[8:]
        self.bytes += data

    def _fill(self, n_bytes):
        if not self.from_ring:
            return super()._fill(n_bytes)
        deadline = time.monotonic() + place.PATIENCE_S
        while len(self.bytes) < n_bytes:
            if self._take_chunk():
                continue
            self._listen()
            assert time.monotonic() < deadline, "the daemon says nothing"

    def receive(self):
        if self.from_ring:
            self._listen_for_fds()
        return super().receive()

    def _listen_for_fds(self):
        """What goes with a frame was sent before it."""
        self._fill(HEADER.size)
        length, n_fds, _zero = HEADER.unpack_from(self.bytes)
        self._fill(HEADER.size + length)
        while n_fds > len(self.fds):
            self._listen()
