# SPDX-License-Identifier: Apache-2.0
"""Plays a random program on a daemon, one process a session, and compares all that came of it with the
program's steps done one after the other."""

import mmap
import os
import subprocess

import numpy

from . import place
from .serial_parts import CANCELLED, DONE, E_DEPENDENCY, E_HALF_WRITTEN, FAILED, INOUT, OUT, WORD


class Ended:
    """How a job did."""

    def __init__(self, fields):
        self.state, self.error, self.text, self.output = int(fields[0]), int(fields[1]), fields[2], fields[3]

    def __repr__(self):
        return f"state {self.state} error {self.error}: {self.text}"


def _memory_file(name, data):
    fd = os.memfd_create(name)
    os.ftruncate(fd, len(data))
    os.pwrite(fd, data, 0)
    return fd


def _start(daemon, program, session, shared):
    script = _memory_file("script", program.script(session).encode())
    arguments = [place.test_program("gpuq-test-serial"), shared, session.uid, session.n_buffers, len(session.jobs)]
    process = subprocess.Popen([str(argument) for argument in arguments], stdin=script, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, pass_fds=[shared], env=daemon.environment())
    os.close(script)
    return process


def play(daemon, program):
    """Returns how each job ended, and the memory that the sessions shared."""
    data = program.shared.bytes()
    shared = _memory_file("shared", data.tobytes())
    memory = numpy.frombuffer(mmap.mmap(shared, data.size), numpy.uint8)
    processes = [_start(daemon, program, session, shared) for session in program.sessions]
    try:
        ended = [None] * len(program.jobs)
        for session, process in zip(program.sessions, processes):
            output, errors = process.communicate(timeout=2 * place.PATIENCE_S)
            assert process.returncode == 0, f"session {session.number}: {process.returncode}\n{errors}"
            for line in output.split("\n")[:-1]:
                local, *fields = line.split("\t")
                ended[session.jobs[int(local)].number] = Ended(fields)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
        os.close(shared)
    assert None not in ended
    return ended, memory


class Serial:
    """The program's steps, one after the other. What a job that was stopped left half written is not known."""

    def __init__(self, program, ended, memory):
        self.program, self.ended, self.memory = program, ended, memory
        self.words = {arena: arena.start.copy() for arena in program.arenas}
        self.unknown = {arena: numpy.zeros(arena.n, bool) for arena in program.arenas}
        for session in program.sessions:
            session.counter = 0

    def at(self, slice_):
        part = slice(slice_.offset, slice_.offset + slice_.n)
        return self.words[slice_.arena][part].view(slice_.arena.dtype)

    def unknown_at(self, slice_):
        return self.unknown[slice_.arena][slice_.offset:slice_.offset + slice_.n]

    def check(self):
        with numpy.errstate(all="ignore"):
            for event, *about in self.program.events:
                getattr(self, f"_{event}")(*about)

    def _describe(self, job):
        uses = "; ".join(f"{direction} {s.arena.place} {s.arena.kind} {s.arena.number} [{s.offset}, +{s.n})"
                         for s, direction in job.uses.items())
        lines = "\n    ".join(line for line, _effect in job.operations)
        return (f"job {job.number} ({job.local} of session {job.session.number}), after {sorted(job.after)}, {uses}\n"
                f"    {lines}\n    ended with {self.ended[job.number]}")

    def _may_end(self, job):
        ends = set(job.ends)
        if any(self.ended[number].state != DONE for number in job.after):
            ends = {(FAILED, E_DEPENDENCY)} | ends - {(DONE, 0)}
        if self.program.rough and any(slice_.arena.place == "host" and direction == INOUT for slice_, direction in job.uses.items()):
            ends.add((FAILED, E_HALF_WRITTEN))
        return ends

    def _job(self, job):
        ended = self.ended[job.number]
        assert (ended.state, ended.error) in self._may_end(job), f"{self._may_end(job)} was expected of {self._describe(job)}"
        if ended.state != DONE:
            for slice_ in job.writes():
                self.unknown_at(slice_)[:] |= ended.error == E_HALF_WRITTEN
            return
        assert ended.output == job.output, f"{job.output!r} was expected of {self._describe(job)}, not {ended.output!r}"
        read_unknown = any(self.unknown_at(slice_).any() for slice_, direction in job.uses.items() if direction != OUT)
        for slice_, direction in job.uses.items():
            if direction == OUT:
                self.at(slice_)[:] = 0
        for _line, effect in job.operations:
            effect(self.at)
        for slice_ in job.writes():
            self.unknown_at(slice_)[:] = read_unknown

    def _poke(self, slice_, values):
        self.at(slice_)[:] = values
        self.unknown_at(slice_)[:] = False

    def _dump(self, slice_, at):
        found = self.memory[at:at + WORD * slice_.n].view(numpy.uint32)
        wanted = self.at(slice_).view(numpy.uint32)
        wrong = numpy.flatnonzero((found != wanted) & ~self.unknown_at(slice_))
        if not wrong.size:
            return
        first = int(wrong[0])
        last = self.program.jobs[-1].number
        wrote = [job for job in self.program.jobs for s in job.writes()
                 if s.arena is slice_.arena and s.offset <= slice_.offset + first < s.offset + s.n]
        raise AssertionError(
            f"{wrong.size} of {slice_.n} words of arena {slice_.arena.number} ({slice_.arena.place} {slice_.arena.kind}) are wrong, "
            f"the first is word {slice_.offset + first}: {found[first]:#x} where {wanted[first]:#x} must be; of jobs up to {last} "
            "these wrote it:\n  " + "\n  ".join(self._describe(job) for job in wrote[-8:]))


def check(daemon, program):
    """Plays it. AssertionError unless all is as in serial order. Returns how many jobs ended in each state."""
    ended, memory = play(daemon, program)
    Serial(program, ended, memory).check()
    return {state: sum(each.state == state for each in ended) for state in (DONE, FAILED, CANCELLED)}
