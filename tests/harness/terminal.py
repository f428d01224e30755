# SPDX-License-Identifier: Apache-2.0
"""gpuq on a terminal."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import termios

from . import place


def on_terminal(columns, *arguments, status=0, **environment):
    """All that `gpuq ARGUMENT...` prints on a terminal of this width. AssertionError unless it ends with this status."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([place.program("gpuq"), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=terminal,
                               env={**os.environ, "NO_COLOR": "1", "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})
    os.close(terminal)
    told = b""
    with contextlib.suppress(OSError):  # EIO: it has ended
        while part := os.read(main, 65536):
            told += part
    os.close(main)
    assert process.wait() == status, told
    return told.decode()
