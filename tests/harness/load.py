# SPDX-License-Identifier: Apache-2.0
"""Users who work while a test breaks things: processes of fault/load.c, under uids of their own, and how each
of their jobs ended."""

import collections
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import numpy

from . import place
from .daemon import as_user
from .messages import pb
from .patience import until

USERS = (12345, 12346, 12347, 12348)  # no passwd entries, like containers' users
SOURCE = place.ROOT / "tests" / "fault" / "mix.cu"

HEADER_BYTES = 32
ENTRY = numpy.dtype([("submitted_ns", "<u8"), ("ended_ns", "<u8"), ("code", "<i4"), ("kind", "<u4")])
KIND_SETUP, KIND_DETACHED = 5, 6

# What the library says beside the daemon's codes, which are those of the protocol, negative.
E_CONNECT, E_CLOSED, E_SYSTEM = 100, 101, 104


def code_name(code):
    own = {E_CONNECT: "E_CONNECT", E_CLOSED: "E_CLOSED", E_SYSTEM: "E_SYSTEM"}
    names = {value: name for name, value in vars(pb).items() if name.startswith("E_")}
    return own.get(code) or names.get(code) or str(code)


class Member:
    """One process. `command`: what starts it as that user, up to the path of its record."""

    def __init__(self, folder, number, uid, command, **options):
        self.uid, self.number = uid, number
        self.path = folder / f"record-{number}"
        self.path.touch()
        os.chown(self.path, uid, uid)
        self.output_path = folder / f"output-{number}"
        with open(self.output_path, "wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options)

    def freeze(self):
        """Its files may go now."""
        counts, entries, text = [self.count(i) for i in range(4)], self.entries(), self.output()
        self.count, self.entries, self.output = counts.__getitem__, lambda: entries, lambda: text

    def count(self, index):
        """A number of the record's head (fault/record.h)."""
        with open(self.path, "rb") as file:
            head = file.read(HEADER_BYTES)
        return int.from_bytes(head[8 * index:8 * index + 8], "little")

    def n_entries(self):
        return self.count(0)

    def n_good(self):
        return self.count(1)

    def n_connects(self):
        return self.count(2)

    def entries(self):
        """All ends so far, in their order."""
        n = self.n_entries()
        if not n:
            return numpy.zeros(0, ENTRY)
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            return numpy.frombuffer(memory, ENTRY, n, HEADER_BYTES).copy()

    def output(self):
        return self.output_path.read_text(errors="replace")

    def assert_well(self):
        status = self.process.poll()
        assert status in (None, 0), f"process {self.number} of uid {self.uid} ended with {status}:\n{self.output()[-4000:]}"


class Load:
    """`with Load(daemon) as load:` four users with four processes each, until the end of the block."""

    def __init__(self, daemon, users=USERS, processes=4, seed=1):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-load-"))
        self._start(folder, users, processes, seed, lambda uid: [place.test_program("gpuq-test-load"), SOURCE, folder],
                    lambda uid: {"env": daemon.environment(), **as_user(uid)})

    def _start(self, folder, users, processes, seed, command, options):
        self.folder, self.members = folder, []
        folder.chmod(0o755)
        for i in range(len(users) * processes):
            uid = users[i % len(users)]
            *program, records = command(uid)
            # Behind the test that breaks things, which would have to wait for a processor among so many.
            words = ["nice", "-n", "5", *program, f"{records}/record-{i}", seed * 1000 + i]
            self.members.append(Member(folder, i, uid, [str(word) for word in words], **options(uid)))

    def __enter__(self):
        self.progress()
        return self

    def __exit__(self, *failure):
        try:
            self.stop(quiet=any(failure))
        finally:
            shutil.rmtree(self.folder)

    # ---- while it runs ----

    def of(self, uid):
        return [member for member in self.members if member.uid == uid]

    def n_ended(self):
        return sum(member.n_entries() for member in self.members)

    def assert_well(self):
        for member in self.members:
            member.assert_well()

    def progress(self, n=1, members=None):
        """Waits until each of these processes (all) has had n more jobs that ended well."""
        members = members or self.members
        goals = [(member, member.n_good() + n) for member in members]

        def reached():
            self.assert_well()
            return all(member.n_good() >= goal for member, goal in goals)

        try:
            until(reached, f"each process of the load to have {n} more good jobs")
        except AssertionError as problem:
            stuck = [f"{member.number} of uid {member.uid}: {member.n_good()} of {goal}: {member.output()[-300:]}"
                     for member, goal in goals if member.n_good() < goal]
            raise AssertionError(f"{problem}\n" + "\n".join(stuck)) from None

    def await_detached(self):
        """Waits until a detached job was among them: the dice decide which jobs these are."""
        def fetched():
            self.assert_well()
            return self.n_detached()

        try:
            until(fetched, "a detached job to be fetched")
        except AssertionError as problem:
            ends = [f"{member.number} of uid {member.uid}: {member.n_good()} good jobs; detached: "
                    f"{[code_name(int(-e['code'])) for e in member.entries() if e['kind'] == KIND_DETACHED]}; {member.output()[-300:]}"
                    for member in self.members]
            raise AssertionError("\n".join([str(problem), *ends])) from None

    def after(self, n):
        """Waits until so many more jobs of all have ended, well or not: a moment that the dice can choose."""
        goal, end = self.n_ended() + n, time.monotonic() + place.PATIENCE_S
        while self.n_ended() < goal:
            self.assert_well()
            assert time.monotonic() < end, f"waited in vain: {n} more ends"
            time.sleep(0.0005)

    # ---- its end ----

    def stop(self, quiet=False):
        for member in self.members:
            if member.process.poll() is None:
                member.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + place.PATIENCE_S
        hung = []
        for member in self.members:
            try:
                member.process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()
                hung.append(member.number)
        for member in self.members:
            member.freeze()
        if quiet:
            return
        assert not hung, f"a job of theirs never ended: processes {hung}"
        self.assert_well()

    # ---- afterwards ----

    def codes(self, members=None):
        """How many jobs ended with each code, 0 among them; what was no job (connecting) left out."""
        count = collections.Counter()
        for member in members or self.members:
            entries = member.entries()
            for code, n in zip(*numpy.unique(-entries["code"][entries["kind"] != KIND_SETUP], return_counts=True)):
                count[int(code)] += int(n)
        return count

    def n_detached(self):
        """How many detached jobs ended well and were fetched."""
        return sum(int(((entries["kind"] == KIND_DETACHED) & (entries["code"] == 0)).sum())
                   for entries in (member.entries() for member in self.members))

    def setup_codes(self):
        count = collections.Counter()
        for member in self.members:
            entries = member.entries()
            count.update(int(-code) for code in entries["code"][entries["kind"] == KIND_SETUP])
        return count

    def assert_only(self, allowed, members=None, told=()):
        """Every job of these ended well or with one of these codes, or was told of in lines that begin with one of @told. Returns
        how many ended, and how many not well."""
        codes = self.codes(members)
        excused = collections.Counter(line.split()[0].removeprefix("GPUQ_") for member in members or self.members
                                      for line in member.output().splitlines() if line.startswith(tuple(told)))
        bad = {code_name(code): n for code, n in codes.items()
               if code and code not in allowed and n > excused[code_name(code)]}
        words = {line for member in members or self.members for line in member.output().splitlines()
                 if any(line.startswith("GPUQ_" + name) for name in bad)}
        assert not bad, f"{bad}\n" + "\n".join(sorted(words)[:20])
        return sum(codes.values()), sum(n for code, n in codes.items() if code)

    def recovery_ms(self, at_ns, members=None):
        """From that moment to the end of the first good job that was submitted after it; of each process."""
        found = []
        for member in members or self.members:
            entries = member.entries()
            later = entries[(entries["submitted_ns"] > at_ns) & (entries["code"] == 0)]
            if len(later):
                found.append((int(later["ended_ns"].min()) - at_ns) / 1e6)
        return found


class LoadInside(Load):
    """The same in a machine of harness/machine.py."""

    def __init__(self, machine, users=USERS, processes=4, seed=1):
        folder = machine.path("/load")
        folder.mkdir()
        for path in (place.test_program("gpuq-test-load"), SOURCE):
            shutil.copy(path, folder)
        program = ["/load/gpuq-test-load", "/load/mix.cu", "/load"]
        self._start(folder, users, processes, seed, lambda uid: [*machine.enter(uid, namespaces=()), *program], lambda uid: {})
