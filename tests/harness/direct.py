# SPDX-License-Identifier: Apache-2.0
"""A client that uses the direct ring by hand: what proto/direct_ring.c does (PROTOCOL.md, section 9), and what a client may do instead."""

import contextlib
import mmap
import os
import select
import socket
import struct

from .client import Client, In, InOut, Job, u64
from .messages import pb
from .patience import until

IS_LENT, N_WRITTEN, CLIENT_SLEEPS, N_TAKEN, LAST_TAG, READER_SLEEPS, FIRST = 0, 64, 68, 128, 132, 136, 192
ENTRY, N_ENTRIES = 64, 512
TAG, PREPARED, IS_DONE = 0, 4, 8  # of an entry

N = 64
SOURCE = """
extern "C" __global__ void increment(int *x, unsigned long long n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
extern "C" __global__ void wait(const int *is_shut, int *x)
{
        while (*(volatile const int *)is_shut)
                __nanosleep(10000);
        x[0] += 1;
}
"""


class DirectClient(Client):
    """`increment` adds 1 to the numbers of `counter`. Its ring is open from the start, unless open_ring=False."""

    def __init__(self, path, open_ring=True, **options):
        self.events = []  # names of direct_lend and direct_recall, as they came
        self.tags = {}  # by entry
        self.ring = self.bell = None
        self.has_begun = False
        super().__init__(path, **options)
        self.start()
        if open_ring:
            self.open_ring()

    def start(self):
        """A module, memory and a prepared job, which may be new ones."""
        self.module = self.load(SOURCE)
        self.counter = self.device_arena(4 * N)
        self.copied = self.arena(4 * N)
        self.run_well(Job().fill(self.counter, 4 * N))
        self.increment = self.prepare(Job().launch(self.module, "increment", [InOut(self.counter), u64(N)], block=N))
        self.n_fired = 0  # of increment

    def prepare(self, job):
        return self.call(prepare=pb.Prepare(job=job.message)).prepared.prepared

    def open_ring(self):
        serial = self.tell(direct_open=pb.DirectOpen())
        memory = self.answer(serial)[1][0]
        self.ring = mmap.mmap(memory, os.fstat(memory).st_size)
        os.close(memory)
        self.bell = socket.socket(fileno=self.answer(serial)[1][0])
        self.words = memoryview(self.ring).cast("I")

    def close(self):
        if self.bell:
            self.bell.close()
        super().close()

    def _note(self, reply):
        body = reply.WhichOneof("body")
        if body in ("direct_lend", "direct_recall"):
            assert reply.serial == 0
            self.events.append(body)
        super()._note(reply)

    # ---- by messages ----

    def next_tag(self):
        self.tag += 1
        return self.tag

    def fire(self, n=1, prepared=None):
        """Returns the id of the last one."""
        fires = [pb.Fire(prepared=prepared or self.increment, tag=self.next_tag()) for _ in range(n)]
        self.n_fired += n if prepared in (None, self.increment) else 0
        self.tell(fires=pb.Fires(fires=fires))
        return self.session << 32 | self.tag

    def hear(self, event):
        """Waits for it, if it has not come yet, and forgets it and those before."""
        while event not in self.events:
            reply, fds = self.receive()
            assert reply.serial == 0 and not fds, f"unexpected reply: {reply}"
            if reply.WhichOneof("body") == "error":
                raise AssertionError(reply.error)
            self._note(reply)
        del self.events[:self.events.index(event) + 1]

    def until_offered(self, n_most=5000):
        """Fires by messages until the ring is offered."""
        for _ in range(n_most):
            if "direct_lend" in self.events:
                return self.hear("direct_lend")
            self.wait(self.fire(64))
        raise AssertionError("the ring is not offered")

    def begin(self):
        self.tell(direct_begin=pb.DirectBegin())
        self.has_begun = True

    def end(self):
        """If wait_end() has not said it already."""
        if self.has_begun:
            self.has_begun = False
            self.tell(direct_end=pb.DirectEnd())

    def try_end(self):
        """The same, where gpuqd may have ended the connection already."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.end()

    def until_lent(self):
        """A worker takes its jobs now. It may be lent for a moment only, when others disturb it, so it is tried again."""
        for _ in range(100):
            self.until_offered()
            self.begin()
            entry = self.write()
            self.wait_end(entry)
            if self.is_done(entry) and self.has_begun:
                return
            self.end()
        raise AssertionError("no worker takes a job from the ring")

    def is_known(self, entry):
        """By a completion: gpuqd ran the job, or refused it."""
        poll = select.poll()  # select() takes no descriptor above 1,023
        poll.register(self.socket, select.POLLIN)
        while self.bytes or poll.poll(0):
            self._note(self.receive()[0])
        return self.job_id(entry) in self.completions

    def job_id(self, entry):
        return self.session << 32 | self.tags[entry]

    # ---- in the ring ----

    # A word at once, as the other sides read and write them: struct does it byte by byte.

    def get(self, offset):
        return self.words[offset // 4]

    def put(self, offset, value):
        self.words[offset // 4] = value & 0xffffffff

    def offset(self, entry, word):
        return FIRST + ENTRY * (entry % N_ENTRIES) + word

    def write(self, tag=None, prepared=None, done=None):
        """Fires a job in it. Returns the number of its entry."""
        entry = self.prepare_entry(tag, prepared, done)
        self.count_entry()
        return entry

    def prepare_entry(self, tag=None, prepared=None, done=None):
        """All but counting it."""
        entry = self.get(N_WRITTEN)
        tag = self.next_tag() if tag is None else tag
        self.tags[entry] = tag
        self.n_fired += prepared in (None, self.increment)
        self.put(self.offset(entry, PREPARED), self.increment if prepared is None else prepared)
        self.put(self.offset(entry, TAG), tag)
        if done is not None:
            self.put(self.offset(entry, IS_DONE), done)
        return entry

    def count_entry(self):
        self.put(N_WRITTEN, self.get(N_WRITTEN) + 1)
        self.ring_bell()

    def ring_bell(self):
        if self.get(READER_SLEEPS):
            self.put(READER_SLEEPS, 0)
            try:
                self.bell.send(b"\0", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                pass  # its reader is gone

    def is_done(self, entry):
        return self.get(self.offset(entry, IS_DONE)) == self.tags[entry]

    def free(self, entry):
        self.put(self.offset(entry, TAG), 0)

    def wait_end(self, entry):
        """Done in the ring, or ended by gpuqd, which reads what came too late if the client has ended. Returns its state."""
        def has_ended():
            if not self.get(IS_LENT):
                self.end()
            return self.is_done(entry) or self.is_known(entry)

        until(has_ended, "its end, from a worker or gpuqd")
        state = pb.DONE if self.is_done(entry) else self.completions[self.job_id(entry)].state
        self.free(entry)
        return state

    # ---- a job that waits ----

    def prepare_wait(self):
        """A prepared job that is short until shut() and then waits for open()."""
        self.shutter, self.waited = self.device_arena(4), self.device_arena(4)
        self.open()
        self.waiting = self.prepare(Job().launch(self.module, "wait", [In(self.shutter), InOut(self.waited)]))
        for _ in range(32):  # so that it is known to be short, even where the first one took a second
            self.wait(self.fire(prepared=self.waiting))

    def _set_shutter(self, value):
        """By another session, so that nothing goes before or after it."""
        with Client(self.path, uid=self.uid) as other:
            other.open_arena(self.shutter.id)
            other.run_well(Job().fill(self.shutter, 4, value, width=4))

    def shut(self):
        self._set_shutter(1)

    def open(self):
        self._set_shutter(0)

    # ---- what came of it ----

    def value(self):
        """Of the counter; not while the ring is begun."""
        self.run_well(Job().copy(self.copied, self.counter, 4 * N, direction=pb.OUT))
        values = struct.unpack(f"{N}i", self.copied.map[:4 * N])
        assert len(set(values)) == 1
        return values[0]
