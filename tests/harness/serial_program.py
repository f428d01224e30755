# SPDX-License-Identifier: Apache-2.0
"""Random programs: jobs of several sessions and users over arenas that they share, and what must come of them.

A program is a list of steps in one serial order. Each session does its own of them in that order, beside
the others; jobs of different sessions that meet in memory have an explicit dependency, so whatever runs
beside what, all must end as if the steps were done one after the other.
"""

import collections
import random

import numpy

from . import serial_kernels as meaning
from .serial_draw import BUILTIN, BUILTIN_KERNELS, PRINTS, SIZES, SOURCE, SOURCE_KERNELS, VARIABLES, Draw
from .serial_parts import (CANCELLED, DONE, E_CANCELLED, E_DEPENDENCY, E_FAULT, E_TIMEOUT, FAILED, IN, INOUT, N_PREPARED, WORD, Arena,
                           Job, Session, SharedMemory, Skip, Slice, overlap)

FAR = 1 << 40  # an index that is in nobody's memory


class Program(Draw):
    """`users`: the uid of each session. `rough`: with jobs that are cancelled, fault or run too long. `variables`: with
    kernels that have some, which a worker's end takes with it, and which bind their jobs to one device. `steady`: with
    prepared jobs that are fired so often that a worker takes them by itself."""

    def __init__(self, seed, users, n_steps=40, rough=False, variables=True, steady=False):
        self.steady = steady
        self.random = random.Random(f"{seed} {rough}")
        self.numbers = numpy.random.default_rng(seed)
        self.variables = variables and not rough
        self.rough, self.n_culprits = rough, collections.Counter()
        self.sessions = [Session(number, uid) for number, uid in enumerate(users)]
        self.arenas, self.jobs, self.events = [], [], []
        self.shared = SharedMemory()
        self.told = set()
        for uid in sorted(set(users)):
            self._add_shared(uid)
        for session in self.sessions:
            self._begin(session)
        for _ in range(n_steps):
            self._step(self.random.choice(self.sessions))
        for session in self.sessions:
            self._end(session)

    # ---- arenas ----

    def _values(self, kind, n):
        if kind == "u32":
            return self.numbers.integers(0, 1 << 32, n, numpy.uint32)
        if kind == "f32":
            return self.numbers.uniform(-1000, 1000, n).astype(numpy.float32)
        if kind == "ones":
            signs = self.numbers.choice([-1.0, 1.0], n)
            return (signs * 2.0 ** self.numbers.integers(-2, 3, n)).astype(numpy.float32)
        return numpy.zeros(n, numpy.float32)

    def _add_arena(self, uid, kind, place, n, session=None, zeros=False):
        values = numpy.zeros(n, numpy.uint32) if zeros else self._values(kind, n)
        arena = Arena(len(self.arenas), uid, kind, place, values, session)
        self.arenas.append(arena)
        return arena

    def _add_shared(self, uid):
        for kind, place, n in (("u32", "host", 16384), ("u32", "host", 9000), ("u32", "device", 16384), ("f32", "host", 12288),
                               ("f32", "device", 8192), ("ones", "host", 4096), ("sums", "host", 1024)):
            self._add_arena(uid, kind, place, n)

    def _make(self, session, arena):
        number = session.buffers[Slice(arena, 0, arena.n)] = session.new_buffer()
        session.say("new", number, arena.place, WORD * arena.n)
        if arena.start.any():
            session.say("load", number, self.shared.room(arena.start.tobytes()))
        return number

    def _begin(self, session):
        for module, source in ((SOURCE, meaning.SOURCE), (PRINTS, meaning.PRINTS), (VARIABLES, meaning.VARIABLES)):
            session.say("module", module, self.shared.room(source.encode()), len(source.encode()))
        session.say("module", BUILTIN, "builtin")
        session.finish = self.shared.cells()
        session.private = [self._add_arena(session.uid, "u32", "host", 8192, session)]
        self._make(session, session.private[0])
        first = next(other for other in self.sessions if other.uid == session.uid)
        for arena in self.arenas:
            if arena.user != session.uid or arena.session:
                continue
            if session is first:
                arena.cell = self.shared.cells(3)
                session.say("share", self._make(session, arena), arena.cell)
            else:
                number = session.buffers[Slice(arena, 0, arena.n)] = session.new_buffer()
                session.say("open", number, arena.cell)

    def _dump(self, session, slice_):
        """Now, and what it must be then: whatever wrote it has been waited for."""
        at = self.shared.room(bytes(WORD * slice_.n))
        session.say("dump", session.buffer(slice_), at)
        self.events.append(("dump", slice_, at))

    def _end(self, session):
        session.say("finish", session.finish)
        for arena in [*session.private, *session.temporary]:
            self._dump(session, Slice(arena, 0, arena.n))
        mates = [other for other in self.sessions if other.uid == session.uid]
        if session is not mates[0]:
            return
        for mate in mates:
            session.say("ask", mate.finish)
        for arena in self.arenas:
            if arena.user == session.uid and not arena.session:
                self._dump(session, Slice(arena, 0, arena.n))

    # ---- jobs ----

    def _unfit(self, job):
        """With workers that end early, a job that changes device memory in place could not be run again."""
        return not job.operations or (self.rough and any(
            slice_.arena.place == "device" and direction == INOUT for slice_, direction in job.uses.items()))

    def _settle(self, job, alone=False):
        """Its place in the order: behind what it meets in other sessions, and a few others."""
        session = job.session
        for slice_, direction in job.uses.items():
            met = self._writers(slice_) | (set() if direction == IN else self._readers(slice_))
            job.after |= {number for number in met if self.jobs[number].session is not session}
        before = [other for other in self.jobs[-60:] if other.session.uid == session.uid
                  and (other.session is not session or other.is_sent) and len(other.ends) == 1]
        if before and not alone and self.random.random() < 0.1:
            job.after.add(self.random.choice(before).number)
        if any(not self.jobs[number].may_end_well for number in job.after):
            job.ends = {(FAILED, E_DEPENDENCY)} | job.ends - {(DONE, 0)}
        if job.may_end_well:
            self._note_uses(job)

    def _writers(self, slice_):
        return {int(number) for number in slice_.arena.writers[slice_.offset:slice_.offset + slice_.n]} - {-1}

    def _readers(self, slice_):
        return {number for read, number in slice_.arena.reads if overlap(read, slice_)}

    def _note_uses(self, job):
        for slice_, direction in job.uses.items():
            arena, end = slice_.arena, slice_.offset + slice_.n
            if direction == IN:
                arena.reads.append((slice_, job.number))
                continue
            arena.writers[slice_.offset:end] = job.number
            arena.reads = [read for read in arena.reads
                           if read[0].offset < slice_.offset or read[0].offset + read[0].n > end]

    def _describe(self, job):
        for number in sorted(job.after):
            before = self.jobs[number]
            if before.session is job.session:
                job.session.say("behind", before.local)
            else:
                self.told.add(number)
                job.session.say("after", before.cell)
        for name, value in job.settings:
            job.session.say("set", name, value)

    def _add_job(self, session, draw, bad=None):
        """`draw` puts operations into it; `bad` says more, and how it must fail. Returns it, or None."""
        job = Job(len(self.jobs), session)
        job.local, job.is_sent = len(session.jobs), False
        draw(job)
        if self._unfit(job):
            return None
        if self.random.random() < 0.2:
            job.settings.append(("priority", self.random.randrange(-100, 101)))
        if self.random.random() < 0.05:
            job.settings.append(("timed", 1))
        if self.random.random() < 0.1:
            job.settings.append(("timeout", 600_000))
        job.cell = self.shared.cells()
        session.say("job", job.local, job.cell)
        for line, _effect in job.operations:
            session.say(*line.split())
        if bad:
            bad(job)
        self._settle(job)
        self._describe(job)
        self.jobs.append(job)
        session.jobs.append(job)
        self.events.append(("job", job))
        return job

    def _send(self, session, jobs):
        if not jobs:
            return
        session.say("submit", self.random.choice(("together", "singly")))
        session.lines.append(jobs)  # a place for "tell"
        for job in jobs:
            job.is_sent = True

    # ---- steps ----

    def _step(self, session):
        steps = [(self._some, 5), (self._burst, 5), (self._chains, 2), (self._bad, 1), (self._look, 2), (self._poke, 1), (self._temporary, 1),
                 (self._fire, 2)]
        if self.rough:
            steps += [(self._cancel, 2), (self._culprit, 1)]
        if self.steady:
            steps += [(self._steady, 8)]
        step, = self.random.choices([step for step, _ in steps], [weight for _, weight in steps])
        step(session)

    def _some(self, session):
        def draw(job):
            for _ in range(self.random.choice((1, 1, 1, 2, 3, 6))):
                self.attempt(job, self.draw_any)

        self._send(session, [job for job in [self._add_job(session, draw) for _ in range(self.random.randrange(1, 5))] if job])

    def _together(self, session):
        """Jobs to come become ready at once: behind one that takes a moment."""
        first = self._add_job(session, lambda job: self.attempt(job, self.ponder))
        self._send(session, [first])
        return first.number

    def _burst(self, session, private=False):
        """Many of one kind, or of two that differ in their grids alone, so that they can be run together."""
        n, hows = self.random.choice(SIZES[:7]), [self.geometry() for _ in range(self.random.choice((1, 1, 2)))]
        if private or self.random.random() < 0.6:
            draw, kernel, options = self.draw_source, self.random.choice(SOURCE_KERNELS), {"private": private}
        else:
            draw, kernel, options = self.draw_builtin, self.random.choice(BUILTIN_KERNELS), {}

        def add(job):
            job.after |= after
            self.attempt(job, draw, kernel, n, self.random.choice(hows), **options)

        after = {self._together(session)} if self.random.random() < 0.7 else set()
        self.apart = {} if self.random.random() < 0.7 else None
        jobs = [job for job in [self._add_job(session, add) for _ in range(self.random.randrange(8, 40))] if job]
        self.apart = None
        self._send(session, jobs)
        return jobs

    def _chains(self, session):
        """Several rows of jobs, one behind the other in each, those beside each other of one kind."""
        n, hows = self.random.choice(SIZES[:7]), [self.geometry(), self.geometry()]
        places, slices = Job(-1, session), []
        self.apart = {}
        for _ in range(self.random.randrange(3, 12)):
            try:
                slices.append(self.pick(places, "u32", n, INOUT))
            except Skip:
                break
        self.apart = None

        after = {self._together(session)} if self.random.random() < 0.5 else set()
        jobs = []
        for slice_ in self.random.choices(slices, k=4 * len(slices)):
            def add(job, slice_=slice_):
                job.after |= after
                self.bump(job, slice_, self.random.choice(hows))

            jobs.append(self._add_job(session, add))
        self._send(session, jobs)

    def _bad(self, session):
        """One that cannot run, after an operation that could: nothing of it may be seen."""
        def draw(job):
            self.attempt(job, self.draw_fill, self.random.choice(SIZES), private=True)
            self.attempt(job, self.draw_copy, "u32", self.random.choice(SIZES), private=True)

        def bad(job):
            kind = self.random.choice(("device", "block", "shared", "deep"))
            words = ["launch", SOURCE, "bump", 1, 1, 1]
            rest = [self.arg(job, job.writes()[0], INOUT), "u32=1", "u32=1"]
            if kind == "device":
                job.settings.append(("device", 1000))
            elif kind == "block":
                session.say(*words, 2048, 1, 1, 0, *rest)
            elif kind == "shared":
                session.say(*words, 1, 1, 1, 1 << 30, *rest)
            else:
                session.say(*words, 1, 1, 1025, 0, *rest)
            job.ends = {(FAILED, code) for code in (-3, -4, -12, E_DEPENDENCY)}

        job = self._add_job(session, draw, bad)
        self._send(session, [job] if job else [])

    def _wait_for(self, session, slice_):
        """All that use it, not only the last: that one may be cancelled before the others have ended."""
        for job in session.jobs:
            if job in session.awaited or not any(overlap(slice_, other) for other in job.uses):
                continue
            session.say(self.random.choice(("wait", "poll")), job.local)
            session.say("wait", job.local)
            session.awaited.add(job)

    def _own(self, session):
        arena = self.random.choice(session.private + session.temporary)
        n = self.random.choice([n for n in SIZES if n <= arena.n])
        return Slice(arena, self.random.randrange(arena.n - n + 1), n)

    def _look(self, session):
        """A job that was waited for has its results in memory."""
        slice_ = self._own(session)
        self._wait_for(session, slice_)
        self._dump(session, slice_)

    def _poke(self, session):
        """The client writes memory between jobs."""
        slice_ = self._own(session)
        values = self._values("u32", slice_.n)
        self._wait_for(session, slice_)
        number = session.buffer(slice_)
        session.say("load", number, self.shared.room(values.tobytes()))
        self.events.append(("poke", slice_, values))

    def _temporary(self, session):
        """Buffers come and go; a new one is zeros whoever had its memory before."""
        if len(session.temporary) > 2 or (session.temporary and self.random.random() < 0.3):
            arena = session.temporary.pop(self.random.randrange(len(session.temporary)))
            whole = Slice(arena, 0, arena.n)
            self._wait_for(session, whole)
            self._dump(session, whole)
            for slice_ in [slice_ for slice_ in session.buffers if slice_.arena is arena]:
                session.say("free", session.buffers.pop(slice_))
            return
        n = self.random.choice((100, 1024, 4096, 600_000 if self.random.random() < 0.2 else 2000))
        arena = self._add_arena(session.uid, "u32", "host", n, session, zeros=True)
        session.temporary.append(arena)
        self._make(session, arena)

    def _prepare(self, session, n_operations):
        """Its number and what it does; None if no memory was found for it."""
        template = Job(-1, session)
        n, how = self.random.choice(SIZES[:7]), self.geometry()
        for _ in range(n_operations):
            self.attempt(template, self.draw_source, self.random.choice(SOURCE_KERNELS), n, how, private=True)
        if not template.operations:
            return None
        number = session.n_prepared % N_PREPARED
        session.n_prepared += 1
        session.say("template")
        for line, _effect in template.operations:
            session.say(line)
        session.say("prepare", number)
        return number, template

    def _fire(self, session):
        """One job prepared, and fired with other buffers and scalars."""
        prepared = self._prepare(session, self.random.choice((1, 1, 2, 3)))
        if prepared:
            session.lines.append([self._fire_once(session, *prepared) for _ in range(self.random.randrange(1, 30))])

    def _steady(self, session):
        """A few, fired unchanged again and again, one of them waited for now and then."""
        prepared = [each for each in [self._prepare(session, 1) for _ in range(self.random.choice((1, 1, 2, 3)))] if each]
        n_left = self.random.randrange(100, 400) if prepared else 0
        while n_left > 0:
            n = self.random.choice((1, 2, 20, 50))
            jobs = [self._fire_once(session, *self.random.choice(prepared), plain=True) for _ in range(n)]
            session.lines.append(jobs)
            session.say("wait", jobs[-1].local)
            session.awaited.add(jobs[-1])
            n_left -= n

    def _fire_once(self, session, number, template, plain=False):
        job = Job(len(self.jobs), session)
        job.local, job.is_sent, job.cell = len(session.jobs), True, self.shared.cells()
        swaps, sets = {} if plain else self._swaps(template), {}
        for operation, argument in template.settable:
            if not plain and self.random.random() < 0.5:
                sets[operation] = (argument, self.random.randrange(1 << 32))
        for slice_, direction in template.uses.items():
            job.use(swaps.get(slice_, slice_), direction)
        changes = [f"swap={session.buffer(was)}:{session.buffer(now)}" for was, now in swaps.items()]
        changes += [f"set={operation}:{argument}:{value}" for operation, (argument, value) in sets.items()]
        for i, (line, effect) in enumerate(template.operations):
            job.add(line, _changed(effect, swaps, *([sets[i][1]] if i in sets else [])))
        session.say("fire", number, job.local, job.cell, *changes)
        self._settle(job, alone=True)
        self.jobs.append(job)
        session.jobs.append(job)
        self.events.append(("job", job))
        return job

    def _swaps(self, template):
        """Other slices in place of some, which meet each other as little as those did."""
        places = Job(-1, template.session)
        places.uses = dict(template.uses)
        swaps = {}
        for slice_, direction in template.uses.items():
            if self.random.random() < 0.4:
                continue
            before = dict(places.uses)
            del places.uses[slice_]
            try:
                swaps[slice_] = self.pick(places, "u32", slice_.n, direction, avoid=tuple(places.uses), private=True)
            except Skip:
                places.uses = before
        return swaps

    # ---- what ends early ----

    def _cancel(self, session):
        """Whether they were in time is seen afterwards; nobody else uses what they change."""
        jobs = self._burst(session, private=True)
        for job in self.random.sample(jobs, len(jobs) // 3):
            job.ends |= {(CANCELLED, E_CANCELLED)}
            session.say("cancel", job.local)

    def _culprit(self, session):
        if self.n_culprits[session.uid] == 3:
            return
        self.n_culprits[session.uid] += 1
        kernel = self.random.choice(("wild", "forever"))

        def draw(job):
            slice_ = self.pick(job, "u32", 64, INOUT, private=True)
            words = [(slice_, INOUT)] + ([f"u64={FAR}"] if kernel == "wild" else [])
            self.launch(job, SOURCE, kernel, ((1, 1, 1), (1, 1, 1)), words, lambda at: None)

        def bad(job):
            if kernel == "forever":
                job.settings = [("timeout", 200)]
            job.ends = {(FAILED, E_FAULT if kernel == "wild" else E_TIMEOUT), (FAILED, E_DEPENDENCY)}

        job = self._add_job(session, draw, bad)
        self._send(session, [job])

    # ---- what the sessions do ----

    def script(self, session):
        lines = []
        for line in session.lines:
            if isinstance(line, str):
                lines.append(line)
            elif any(job.number in self.told for job in line):
                lines.append("tell")
        return "\n".join(lines) + "\n"


def _changed(effect, swaps, *scalars):
    return lambda at: effect(lambda slice_: at(swaps.get(slice_, slice_)), *scalars)
