# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at every point where the interpreter can run a signal handler: no object of the library is freed twice or lost."""

import collections
import dis
import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from harness.patience import until
from test_bad_input import ctrl_c, is_in  # noqa: F401

N = 64
ONE = (1, 1)
LOOKS = ("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")  # the instructions after which the interpreter looks


class Interrupt:
    """Raises KeyboardInterrupt at the n-th such point of the package, once."""

    def __init__(self, folder: str, n: int):
        self.folder = folder
        self.left = n
        self.last = {}

    def __enter__(self):
        sys.settrace(self.on_call)
        return self

    def __exit__(self, *exception):
        sys.settrace(None)

    def on_call(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(self.folder):
            return None
        frame.f_trace, frame.f_trace_opcodes = self.on_event, True
        sys.settrace(self.on_call)  # from Python 3.12 on, opcodes are reported only after this call
        self.last[id(frame)] = ""
        return self.on_event

    def on_event(self, frame, event, arg):
        if event != "opcode":
            return self.on_event
        was = self.last[id(frame)]
        self.last[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if was.startswith(LOOKS):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.on_event


class Owned:
    """Counts what the library made and what was freed, without freeing it: no address comes twice."""

    def __init__(self, native, monkeypatch):
        self.made, self.freed = [], collections.Counter()
        for name in ("job_new", "fire", "buffer_slice", "prepare"):
            monkeypatch.setattr(native, name, self.counted(getattr(native, name)))
        for kind in (native.Job, native.Buffer, native.Prepared):
            monkeypatch.setattr(kind, "__del__", self.free)

    def counted(self, function):
        def call(*args):
            r = function(*args)
            self.made.append(args[-1]._obj.value)  # what byref() refers to
            return r
        return call

    @property
    def free(self):
        def free(handle):
            if handle.value:
                self.freed[handle.value] += 1
        return free

    def check(self):
        gc.collect()
        for made in self.made:
            assert self.freed[made] == 1, f"freed {self.freed[made]} times"
        assert set(self.freed.values()) <= {1}
        self.made.clear()
        self.freed.clear()


def at_every_point(gpuq, owned, play) -> int:
    """Plays it again and again, interrupted one point later each time, until it comes to its end."""
    folder = os.path.dirname(gpuq.__file__)
    n = 0
    while True:
        n += 1
        try:
            with Interrupt(folder, n):
                play()
            owned.check()
            return n
        except KeyboardInterrupt:
            pass
        owned.check()


@pytest.fixture
def owned(gpuq, monkeypatch):
    gpuq.default_client().session
    return Owned(gpuq._native, monkeypatch)


@pytest.mark.parametrize("way", ["done", "poll", "failed", "fire", "slices"])
def test_an_interrupted_job_is_freed_once(gpuq, module, owned, way):
    a, out = gpuq.array(np.arange(2 * N, dtype=np.int32)), gpuq.zeros(2 * N, np.int32)
    kernel = module["add_int"]
    prepared = kernel.prepare((1, N), gpuq.In(a), gpuq.Out(out), 1, N)

    def play():
        if way == "fire":
            prepared.fire(k=2).wait().ran
        elif way == "slices":
            kernel.run((1, N), gpuq.In(a[N:]), gpuq.Out(out[:N]), 3, N).output
        elif way == "failed":
            job = gpuq.job(after="999.1").launch(kernel, (1, N), gpuq.In(a), gpuq.Out(out), 4, N)
            try:
                job.run()
            except gpuq.Error:
                assert job.state == "failed"
        else:
            job = kernel.submit((1, N), gpuq.In(a), gpuq.Out(out), 5, N)
            while way == "poll" and not job.done():
                pass
            result = job.wait()
            assert result.ran >= 0 and result.device == 0

    owned.made.clear()
    assert at_every_point(gpuq, owned, play) > 50
    kernel.run((1, N), gpuq.In(a), gpuq.Out(out), 7, N)
    assert (out[:N] == a[:N] + 7).all()


def test_a_job_that_was_interrupted_at_its_end_can_be_waited_for(gpuq, module, owned):
    """Whatever the first wait had come to, the second one says how it ended."""
    folder, n, interrupted = os.path.dirname(gpuq.__file__), 0, True
    while interrupted:
        n += 1
        out = np.zeros(1, np.int32)
        job = module["add_int"].submit(ONE, np.ones(1, np.int32), gpuq.Out(out), 1, 1)
        gpuq.wait_id(job.id)
        try:
            with Interrupt(folder, n):
                job._wait(None)
            interrupted = False
        except KeyboardInterrupt:
            pass
        assert job.wait().state == "done" and job.state == "done" and out[0] == 2
    assert n > 10


def test_closing_again_does_what_an_interrupted_close_left(gpuq, monkeypatch):
    client = gpuq.connect()
    client.job().fill(np.zeros(1, np.int32), 1).submit().future().add_done_callback(id)
    real, calls = client._dispatcher().stop, []

    def stop():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real()

    monkeypatch.setattr(client._dispatcher(), "stop", stop)
    with pytest.raises(KeyboardInterrupt):
        client.close()
    client.close()
    assert len(calls) == 2 and client._opened == []
    client.close()


LOOP = """
import signal, sys
import numpy as np
import gpuq

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, signal.default_int_handler)
kernel = gpuq.builtin()["add_f32"]
a, c = gpuq.array(np.ones(64, np.float32)), gpuq.zeros(64, np.float32)
kernel.run((1, 64), gpuq.In(a), gpuq.In(a), gpuq.Out(c), 64)
n = 0
while n < 400:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + n % 37 * 0.00005)
        while True:
            kernel.run((1, 64), gpuq.In(a), gpuq.In(a), gpuq.Out(c), 64).ran
    except KeyboardInterrupt:
        n += 1
kernel.run((1, 64), gpuq.In(a), gpuq.In(a), gpuq.Out(c), 64)
print(c[0])
"""


def test_a_loop_of_short_jobs_under_interrupts(gpuq):
    ended = subprocess.run([sys.executable, "-c", LOOP], capture_output=True, text=True, timeout=120,
                           env={**os.environ, "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"})
    assert (ended.returncode, ended.stdout) == (0, "2.0\n"), ended.stderr[-2000:]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_a_module_is_loaded(gpuq, gpuqd):
    """The daemon is stopped meanwhile, so that it cannot answer."""
    from gpuq import waiting
    gpuq.default_client().session
    pid = gpuqd.supervisor()

    def interrupt():
        until(lambda: is_in(threading.main_thread(), waiting.interruptibly), "the main thread to load it")
        os.kill(os.getpid(), signal.SIGINT)

    os.kill(pid, signal.SIGSTOP)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            gpuq.module('extern "C" __global__ void k(int *a) { a[0] = 1; }')
    finally:
        os.kill(pid, signal.SIGCONT)
        thread.join()
    gpuq.module('extern "C" __global__ void k(int *a) { a[0] = 1; }')["k"].run(ONE, gpuq.Out(np.zeros(1, np.int32)))
