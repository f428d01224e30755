# SPDX-License-Identifier: Apache-2.0
"""Attacks through the socket alone: connections, frames, descriptors and requests that cost more to answer than to ask."""

import contextlib
import fcntl
import os
import random
import select
import signal
import socket
import threading
import time

from attack import HELLO, attack, frame, load, submit_frame, submit_frames
from harness import kernels
from harness.client import HEADER, Closed, InOut, Job, Out, Refused
from harness.messages import pb
from harness.ring import HEAD, RingClient



def open_socket(me, data=b""):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        one.connect(me.path)
        one.setblocking(False)
        send_some(one, data)
    except OSError:
        one.close()
        raise
    return one


def send_some(one, data):
    """What goes in now. Returns whether it was all."""
    try:
        return one.send(data) == len(data)
    except BlockingIOError:
        return False


@contextlib.contextmanager
def many(me, n, data=b""):
    """So many connections, or as many as are granted."""
    sockets = []
    try:
        for _ in range(n):
            with contextlib.suppress(OSError):
                sockets.append(open_socket(me, data))
        yield sockets
    finally:
        for one in sockets:
            one.close()


def hold(sockets, seconds):
    """Without reading, until half of them are ended."""
    end = time.monotonic() + seconds
    poll = select.poll()
    for one in sockets:
        poll.register(one, select.POLLRDHUP | select.POLLHUP)
    while time.monotonic() < end:
        if len(poll.poll(50)) > len(sockets) // 2:
            return
        time.sleep(0.02)


@attack("burners", control=True)
def burners(me):
    """Nothing but processor time."""
    while True:
        pass


def burn(me, n):
    """In so many processes of all attackers together, at least one each; each is a session of its own, as workers are."""
    starter = os.getpid()
    for _ in range(me.share(n) - 1):
        if os.fork() == 0:
            os.setsid()
            break
    while os.getpid() == starter or os.getppid() == starter:
        pass


@attack("burners-4", control=True)
def burners_4(me):
    """As attackers whose jobs keep a worker busy, too."""
    burn(me, 4)


@attack("burners-16", control=True)
def burners_16(me):
    """As a worker that starts many processes."""
    burn(me, 16)


# ---- connections -------------------------------------------------------------------

@attack("connections")
def connections(me):
    with many(me, me.n(2000, 400)) as sockets:
        hold(sockets, 1)


@attack("connect-loop")
def connect_loop(me):
    """Each costs the service a lookup of groups."""
    while True:
        open_socket(me).close()


@attack("hello-loop")
def hello_loop(me):
    while True:
        open_socket(me, HELLO).close()


@attack("many-groups", groups=65536)
def many_groups(me):
    """As a user with subordinate gids may be in: the service asks the kernel for all of them, for each connection."""
    connect_loop(me)


@attack("many-threads", processes=8192, prepares=True)
def many_threads(me):
    """The kernel visits each of them, for whoever asks when their process began."""
    threading.stack_size(64 << 10)
    for _ in range(me.n(4000, 500)):
        threading.Thread(target=signal.pause, daemon=True).start()
    me.ready()
    hello_loop(me)


@attack("half-frames")
def half_frames(me):
    """The beginning of the largest frame there may be, on each."""
    head = HEADER.pack(4 << 20, 0, b"\0\0\0")
    with many(me, me.n(256, 64), HELLO) as sockets:
        for one in sockets:
            with contextlib.suppress(OSError):
                send_some(one, head + b"\x0a" * (192 << 10))
        hold(sockets, 1)


@attack("slow-bytes")
def slow_bytes(me):
    """One byte a second, on each."""
    with many(me, me.n(1000, 200)) as sockets:
        for byte in HELLO:
            for one in sockets:
                with contextlib.suppress(OSError):
                    send_some(one, bytes([byte]))
            time.sleep(1)


@attack("never-reading")
def never_reading(me):
    ask = b"".join(frame(serial, status_get=pb.StatusGet()) for serial in range(2, 600))
    with many(me, me.n(256, 64), HELLO) as sockets:
        for _ in range(20):
            for one in sockets:
                with contextlib.suppress(OSError):
                    send_some(one, ask)
        hold(sockets, 1)


@attack("garbage")
def garbage(me):
    """4 MiB of noise: as it is, as one frame, as the jobs of a request."""
    noise = random.Random(me.number).randbytes(4 << 20)
    for data in (noise, HELLO + HEADER.pack(len(noise), 0, b"\0\0\0") + noise, HELLO + submit_frame([b""] * 2_000_000)):
        one = open_socket(me)
        one.setblocking(True)
        one.settimeout(5)
        with contextlib.suppress(OSError):
            one.sendall(data)
            one.recv(1 << 16)
        one.close()


@attack("few-descriptors", few_descriptors=True)
def few_descriptors(me):
    """Connections and arenas, where the service may have a thousand descriptors."""
    with many(me, 600) as sockets, me.connect() as client:
        with contextlib.suppress(Refused):
            for _ in range(400):
                client.arena(4096)
        hold(sockets, 0.5)


# ---- descriptors ---------------------------------------------------------------------

@attack("unread-descriptors")
def unread_descriptors(me):
    """Row 1: the kernel counts descriptors in flight against the service's uid."""
    with me.connect() as client:
        arena = client.arena(4096)
        ask = HELLO + b"".join(frame(serial, arena_open=pb.ArenaOpen(arena=arena.id)) for serial in range(2, 257))
        with many(me, me.n(me.share(160), me.share(80)), ask) as sockets:
            hold(sockets, 30)


@attack("arena-cycle")
def arena_cycle(me):
    """Made and closed again, 200 at once."""
    make = b"".join(frame(serial, arena_create=pb.ArenaCreate(size=4096)) for serial in range(1, 201))
    with me.connect() as client:
        while True:
            client.send_bytes(make)
            ids = []
            for _ in range(200):
                reply, fds = client.receive()
                ids.append(reply.arena.arena)
                for fd in fds:
                    os.close(fd)
            client.send_bytes(b"".join(frame(1, arena_close=pb.ArenaClose(arena=arena)) for arena in ids))


@attack("append")
def append(me):
    """Row 11: flags of a description are shared with the service, which may write through it."""
    with me.connect() as client:
        arena = client.arena(4096)
        for flags in (os.O_APPEND, os.O_NONBLOCK, 0):
            fcntl.fcntl(arena.fd, fcntl.F_SETFL, flags)
            module = client.load(kernels.BASIC)
            for _ in range(50):
                client.run(Job().launch(module, "nothing"))
                client.run(Job().fill(arena, 4096, 7))
            if os.fstat(arena.fd).st_size != 4096:
                me.breach("an arena has grown")


@attack("rings", settings={"poll_us": 100})
def rings(me):
    """Positions that cannot be, in a ring that is given back at once."""
    with RingClient(me.path) as client:
        for value in (1 << 31, 0xffffffff, 12, client.capacity + 8):
            with contextlib.suppress(OSError, Closed, AssertionError):
                client.put(client.ours, HEAD, value)
                client.ring_bell()


# ---- requests ------------------------------------------------------------------------

def flood(me, client, ask, n_a_turn):
    """Asks and reads, as fast as both go."""
    one = client.socket
    one.setblocking(False)
    data, n_bytes = memoryview(ask * n_a_turn), 0
    while True:
        readable, writable, _ = select.select([one], [one], [], 5)
        if readable and not one.recv(1 << 20):
            raise Closed("by the daemon")
        if writable:
            with contextlib.suppress(BlockingIOError):
                n_bytes = (n_bytes + one.send(data[n_bytes:])) % len(data)


@attack("status-flood")
def status_flood(me):
    with me.connect() as client:
        flood(me, client, frame(2, status_get=pb.StatusGet()), 1000)


def fill_queue(me, client, n):
    """Jobs that wait for one that does not end."""
    module, arena = client.load(kernels.BASIC), client.arena(4096)
    client.submit(Job().launch(module, "forever", [InOut(arena)]))
    for data in submit_frames(Job().launch(module, "copy", [InOut(arena), Out(arena)]), n, first=2):
        client.send_bytes(data)
    client.status()


@attack("queue-flood", prepares=True)
def queue_flood(me):
    """With 100,000 jobs queued."""
    with me.connect() as client:
        fill_queue(me, client, me.n(me.share(200000), 4000))
        me.ready()
        with me.connect() as other:
            flood(me, other, frame(2, queue_get=pb.QueueGet(all_users=True)), 100)


@attack("status-with-queue", prepares=True)
def status_with_queue(me):
    with me.connect() as client:
        fill_queue(me, client, me.n(me.share(200000), 4000))
        me.ready()
        with me.connect() as other:
            flood(me, other, frame(2, status_get=pb.StatusGet()), 1000)


@attack("cancel-millions")
def cancel_millions(me):
    """As many ids as a frame holds; then as many as a request may have, of jobs that never were."""
    with me.connect() as client, me.connect() as other:
        with contextlib.suppress(OSError, Closed, Refused):
            other.call(cancel=pb.Cancel(ids=[1] * 4_000_000))
        ids = [client.session << 32 | tag for tag in range(1, 4097)]
        flood(me, client, frame(2, cancel=pb.Cancel(ids=ids)), 20)


@attack("waits", prepares=True)
def waits(me):
    """For jobs that never were, and for one that does not end."""
    with me.connect() as client:
        endless = client.submit(Job().launch(load(me, client, kernels.BASIC), "forever", [Out(client.arena(4))]))
        flood(me, client, frame(2, wait=pb.Wait(id=endless)) + frame(3, wait=pb.Wait(id=endless + 99)), 1000)


@attack("guesses")
def guesses(me):
    """Ids of others: sessions to resume, arenas, jobs."""
    if me.is_second():
        time.sleep(1)
        return
    mine = me.connect()
    for session in range(1, mine.session):
        with me.connect(hello=False) as client, contextlib.suppress(Refused, Closed):
            if client.hello(resume=session).resumed:
                me.breach(f"resumed session {session} of another user")
    with mine as client:
        own = client.arena(4096).id
        for arena in range(max(1, own - 2000), own):
            with contextlib.suppress(Refused):
                client.open_arena(arena)
                me.breach(f"opened arena {arena} of another user")
        for session in range(1, client.session):
            if client.cancel(*(session << 32 | tag for tag in range(1, 2000))).ids:
                me.breach(f"cancelled jobs of session {session}")


@attack("labels", prepares=True)
def labels(me):
    """Row 11: controls and what turns text around, in every text that others may see."""
    with me.connect() as client:
        module, arena = load(me, client, kernels.BASIC), client.arena(4)
        for text in ("\x1b[2J", "\x9b2J", "\u202e", "\u2066", "\x07"):
            done = client.run(Job(label=text).launch(module, "copy", [InOut(arena), Out(arena)]))
            if done.error.code != pb.E_INVALID:
                me.breach(f"a label of {text!r} was taken")
            with contextlib.suppress(Refused, Closed):
                client.load("bad", name=text)
        with contextlib.suppress(OSError):
            with me.connect(hello=False) as other, contextlib.suppress(Refused, Closed):
                other.hello(name="\u202e")
                me.breach("a client's name that turns text around was taken")


