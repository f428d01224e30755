# SPDX-License-Identifier: Apache-2.0
"""Memory: a buffer in host or device memory that this process holds.

Arrays are views of a Memory. numpy keeps it as the base of a host array, so it is freed with the last view. A Memory
belongs to one connection. Another connection (of a forked child, or of another client) opens it by reference when a job
needs it. An arena lives only as long as some process has it open, so a pickled Memory is kept until the other process
has received it. A semaphore in shared memory counts the received pickles.
"""

from __future__ import annotations

import ctypes
import os
import time
import weakref
from ctypes import byref, c_void_p

from . import _native as native
from . import errors
from .config import whole_number
from .waiting import interruptibly

LINGER_S = 5.0  # how long an ending process waits for its pickled arrays to be received
_SEM_SIZE = 64  # sizeof(sem_t) and more, a cache line
_SLOTS = 64

_all: "weakref.WeakSet[Memory]" = weakref.WeakSet()


class Memory:
    """Host memory. `address`: in this process; `handle`: the value of `owner`; `nbytes`: at least 1."""

    __slots__ = ("client", "epoch", "owner", "handle", "address", "nbytes", "device", "ref", "packed", "_elsewhere",
                 "__array_interface__", "__weakref__")

    def __init__(self, client, owner: native.Buffer, nbytes: int):
        self.client = client
        self.epoch = client._epoch
        self.owner = owner
        self.handle = owner.value
        self.nbytes = nbytes
        self.ref = None
        self.packed = [None] * len(native.DIRECTIONS)  # as a kernel's argument, by direction
        self._elsewhere = None  # owners in other connections, by epoch
        self._locate()
        _all.add(self)

    def _locate(self) -> None:
        self.device = -1
        self.address = native.buffer_data(self.handle)
        self.__array_interface__ = {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "version": 3}

    def name(self) -> tuple[int, int, int]:
        """The reference (arena, offset, length), with which any process of this user can open the buffer."""
        if self.ref is None:
            ref = native.BufferRef()
            self.client._check(native.buffer_get_ref(self.handle, byref(ref)))
            self.ref = (ref.arena, ref.offset, ref.length)
        return self.ref

    def handle_for(self, client) -> int:
        """The buffer's handle in a client's current connection."""
        if client._handle is None:
            client._revive()
        if client._epoch == self.epoch:
            return self.handle

        if self._elsewhere is None:
            self._elsewhere = {}
        owner = self._elsewhere.get(client._epoch)
        if owner is None:
            owner = self._elsewhere[client._epoch] = self._open_for(client)
        return owner.value

    def _open_for(self, client) -> native.Buffer:
        if self.client._closed:
            raise errors.ClosedError("this array's client is closed, and its memory is released: create the array again, "
                                     "with gpuq.array(numpy.array(a)) of what it still holds", errors.CLOSED)
        if self.ref is None and self.epoch != self.client._epoch:
            raise errors.ClosedError("this array's connection to gpuqd has ended, and its memory is released: create the "
                                     "array again, with gpuq.array(numpy.array(a)) of what it still holds", errors.CLOSED)
        try:
            return open_buffer(client, self.name())
        except errors.NotFoundError as error:
            raise errors.ClosedError(f"this array's memory was released with the process or connection that created it: {error}; "
                                     "create the array again", errors.CLOSED) from None


class DeviceMemory(Memory):
    """Device memory. `address`: None."""

    __slots__ = ()

    def _locate(self) -> None:
        self.device = native.buffer_device(self.handle)
        self.address = None

    def __del__(self):
        """Keep memory that no other process has a reference to for new arrays."""
        try:
            client = self.client
            if self.ref is None and client._epoch == self.epoch and client._handle is not None:
                client._spares.put(self.nbytes, self.device, self.owner)
        except (AttributeError, TypeError):
            pass  # the interpreter is ending, or __init__ failed


def open_buffer(client, name: tuple[int, int, int]) -> native.Buffer:
    owner = native.Buffer()
    client._check(native.buffer_open(client._connection(), byref(native.BufferRef(*name)), byref(owner)))
    return owner


def new_host(client, nbytes: int, zeroed: bool = True) -> Memory:
    """Allocate host memory shared with the daemon.

    If not `zeroed`, it may contain data of a deleted array of this client.
    """
    nbytes = nbytes or 1
    owner = native.Buffer()
    r = (native.buffer_new if zeroed else native.buffer_new_uninitialized)(client._handle or client._connection(), nbytes, byref(owner))
    if r < 0:
        client._check(r)
    return Memory(client, owner, nbytes)


def new_device(client, nbytes: int, device: int | None, zeroed: bool = True) -> Memory:
    """Allocate device memory. `device`: index; None: the daemon chooses. `zeroed`: as for new_host."""
    nbytes = nbytes or 1
    client._connection()
    owner = client._spares.take(nbytes, device)
    if owner is None:
        return DeviceMemory(client, _device_buffer(client, nbytes, device), nbytes)
    memory = DeviceMemory(client, owner, nbytes)
    if zeroed:
        _clear(client, owner, nbytes)
    return memory


def _device_buffer(client, nbytes: int, device: int | None) -> native.Buffer:
    try:
        return _new_device_buffer(client, nbytes, device)
    except (errors.QuotaError, errors.OutOfMemoryError):
        if not client._spares.release():  # cached memory counts against the quota
            raise
    return _new_device_buffer(client, nbytes, device)


def _new_device_buffer(client, nbytes: int, device: int | None) -> native.Buffer:
    owner = native.Buffer()
    index = -1 if device is None else whole_number(device, "device", -1)
    arguments = client._connection(), nbytes, index, byref(owner)
    if os.environ.get("GPUQ_WAIT_FOR_DEVICE") != "1":
        client._check(native.buffer_new_device(*arguments))
        return owner
    # The daemon answers when there is a device.
    r, text = interruptibly(native.buffer_new_device, *arguments)
    if r < 0:
        raise client._error(r, text)
    return owner


def _clear(client, owner: native.Buffer, nbytes: int) -> None:
    """Fill with zeros by a job. Nothing waits for it, because jobs that use the memory run after it."""
    job = native.Job()
    client._check(native.job_new(client._connection(), byref(job)))
    client._check(native.job_fill(job, owner, 0, nbytes, 0, 1))
    client._check(native.submit(job))


def of(array) -> "Memory | None":
    """The Memory that a numpy array is a view of, or None."""
    base = array.base
    while base is not None:
        if type(base) is Memory:
            return base
        base = getattr(base, "base", None)
    return None


def name_all() -> None:
    """Before fork(): get references to all memory, because the child can open it only by reference."""
    for memory in list(_all):
        if memory.ref is None and memory.client._handle is not None and memory.epoch == memory.client._epoch:
            try:
                memory.name()
            except errors.Error:
                pass


# ---- pickles in transit -----------------------------------------------------------------


class _Semaphores:
    """POSIX semaphores: the only counter that two processes can change concurrently from Python."""

    def __init__(self):
        libc = ctypes.CDLL(None)
        self.init, self.post, self.value = libc.sem_init, libc.sem_post, libc.sem_getvalue
        self.init.argtypes = (c_void_p, ctypes.c_int, ctypes.c_uint)
        self.post.argtypes = (c_void_p,)
        self.value.argtypes = (c_void_p, ctypes.POINTER(ctypes.c_int))

    def read(self, address: int) -> int:
        value = ctypes.c_int()
        self.value(address, byref(value))
        return value.value


_semaphores = None


def semaphores() -> _Semaphores:
    global _semaphores
    if _semaphores is None:
        _semaphores = _Semaphores()
    return _semaphores


class Outbox:
    """The pickled memory of a client that was not received yet. Uses one page of semaphores at a time."""

    def __init__(self, client):
        self.client = weakref.proxy(client)
        self.epoch = client._epoch
        self.page = None
        self.n_used = 0
        self.sent = []  # (page, slot, memory), held until the slot's semaphore is posted

    def send(self, memory: Memory) -> tuple[tuple[int, int, int], int]:
        """Keep the memory until receive() was called with the returned ticket: (reference of the page, slot)."""
        self.sweep()
        if self.page is None or self.n_used == _SLOTS:
            self.page = new_host(memory.client, _SLOTS * _SEM_SIZE)
            self.n_used = 0
        slot = self.n_used
        self.n_used += 1
        semaphores().init(self.page.address + slot * _SEM_SIZE, 1, 0)
        self.sent.append((self.page, slot, memory))
        return self.page.name(), slot

    def sweep(self) -> None:
        read = semaphores().read
        self.sent = [entry for entry in self.sent if read(entry[0].address + entry[1] * _SEM_SIZE) == 0]

    def linger(self, patience_s: float = LINGER_S) -> None:
        """Wait for a limited time until everything is received, because the arenas end with this process."""
        end = time.monotonic() + patience_s
        pause = 0.0005
        self.sweep()
        while self.sent and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
            self.sweep()


def send(memory: Memory) -> tuple[tuple[int, int, int], int] | None:
    """For __reduce__: keep the memory until it is received. Returns None if another process keeps it."""
    client = memory.client
    if client._handle is None or memory.epoch != client._epoch:
        memory.name()
        return None
    return client._outbox().send(memory)


def receive(client, name: tuple[int, int, int], ticket, nbytes: int) -> Memory:
    """Receive pickled memory. Raises ReceiveError if the sender has ended, or if there is no daemon."""
    try:
        owner = open_buffer(client, name)
    except errors.NotFoundError as error:
        raise errors.ReceiveError(f"the process that sent this array has ended or closed its client: {error}; keep it "
                                  "alive until the array is received") from None
    except errors.Error as error:
        raise errors.ReceiveError(f"cannot open an array that was sent: {error}", error.code) from error
    memory = (DeviceMemory if native.buffer_device(owner) >= 0 else Memory)(client, owner, nbytes)
    memory.ref = name
    if ticket is not None:
        _acknowledge(client, *ticket)
    return memory


def _acknowledge(client, page: tuple[int, int, int], slot: int) -> None:
    try:
        owner = open_buffer(client, page)
    except errors.Error:
        return  # the sender has ended; this process has the array open already
    semaphores().post(native.buffer_data(owner) + slot * _SEM_SIZE)
