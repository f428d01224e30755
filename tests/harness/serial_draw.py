# SPDX-License-Identifier: Apache-2.0
"""Operations of random programs: what a job uses, and what it does with it."""

import numpy

from . import serial_kernels as meaning
from .serial_parts import IN, INOUT, OUT, WHOLE, WORD, Skip, Slice

SIZES = (1, 3, 64, 100, 256, 1000, 1024, 3000)  # words
BUILTIN, SOURCE, PRINTS, VARIABLES = range(4)  # modules
SOURCE_KERNELS = ("mix", "bump", "spread", "count", "total", "turn", "where", "scalars")
BUILTIN_KERNELS = ("add", "divide", "scale", "axpy", "polynomial", "sum", "dot", "sum_of_squares", "gemv")


class Draw:
    """Appends operations to jobs. Has `random`, `arenas`, and whether it is `rough` and has `variables`."""

    apart = None  # where slices are picked in turn, in each arena

    def _arenas(self, session, kind, write, private):
        found = [arena for arena in self.arenas
                 if arena.kind == kind and arena.user == session.uid and arena.session in (None, session)
                 and (arena.session or not private) and (not arena.session or arena in session.private + session.temporary)]
        if write and self.rough:
            found = [arena for arena in found if arena.place == "host" or write == OUT]
        if not found or (write and kind == "ones"):
            raise Skip
        return found

    def _offset(self, arena, n):
        """Anywhere, or behind what was picked last, so that jobs have nothing to do with each other."""
        offset = self.random.randrange(arena.n - n + 1)
        if self.apart is not None:
            offset = self.apart.get(arena, offset)
            if offset > arena.n - n:
                offset = 0
            self.apart[arena] = offset + n + self.random.choice((-n % 64, -n % 64, 1))
        elif self.random.random() < 0.6:
            offset -= offset % 64
        return offset

    def pick(self, job, kind, n, direction, avoid=(), private=False):
        """A slice for an operation: one that the job has already, or any."""
        write = direction != IN and direction
        known = [slice_ for slice_ in job.uses
                 if slice_.n == n and slice_.arena.kind == kind and slice_ not in avoid and not (private and not slice_.arena.session)]
        if known and self.random.random() < 0.4:
            slice_ = self.random.choice(known)
            if job.takes(slice_, write) and (not write or slice_.arena in self._arenas(job.session, kind, write, private)):
                job.use(slice_, direction)
                return slice_
        for _ in range(10):
            arena = self.random.choice(self._arenas(job.session, kind, write, private))
            if n > arena.n:
                continue
            offset = self._offset(arena, n)
            slice_ = Slice(arena, offset, n)
            if slice_ in avoid or not job.takes(slice_, write):
                continue
            job.use(slice_, direction)
            return slice_
        raise Skip

    def arg(self, job, slice_, direction):
        return f"{direction}={job.session.buffer(slice_)}"

    # ---- operations ----

    def geometry(self):
        grid = (self.random.choice((1, 1, 2, 5)), self.random.choice((1, 1, 1, 2)), self.random.choice((1, 1, 1, 1, 3)))
        block = (self.random.choice((1, 32, 64, 128)), self.random.choice((1, 1, 1, 2)), self.random.choice((1, 1, 1, 2)))
        return grid, block

    def launch(self, job, module, kernel, how, args, effect, shared=0, settable=None):
        grid, block = how
        words = [self.arg(job, *arg) if isinstance(arg, tuple) else arg for arg in args]
        job.add(" ".join(map(str, ["launch", module, kernel, *grid, *block, shared, *words])), effect, settable)

    def bump(self, job, slice_, how):
        s = self.random.randrange(1 << 32)
        job.use(slice_, INOUT)
        self.launch(job, SOURCE, "bump", how, [(slice_, INOUT), f"u32={s}", f"u32={slice_.n}"],
                    lambda at, s=s: meaning.bump(at(slice_), s), settable=1)

    def ponder(self, job):
        x = self.random.randrange(1 << 32)
        c = self.pick(job, "u32", 1, INOUT, private=True)

        def effect(at):
            at(c)[0] = x

        self.launch(job, SOURCE, "ponder", ((1, 1, 1), (1, 1, 1)), [(c, INOUT), f"u32={x}"], effect)

    def draw_source(self, job, kernel, n, how, private=False):
        """One launch of a kernel of ours on `n` words."""
        grid, block = how
        wrote = self.random.choice((OUT, INOUT)) if not (private and self.rough) else INOUT
        s = self.random.randrange(1 << 32)
        number = f"u32={n}"
        pick = lambda *args, **options: self.pick(job, "u32", *args, private=private, **options)  # noqa: E731
        if kernel == "mix":
            a, b = pick(n, IN), pick(n, IN)
            c = pick(n, wrote)
            self.launch(job, SOURCE, kernel, how, [(a, IN), (b, IN), (c, wrote), f"u32={s}", number],
                         lambda at, s=s: meaning.mix(at(a), at(b), at(c), s), settable=3)
        elif kernel == "bump":
            self.bump(job, pick(n, INOUT), how)
        elif kernel == "spread":
            a = pick(n, IN)
            c = pick(2 * n, wrote, avoid=(a,))
            self.launch(job, SOURCE, kernel, how, [(a, IN), (c, wrote), number], lambda at: meaning.spread(at(a), at(c)))
        elif kernel == "count":
            a = pick(n, IN)
            c = pick(64, wrote, avoid=(a,))
            self.launch(job, SOURCE, kernel, how, [(a, IN), (c, wrote), number], lambda at: meaning.count(at(a), at(c)))
        elif kernel == "total":
            a = pick(n, IN)
            c = pick(self.random.choice((1, 2, 64)), wrote, avoid=(a,))
            self.launch(job, SOURCE, kernel, how, [(a, IN), (c, wrote), number], lambda at: meaning.total(at(a), at(c)))
        elif kernel == "turn":
            a = pick(n, IN)
            c = pick(n, wrote, avoid=(a,))
            shared = WORD * block[0] * block[1] * block[2]
            self.launch(job, SOURCE, kernel, how, [(a, IN), (c, wrote), number],
                         lambda at: meaning.turn(at(a), at(c), grid, block), shared)
        elif kernel == "where":
            c = pick(n, wrote)
            self.launch(job, SOURCE, kernel, how, [(c, wrote), number], lambda at: meaning.where(at(c), grid, block))
        elif kernel == "scalars":
            c = pick(n, wrote)
            mixed = numpy.zeros(1, numpy.dtype("i1,i2,i4,i8", align=True))
            mixed[0] = tuple(self.random.randrange(-100, 100) for _ in range(4))
            a = self.random.randrange(-100, 100)
            values = [int(mixed[0][i]) for i in range(4)]
            self.launch(job, SOURCE, kernel, how,
                         [f"bytes={mixed.tobytes().hex()}", (c, wrote), f"bytes={a & 255:02x}", number],
                         lambda at: meaning.scalars(values, at(c), a))

    def draw_builtin(self, job, kernel, n, how):
        """One launch of a built-in kernel; of f32 only what cannot become infinite."""
        number, name = f"u64={n}", f"{kernel}_f32"
        pick = lambda *args, **options: self.pick(job, *args, **options)  # noqa: E731
        if kernel in ("sum", "sum_of_squares", "dot"):
            how = ((1, 1, 1), (self.random.choice((32, 64, 256)), 1, 1))
            reads = [pick("f32", n, IN) for _ in range(2 if kernel == "dot" else 1)]
            s = pick("sums", 1, OUT)
            self.launch(job, BUILTIN, name, how, [*((x, IN) for x in reads), (s, OUT), number],
                         lambda at: getattr(meaning, kernel)(*(at(x) for x in reads), at(s)))
            return
        if kernel == "gemv":
            m = self.random.choice((1, 3, 8))
            a, x = pick("f32", m * n, IN), pick("f32", n, IN)
            y = pick("sums", m, OUT)
            self.launch(job, BUILTIN, name, how, [(a, IN), (x, IN), (y, OUT), f"u64={m}", number],
                         lambda at: meaning.gemv(at(a), at(x), at(y), m, n))
            return

        scalars, factor = [], self.random.choice((1, -1, 2, -0.5))
        reads = [pick("ones" if kernel == "divide" and i else "f32", n, IN) for i in range(2 if kernel in ("add", "divide") else 1)]
        direction = INOUT if kernel == "axpy" else OUT
        y = pick("f32", n, direction)
        if direction == OUT:
            direction = self.random.choice((OUT, WHOLE))  # all of it is written
        bound = 2 + max(x.arena.bound for x in [*reads, y])
        if bound > 90:
            raise Skip
        y.arena.bound = bound
        if kernel in ("add", "divide"):
            self.launch(job, BUILTIN, name, how, [*((x, IN) for x in reads), (y, direction), number],
                         lambda at: getattr(meaning, kernel)(at(reads[0]), at(reads[1]), at(y)))
        elif kernel == "polynomial":
            c = pick("ones", self.random.choice((1, 2)), IN)
            self.launch(job, BUILTIN, name, how, [(c, IN), f"u64={c.n}", (reads[0], IN), (y, direction), number],
                         lambda at: meaning.polynomial(at(c), at(reads[0]), at(y)))
        else:
            scalars = [f"f32={factor}"]
            self.launch(job, BUILTIN, name, how, [*scalars, (reads[0], IN), (y, direction), number],
                         lambda at: getattr(meaning, kernel)(factor, at(reads[0]), at(y)))

    def draw_copy(self, job, kind, n, private=False):
        a = self.pick(job, kind, n, IN, private=private)
        whole = self.random.random() < 0.5 and not private
        target = "sums" if kind == "f32" and self.random.random() < 0.3 else kind
        c = self.pick(job, target, n if whole else self.random.choice([m for m in SIZES if m >= n]),
                       OUT if whole else INOUT, avoid=(a,), private=private)
        if target == "f32":
            c.arena.bound = max(c.arena.bound, a.arena.bound)
        offset, length = self.random.randrange(c.n - a.n + 1), a.n
        line = " ".join(map(str, ["copy", job.session.buffer(c), WORD * offset, job.session.buffer(a), 0, WORD * length]))

        def effect(at):
            at(c).view(numpy.uint32)[offset:offset + length] = at(a).view(numpy.uint32)

        job.add(line, effect)

    def draw_fill(self, job, n, private=False):
        kind = "u32" if private else self.random.choice(("u32", "u32", "sums"))
        whole = self.random.random() < 0.5 and not private
        c = self.pick(job, kind, n, OUT if whole else INOUT, private=private)
        width = self.random.choice((1, 2, 4))
        length = WORD * n if whole else width * self.random.randrange(1, WORD * n // width + 1)
        offset = 0 if whole else width * self.random.randrange((WORD * n - length) // width + 1)
        value = self.random.randrange(1 << (8 * width))
        if kind == "sums":
            width, value, offset, length = 4, 0x40490fdb, 0, WORD * n
        job.add(" ".join(map(str, ["fill", job.session.buffer(c), offset, length, value, width])),
                lambda at: _fill(at(c), offset, length, value, width))

    def draw_next(self, job):
        """A kernel of a module with variables, which keep their values from job to job."""
        n = self.random.choice((1, 3, 64))
        c = self.pick(job, "u32", n, OUT)
        session = job.session

        def effect(at):
            at(c)[:] = session.counter + numpy.arange(n, dtype=numpy.uint32)
            session.counter += n

        self.launch(job, VARIABLES, "next", ((1, 1, 1), (1, 1, 1)), [(c, OUT), f"u32={n}"], effect)

    def draw_say(self, job):
        x = self.random.randrange(1 << 32)
        c = self.pick(job, "u32", 1, OUT)
        job.output += f"{x};"

        def effect(at):
            at(c)[0] = x

        self.launch(job, PRINTS, "say", ((1, 1, 1), (32, 1, 1)), [(c, OUT), f"u32={x}"], effect)

    def draw_any(self, job):
        n, dice = self.random.choice(SIZES), self.random.random()
        if dice < 0.45:
            self.draw_source(job, self.random.choice(SOURCE_KERNELS), n, self.geometry())
        elif dice < 0.75:
            self.draw_builtin(job, self.random.choice(BUILTIN_KERNELS), min(n, 1024), self.geometry())
        elif dice < 0.86:
            self.draw_copy(job, self.random.choice(("u32", "u32", "f32")), n)
        elif dice < 0.96:
            self.draw_fill(job, n)
        elif dice < 0.98 and self.variables:
            self.draw_next(job)
        else:
            self.draw_say(job)

    def attempt(self, job, draw, *args, **options):
        """One more operation, or none."""
        uses = dict(job.uses)
        n_operations = len(job.operations)
        try:
            draw(job, *args, **options)
        except Skip:
            job.uses = uses
            assert len(job.operations) == n_operations
        return len(job.operations) > n_operations


def _fill(words, offset, length, value, width):
    data = words.view(numpy.uint8)[offset:offset + length]
    data[:] = numpy.resize(numpy.frombuffer(value.to_bytes(width, "little"), numpy.uint8), length)
