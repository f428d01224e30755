# SPDX-License-Identifier: Apache-2.0
"""A unit that would give a process what it has: its directives are seen in the running process, not written down. For
systemd-analyze, which rates units and not processes. Takes the right to trace it, a kernel that shows filters
(CONFIG_CHECKPOINT_RESTORE), and x86-64."""

import contextlib
import ctypes
import errno
import functools
import itertools
import json
import os
import pathlib
import re
import socket
import stat
import struct
import subprocess

from . import inject, processes

PTRACE_SECCOMP_GET_FILTER = 0x420C
X86_64 = 0xC000003E
ALLOW = 0x7FFF0000
OPENAT, UNSHARE, SOCKET, IOCTL = 257, 272, 41, 16
NAMESPACES = {"cgroup": 0x02000000, "ipc": 0x08000000, "net": 0x40000000, "mnt": 0x00020000, "pid": 0x20000000,
              "user": 0x10000000, "uts": 0x04000000}
NO_DEVICES = {"null", "zero", "full", "random", "urandom"}  # and terminals: what is in the /dev of PrivateDevices=
UVM_INITIALIZE, RM_ALLOC = 0x30000001, 0xC030462B  # requests to NVIDIA's devices


# ---- filters of system calls -----------------------------------------------------------

def why_not():
    """Why filters cannot be read here, or None."""
    if inject.why_not():
        return inject.why_not()
    other = subprocess.Popen(["sleep", "inf"])
    try:
        filters(other.pid)
    except OSError as problem:
        return f"the kernel does not show the filters of processes: {problem}"
    finally:
        other.kill()
        other.wait()
    return None


def filters(pid):
    """The programs of its main thread, the newest first: lists of (code, jt, jf, k)."""
    found = []
    with inject.traced(pid):
        for index in itertools.count():
            try:
                n = inject.trace(PTRACE_SECCOMP_GET_FILTER, pid, address=index)
            except OSError as problem:
                if problem.errno == errno.ENOENT or (problem.errno == errno.EINVAL and not index):
                    return found
                raise
            text = ctypes.create_string_buffer(8 * n)
            inject.trace(PTRACE_SECCOMP_GET_FILTER, pid, text, address=index)
            found.append(list(struct.iter_unpack("HBBI", text.raw)))


def _loads(number, arguments):
    """What a filter can read, by its offset; what is not in it can be anything."""
    words = {0: number, 4: X86_64}
    for index, value in enumerate(arguments):
        words[16 + 8 * index], words[20 + 8 * index] = value % (1 << 32), value >> 32 & 0xFFFFFFFF
    return words


JUMPS = {0x10: lambda a, k: a == k, 0x20: lambda a, k: a > k, 0x30: lambda a, k: a >= k, 0x40: lambda a, k: bool(a & k)}


def can_allow(program, number, arguments=()):
    """Whether it lets the call through, with some value of the arguments that are not given."""
    words, seen, todo = _loads(number, arguments), set(), [(0, None)]
    while todo:
        place, a = todo.pop()
        if (place, a) in seen:
            continue
        seen.add((place, a))
        code, jt, jf, k = program[place]
        if code == 0x20:  # load
            todo.append((place + 1, words.get(k)))
        elif code == 0x54:  # and
            todo.append((place + 1, None if a is None else a & k))
        elif code == 0x05:  # go to
            todo.append((place + 1 + k, a))
        elif code & 0x0F == 0x05:
            where = (jt, jf) if a is None else (jt,) if JUMPS[code & 0xF0](a, k) else (jf,)
            todo += [(place + 1 + skip, a) for skip in where]
        elif code == 0x06:  # return
            if k == ALLOW:
                return True
        else:
            raise AssertionError(f"instruction {code:#x} of a filter")
    return False


def lets_through(programs, number, *arguments):
    return all(can_allow(program, number, arguments) for program in programs)


@functools.cache
def calls():
    """The system calls of this machine's headers: numbers by name."""
    text = subprocess.run(["cc", "-E", "-dM", "-x", "c", "-"], input="#include <asm/unistd.h>\n", capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)\n", text)}


# ---- capabilities, user, mask ------------------------------------------------------------

@functools.cache
def _capability_names():
    text = subprocess.run(["systemd-analyze", "capability"], capture_output=True, text=True, check=True).stdout
    return {int(number): name.upper() for name, number in re.findall(r"^(cap_\w+) +(\d+)$", text, re.M)}


def _statuses(pid):
    """Of its threads: lists of words, by their name."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it may end meanwhile
            found.append({name: rest.split() for name, _, rest in (line.partition(":") for line in (task / "status").read_text().splitlines())})
    return found


def _set(statuses, name):
    """The capabilities that any thread has."""
    mask = 0
    for status in statuses:
        mask |= int(status[name][0], 16)
    return " ".join(text for bit, text in sorted(_capability_names().items()) if mask >> bit & 1)


def rights(pid):
    """Directives about its user, and what this can become."""
    statuses = _statuses(pid)
    ((uid,), (gid,)) = ({number for status in statuses for number in status[name]} for name in ("Uid", "Gid"))
    assert {status["CapEff"][0] for status in statuses} == {status["CapPrm"][0] for status in statuses} == {"0" * 16}
    return [f"User={uid}", f"Group={gid}",
            "CapabilityBoundingSet=", f"CapabilityBoundingSet={_set(statuses, 'CapBnd')}", f"AmbientCapabilities={_set(statuses, 'CapAmb')}",
            f"NoNewPrivileges={'yes' if all(status['NoNewPrivs'] == ['1'] for status in statuses) else 'no'}",
            f"UMask={statuses[0]['Umask'][0]}"]


# ---- what it can ask of the kernel ---------------------------------------------------------

def system_calls(programs):
    names = sorted(name for name, number in calls().items() if lets_through(programs, number))
    families = sorted(name for name in dir(socket) if name.startswith("AF_") and lets_through(programs, SOCKET, getattr(socket, name), 1, 0))
    spaces = sorted(name for name, flag in NAMESPACES.items() if lets_through(programs, UNSHARE, flag))
    return ["SystemCallFilter=", f"SystemCallFilter={' '.join(names)}",
            "RestrictAddressFamilies=", f"RestrictAddressFamilies={' '.join(families) or 'none'}",
            f"RestrictNamespaces={' '.join(spaces) or 'yes'}"]


def _is_device(path):
    with contextlib.suppress(OSError):
        mode = path.lstat().st_mode
        return (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and path.name not in NO_DEVICES
    return False


def openable_devices(pid):
    """Of the devices below /dev that it sees, those that it may open."""
    assert processes.uid(pid), "root could open what acts when it is opened, such as a watchdog"
    root = pathlib.Path(f"/proc/{pid}/root")
    nodes = ["/" + str(path.relative_to(root)) for path in (root / "dev").rglob("*") if _is_device(path)]
    assert "/dev/ptmx" in nodes
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    found = []
    for node in nodes:
        answer = inject.call(pid, OPENAT, -100, node.encode() + b"\0", flags)
        if answer >= 0:
            inject.call(pid, calls()["close"], answer)
        if answer not in (-errno.EACCES, -errno.EPERM):
            found.append(node)
    return found


def devices(pid, programs):
    """Nothing, unless it can neither open a device nor send requests to one that another process opened for it."""
    if openable_devices(pid) or lets_through(programs, IOCTL, 0, UVM_INITIALIZE) or lets_through(programs, IOCTL, 0, RM_ALLOC):
        return []
    return ["PrivateDevices=yes"]


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def shares_namespaces(pid, other):
    """Of files, network and the rest: what the unit hides from one it hides from both."""
    return all(os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/{other}/ns/{name}") for name in ("mnt", "net", "ipc", "uts", "cgroup"))


# ---- the rating ----------------------------------------------------------------------------

def equivalent(unit, pid):
    """The text of the unit, with what this process of it has besides."""
    programs = filters(pid)
    assert programs and processes.n_filters(pid) == len(programs)
    return "\n".join([unit, "[Service]", *rights(pid), *system_calls(programs), *devices(pid, programs), ""])


def rate(text, folder):
    """What systemd-analyze says of such a unit: the exposure, and what makes it, by directive."""
    path = pathlib.Path(folder) / "equivalent.service"
    path.write_text(text)
    said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", path], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    (number,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+) ", said.stdout)
    table = json.loads(subprocess.run(["systemd-analyze", "security", "--offline=true", "--json=short", path], capture_output=True, text=True,
                                      check=False).stdout)
    return float(number), {row["name"]: row["exposure"] for row in table if row["exposure"]}
