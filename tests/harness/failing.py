# SPDX-License-Identifier: Apache-2.0
"""A service whose programs can be told, one by one, to see their N-th allocation or system call fail
(fault/fail.c). The keeper clears its children's environment, so a copy of the installed tree has a script in
place of each program, which sets what is needed and becomes the program."""

import ctypes
import mmap
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import place, processes
from .daemon import MISTAKE, Daemon
from .patience import until

PROGRAMS = ("gpuqd-supervisor", "gpuqd-worker", "gpuqd-compiler")
SCRIPT = """#!/bin/sh
LD_PRELOAD={library} GPUQ_TEST_FAIL={control} exec {program}.real "$@"
"""


class Series(ctypes.Structure):
    _fields_ = [("n", ctypes.c_uint64), ("first", ctypes.c_uint64), ("last", ctypes.c_uint64), ("n_failed", ctypes.c_uint64)]


class Layout(ctypes.Structure):
    _fields_ = [("allocations", Series), ("calls", Series), ("name", ctypes.c_char * 32), ("callers", ctypes.c_char * 480),
                ("end", ctypes.c_char * 480)]


class Control:
    """What the programs with this file do. `series`: "allocations" or "calls"."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(ctypes.sizeof(Layout)))
        path.chmod(0o666)
        with open(path, "r+b") as file:
            self.layout = Layout.from_buffer(mmap.mmap(file.fileno(), 0))

    def environment(self):
        return {"LD_PRELOAD": library(), "GPUQ_TEST_FAIL": str(self.path)}

    def reset(self):
        ctypes.memset(ctypes.addressof(self.layout), 0, ctypes.sizeof(self.layout))

    def count(self, series):
        return getattr(self.layout, series).n

    def fail(self, series, after, n=1):
        """From now on the `after`-th (1: the next), and n - 1 behind it."""
        which = getattr(self.layout, series)
        which.n_failed = 0
        which.last = which.n + after + n - 1
        which.first = which.n + after

    def stop(self):
        self.layout.allocations.first = self.layout.calls.first = 0

    def callers(self):
        """Who had called what failed, as FILE+OFFSET, innermost first."""
        return places(self.layout.callers)

    def end(self):
        """Where a process crashed or gave up, likewise; empty: none did."""
        return places(self.layout.end)

    def what(self):
        """What failed, and who had called it."""
        if not any(series.n_failed for series in (self.layout.allocations, self.layout.calls)):
            return "nothing failed"
        end = self.end()
        return (f"{self.layout.name.decode()} by {' < '.join(map(function, self.callers()))}" +
                (f"; it ended in {' < '.join(map(function, end))}" if end else ""))


def library():
    return place.test_program("libgpuq-test-fail.so")


def function(place_):
    """FILE+OFFSET as a name, where the tree has that file; the file's name otherwise."""
    name, offset = place_.split("+")
    found = [path for path in place.STAGE.rglob(name.removesuffix(".real")) if path.is_file()]
    if not found:
        return name
    told = subprocess.run(["addr2line", "-fs", "-e", str(found[0]), hex(int(offset, 16) - 1)], capture_output=True, text=True)
    return " ".join(told.stdout.split()[:2]) or place_


def places(text):
    return text.decode().split(" ")[:-1]  # the last may be cut off


class Tree:
    """The copy; `control[program]` of each, "gpuqd" and "client" among them."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-failing-"))
        self.folder.chmod(0o755)
        self.stage = pathlib.Path(shutil.copytree(place.STAGE, self.folder / "stage", symlinks=True))
        self.control = {name: Control(self.folder / f"{name}.control") for name in (*PROGRAMS, "gpuqd", "client")}
        for name in PROGRAMS:
            path = self.stage / "libexec" / "gpuq" / name
            path.rename(f"{path}.real")
            path.write_text(SCRIPT.format(library=library(), control=self.control[name].path, program=path))
            path.chmod(0o755)

    def remove(self):
        shutil.rmtree(self.folder)


class FailingDaemon(Daemon):
    # What glibc asserts about itself is for the test to judge.
    mistake = re.compile(rf"^(?!.*: nss_\w+\.c:).*({MISTAKE.pattern})", re.MULTILINE)

    def __init__(self, tree, **options):
        super().__init__(**options)
        self.tree = tree

    def arguments(self):
        return [str(self.tree.stage / "bin" / "gpuqd"), *super().arguments()[1:]]

    def supervisors(self):
        return [pid for pid in processes.children(self.process.pid) if processes.name(pid) == "gpuqd-supervisor.real"]

    def launch(self, **options):
        return super().launch(env={**os.environ, **self.tree.control["gpuqd"].environment()}, **options)

    def discard(self):
        """Without a look at what it left behind: it was killed where it stood."""
        family = processes.descendants(self.process.pid)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        until(lambda: not any(processes.is_alive(pid) for pid in family), "its processes to end")
        shutil.rmtree(self.folder, ignore_errors=True)
