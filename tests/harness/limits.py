# SPDX-License-Identifier: Apache-2.0
"""What gpuqd.service forbids, put on a process without systemd: calls, and memory both writable and executable."""

import ctypes
import pathlib
import struct
import subprocess

from . import place

UNIT = place.STAGE / "lib" / "systemd" / "system" / "gpuqd.service"
PACKED = place.STAGE / "libexec" / "gpuq-tests" / "unit-calls"
SCRIPT = place.ROOT / "tests" / "gpu" / "unit-calls.sh"

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # the latter with EPERM, as the unit says
LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
NUMBER, THIRD_ARGUMENT = 0, 32  # offsets in struct seccomp_data
PROT_WRITE, PROT_EXEC = 2, 4
MMAP, MPROTECT, PKEY_MPROTECT, SECCOMP = 9, 10, 329, 317


def allowed_calls():
    """Their numbers on x86-64."""
    if PACKED.exists():
        return [int(line) for line in PACKED.read_text().split()]
    told = subprocess.run(["sh", str(SCRIPT), str(UNIT)], capture_output=True, text=True, check=True)
    return [int(line) for line in told.stdout.split()]


def _refuse_bits(number, bits):
    """A call whose third argument has all of these bits set."""
    return [(EQUAL, 0, 5, number), (LOAD, 0, 0, THIRD_ARGUMENT), (AND, 0, 0, bits), (EQUAL, 0, 1, bits),
            (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, NUMBER)]


def filter_program(calls):
    """As systemd's SystemCallFilter= and MemoryDenyWriteExecute=."""
    program = [(LOAD, 0, 0, NUMBER)]
    if "MemoryDenyWriteExecute=yes" in UNIT.read_text():
        program += _refuse_bits(MMAP, PROT_WRITE | PROT_EXEC)
        program += _refuse_bits(MPROTECT, PROT_EXEC) + _refuse_bits(PKEY_MPROTECT, PROT_EXEC)
    for number in calls:
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    return program + [(RETURN, 0, 0, REFUSE)]


def limiter(without=()):
    """A function for subprocess's preexec_fn, which is bound by the filter from then on; these calls are refused too."""
    code = b"".join(struct.pack("<HBBI", *line) for line in filter_program(call for call in allowed_calls() if call not in without))
    buffer = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply(buffer=buffer):
        nothing = ctypes.c_ulong(0)
        for call in ((PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), nothing, nothing, nothing),
                     (PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), head, nothing, nothing)):
            if libc.prctl(*call):
                raise OSError(ctypes.get_errno(), "prctl")

    return apply
