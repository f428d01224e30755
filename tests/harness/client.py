# SPDX-License-Identifier: Apache-2.0
"""A client in Python that speaks the protocol itself, so that it can also speak it wrongly."""

import collections
import contextlib
import fcntl
import mmap
import os
import socket
import struct

from . import place
from .messages import pb

HEADER = struct.Struct("<IB3s")
SEALS_IMAGE = 1 | 2 | 4 | 8  # F_SEAL_SEAL, _SHRINK, _GROW, _WRITE
F_ADD_SEALS = 1033

JOBS_MAX, JOBS_BYTES = 256, 64 << 10  # of one message (PROTOCOL.md)

Slice = collections.namedtuple("Slice", "arena offset length")


class Closed(Exception):
    """The daemon ended the connection."""


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, error):
        super().__init__(f"{error.code}: {error.text}")
        self.code = error.code
        self.text = error.text


@contextlib.contextmanager
def _as_user(uid):
    """The kernel notes who connects at the moment of connect(): being it for that moment is enough."""
    if uid is None or uid == os.geteuid():
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class Arena:
    """Memory that the daemon gave; `array()` looks at it through numpy."""

    def __init__(self, client, ready, fd):
        self.client, self.id, self.size, self.device = client, ready.arena, ready.size, ready.device
        self.fd = fd
        self.map = mmap.mmap(fd, self.size) if fd is not None and ready.place == pb.HOST else None

    def slice(self, offset=0, length=None):
        return Slice(self.id, offset, self.size - offset if length is None else length)

    def array(self, dtype, count=-1, offset=0):
        import numpy
        return numpy.frombuffer(self.map, dtype=dtype, count=count, offset=offset)

    def close(self):
        self.client.arenas.pop(self.id, None)
        self.let_go()
        self.client.tell(arena_close=pb.ArenaClose(arena=self.id))

    def let_go(self):
        """Of the descriptor; what is mapped stays."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def parts_of(messages):
    """The jobs in as few messages as they fit in."""
    part, n_bytes = [], 0
    for message in messages:
        size = message.ByteSize() + 16
        if part and (len(part) == JOBS_MAX or n_bytes + size > JOBS_BYTES):
            yield part
            part, n_bytes = [], 0
        part.append(message)
        n_bytes += size
    if part:
        yield part


class Client:
    def __init__(self, path, uid=None, hello=True, waits_for_device=True):
        self.path, self.uid, self.waits_for_device = path, uid, waits_for_device
        self.serial, self.tag = 0, 0
        self.completions = {}
        self.session = None
        self.seen = 0  # completions read, in all
        self.arenas, self.modules, self.prepared = {}, {}, {}  # what there is, by id, to say it again
        self.later = set()  # serials of what was said again
        self.unfinished = {}  # jobs by id: how they were submitted
        self.connect()
        if hello:
            self.welcome = self.hello()

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Waits for its turn to be accepted, as libgpuq does: with settimeout() it would not.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", place.PATIENCE_S, 0))
        with _as_user(self.uid):
            self.socket.connect(str(self.path))
        self.socket.settimeout(place.PATIENCE_S)
        self.bytes, self.fds = b"", collections.deque()

    # ---- bytes ----

    def close(self):
        self.socket.close()
        while self.fds:
            os.close(self.fds.popleft())
        for arena in self.arenas.values():
            arena.let_go()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_bytes(self, data, fds=()):
        if fds:
            sent = socket.send_fds(self.socket, [data], list(fds))
            data = data[sent:]
        self.socket.sendall(data)

    def send_frame(self, payload, fds=()):
        self.send_bytes(HEADER.pack(len(payload), len(fds), b"\0\0\0") + payload, fds)

    def _fill(self, n_bytes):
        while len(self.bytes) < n_bytes:
            try:
                data, fds, _flags, _address = socket.recv_fds(self.socket, 1 << 16, 16)
            except ConnectionResetError:
                data, fds = b"", []
            self.fds.extend(fds)
            if not data:
                raise Closed(f"with {len(self.bytes)} bytes of a frame")
            self.bytes += data

    def receive(self):
        """The next reply and its descriptors."""
        self._fill(HEADER.size)
        length, n_fds, zero = HEADER.unpack_from(self.bytes)
        assert zero == b"\0\0\0"
        self._fill(HEADER.size + length)
        payload = self.bytes[HEADER.size:HEADER.size + length]
        self.bytes = self.bytes[HEADER.size + length:]
        return pb.Reply.FromString(payload), [self.fds.popleft() for _ in range(n_fds)]

    def assert_closed(self):
        """The daemon ends this connection; what it still says first is returned."""
        replies = []
        while True:
            try:
                replies.append(self.receive()[0])
            except Closed:
                return replies

    # ---- requests ----

    def tell(self, **body):
        """Sends a request. Returns its serial."""
        self.serial += 1
        self.send_frame(pb.Request(serial=self.serial, **body).SerializeToString())
        return self.serial

    def _note(self, reply):
        for completion in reply.completions.completions:
            self.seen += 1
            if completion.id not in self.unfinished and completion.id in self.completions:
                assert self.may_hear_twice, "a job ended twice"
                assert completion.state == self.completions[completion.id].state
                continue
            self.completions[completion.id] = completion
            self.unfinished.pop(completion.id, None)

    def answer(self, serial):
        """The reply to a request, with its descriptors; completions that come meanwhile are kept."""
        while True:
            reply, fds = self.receive()
            if reply.serial == serial:
                break
            if self._is_late(reply):
                continue
            assert reply.serial == 0 and not fds, f"unexpected reply: {reply}"
            if reply.WhichOneof("body") == "error":
                raise Refused(reply.error)
            self._note(reply)
        if reply.WhichOneof("body") == "error":
            raise Refused(reply.error)
        return reply, fds

    def call(self, **body):
        return self.answer(self.tell(**body))[0]

    def hello(self, version_min=1, version_max=1, name="test", resume=0):
        welcome = self.call(hello=pb.Hello(version_min=version_min, version_max=version_max,
                                           client=name, resume=resume,
                                           waits_for_device=self.waits_for_device)).welcome
        self.session = welcome.session
        return welcome

    # ---- another supervisor ----

    may_hear_twice = False

    def resume(self):
        """After the supervisor was killed: connects again and says again what is unfinished."""
        self.close()
        self.connect()
        self.may_hear_twice = True
        self.welcome = self.hello(resume=self.session)
        assert self.welcome.resumed
        self.say_again()
        return self

    def say_again(self):
        for arena_id in self.arenas:
            for fd in self.answer(self.tell(arena_open=pb.ArenaOpen(arena=arena_id, resume=True)))[1]:
                os.close(fd)
        for module_id in self.modules:
            self.later.add(self.tell(module_load=self._load_again(module_id)))
        for number, job in self.prepared.items():
            self.later.add(self.tell(prepare=pb.Prepare(job=job, prepared=number)))
        for how in self.unfinished.values():
            self.tell(**how)
        self.tell(resumed=pb.Resumed(seen=self.seen))

    def _is_late(self, reply):
        """An answer to what was said again, for which nobody waits."""
        if reply.serial not in self.later:
            return False
        self.later.remove(reply.serial)
        if reply.WhichOneof("body") == "error":
            raise Refused(reply.error)
        return True

    def _load_again(self, module_id):
        request = pb.ModuleLoad()
        request.CopyFrom(self.modules[module_id])
        request.module = module_id
        return request

    def arena(self, size, place=pb.HOST, device=None):
        request = pb.ArenaCreate(place=place, size=size, device=0 if device is None else device + 1)
        reply, fds = self.answer(self.tell(arena_create=request))
        return self._note_arena(Arena(self, reply.arena, fds[0] if fds else None))

    def _note_arena(self, arena):
        self.arenas[arena.id] = arena
        return arena

    def device_arena(self, size, device=None):
        return self.arena(size, pb.DEVICE, device)

    def open_arena(self, arena_id):
        reply, fds = self.answer(self.tell(arena_open=pb.ArenaOpen(arena=arena_id)))
        return self._note_arena(Arena(self, reply.arena, fds[0] if fds else None))

    def array(self, values):
        """A host arena that holds these values (at least one byte)."""
        import numpy
        values = numpy.ascontiguousarray(values)
        arena = self.arena(max(values.nbytes, 1))
        if values.nbytes:
            arena.array(values.dtype, values.size)[:] = values.reshape(-1)
        return arena

    # ---- modules ----

    def image(self, data, seals=SEALS_IMAGE):
        arena = self.arena(max(len(data), 1), pb.IMAGE)
        os.pwrite(arena.fd, data, 0)
        if seals:
            fcntl.fcntl(arena.fd, F_ADD_SEALS, seals)
        os.close(arena.fd)
        arena.fd = None
        return arena

    def load(self, source, format=pb.AUTO, options=(), name="test.cu", device=None):
        data = source.encode() if isinstance(source, str) else source
        request = pb.ModuleLoad(format=format, image=self.image(data).id, length=len(data),
                                options=options, name=name, device=0 if device is None else device + 1)
        self.arenas.pop(request.image)  # consumed
        return self._load(request)

    def builtin(self, options=()):
        return self._load(pb.ModuleLoad(format=pb.BUILTIN, options=options))

    def _load(self, request):
        module = self.call(module_load=request).module
        self.modules[module.module] = request
        return module

    # ---- jobs ----

    def submit(self, *jobs):
        """Numbers and submits them, in one message if they fit. Returns the ids, or the one id."""
        messages = [job.message if isinstance(job, Job) else job for job in jobs]
        for message in messages:
            self.tag += 1
            message.tag = self.tag
        ids = [self.session << 32 | message.tag for message in messages]
        self.unfinished.update({job_id: {"submit": pb.Submit(jobs=[message])} for job_id, message in zip(ids, messages)})
        for part in parts_of(messages):
            self.tell(submit=pb.Submit(jobs=part, seen=self.seen))
        return ids[0] if len(ids) == 1 else ids

    def wait(self, job_id):
        """The completion of one of this client's own jobs."""
        while job_id not in self.completions:
            reply, _fds = self.receive()
            if self._is_late(reply):
                continue
            if reply.WhichOneof("body") == "error":
                raise Refused(reply.error)
            self._note(reply)
        return self.completions[job_id]

    def run(self, job):
        return self.wait(self.submit(job))

    def run_well(self, job):
        completion = self.run(job)
        assert completion.state == pb.DONE, f"{completion.error.code}: {completion.error.text}"
        return completion

    def cancel(self, *ids, all=False):
        return self.call(cancel=pb.Cancel(ids=ids, all=all)).cancelled

    def queue(self, **fields):
        """All pages, put together."""
        entries, following = {}, 0
        while True:
            page = self.call(queue_get=pb.QueueGet(next=following, **fields)).queue
            entries.update((entry.id, entry) for entry in page.entries)
            following = page.next
            if not following:
                return entries

    def status(self):
        return self.call(status_get=pb.StatusGet()).status


# ---- building a job ----

Scalar = collections.namedtuple("Scalar", "data kind")
Use = collections.namedtuple("Use", "slice direction")
Texture = collections.namedtuple("Texture", "use fields")


def _slice(what):
    return what.slice() if isinstance(what, Arena) else what


def In(what):
    return Use(_slice(what), pb.IN)


def Out(what):
    return Use(_slice(what), pb.OUT)


def OutWhole(what):
    return Use(_slice(what), pb.OUT_WHOLE)


def InOut(what):
    return Use(_slice(what), pb.INOUT)


def texture(what, **fields):
    """A texture object over it; fields as of pb.Texture, but for the buffer."""
    return Texture(In(what), fields)


def i32(value):
    return Scalar(struct.pack("<i", value), pb.I32)


def u32(value):
    return Scalar(struct.pack("<I", value), pb.I32)


def i64(value):
    return Scalar(struct.pack("<q", value), pb.I64)


def u64(value):
    return Scalar(struct.pack("<Q", value), pb.I64)


def f32(value):
    return Scalar(struct.pack("<f", value), pb.F32)


def f64(value):
    return Scalar(struct.pack("<d", value), pb.F64)


def three(what):
    what = (what,) if isinstance(what, int) else tuple(what)
    return what + (0,) * (3 - len(what))


class Job:
    """A job under construction; `message` is what is sent."""

    def __init__(self, **fields):
        self.fields = fields
        self.buffers, self.kernels, self.operations = [], [], []

    def _index(self, list_, item):
        if item not in list_:
            list_.append(item)
        return list_.index(item)

    def buffer(self, use):
        return self._index(self.buffers, use)

    def kernel(self, module, name):
        return self._index(self.kernels, (getattr(module, "module", module), name))

    def launch(self, module, name, args=(), grid=1, block=1, shared=0, cooperative=False, cluster=0):
        launch = pb.Launch(kernel=self.kernel(module, name), shared_bytes=shared, cooperative=cooperative)
        for field, values in (("grid", grid), ("block", block), ("cluster", cluster)):
            for axis, value in zip("xyz", three(values)):
                setattr(launch, f"{field}_{axis}", value)
        for arg in args:
            if isinstance(arg, Use):
                launch.arguments.add(buffer=self.buffer(arg))
            elif isinstance(arg, Texture):
                launch.arguments.add(texture=pb.Texture(buffer=self.buffer(arg.use), **arg.fields))
            else:
                launch.arguments.add(scalar=arg.data, kind=arg.kind)
        self.operations.append(pb.Operation(launch=launch))
        return self

    def _operand(self, what, direction, offset):
        if isinstance(what, tuple) and not isinstance(what, Slice):
            return pb.Operand(variable=self.kernel(*what), offset=offset)
        return pb.Operand(buffer=self.buffer(Use(_slice(what), direction)), offset=offset)

    def copy(self, to, source, length, to_offset=0, source_offset=0, direction=pb.INOUT):
        """Between buffers, or a (module, variable) pair on one side."""
        self.operations.append(pb.Operation(copy=pb.Copy(
            to=self._operand(to, direction, to_offset), **{"from": self._operand(source, pb.IN, source_offset)},
            length=length)))
        return self

    def fill(self, what, length, value=0, width=1, offset=0, direction=pb.INOUT):
        self.operations.append(pb.Operation(fill=pb.Fill(
            buffer=self.buffer(Use(_slice(what), direction)), offset=offset, length=length, value=value,
            width=width)))
        return self

    @property
    def message(self):
        return pb.Job(
            buffers=[pb.Buffer(arena=use.slice.arena, offset=use.slice.offset, length=use.slice.length,
                               direction=use.direction) for use in self.buffers],
            kernels=[pb.Kernel(module=module, name=name) for module, name in self.kernels],
            operations=pb.Operations(operations=self.operations).SerializeToString(), **self.fields)
