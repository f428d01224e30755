# SPDX-License-Identifier: Apache-2.0
"""Attacks with what is stored, asked for and put off: detached jobs, the history, explanations, traces, requests that wait."""

import contextlib
import os
import random

from attack import attack, frame, load, read_ends, submit_frame
from harness import kernels
from harness.client import In, InOut, Job, Out, Refused
from harness.messages import pb
from wire_attacks import flood


def detach(client, job):
    """Returns its number when it has ended."""
    number = client.call(detach=pb.Detach(job=job.message, key=random.getrandbits(63))).detached.id
    client.call(wait=pb.Wait(id=number))
    return number


@attack("fetches", prepares=True)
def fetches(me):
    """Of a job that wrote 4,096 buffers, again and again."""
    with me.connect() as client:
        module, arena = client.load(kernels.BASIC), client.arena(4096 * 16)
        job = Job().launch(module, "nothing")
        job.buffers = [Out(arena.slice(16 * i, 8)) for i in range(4096)]
        number = detach(client, job)
        me.ready()
        data = frame(2, fetch=pb.Fetch(id=number)) * 60
        while True:
            client.send_bytes(data)
            ids = []
            for _ in range(60):
                reply, fds = client.receive()
                ids.append(reply.fetched.arena)
                for fd in fds:
                    os.close(fd)
            client.send_bytes(b"".join(frame(1, arena_close=pb.ArenaClose(arena=arena)) for arena in ids if arena))


def fill_history(me, client, module, n):
    arena = client.arena(4)
    ids = client.submit(*[Job(label=f"label {i % 60}").launch(module, "copy", [InOut(arena), Out(arena)]) for i in range(n)])
    for one in ids:
        client.wait(one)
    return ids


@attack("explanations", prepares=True)
def explanations(me):
    """Each from the medians of 4,096 jobs."""
    with me.connect() as client:
        ids = fill_history(me, client, load(me, client, kernels.BASIC), me.n(4200, 500))
        me.ready()
        flood(me, client, frame(2, explain_get=pb.ExplainGet(id=ids[-1])), 200)


@attack("traces", prepares=True)
def traces(me):
    """The first page of a trace, again and again."""
    with me.connect() as client:
        module = client.load(kernels.BASIC)
        trace = client.call(trace_get=pb.TraceGet()).trace
        fill_history(me, client, module, me.n(4200, 500))
        me.ready()
        flood(me, client, frame(2, trace_get=pb.TraceGet(trace=trace.trace, next=0)), 200)


@attack("histories", prepares=True)
def histories(me):
    with me.connect() as client:
        fill_history(me, client, client.load(kernels.BASIC), me.n(4200, 500))
        me.ready()
        flood(me, client, frame(2, history_get=pb.HistoryGet()) + frame(3, report_get=pb.ReportGet(grouping=2)), 100)


@attack("cancel-all", prepares=True)
def cancel_all(me):
    """With many detached jobs, most of which have ended."""
    with me.connect() as client:
        job = Job().launch(client.load(kernels.BASIC), "nothing")
        with contextlib.suppress(Refused):
            for _ in range(me.n(900, 50)):
                client.call(detach=pb.Detach(job=job.message, key=random.getrandbits(63)))
        me.ready()
        flood(me, client, frame(2, cancel=pb.Cancel(all=True)), 200)


@attack("detached-waits", prepares=True)
def detached_waits(me):
    """As many requests as there may be wait for one job; then it ends."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(me.connect())
        job = Job().launch(load(me, client, kernels.BASIC), "forever", [Out(client.arena(4))])
        number = client.call(detach=pb.Detach(job=job.message, key=random.getrandbits(63))).detached.id
        data = b"".join(frame(serial, wait=pb.Wait(id=number)) for serial in range(2, 1026))
        for other in [stack.enter_context(me.connect()) for _ in range(me.n(me.share(64), 8))]:
            other.send_bytes(data)
        client.status()
        client.cancel(number)
        client.call(wait=pb.Wait(id=number))
        client.call(discard=pb.Discard(id=number))


@attack("deferred", prepares=True)
def deferred(me):
    """Jobs on many connections, all behind a job that never comes: their messages wait, and are served together."""
    with contextlib.ExitStack() as stack:
        first, *others = [stack.enter_context(me.connect()) for _ in range(me.n(me.share(800), 40))]
        jobs = [pb.Job(tag=tag, after=[first.session << 32 | 9] if tag == 1 else []).SerializeToString() for tag in range(1, 257)]
        me.ready()
        data = submit_frame(jobs)
        for other in others:
            other.send_bytes(data)
        for other in others:
            read_ends(other, len(jobs))
