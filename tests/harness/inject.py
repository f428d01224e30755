# SPDX-License-Identifier: Apache-2.0
"""System calls made by another process, as if its own code made them: what its filter (seccomp) says is seen from inside.
Takes the right to trace it, and x86-64."""

import contextlib
import ctypes
import os
import platform
import time

from . import place

PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 9, 12, 13, 17, 0x4206, 0x4207
WAIT_ALL = 0x40000000
NO_CALL = (1 << 64) - 1
REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
             "fs_base gs_base ds es fs gs").split()
ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
SYSCALL = b"\x0f\x05"

libc = ctypes.CDLL(None, use_errno=True)


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in REGISTERS]


def why_not():
    """Why no call can be made here, or None."""
    return None if platform.machine() == "x86_64" else "registers are those of x86-64"


def trace(request, pid, data=None, *, address=None):
    """What ptrace() returns. OSError if it fails."""
    returned = libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address), data)
    if returned < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {pid}")
    return returned


def _registers(pid):
    registers = Registers()
    trace(PTRACE_GETREGS, pid, ctypes.byref(registers))
    return registers


def _is_in_call(pid, registers):
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(registers.rip - len(SYSCALL))
        return memory.read(len(SYSCALL)) == SYSCALL


@contextlib.contextmanager
def traced(pid):
    """Its main thread stands still meanwhile."""
    trace(PTRACE_SEIZE, pid)
    try:
        trace(PTRACE_INTERRUPT, pid)
        os.waitpid(pid, WAIT_ALL)
        yield
    finally:
        trace(PTRACE_DETACH, pid)


@contextlib.contextmanager
def _stopped_in_call(pid):
    """Its registers. As a rule it waits for events."""
    deadline = time.monotonic() + place.PATIENCE_S
    while True:
        with traced(pid):
            registers = _registers(pid)
            if _is_in_call(pid, registers):
                yield registers
                return
        assert time.monotonic() < deadline, f"process {pid} makes no call"


def _step_over(pid, end):
    """What the call returned. The process may stop before it, for another reason."""
    while True:
        trace(PTRACE_SINGLESTEP, pid)
        os.waitpid(pid, WAIT_ALL)
        registers = _registers(pid)
        if registers.rip == end:
            return ctypes.c_int64(registers.rax).value


@contextlib.contextmanager
def _borrowed_stack(pid, below, size):
    """Memory of it that a call may be given: below its stack, whose bytes come back."""
    start = (below - 4096 - size) & ~15
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        before = memory.read(size)
        try:
            yield memory, start
        finally:
            memory.seek(start)
            memory.write(before)


def _place(memory, start, arguments):
    """The numbers to give: bytes are written to its memory, and given by their address."""
    numbers = []
    for argument in arguments:
        if isinstance(argument, bytes):
            memory.seek(start)
            memory.write(argument)
            argument, start = start, start + len(argument)
        numbers.append(argument % (1 << 64))
    return numbers


def call(pid, number, *arguments):
    """What the kernel returns to it: a negative number is an errno. Arguments are numbers, and bytes that it reads."""
    size = sum(len(argument) for argument in arguments if isinstance(argument, bytes))
    with _stopped_in_call(pid) as before, _borrowed_stack(pid, before.rsp, size) as (memory, start):
        changed = Registers.from_buffer_copy(before)
        changed.rip -= len(SYSCALL)
        changed.rax, changed.orig_rax = number, NO_CALL
        for name, value in zip(ARGUMENTS, _place(memory, start, arguments)):
            setattr(changed, name, value)
        trace(PTRACE_SETREGS, pid, ctypes.byref(changed))
        try:
            return _step_over(pid, before.rip)
        finally:
            trace(PTRACE_SETREGS, pid, ctypes.byref(before))
