# SPDX-License-Identifier: Apache-2.0
"""What random programs are made of: arenas, jobs, sessions, and the memory through which those speak."""

import collections

import numpy

IN, OUT, INOUT = "in", "out", "inout"
WHOLE = "whole"  # how an argument that is OUT may be given, where all of it is written
DONE, FAILED, CANCELLED = 2, 3, 4
E_DEPENDENCY, E_FAULT, E_TIMEOUT, E_CANCELLED, E_HALF_WRITTEN = -10, -13, -14, -15, -16
WORD = 4  # bytes; slices count in words
N_CELLS, CELL_BYTES = 1 << 14, 16
N_PREPARED = 8

Slice = collections.namedtuple("Slice", "arena offset n")


class Skip(Exception):
    """What was drawn does not fit."""


class Arena:
    """Memory of one user. `session`: the only one that uses it, or None. `kind`: u32, f32, ones (powers of two, never
    written), or sums (of f32, read by copies alone: these may be infinite)."""

    def __init__(self, number, user, kind, place, values, session=None):
        self.number, self.user, self.kind, self.place, self.session = number, user, kind, place, session
        self.start = values.view(numpy.uint32)
        self.n = self.start.size
        self.writers = numpy.full(self.n, -1)
        self.reads = []  # slices and who read them, since they were last written
        self.bound = 10  # of f32: all are below 2^bound
        self.at = self.cell = None

    @property
    def dtype(self):
        return numpy.uint32 if self.kind == "u32" else numpy.float32


def overlap(a, b):
    return a.arena is b.arena and a.offset < b.offset + b.n and b.offset < a.offset + a.n


class Job:
    """`ends`: what may come of it by itself; failing needs no words where nothing else can be."""

    def __init__(self, number, session):
        self.number, self.session = number, session
        self.uses, self.settled = {}, set()
        self.operations = []  # (line, what it does)
        self.settable = []  # (operation, argument) of u32 that are the effect's `s`
        self.settings, self.after = [], set()
        self.ends = {(DONE, 0)}
        self.output = ""

    def use(self, slice_, direction):
        """As the library makes one direction of those of all operations."""
        known = self.uses.setdefault(slice_, direction)
        if known != direction and not (slice_ in self.settled and known == OUT):
            self.uses[slice_] = INOUT

    def takes(self, slice_, write):
        """What is written is met by nothing else of the job but the same slice."""
        return not any(other != slice_ and overlap(slice_, other) and (write or direction != IN)
                       for other, direction in self.uses.items())

    def add(self, line, effect, settable=None):
        if settable is not None:
            self.settable.append((len(self.operations), settable))
        self.operations.append((line, effect))
        self.settled = set(self.uses)

    def writes(self):
        return [slice_ for slice_, direction in self.uses.items() if direction != IN]

    @property
    def may_end_well(self):
        return (DONE, 0) in self.ends


class Session:
    def __init__(self, number, uid):
        self.number, self.uid = number, uid
        self.lines = []
        self.buffers, self.n_buffers = {}, 0
        self.jobs, self.awaited = [], set()
        self.n_prepared = 0
        self.temporary = []
        self.counter = 0  # the module variable, when steps are played

    def say(self, *words):
        self.lines.append(" ".join(map(str, words)))

    def new_buffer(self):
        self.n_buffers += 1
        return self.n_buffers - 1

    def buffer(self, slice_):
        """Its number; made when it is first used."""
        if slice_ not in self.buffers:
            whole = self.buffers[Slice(slice_.arena, 0, slice_.arena.n)]
            number = self.buffers[slice_] = self.new_buffer()
            self.say("slice", number, whole, WORD * slice_.offset, WORD * slice_.n)
        return self.buffers[slice_]


class SharedMemory:
    """Of the sessions and the test: cells, each told once, and bytes."""

    def __init__(self):
        self.n_cells = 0
        self.data, self.n_data = [], 0

    def cells(self, n=1):
        self.n_cells += n
        assert self.n_cells <= N_CELLS
        return self.n_cells - n

    def room(self, data):
        """Shared bytes that begin as these. Returns where."""
        at = N_CELLS * CELL_BYTES + self.n_data
        self.data.append((at, data))
        self.n_data += -(-len(data) // 8) * 8
        return at

    def bytes(self):
        memory = numpy.zeros(N_CELLS * CELL_BYTES + self.n_data, numpy.uint8)
        for at, data in self.data:
            memory[at:at + len(data)] = numpy.frombuffer(data, numpy.uint8)
        return memory
