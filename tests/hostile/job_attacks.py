# SPDX-License-Identifier: Apache-2.0
"""Attacks with jobs, their data and their code: what the service accepts, keeps, orders, compiles, stores and runs."""

import contextlib
import itertools
import os
import random

from attack import attack, load, read_ends, submit_frames
from harness import kernels
from harness.client import JOBS_MAX, In, InOut, Job, Out, Refused, Slice
from harness.messages import pb

N_ORDERED = 4096  # buffers of a job, at most

PRINTING = r"""
extern "C" __global__ void prints(void) { for (int i = 0; i < 1000; i++) printf("%d and so on and on and on\n", i); }
"""
SPINNING = r"""
extern "C" __global__ void spins(int *out) { for (volatile int i = 0; i >= 0; i = 0) ; out[0] = 1; }
"""
serials = itertools.count(1)  # of this process: no two modules are the same


def endless(client, module, use):
    """What others wait for, so that they are queued and not run."""
    return client.submit(Job().launch(module, "forever", [use]))


# ---- floods of jobs ------------------------------------------------------------------

def flood_jobs(client, job, n, at_once):
    """The same job so often, with at most so many of them unfinished."""
    for i, data in enumerate(submit_frames(job, n)):
        client.send_bytes(data)
        if i * JOBS_MAX >= at_once - JOBS_MAX:
            read_ends(client, JOBS_MAX)


@attack("refused-jobs")
def refused_jobs(me):
    """Arenas that are not there."""
    with me.connect() as client:
        job = Job().launch(1, "nothing", [InOut(Slice(1 << 40, 0, 4))])
        flood_jobs(client, job, 1 << 20, at_once=4096)


@attack("good-jobs", prepares=True)
def good_jobs(me):
    with me.connect() as client:
        job = Job().launch(load(me, client, kernels.BASIC), "nothing")
        flood_jobs(client, job, 1 << 20, at_once=1024)


@attack("queued-bytes", prepares=True)
def queued_bytes(me):
    """Row 7b: as many large jobs as may be queued; then again."""
    with me.connect() as client:
        module, arena = client.load(kernels.BASIC), client.arena(1 << 20)
        endless(client, module, InOut(arena))
        job = Job().launch(module, "nothing")
        job.buffers = [In(arena.slice(0, 8 + i)) for i in range(4096)]
        for data in submit_frames(job, me.n(500, 50), first=2):
            client.send_bytes(data)
        client.status()
        me.ready()
        client.receive()


@attack("slices", prepares=True)
def slices(me):
    """Row 2a: 20 queued jobs write 4,096 slices each, then jobs read the whole arena 4,096 times."""
    with me.connect() as client:
        module, arena = client.load(kernels.BASIC), client.arena(N_ORDERED * 256)
        endless(client, module, InOut(arena))
        for k in range(me.n(20, 5)):
            job = Job().launch(module, "nothing")
            job.buffers = [InOut(arena.slice(256 * i + 8 * k, 4)) for i in range(N_ORDERED)]
            client.submit(job)
        client.status()
        me.ready()
        whole = Job().launch(module, "nothing")
        whole.buffers = [In(arena.slice(i, arena.size - N_ORDERED)) for i in range(N_ORDERED)]
        for _ in range(me.n(50, 5)):
            client.submit(whole)
        client.status()


@attack("cancel-order", prepares=True)
def cancel_order(me):
    """Row 2b: overlapping queued jobs, cancelled in random order."""
    dice = random.Random(me.number)
    with me.connect() as client:
        module, arena = load(me, client, kernels.BASIC), client.arena(1 << 16)
        client.submit(Job().launch(module, "forever", [InOut(arena)]))
        jobs = []
        for _ in range(me.n(8000, 1000)):
            place = arena.slice(dice.randrange(0, arena.size - 64), 64)
            jobs.append(Job().launch(module, "copy", [InOut(place), InOut(place)]))
        ids = client.submit(*jobs[:4000]) + (client.submit(*jobs[4000:]) if jobs[4000:] else [])
        dice.shuffle(ids)
        for begin in range(0, len(ids), 100):
            client.cancel(*ids[begin:begin + 100])


@attack("dependencies", prepares=True)
def dependencies(me):
    """Jobs that wait for the 1,024 before them."""
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        ids = [endless(client, module, Out(client.arena(4)))]
        for _ in range(me.n(2000, 300)):
            ids.append(client.submit(Job(after=ids[-1024:]).launch(module, "nothing")))
        client.cancel(ids[0])
        client.wait(ids[-1])


@attack("prepared", prepares=True)
def prepared(me):
    """As many prepared jobs as there may be, then 4,096 fires a message with other slices."""
    with me.connect() as client:
        module, arena = load(me, client, kernels.BASIC), client.arena(1 << 16)
        job = Job().launch(module, "nothing")
        job.buffers = [In(arena.slice(i, 8)) for i in range(256)]
        numbers = []
        with contextlib.suppress(Refused):
            for _ in range(1024):
                numbers.append(client.call(prepare=pb.Prepare(job=job.message)).prepared.prepared)
        tag = 0
        while True:
            fires = []
            for _ in range(JOBS_MAX):
                tag += 1
                fires.append(pb.Fire(prepared=numbers[tag % len(numbers)], tag=tag, slices=[tag % 256, arena.id, tag % 999, 8]))
            client.tell(fires=pb.Fires(fires=fires, seen=client.seen))
            read_ends(client, JOBS_MAX)


@attack("detached", prepares=True)
def detached(me):
    """Stored, and never fetched; discarded when there may be no more."""
    with me.connect() as client:
        job = Job().launch(load(me, client, kernels.BASIC), "copy", [In(client.arena(1 << 16)), Out(client.arena(1 << 16))])
        stored = []
        while True:
            try:
                stored.append(client.call(detach=pb.Detach(job=job.message, key=random.getrandbits(63))).detached.id)
            except Refused:
                with contextlib.suppress(Refused):
                    for number in stored:
                        client.call(wait=pb.Wait(id=number))
                        client.call(discard=pb.Discard(id=number))
                stored = []


# ---- what runs -----------------------------------------------------------------------

@attack("all-cores", prepares=True)
def all_cores(me):
    """Kernels without end, as many as run at once."""
    with me.connect() as client:
        module = client.load(SPINNING)
        for _ in range(16):
            client.submit(Job().launch(module, "spins", [Out(client.arena(4))], grid=64))
        client.status()
        me.ready()
        client.receive()


@attack("printing", prepares=True)
def printing(me):
    with me.connect() as client:
        module = load(me, client, PRINTING)
        while True:
            client.wait(client.submit(*[Job().launch(module, "prints", block=32) for _ in range(16)])[-1])


# ---- modules -------------------------------------------------------------------------

def unlike_others(me, source):
    return f"{source}// {me.uid} {os.getpid()} {next(serials)}\n"


@attack("modules")
def modules(me):
    """Each is compiled, then loaded many times from the cache."""
    with me.connect() as client:
        while True:
            source = unlike_others(me, kernels.BASIC)
            for _ in range(20):
                module = client.load(source)
                client.tell(module_unload=pb.ModuleUnload(module=module.module))


@attack("templates")
def templates(me):
    """Compilations that would take hours, several at once."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(me.connect()) for _ in range(8)]
        for client in clients:
            source = unlike_others(me, kernels.BOMB).encode()
            client.tell(module_load=pb.ModuleLoad(image=client.image(source).id, length=len(source)))
        for client in clients:
            client.receive()


# ---- memory and disk -----------------------------------------------------------------

@attack("many-arenas", prepares=True)
def many_arenas(me):
    """Row 3: as many arenas as there may be, held in the keeper's store while the supervisor fails."""
    fill_store(me)


@attack("many-arenas-restart", prepares=True, kills=True)
def many_arenas_restart(me):
    """The same, and then it does fail: what the others have must be there afterwards."""
    fill_store(me)


def fill_store(me):
    with contextlib.ExitStack() as stack:
        for _ in range(me.n(8, 2)):
            client = stack.enter_context(me.connect())
            with contextlib.suppress(Refused):
                for _ in range(me.n(2000, 300)):
                    reply, fds = client.answer(client.tell(arena_create=pb.ArenaCreate(size=4096)))
                    for fd in fds:
                        os.close(fd)
        me.ready()
        client.receive()


@attack("memory-pressure", prepares=True)
def memory_pressure(me):
    """Arenas in host and device memory, written to."""
    n_bytes = me.share(512 << 20) // 8
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        for place in (pb.HOST, pb.DEVICE) * 4:
            arena = client.arena(n_bytes, place)
            client.run(Job().fill(arena, n_bytes, 5, direction=pb.INOUT))
        client.run(Job().launch(module, "nothing"))


@attack("memory-freed", prepares=True)
def memory_freed(me):
    """Memory that was written to, closed at once: whoever closes it last gives all of its pages back."""
    n_bytes = me.share(2 << 30)
    with me.connect() as client:
        while True:
            reply, fds = client.answer(client.tell(arena_create=pb.ArenaCreate(size=n_bytes)))
            os.posix_fallocate(fds[0], 0, n_bytes)
            os.close(fds[0])
            me.ready()
            client.tell(arena_close=pb.ArenaClose(arena=reply.arena.arena))


@attack("left-over")
def left_over(me):
    """What memory holds that somebody else had."""
    with me.connect() as client:
        host, device = client.arena(1 << 20), client.device_arena(1 << 20)
        if any(host.map[:]):
            me.breach("a new host arena is not empty")
        client.run_well(Job().copy(host, device, 1 << 20, direction=pb.OUT))
        if any(host.map[:]):
            me.breach("a new device arena is not empty")


@attack("disk-full", small_disk=True, prepares=True)
def disk_full(me):
    """Row 11: all of the disk that caches and detached jobs have."""
    with me.connect() as client:
        job = Job().launch(client.load(kernels.BASIC), "copy", [In(client.arena(1 << 20)), Out(client.arena(1 << 20))])
        with contextlib.suppress(Refused):
            for _ in range(64):
                client.call(detach=pb.Detach(job=job.message, key=random.getrandbits(63)))
        me.ready()
        while True:
            with contextlib.suppress(Refused):
                client.load(unlike_others(me, kernels.BASIC))
            with contextlib.suppress(Refused):
                client.call(detach=pb.Detach(job=job.message, key=random.getrandbits(63)))


# ---- many that are one -----------------------------------------------------------------

@attack("subordinate-uids", subordinate=True, prepares=True)
def subordinate_uids(me):
    """Row 9: good jobs, of uids that belong to one user."""
    good_jobs(me)
