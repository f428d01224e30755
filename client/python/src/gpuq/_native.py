# SPDX-License-Identifier: Apache-2.0
"""libgpuq.so.0 through ctypes: finds the library, loads it at first use, and declares the functions that the package
calls.

Structs that every job passes (arguments, configuration) are packed with `struct` and passed as bytes, which takes a
tenth of the time of filling a ctypes.Structure. Calls that may wait release the interpreter lock. The short calls that
build a job keep it; otherwise another thread could take it for a switch interval in the middle of a job.

An object of the library belongs to one Handle, which the call that creates the object fills. Code that needs the object
refers to the Handle, and the last reference frees the object. Ownership never moves, so a Ctrl-C between two bytecodes
can neither lose an object nor free it twice.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import threading
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

from . import errors

SONAME = "libgpuq.so.0"

BYTES, POINTER_KIND, I32, I64, F32, F64, I8, I16, WORD64, LOCAL, NULL, TEXTURE = range(12)
KIND_NAMES = ("bytes", "a buffer", "a 32-bit integer", "a 64-bit integer", "a float", "a double", "an 8-bit integer",
              "a 16-bit integer", "a buffer or a 64-bit integer", "local memory", "a null pointer", "a texture")

IN, OUT, INOUT, OUT_WHOLE = DIRECTIONS = range(4)
BUILDING, PENDING, DONE, FAILED, CANCELLED = -1, 0, 2, 3, 4
STATE_NAMES = {BUILDING: "building", PENDING: "pending", DONE: "done", FAILED: "failed", CANCELLED: "cancelled"}
FORMATS = {None: 0, "c++": 1, "ptx": 2, "cubin": 3, "fatbin": 4, "opencl": 6}


class Handle(ctypes.c_void_p):
    """Owns an object of the library, or nothing before a call has filled it. `value`: the pointer."""

    __slots__ = ()


class Buffer(Handle):
    __slots__ = ()


class Module(Handle):
    __slots__ = ()


class Job(Handle):
    __slots__ = ()


class Prepared(Handle):
    __slots__ = ()


_FREED_BY = {Buffer: "buffer_free", Module: "module_free", Job: "job_free", Prepared: "prepared_free"}


class BufferRef(ctypes.Structure):
    _fields_ = [("arena", c_uint64), ("offset", c_uint64), ("length", c_uint64)]


class Parameter(ctypes.Structure):
    _fields_ = [("kind", c_int), ("size", c_size_t)]


class Attributes(ctypes.Structure):
    _fields_ = [(name, c_uint) for name in ("registers", "shared_bytes", "const_bytes", "local_bytes", "ptx_version",
                                            "binary_version")]


class KernelInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p), ("parameters", POINTER(Parameter)), ("n_parameters", c_size_t),
                ("kinds_known", c_bool), ("max_block", c_uint), ("symbol", c_char_p), ("attributes", Attributes)]


class Code(ctypes.Structure):
    _fields_ = [("format", c_int), ("image", c_char_p), ("n_image", c_size_t), ("name", c_char_p), ("options", c_void_p),
                ("names", c_void_p), ("headers", c_void_p), ("n_headers", c_size_t)]


class Header(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p)]


class Result(ctypes.Structure):
    _fields_ = [("state", c_int), ("error", c_int), ("text", c_char_p), ("output", c_char_p), ("waited_us", c_uint64),
                ("ran_us", c_uint64), ("gpu_ns", c_uint64), ("device", c_int)]


class DeviceStatus(ctypes.Structure):
    _fields_ = [("index", c_uint), ("name", c_char_p), ("uuid", c_char_p), ("pci", c_char_p), ("state", c_char_p),
                ("memory_total", c_uint64), ("memory_arenas", c_uint64), ("queued", c_uint), ("running", c_uint),
                ("quanta", c_uint64), ("overruns", c_uint64), ("drained", c_char_p), ("xids", c_int64), ("memory_used", c_uint64)]


class WorkerCounters(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("batches", "coalesced", "in_place", "staged_by_kernel", "staged_by_copy",
                                              "graph_hits", "graph_misses", "graph_evictions", "direct")]


class WorkerStatus(ctypes.Structure):
    _fields_ = [("pid", c_int), ("device", c_uint), ("uid", c_uint32), ("state", c_char_p), ("memory", c_uint64),
                ("running", c_uint), ("contexts", c_uint), ("jobs", c_uint64),
                ("counters", WorkerCounters), ("express", c_uint)]


class Spread(ctypes.Structure):
    _fields_ = [("median_us", c_uint64), ("p95_us", c_uint64), ("p99_us", c_uint64)]


class UserStatus(ctypes.Structure):
    _fields_ = [("uid", c_uint32), ("user", c_char_p), ("weight", c_double), ("share", c_double),
                ("gpu_seconds", c_double), ("sessions", c_uint), ("queued", c_uint), ("running", c_uint),
                ("modules", c_uint), ("arena_bytes", c_uint64), ("device_bytes", c_uint64),
                ("usage_seconds", c_double), ("window_seconds", c_double), ("done", c_uint64), ("failed", c_uint64),
                ("cancelled", c_uint64), ("has_waited", c_bool), ("waited", Spread), ("sms", c_char_p)]


class UserLimit(ctypes.Structure):
    _fields_ = [("uid", c_uint32), ("key", c_char_p), ("limit", c_uint64), ("used", c_uint64), ("left", c_uint64)]


class SlurmJobStatus(ctypes.Structure):
    _fields_ = [("number", c_uint32), ("uid", c_uint32), ("account", c_char_p), ("weight", c_double), ("clients", c_uint)]


class Status(ctypes.Structure):
    _fields_ = [("daemon", c_char_p), ("driver", c_char_p), ("driver_version", c_char_p), ("state", c_char_p),
                ("devices", POINTER(DeviceStatus)), ("workers", POINTER(WorkerStatus)), ("users", POINTER(UserStatus)),
                ("n_devices", c_size_t), ("n_workers", c_size_t), ("n_users", c_size_t), ("queued", c_uint),
                ("running", c_uint), ("uptime_us", c_uint64), ("lacks", c_char_p), ("history_problem", c_char_p),
                ("history_lost", c_uint64), ("uid", c_uint32), ("limits", POINTER(UserLimit)), ("n_limits", c_size_t),
                ("slurm_jobs", POINTER(SlurmJobStatus)), ("n_slurm_jobs", c_size_t), ("isolation", c_char_p)]


class QueueEntry(ctypes.Structure):
    _fields_ = [("id", c_uint64), ("uid", c_uint32), ("user", c_char_p), ("label", c_char_p), ("kernel", c_char_p),
                ("reason", c_char_p), ("state", c_char_p), ("waited_us", c_uint64), ("ran_us", c_uint64),
                ("priority", c_int), ("device", c_int), ("retries", c_uint), ("slurm_job", c_uint32)]


class Queue(ctypes.Structure):
    _fields_ = [("entries", POINTER(QueueEntry)), ("n_entries", c_size_t)]


class JobTimes(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("dependencies_us", "module_us", "queue_us", "launch_us", "ran_us",
                                              "moved_bytes", "gpu_ns")]


class Explanation(ctypes.Structure):
    _fields_ = [("id", c_uint64), ("uid", c_uint32), ("state", c_char_p), ("label", c_char_p), ("kernel", c_char_p),
                ("reason", c_char_p), ("device", c_int), ("times", JobTimes), ("median", JobTimes),
                ("n_median", c_size_t), ("n_beside", c_uint), ("advice", c_char_p)]


class TraceJob(ctypes.Structure):
    _fields_ = [("id", c_uint64), ("uid", c_uint32), ("state", c_char_p), ("code", c_char_p), ("label", c_char_p),
                ("kernels", c_char_p), ("program", c_char_p), ("client_pid", c_int), ("device", c_int),
                ("worker_pid", c_int), ("stream", c_int), ("submitted_ns", c_uint64), ("started_ns", c_uint64),
                ("ended_ns", c_uint64), ("behind_ns", c_uint64), ("parked_ns", c_uint64), ("ran_us", c_uint64),
                ("gpu_ns", c_uint64), ("moved_bytes", c_uint64), ("n_beside", c_uint), ("retries", c_uint)]


class TraceCursor(ctypes.Structure):
    _fields_ = [("trace", c_uint64), ("next", c_uint64)]


class Trace(ctypes.Structure):
    _fields_ = [("jobs", POINTER(TraceJob)), ("n_jobs", c_size_t), ("lost", c_uint64), ("now_ns", c_uint64),
                ("unix_ns", c_uint64), ("is_last", c_bool), ("all_users", c_bool)]


class Cancelled(ctypes.Structure):
    _fields_ = [("n_ended", c_size_t), ("n_unknown", c_size_t), ("n_denied", c_size_t)]


class Matrix(ctypes.Structure):
    _fields_ = [("buffer", c_void_p), ("offset", c_size_t), ("ld", c_uint64), ("stride", c_uint64), ("transposed", c_bool)]


class Gemm(ctypes.Structure):
    _fields_ = [("type", c_int), ("compute", c_int), ("m", c_uint64), ("n", c_uint64), ("k", c_uint64), ("batch", c_uint64),
                ("alpha", c_double), ("beta", c_double), ("a", Matrix), ("b", Matrix), ("c", Matrix)]


class Fft(ctypes.Structure):
    _fields_ = [("type", c_int), ("form", c_int), ("inverse", c_bool), ("rank", c_uint), ("lengths", c_uint64 * 3), ("batch", c_uint64),
                ("from_", c_void_p), ("to", c_void_p), ("from_offset", c_size_t), ("to_offset", c_size_t)]


class Scan(ctypes.Structure):
    _fields_ = [("type", c_int), ("exclusive", c_bool), ("n", c_uint64), ("from_", c_void_p), ("to", c_void_p)]


class Sort(ctypes.Structure):
    _fields_ = [("type", c_int), ("descending", c_bool), ("n", c_uint64), ("keys", c_void_p), ("to", c_void_p), ("value_bytes", c_uint),
                ("values", c_void_p), ("values_to", c_void_p)]


class Random(ctypes.Structure):
    _fields_ = [("distribution", c_int), ("type", c_int), ("n", c_uint64), ("seed", c_uint64), ("stream", c_uint64), ("offset", c_uint64),
                ("to", c_void_p)]


JobFunc = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)

# Calls that may wait for the daemon or run a callback: without the interpreter lock.
_WAITING = {
    "connect": (c_int, c_char_p, POINTER(c_void_p)),
    "client_free": (None, c_void_p),
    "dispatch": (c_int, c_void_p, c_int),
    "buffer_new": (c_int, c_void_p, c_size_t, POINTER(c_void_p)),
    "buffer_new_uninitialized": (c_int, c_void_p, c_size_t, POINTER(c_void_p)),
    "buffer_new_device": (c_int, c_void_p, c_size_t, c_int, POINTER(c_void_p)),
    "buffer_open": (c_int, c_void_p, POINTER(BufferRef), POINTER(c_void_p)),
    "module_occupancy": (c_int, c_void_p, c_char_p, c_uint, c_uint, c_int, POINTER(c_uint)),
    "module_load_code": (c_int, c_void_p, POINTER(Code), POINTER(c_void_p)),
    "module_builtin": (c_int, c_void_p, POINTER(c_void_p)),
    "job_gemm": (c_int, c_void_p, POINTER(Gemm)),
    "job_fft": (c_int, c_void_p, POINTER(Fft)),
    "job_random": (c_int, c_void_p, POINTER(Random)),
    "job_scan": (c_int, c_void_p, POINTER(Scan)),
    "job_sort": (c_int, c_void_p, POINTER(Sort)),
    "submit": (c_int, c_void_p),
    "submit_many": (c_int, c_void_p, c_size_t),
    "prepare": (c_int, c_void_p, POINTER(c_void_p)),
    "fire": (c_int, c_void_p, c_char_p, POINTER(c_void_p)),
    "wait": (c_int, c_void_p, c_int),
    "wait_id": (c_int, c_void_p, c_uint64, c_int, POINTER(Result)),
    "poll": (c_int, c_void_p),
    "cancel": (c_int, c_void_p),
    "get_status": (c_int, c_void_p, POINTER(POINTER(Status))),
    "get_queue": (c_int, c_void_p, c_int64, POINTER(POINTER(Queue))),
    "explain": (c_int, c_void_p, c_uint64, POINTER(POINTER(Explanation))),
    "get_trace": (c_int, c_void_p, POINTER(TraceCursor), POINTER(POINTER(Trace))),
    "cancel_ids": (c_int, c_void_p, c_void_p, c_size_t, POINTER(Cancelled)),
}

# Calls that only take the client's lock, which nobody holds while waiting.
_SHORT = {
    "error_text": (c_char_p,),
    "version": (c_char_p,),
    "client_session": (c_uint32, c_void_p),
    "client_devices": (c_uint, c_void_p),
    "buffer_slice": (c_int, c_void_p, c_size_t, c_size_t, POINTER(c_void_p)),
    "buffer_get_ref": (c_int, c_void_p, POINTER(BufferRef)),
    "buffer_data": (c_void_p, c_void_p),
    "buffer_address": (c_int, c_void_p, POINTER(c_uint64)),
    "buffer_device": (c_int, c_void_p),
    "buffer_free": (None, c_void_p),
    "module_n_kernels": (c_size_t, c_void_p),
    "module_find": (c_int, c_void_p, c_char_p, POINTER(c_size_t)),
    "module_kernel": (c_int, c_void_p, c_size_t, POINTER(KernelInfo)),
    "module_log": (c_char_p, c_void_p),
    "module_has_variables": (c_bool, c_void_p),
    "module_variable_size": (c_int, c_void_p, c_char_p, POINTER(c_size_t)),
    "module_free": (None, c_void_p),
    "job_new": (c_int, c_void_p, POINTER(c_void_p)),
    "job_launch": (c_int, c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "job_use": (c_int, c_void_p, c_void_p, c_int),
    "job_copy": (c_int, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_size_t),
    "job_fill": (c_int, c_void_p, c_void_p, c_size_t, c_size_t, c_uint32, c_uint),
    "job_read_variable": (c_int, c_void_p, c_void_p, c_char_p, c_size_t, c_void_p, c_size_t, c_size_t),
    "job_write_variable": (c_int, c_void_p, c_void_p, c_char_p, c_size_t, c_void_p, c_size_t, c_size_t),
    "job_after": (c_int, c_void_p, c_uint64),
    "job_set_priority": (c_int, c_void_p, c_int),
    "job_set_timeout": (c_int, c_void_p, c_uint),
    "job_set_label": (c_int, c_void_p, c_char_p),
    "job_set_device": (c_int, c_void_p, c_int),
    "job_set_repeatable": (c_int, c_void_p, c_bool),
    "job_set_timed": (c_int, c_void_p, c_bool),
    "job_set_checked": (c_int, c_void_p, c_bool),
    "job_set_callback": (c_int, c_void_p, JobFunc, c_void_p),
    "job_get_result": (c_int, c_void_p, POINTER(Result)),
    "job_id": (c_uint64, c_void_p),
    "job_free": (None, c_void_p),
    "prepared_free": (None, c_void_p),
    "id_parse": (c_int, c_char_p, POINTER(c_uint64)),
    "status_free": (None, c_void_p),
    "explanation_free": (None, c_void_p),
    "trace_free": (None, c_void_p),
    "queue_free": (None, c_void_p),
}

_lock = threading.Lock()


def candidates() -> list[str]:
    """The places where the library is searched, in order."""
    named = os.environ.get("GPUQ_LIBRARY")
    if named:
        return [named]

    package = pathlib.Path(__file__).resolve().parent
    folders = [package]  # a wheel carries it
    if len(package.parents) > 3:
        lib = package.parents[2]  # PREFIX/lib of PREFIX/lib/python3/dist-packages/gpuq
        folders += [lib, *sorted(lib.glob("*-linux-gnu"))]
        checkout = package.parents[3]
        if (checkout / "client" / "include" / "gpuq.h").exists():
            folders.append(checkout / "build" / "stage" / "lib")
    return [str(folder / SONAME) for folder in folders if (folder / SONAME).exists()] + [SONAME]


def _open() -> str:
    problems = []
    for path in candidates():
        try:
            ctypes.CDLL(path)
            return path
        except OSError as error:
            problems.append(str(error))
    raise errors.Error(
        f"cannot load {SONAME}: {'; '.join(problems)}; install gpuq, build it (sh tests/setup.sh), or set GPUQ_LIBRARY",
        errors.SYSTEM)


def _declare(library: ctypes.CDLL, table: dict) -> None:
    for name, (restype, *argtypes) in table.items():
        function = getattr(library, f"gpuq_{name}")
        function.restype = restype
        function.argtypes = argtypes
        globals()[name] = function


def load() -> None:
    """Load the library once. Raises Error with the places that were searched."""
    with _lock:
        if "path" in globals():
            return
        path = _open()
        _declare(ctypes.CDLL(path), _WAITING)
        _declare(ctypes.PyDLL(path), _SHORT)
        for kind, free in _FREED_BY.items():
            kind.__del__ = _finalizer(globals()[free])
        globals()["path"] = path


def _finalizer(free) -> property:
    """A __del__ that calls the library without a bytecode of Python, in which a Ctrl-C would be lost."""
    return property(functools.partial(functools.partial, free))


def __getattr__(name: str):
    if name not in _WAITING and name not in _SHORT and name != "path":
        raise AttributeError(f"module 'gpuq._native' has no attribute {name!r}")
    load()
    return globals()[name]


def text() -> str:
    """The message of this thread's last failed call."""
    return globals()["error_text"]().decode(errors="replace")


def check(r: int) -> int:
    """Raise the exception for an error code of the library; return other values."""
    if r < 0:
        raise errors.from_code(r, text())
    return r


def decode(value: bytes | None) -> str:
    return value.decode(errors="replace") if value else ""
