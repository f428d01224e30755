# SPDX-License-Identifier: Apache-2.0
"""Status and queue of the daemon, and the functions for jobs by id."""

from __future__ import annotations

import ctypes
from ctypes import byref
from types import SimpleNamespace

from . import _native as native
from . import client as clients
from .result import JobId


def _plain(struct: ctypes.Structure) -> SimpleNamespace:
    values = {}
    for name, kind in struct._fields_:
        if not isinstance(kind, type(ctypes.POINTER(ctypes.c_int))):
            value = getattr(struct, name)
            if isinstance(value, ctypes.Structure):
                value = _plain(value)
            values[name] = native.decode(value) if kind is ctypes.c_char_p else value
    return SimpleNamespace(**values)


def _status(client) -> SimpleNamespace:
    told = ctypes.POINTER(native.Status)()
    client._check(native.get_status(client._connection(), byref(told)))
    try:
        status = told.contents
        plain = _plain(status)
        for name in ("devices", "workers", "users", "limits", "slurm_jobs"):
            setattr(plain, name, [_plain(getattr(status, name)[i]) for i in range(getattr(status, f"n_{name}"))])
            delattr(plain, f"n_{name}")
    finally:
        native.status_free(told)
    plain.uptime = plain.__dict__.pop("uptime_us") / 1e6
    return plain


def _entry(struct: native.QueueEntry) -> SimpleNamespace:
    entry = _plain(struct)
    entry.id = JobId(entry.id)
    entry.waited = entry.__dict__.pop("waited_us") / 1e6
    entry.ran = entry.__dict__.pop("ran_us") / 1e6
    return entry


def _queue(client, everybody: bool) -> list[SimpleNamespace]:
    import os
    told = ctypes.POINTER(native.Queue)()
    client._check(native.get_queue(client._connection(), -1 if everybody else os.getuid(), byref(told)))
    try:
        return [_entry(told.contents.entries[i]) for i in range(told.contents.n_entries)]
    finally:
        native.queue_free(told)


def status(client=None) -> SimpleNamespace:
    """The state of the daemon.

    The members are `daemon`, `driver`, `driver_version`, `state`, `queued`, `running`, `uptime` (seconds), and the
    lists `devices`, `workers`, `users`, `limits` (of this user; 2**64 - 1: none) and `slurm_jobs` (of this user, that
    have connections). The entries of the lists have the members of `gpuq status --json`. Memory is in bytes.
    """
    return _status(client or clients.default_client())


def queue(client=None, everybody: bool = False) -> list[SimpleNamespace]:
    """The waiting and running jobs of this user, or of all users.

    The members of each entry include `id`, `user`, `label`, `kernel`, `state`, `reason`, `priority`, `slurm_job`
    (0: none), and `waited` and `ran` in seconds.
    """
    return _queue(client or clients.default_client(), everybody)


def explain(id, client=None) -> SimpleNamespace:
    """Where the time of a job went, by id, such as "12.3", and what would help it most.

    The members are those of `gpuq explain --json`.
    """
    client = client or clients.default_client()
    told = ctypes.POINTER(native.Explanation)()
    client._check(native.explain(client._connection(), clients.job_id(id), byref(told)))
    try:
        plain = _plain(told.contents)
    finally:
        native.explanation_free(told)
    plain.id = JobId(plain.id)
    return plain


def _trace_job(struct: native.TraceJob) -> SimpleNamespace:
    job = _plain(struct)
    job.id = JobId(job.id)
    return job


def _trace_read(client, cursor: native.TraceCursor, trace: SimpleNamespace) -> bool:
    """Adds one answer of the daemon. Returns whether there is more to read at once."""
    told = ctypes.POINTER(native.Trace)()
    client._check(native.get_trace(client._connection(), byref(cursor), byref(told)))
    try:
        answer = told.contents
        trace.jobs += [_trace_job(answer.jobs[i]) for i in range(answer.n_jobs)]
        trace.lost += answer.lost
        trace.now_ns, trace.unix_ns = answer.now_ns, answer.unix_ns
        return not answer.is_last
    finally:
        native.trace_free(told)


def trace(seconds: float, client=None) -> SimpleNamespace:
    """When and where the jobs of this user waited and ran that end within the next `seconds`.

    For root and the admin group the jobs are those of all users. The members are `jobs`, `lost` (jobs that ended and
    are missing), and `now_ns` and `unix_ns`: one moment near the end, on the clock of the jobs' times and since 1970.
    The members of a job are those of `gpuq_trace_job` in gpuq.h. `gpuq trace` writes the same as a file for Perfetto.
    """
    import time
    client = client or clients.default_client()
    cursor, read = native.TraceCursor(), SimpleNamespace(jobs=[], lost=0, now_ns=0, unix_ns=0)
    end = time.monotonic() + seconds
    _trace_read(client, cursor, read)
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))
        while _trace_read(client, cursor, read):
            pass
    return read


def cancel(*ids) -> int:
    """Cancel jobs of this user by id, such as "12.3", or all unfinished ones: see `Client.cancel`."""
    return clients.default_client().cancel(*ids)


def wait_id(id, timeout: float | None = None):
    """Wait for a job of any process of this user, by id, such as "12.3". Returns or raises as `Job.wait` does."""
    return clients.default_client().wait_id(id, timeout)
