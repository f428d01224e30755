# SPDX-License-Identifier: Apache-2.0
"""Attacks with one's own worker: killed, stopped, traced, and, on the CPU driver, made to run code that speaks for it."""

import contextlib
import ctypes
import os
import signal
import time

import numpy

from attack import attack, load
from harness import forged, kernels, processes
from harness.client import In, InOut, Job, Out, Refused, u64
from harness.messages import pb

PTRACE_SEIZE = 0x4206


def load_host_code(me, client):
    image = (me.folder / "gpuq-test-liar.so").read_bytes()
    return load(me, client, forged.plant(client, me.cache, image, "become", "forks", "exits"), format=pb.PTX, name=forged.NAME)


def lie_again_and_again(me, lie):
    with me.connect() as client:
        module, arena = load_host_code(me, client), client.arena(4)
        what = client.array(numpy.frombuffer(lie.encode() + bytes(1), numpy.uint8))
        while True:
            if client.run(Job().launch(module, "become", [InOut(arena), In(what)])).state == pb.DONE:
                me.trouble("the worker has not lied")


@attack("forged-failure", cpu=True, prepares=True)
def forged_failure(me):
    """Row 4: the device has failed, it says, in words with escape bytes."""
    lie_again_and_again(me, "failed")


@attack("forged-memory", cpu=True, prepares=True)
def forged_memory(me):
    """Row 8: the device has no memory, it says."""
    lie_again_and_again(me, "memory")


@attack("worker-flood", cpu=True, prepares=True)
def worker_flood(me):
    """Row 5: messages without end."""
    lie_again_and_again(me, "flood")


@attack("worker-bells", cpu=True, prepares=True)
def worker_bells(me):
    """Rings, and has nothing to say."""
    lie_again_and_again(me, "bells")


@attack("worker-silent", cpu=True, prepares=True)
def worker_silent(me):
    """Reads nothing, whatever is sent."""
    with me.connect() as client:
        module, arena = load_host_code(me, client), client.arena(4)
        what = client.array(numpy.frombuffer(b"silent\0", numpy.uint8))
        first = client.submit(Job().launch(module, "become", [InOut(arena), In(what)]))
        ids = client.submit(*[Job().launch(module, "become", [InOut(arena), In(what)]) for _ in range(1000)])
        time.sleep(0.2)
        client.cancel(first, *ids)
        client.wait(first)


@attack("strays", cpu=True, prepares=True)
def strays(me):
    """Row 11: children in sessions of their own outlive their worker."""
    lie_again_and_again(me, "stray")


@attack("worker-forks", cpu=True, prepares=True)
def worker_forks(me):
    """A kernel that forks as often as it may; each child keeps a processor busy."""
    with me.connect() as client:
        module, arena, what = load_host_code(me, client), client.arena(4), client.arena(4)
        while True:
            client.run(Job().launch(module, "forks", [Out(arena), In(what)]))
            time.sleep(0.3)
            kill_workers(me, signal.SIGKILL)


@attack("exits", cpu=True, prepares=True)
def exits(me):
    """A kernel whose children are the keeper's and end at once, so that it has always one to reap."""
    with me.connect() as client:
        module, arena, what = load_host_code(me, client), client.arena(4), client.arena(4)
        client.run(Job(timeout_ms=2000).launch(module, "exits", [Out(arena), In(what)], grid=4))


@attack("fork-bomb")
def fork_bomb(me):
    """As many processes as this uid may have; each connects, asks and goes."""
    with contextlib.suppress(BlockingIOError):
        while os.fork():
            pass
    while True:
        with contextlib.suppress(OSError, Refused):
            with me.connect() as client:
                client.status()


# ---- from outside --------------------------------------------------------------------

def kill_workers(me, number):
    for pid in me.own_workers():
        with contextlib.suppress(OSError):
            os.kill(pid, number)


@attack("worker-killed", prepares=True)
def worker_killed(me):
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        while True:
            client.submit(*[Job().launch(module, "forever", [Out(client.arena(4))]) for _ in range(4)])
            client.run(Job(priority=9).launch(module, "nothing"))
            kill_workers(me, signal.SIGKILL)


@attack("worker-stopped", prepares=True)
def worker_stopped(me):
    """Stands still with jobs in flight, is killed when they are cancelled, and so on."""
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        while True:
            client.run(Job().launch(module, "nothing"))
            kill_workers(me, signal.SIGSTOP)
            ids = client.submit(*[Job().launch(module, "nothing") for _ in range(100)])
            client.cancel(*ids)
            for job in ids:
                client.wait(job)


@attack("ptrace", prepares=True)
def ptrace(me):
    """Row 6: one's own worker, from its first instruction on."""
    libc = ctypes.CDLL(None, use_errno=True)
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        for _ in range(20):
            client.submit(Job().launch(module, "nothing"))
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                for pid in me.own_workers():
                    if libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0:
                        me.breach(f"{processes.name(pid) or 'a worker'} was seized")
                    with contextlib.suppress(OSError):
                        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
                        me.breach("the memory of a worker was opened")
            kill_workers(me, signal.SIGKILL)


# ---- with jobs that end it -------------------------------------------------------------

@attack("timeouts", prepares=True)
def timeouts(me):
    """Each ends a worker, and the next job starts another."""
    with me.connect() as client:
        module, arena = load(me, client, kernels.BASIC), client.arena(4)
        while True:
            client.run(Job(timeout_ms=1).launch(module, "forever", [Out(arena)]))


@attack("faults", prepares=True)
def faults(me):
    with me.connect() as client:
        module, arena = load(me, client, kernels.BASIC), client.arena(4)
        while True:
            client.run(Job().launch(module, "wild", [InOut(arena), u64(kernels.FAR)]))
