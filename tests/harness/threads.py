# SPDX-License-Identifier: Apache-2.0
"""One thread of a process held still while its others, and what they started, go on."""

import ctypes
import os

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000  # waitpid() for threads as well

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long] * 4
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, pid, data=0):
    if _libc.ptrace(request, pid, 0, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class StoppedThread:
    """The first thread of a process, as long as the block lasts or until the process is killed."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        _ptrace(PTRACE_SEIZE, self.pid)
        _ptrace(PTRACE_INTERRUPT, self.pid)
        os.waitpid(self.pid, WALL)
        return self

    def __exit__(self, *_):
        try:
            _ptrace(PTRACE_DETACH, self.pid)
        except ProcessLookupError:
            os.waitpid(self.pid, WALL)
