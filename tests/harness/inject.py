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


def _trace(request, pid, data=None):
    if libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {pid}")


def _registers(pid):
    registers = Registers()
    _trace(PTRACE_GETREGS, pid, ctypes.byref(registers))
    return registers


def _is_in_call(pid, registers):
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(registers.rip - len(SYSCALL))
        return memory.read(len(SYSCALL)) == SYSCALL


@contextlib.contextmanager
def _stopped_in_call(pid):
    """Its registers. As a rule it waits for events."""
    deadline = time.monotonic() + place.PATIENCE_S
    while True:
        _trace(PTRACE_SEIZE, pid)
        try:
            _trace(PTRACE_INTERRUPT, pid)
            os.waitpid(pid, WAIT_ALL)
            registers = _registers(pid)
            if _is_in_call(pid, registers):
                yield registers
                return
        finally:
            _trace(PTRACE_DETACH, pid)
        assert time.monotonic() < deadline, f"process {pid} makes no call"


def _step_over(pid, end):
    """What the call returned. The process may stop before it, for another reason."""
    while True:
        _trace(PTRACE_SINGLESTEP, pid)
        os.waitpid(pid, WAIT_ALL)
        registers = _registers(pid)
        if registers.rip == end:
            return ctypes.c_int64(registers.rax).value


def call(pid, number, *arguments):
    """What the kernel returns to it: a negative number is an errno."""
    with _stopped_in_call(pid) as before:
        changed = Registers.from_buffer_copy(before)
        changed.rip -= len(SYSCALL)
        changed.rax, changed.orig_rax = number, NO_CALL
        for name, value in zip(ARGUMENTS, arguments):
            setattr(changed, name, value % (1 << 64))
        _trace(PTRACE_SETREGS, pid, ctypes.byref(changed))
        try:
            return _step_over(pid, before.rip)
        finally:
            _trace(PTRACE_SETREGS, pid, ctypes.byref(before))
