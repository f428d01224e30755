# SPDX-License-Identifier: Apache-2.0
"""What /proc says: a daemon's processes, what they have mapped, and what is left of them."""

import contextlib
import ctypes
import os
import pathlib
import signal

from . import patience, place

PR_SET_CHILD_SUBREAPER = 36
KERNEL_LISTS_CHILDREN = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()
started = set()  # pids of daemons that the tests started themselves: no strays


def adopt_orphans():
    """From here on a process whose parents are gone becomes a child of this one, so none is overlooked."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _stat(pid):
    """State and parent."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = text[text.rindex(")") + 2:].split()
    return fields[0], int(fields[1])


def _candidates(pid):
    """Its children, dead ones too, where the kernel lists them; else every process there is."""
    if not KERNEL_LISTS_CHILDREN:
        return [entry for entry in os.listdir("/proc") if entry.isdigit()]
    found = []
    with contextlib.suppress(OSError):  # it, or a thread of it, may end meanwhile
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += file.read().split()
    return found


def _children(pid, are_dead):
    found = []
    for entry in _candidates(pid):
        try:
            state, parent = _stat(entry)
        except (OSError, ValueError):
            continue
        if parent == pid and (state in "ZX") == are_dead:
            found.append(int(entry))
    return found


def children(pid):
    return _children(pid, are_dead=False)


def dead_children(pid):
    """Those that nobody has waited for yet."""
    return _children(pid, are_dead=True)


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def name(pid):
    try:
        return pathlib.Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


def command(pid):
    """Its arguments; none when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def named(pid, wanted):
    """Descendants that run this program."""
    return [child for child in descendants(pid) if name(child) == wanted]


def _of_threads(pid, name):
    """The word of /proc that all of its threads have."""
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it may end meanwhile
            found.add((task / "status").read_text().split(f"{name}:")[1].split()[0])
    (word,) = found
    return word


def n_filters(pid):
    """Of system calls (seccomp)."""
    return int(_of_threads(pid, "Seccomp_filters"))


def bounding_set(pid):
    """The capabilities that a program may have which it executes, a mask."""
    return int(_of_threads(pid, "CapBnd"), 16)


def is_users_worker(pid):
    """One that does not only look at devices. Of what is about to run, or has just ended, there are no arguments."""
    return name(pid) == "gpuqd-worker" and len(words := command(pid)) > 1 and "--probe" not in words


def is_alive(pid):
    try:
        return _stat(pid)[0] not in "ZX"
    except (OSError, ValueError):
        return False


def _stands_still(pid):
    with contextlib.suppress(OSError):  # what has ended does
        return all(_stat(f"{pid}/task/{thread}")[0] in "TtZX" for thread in os.listdir(f"/proc/{pid}/task"))
    return not os.path.exists(f"/proc/{pid}")


def stop(pid):
    """Returns once none of its threads runs: the signal is only on its way to those on other processors."""
    os.kill(pid, signal.SIGSTOP)
    patience.until(lambda: _stands_still(pid), f"process {pid} to stand still")


@contextlib.contextmanager
def stopped(*pids):
    """Processes that do nothing for as long as the block lasts."""
    for pid in pids:
        stop(pid)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it may have been killed meanwhile
                os.kill(pid, signal.SIGCONT)


def maps(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text()


def named_memory(pids):
    """What these have mapped of /dev/shm, which outlives them."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it may end meanwhile
            found |= {line.split()[5] for line in maps(pid).splitlines() if "/dev/shm/" in line and "gpuq" in line}
    return found


def _status_bytes(pid, name):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name} of {pid}")


def resident_bytes(pid):
    return _status_bytes(pid, "VmRSS")


def anonymous_bytes(pid):
    """Of what is resident: its heaps and stacks, without files and shared memory."""
    return _status_bytes(pid, "RssAnon")


def peak_bytes(pid):
    """The most that was resident at once, since it started or since reset_peak()."""
    return _status_bytes(pid, "VmHWM")


def reset_peak(pid):
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def number_inside(pid):
    """Its number in the innermost namespace that it is in, as a word; "" when it is gone."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split()[-1] for line in lines if line.startswith("NSpid:")), "")


def uid(pid):
    """None when it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def uids(pids):
    """Of those that are still there."""
    return {uid(pid) for pid in pids} - {None}


def orphans():
    """Children that the tests did not start, and that run a program of the installed tree."""
    found = []
    for child in children(os.getpid()):
        if child in started:
            continue
        try:
            path = os.readlink(f"/proc/{child}/exe")
        except OSError:
            continue
        if path.startswith(str(place.STAGE)) and name(child).startswith("gpuqd"):
            found.append(child)
    return found


def is_gone(pid):
    """Reaped, all its threads and descriptors with it; one that is ours is reaped here."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return not os.path.exists(f"/proc/{pid}")


def reap_orphans():
    """Ends what should not be there any more. Returns what it was."""
    # What was killed with its parent, or looks for leaks in it from another process, ends a moment later.
    patience.while_short(orphans, place.PATIENCE_S)
    strays = []
    for child in orphans():
        strays.append(f"{name(child)} {child}")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return strays


def end_all(keep=()):
    """Ends whatever is left of what this process, a subreaper, has started, and what that has. @keep: children to leave alone."""
    while pids := [pid for child in children(os.getpid()) if child not in keep for pid in (child, *descendants(child))]:
        for number in (signal.SIGSTOP, signal.SIGKILL):  # what stands still starts nothing
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        _reap(keep)
    _reap(keep)


def _reap(keep):
    for pid in dead_children(os.getpid()):
        if pid not in keep:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
