# SPDX-License-Identifier: Apache-2.0
"""Processes of hostile users, each under its own uid and under hard limits, and their certain end."""

import contextlib
import ctypes
import os
import pathlib
import resource
import select
import signal
import sys
import time
import traceback

from . import processes
from .client import Client, Closed, Refused

PR_SET_PDEATHSIG = 1
N_PROCESSES_MAX = 64  # of one uid, threads counted
FIRST_GROUP = 100000
N_DESCRIPTORS_MAX = 16384
ADDRESS_BYTES_MAX = 3 << 30  # Python and what it maps; memory itself is bounded by each attack
ERRORS = (Refused, Closed, OSError, MemoryError, TimeoutError)


class Attacker:
    """What an attack gets, in a process of its own."""

    def __init__(self, daemon, folder, number, uids, is_short, pipe):
        self.path, self.folder, self.keeper = str(daemon.socket), folder, daemon.process.pid
        self.cache = pathlib.Path(daemon.settings["cache_dir"])  # a folder for each uid
        self.number, self.uids, self.is_short = number, uids, is_short
        self.uid = uids[number]
        self.pipe, self.is_ready = pipe, False

    def connect(self, **options):
        return Client(self.path, **options)

    def n(self, long, short):
        return short if self.is_short else long

    def share(self, total):
        """Of what all attackers together may take."""
        return total // len(self.uids)

    def is_second(self):
        """Another process of this uid attacks, too."""
        return self.uid in self.uids[:self.number]

    def ready(self):
        """What needs time before it hurts is in place."""
        if not self.is_ready:
            self._say("ready")
        self.is_ready = True

    def breach(self, text):
        """Something worked that must not work."""
        self._say(f"breach {text}")

    def trouble(self, text):
        self._say(f"trouble {text}")

    def _say(self, text):
        os.write(self.pipe, (" ".join(text.split())[:400] + "\n").encode())

    def own_workers(self):
        return [pid for pid in processes.children(self.keeper) if processes.uid(pid) == self.uid]


def bound(resource_number, limit):
    _soft, hard = resource.getrlimit(resource_number)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource_number, (limit, limit))


def become(uid, n_processes, n_groups):
    """For good, with the limits that bound what an attack can do to this machine."""
    os.setsid()
    bound(resource.RLIMIT_NOFILE, N_DESCRIPTORS_MAX)
    bound(resource.RLIMIT_NPROC, n_processes)
    bound(resource.RLIMIT_AS, ADDRESS_BYTES_MAX)
    bound(resource.RLIMIT_CORE, 0)
    os.setgroups(range(FIRST_GROUP, FIRST_GROUP + n_groups))
    os.setgid(uid)
    os.setuid(uid)
    # Not before: a change of uid clears it.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def play(function, me):
    """Again and again, until it is killed: what the daemon refuses or ends is begun anew."""
    told = None
    while True:
        try:
            function(me)
        except ERRORS as problem:
            text = f"{type(problem).__name__}: {problem}"
            if text[:40] != told:
                told = text[:40]
                me.trouble(text)
            time.sleep(0.001)


class Attackers:
    """Started at once; end() returns when none of their processes is left."""

    def __init__(self, daemon, function, uids, folder, is_short, keep=(), n_processes=N_PROCESSES_MAX, n_groups=0):
        self.limits = n_processes, n_groups
        self.keep = {daemon.process.pid, *keep}
        self.children, self.text, self.said = {}, "", []
        self.pipe, pipe = os.pipe()
        os.set_blocking(pipe, False)
        for number, uid in enumerate(uids):
            child = os.fork()
            if child == 0:
                self._child(function, Attacker(daemon, folder, number, uids, is_short, pipe))
            self.children[child] = uid
        os.close(pipe)

    def _child(self, function, me):
        try:
            become(me.uid, *self.limits)
            play(function, me)
        except BaseException:  # pylint: disable=broad-except
            with contextlib.suppress(OSError):
                me.trouble("the attack itself failed: " + traceback.format_exc().replace("\n", " ")[-350:])
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(1)

    # ---- what they say ----

    def listen(self, seconds):
        """For so long, or until all have gone."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.pipe], [], [], left)[0]:
                return
            data = os.read(self.pipe, 1 << 16)
            if not data:
                time.sleep(left)
                return
            self.text += data.decode(errors="replace")
            *lines, self.text = self.text.split("\n")
            self.said += lines

    def wait_until_ready(self, seconds):
        end = time.monotonic() + seconds
        while self.said.count("ready") < len(self.children) and time.monotonic() < end:
            self.listen(0.02)

    def breaches(self):
        return sorted({line.removeprefix("breach ") for line in self.said if line.startswith("breach ")})

    def troubles(self):
        return sorted({line.removeprefix("trouble ") for line in self.said if line.startswith("trouble ")})

    # ---- their end ----

    def end(self):
        """This process is the subreaper: what they left behind are its children."""
        processes.end_all(self.keep)
        self.listen(0)
        os.close(self.pipe)
