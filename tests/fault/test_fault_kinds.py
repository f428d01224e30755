# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault that one job or one user can bring about, while four users with four processes each work
on. The guilty one is told what happened; nobody else notices, and every result of theirs is compared."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import numpy
import pytest

from harness import forged, kernels, place, processes, rubbish
from harness.client import Client, InOut, Job, Out, Refused, u64
from harness.daemon import Daemon, as_user
from harness.kernels import BOMB, FAR, Gate, assert_failed, gate_job, held_job
from harness.load import Load, USERS
from harness.messages import pb
from harness.patience import until
from harness.remains import Remains

pytestmark = [pytest.mark.root, pytest.mark.whole_machine]

GUILTY = USERS[0]
LONER = max(USERS) + 1  # without bystanders
GUILTY_KERNELS = kernels.BASIC + r"""
#include <assert.h>
extern "C" __global__ void traps(int *out) { __trap(); }
extern "C" __global__ void claims(int *out) { assert(out == 0 && "as it was told"); }
"""
RECURSION = """
__device__ __noinline__ int deeper(volatile int *out, int n)
{
        volatile char room[256];
        room[0] = (char)n;
        return n < 0 ? 0 : deeper(out, n + 1) + room[0];
}
extern "C" __global__ void recurses(int *out) { out[0] = deeper(out, 1); }
"""
COUNTER = """
__device__ int counter;
extern "C" __global__ void count(int *out) { *out = ++counter; }
"""
# A text of 10 GB, for which compilers have 4 GiB.
HOG = "".join(f"#define {name} {10 * (before + ' ')}\n" for before, name in zip(['"' + 1000 * "x" + '"', *"ABCDEF"], "ABCDEFG")) + """
__device__ const char x[] = G;
extern "C" __global__ void k(char *out) { out[0] = x[out[1]]; }
"""
# Takes a C compiler long.
LONG_PTX = (".version 6.3\n.target sm_60\n.address_size 64\n.visible .entry long(.param .u64 out) {\n.reg .u32 %r<3>;\n"
            + "".join(f"L{i}: mad.lo.u32 %r1, %r1, %r2, {i};\nsetp.gt.u32 %p, %r1, %r2;\n@%p bra L{i * 7919 % 20000};\n" for i in range(20000))
            + "ret;\n}\n").replace(".reg", ".reg .pred %p;\n.reg", 1)
NO_PATH = b"@hang-path"  # of image.c
FAULT_OR_HALF = {pb.E_FAULT, pb.E_HALF_WRITTEN}


def image():
    """Of the CPU driver: image.c."""
    return pathlib.Path(place.test_program("gpuq-test-image.so")).read_bytes()


class Crowd:
    """A service with its bystanders, for all tests of this file."""

    def __init__(self, daemon, load):
        self.daemon, self.load = daemon, load
        self.others = [member for member in load.members if member.uid != GUILTY]

    def connect(self):
        client = self.daemon.connect(uid=GUILTY)
        return client, client.load(GUILTY_KERNELS)

    def worker(self):
        """The guilty user's, not what it has just forked or what looks for leaks in it, and not its express worker."""
        with Client(self.daemon.socket, uid=GUILTY) as client:
            def main():
                return [worker.pid for worker in client.status().workers
                        if worker.uid == GUILTY and not worker.express and worker.pid in self.daemon.workers()]

            return until(main, "the worker of the guilty one")[0]

    @contextlib.contextmanager
    def without_express(self, client):
        """What is asked of a user goes to the one worker."""
        with self.daemon.configured(express="no"):
            until(lambda: not any(worker.express for worker in client.status().workers), "express workers to end")
            yield

    def run_in_vain(self, client, job):
        """Returns the id of a job that a worker was given which does nothing."""
        job = client.submit(job)
        until(lambda: job in client.queue() and client.queue()[job].state == pb.RUNNING, "it to be handed over")
        return job

    def plant(self, client, image, *kernels_of_it):
        return forged.plant(client, self.daemon.settings["cache_dir"], image, *kernels_of_it)

    def processes_of(self, uid, name):
        return [pid for pid in processes.named(self.daemon.process.pid, name) if processes.uid(pid) == uid]

    def settle(self):
        """All go on, and nobody but the guilty user's own processes had any error so far."""
        self.load.progress(2)
        self.load.assert_only(set(), self.others)
        # In flight in the same worker: an innocent one may be told that its data is half written.
        self.load.assert_only(FAULT_OR_HALF, self.load.of(GUILTY), ["GPUQ_E_INTERNAL kind 6: the worker process died while it loaded"])


@pytest.fixture(scope="module")
def crowd(compile_cache):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-cache-"))
    folder.chmod(0o755)
    daemon = Daemon(private=False, cache=folder, cpu_threads=1)
    daemon.start()
    try:
        remains = Remains(daemon)
        with Load(daemon) as load:
            yield Crowd(daemon, load)
        for client in daemon.clients:
            client.close()
        remains.assert_none()
        assert sum(load.codes(load.members).values()) > 0
    finally:
        daemon.stop()
        shutil.rmtree(folder)


@pytest.fixture
def guilty(crowd, tell):
    """(crowd, client, module); afterwards all are well, and what lies in its device memory is as it was."""
    client, module = crowd.connect()
    values = numpy.random.default_rng(3).integers(0, 1 << 30, 1 << 14).astype(numpy.int32)
    kept = client.device_arena(values.nbytes)
    client.run_well(Job().copy(kept, client.array(values), values.nbytes))
    before = sum(crowd.load.codes().values())
    yield crowd, client, module
    back = client.arena(values.nbytes)
    until(lambda: client.run(Job().copy(back, kept, values.nbytes)).state == pb.DONE, "its next job to be right")
    numpy.testing.assert_array_equal(back.array(numpy.int32), values)
    crowd.settle()
    tell(faults=1, jobs=sum(crowd.load.codes().values()) - before)
    client.close()


# ---- kernels ----

@pytest.mark.parametrize("kernel, arguments, words", [
    ("wild", lambda client: [InOut(client.arena(4)), u64(FAR)], ["illegal_address"]),
    ("traps", lambda client: [Out(client.arena(4))], ["launch_failed" if not place.on_gpu() else "cuda_error"]),
    ("claims", lambda client: [Out(client.arena(4))], ["assert"]),
])
def test_a_kernel_that_faults(guilty, kernel, arguments, words):
    _crowd, client, module = guilty
    completion = client.run(Job().launch(module, kernel, arguments(client)))
    assert_failed(completion, pb.E_FAULT, kernel, "caused the fault", *words)
    if kernel == "claims":
        assert "as it was told" in completion.output and "claims" in completion.output


@pytest.mark.cpu
@pytest.mark.parametrize("kernel, words", [("exits", ["exited with status 3"]), ("aborts", ["illegal_instruction"])])
def test_a_kernel_that_takes_its_worker_along(guilty, kernel, words):
    """Only the CPU driver runs a kernel in the worker's own process."""
    crowd, client, _module = guilty
    module = client.load(crowd.plant(client, image(), "exits", "aborts"), format=pb.PTX, name=forged.NAME)
    completion = client.run(Job().launch(module, kernel, [Out(client.arena(4)), Out(client.arena(4))]))
    assert_failed(completion, pb.E_FAULT, kernel, "caused the fault", *words)


@pytest.mark.cpu
def test_a_kernel_that_calls_itself_without_end(guilty):
    _crowd, client, _module = guilty
    completion = client.run(Job().launch(client.load(RECURSION), "recurses", [Out(client.arena(4))]))
    assert_failed(completion, pb.E_FAULT, "recurses", "caused the fault", "illegal_address")


def test_a_kernel_that_never_ends(guilty):
    _crowd, client, module = guilty
    completion = client.run(Job(timeout_ms=100).launch(module, "forever", [Out(client.arena(4))]))
    assert_failed(completion, pb.E_TIMEOUT, "forever", "0.100 s")


def test_a_kernel_that_faults_again_and_again(guilty):
    _crowd, client, module = guilty
    for _ in range(5):
        completion = client.run(Job().launch(module, "wild", [InOut(client.arena(4)), u64(FAR)]))
        assert_failed(completion, pb.E_FAULT, "wild")


def test_more_device_memory_than_there_is(guilty):
    _crowd, client, _module = guilty
    for size in (1 << 38, 1 << 42):
        with pytest.raises(Refused) as refused:
            client.device_arena(size)
        assert refused.value.code in (pb.E_MEMORY, pb.E_INVALID, pb.E_QUOTA) and {1 << 38: '256 GiB', 1 << 42: '4.00 TiB'}[size] in refused.value.text
    client.run_well(Job().fill(client.device_arena(4096), 4096, 7))


# ---- workers ----

def test_a_worker_that_is_killed(guilty):
    crowd, client, module = guilty
    worker = crowd.worker()
    os.kill(worker, signal.SIGKILL)
    until(lambda: not processes.is_alive(worker), "it to end")
    until(lambda: client.run(Job().launch(module, "nothing")).state == pb.DONE, "a new one")


def test_a_worker_that_is_stopped_by_its_own_user(guilty):
    """Its jobs stand still, nobody else's; a cancelled job is reason enough to end it."""
    crowd, client, _module = guilty
    module, out = client.load(COUNTER), client.arena(4)  # its jobs do not go to another worker
    client.run_well(Job().launch(module, "count", [Out(out)]))
    worker = crowd.worker()
    subprocess.run(["kill", "-STOP", str(worker)], check=True, **as_user(GUILTY))
    job = crowd.run_in_vain(client, Job().launch(module, "count", [Out(out)]))
    crowd.load.progress(3, crowd.others)
    client.cancel(job)
    assert client.wait(job).state in (pb.CANCELLED, pb.DONE)
    until(lambda: not processes.is_alive(worker), "it to be ended")


def test_nobody_stops_anothers_worker(guilty):
    crowd, _client, _module = guilty
    ended = subprocess.run(["kill", "-STOP", str(crowd.worker())], capture_output=True, **as_user(USERS[1]))
    assert ended.returncode != 0


class Hang:
    """A module whose constructor never returns, and the session that loads it."""

    def __init__(self, crowd, client, kernel):
        self.mark = pathlib.Path(crowd.daemon.folder) / kernel
        self.mark.touch()
        self.mark.chmod(0o666)
        path = os.fsencode(self.mark)
        ptx = crowd.plant(client, image().replace(NO_PATH + bytes(len(path)), path + bytes(len(NO_PATH))), kernel)
        self.worker, self.client = crowd.worker(), crowd.daemon.connect(uid=GUILTY)
        self.client.tell(module_load=pb.ModuleLoad(format=pb.PTX, image=self.client.image(ptx.encode()).id, length=len(ptx),
                                                   name=forged.NAME))
        self.wait()

    def wait(self):
        until(lambda: self.mark.stat().st_size == 5, "a worker to hang")
        os.truncate(self.mark, 0)


@pytest.mark.cpu
def test_a_worker_that_hangs_in_a_driver_call_ends_with_the_session_that_brought_it_there(guilty):
    crowd, client, module = guilty
    with crowd.without_express(client):  # it would load the module too, and hang
        hang = Hang(crowd, client, "hangs_for_its_session")
        job = client.submit(Job().launch(module, "nothing"))
        crowd.load.progress(3, crowd.others)
        assert processes.is_alive(hang.worker)  # a load may take long
        hang.client.close()
        until(lambda: not processes.is_alive(hang.worker), "it to be ended")
        assert client.wait(job).state == pb.DONE


@pytest.mark.cpu
def test_a_worker_that_hangs_in_a_driver_call_ends_with_a_job_behind_it(guilty):
    """If the job is cancelled. The next worker hangs, too, until the session goes."""
    crowd, client, module = guilty
    with crowd.without_express(client):
        hang = Hang(crowd, client, "hangs_for_a_job")
        job = crowd.run_in_vain(client, Job().launch(module, "nothing"))
        crowd.load.progress(3, crowd.others)
        client.cancel(job)
        assert client.wait(job).state == pb.CANCELLED
        until(lambda: not processes.is_alive(hang.worker), "it to be ended")
        hang.wait()
        hang.client.close()


RUBBISH = {
    "a head beyond everything": lambda rings: rings.set_head(rings.read_u32(rings.to_supervisor) + 0x40000000),
    "an odd head": lambda rings: rings.set_head(rings.read_u32(rings.to_supervisor) + 13),
    "a length of 4 GiB": lambda rings: rings.add_record(0xfffffff0),
    "a skip that comes alone": lambda rings: rings.add_record(0xffffffff),
    "no message": lambda rings: rings.add_record(64, bytes(range(128, 192))),
    "a message cut short": lambda rings: rings.add_record(5, b"\x1a\x7f\x08\x01\x12"),
    "a tail ahead of the head": lambda rings: rings.set_tail(rings.read_u32(rings.to_worker) + 4096),
}


@pytest.mark.parametrize("what", RUBBISH)
def test_a_worker_that_writes_rubbish_into_its_ring(guilty, what):
    crowd, client, module = guilty
    worker = crowd.worker()
    told = crowd.daemon.log().count(f"worker {worker} killed: protocol error")
    with crowd.without_express(client), rubbish.rings(worker) as rings:
        if what == "a tail ahead of the head":
            os.kill(worker, signal.SIGSTOP)  # or the worker may set it right before it is looked at
        RUBBISH[what](rings)
        client.submit(Job().launch(module, "nothing"))  # something to write to it, too
        until(lambda: crowd.daemon.log().count(f"worker {worker} killed: protocol error") > told, "it to be found out")
    until(lambda: not processes.is_alive(worker), "it to be killed")
    assert crowd.daemon.log().count(f"worker {worker} killed: protocol error") == told + 1
    until(lambda: client.run(Job().launch(module, "nothing")).state == pb.DONE, "a new worker")


# ---- compilers ----

def load_refused(client, source, then=None, format=pb.SOURCE):
    """The error of a module that is not to be had; `then` is done meanwhile."""
    serial = client.tell(module_load=pb.ModuleLoad(format=format, image=client.image(source.encode()).id,
                                                   length=len(source), name="guilty.cu"))
    if then:
        then()
    with pytest.raises(Refused) as refused:
        client.answer(serial)
    return refused.value


def compilers(crowd):
    return processes.named(crowd.worker(), "gpuqd-compiler")


def kill_compiler(crowd, which, number):
    """which: 0 the compiler's parent, 1 its child that has the limits, 2 what that one runs."""
    def find():
        """Not one that only reads the cache, for another process of this user."""
        found = {pid: processes.children(pid) for pid in processes.children(crowd.worker()) if processes.name(pid) == "gpuqd-compiler"}
        time.sleep(0.5)
        lasting = [(pid, below[0]) for pid, below in found.items() if below and processes.children(pid) == below]
        return [pair[which] for pair in lasting if processes.is_alive(pair[1])]

    def find_run():
        below = [pid for compiler in compilers(crowd) for pid in processes.children(compiler)]
        return [pid for pid in below if processes.name(pid).startswith(("clang", "gcc", "cc", "x86_64", "aarch64"))]

    os.kill(until(find_run if which == 2 else find, "a compiler at work")[0], number)


@pytest.mark.cpu
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_compiler_that_crashes(guilty, which):
    """Clang prints its stack and goes on after a SIGABRT that somebody else sent, so that one is killed."""
    crowd, client, _module = guilty
    bomb = (LONG_PTX, pb.PTX) if which == 2 else (BOMB + f"// {which}\n", pb.SOURCE)  # NVRTC would run nothing
    number = signal.SIGKILL if which == 2 else signal.SIGABRT
    error = load_refused(client, bomb[0], lambda: kill_compiler(crowd, which, number), bomb[1])
    assert error.code == pb.E_COMPILE and ("abort" in error.text.lower() or f"signal {number:d}" in error.text), error
    until(lambda: not compilers(crowd), "its processes to end")


def test_a_compiler_that_never_ends(crowd, tell):
    """Of a user who has no worker yet: workers keep the limit that they were started with."""
    before = sum(crowd.load.codes().values())
    with crowd.daemon.configured(compile_timeout_s=2), crowd.daemon.connect(uid=LONER) as client:
        error = load_refused(client, BOMB)
        assert error.code == pb.E_COMPILE and "2 s" in error.text, error
        until(lambda: not crowd.processes_of(LONER, "gpuqd-compiler"), "its processes to end")
    crowd.settle()
    tell(faults=1, jobs=sum(crowd.load.codes().values()) - before)


@pytest.mark.cpu
def test_a_compiler_that_fills_its_memory(guilty):
    _crowd, client, _module = guilty
    error = load_refused(client, HOG)
    assert error.code == pb.E_COMPILE, error


# ---- retries ----

def test_retries_are_seen_in_the_queue_alone(lend_gpuqd):
    """The innocent job in flight runs again; its client sees one good end, and `gpuq queue` the count."""
    gpuqd = lend_gpuqd(express="no")  # both jobs are in one worker
    client, other = gpuqd.connect(), gpuqd.connect()
    module, theirs = client.load(kernels.BASIC), other.load(kernels.BASIC)
    values = numpy.arange(64, dtype=numpy.int32)
    target, gate = other.arena(values.nbytes), Gate(other, n_held=2)
    victim = other.submit(held_job(theirs, other.array(values), target, 64, gate))
    bad = client.submit(gate_job(module, gate).launch(module, "wild", [Out(client.arena(4)), u64(FAR)]))
    gate.wait_for(2)
    assert [entry.retries for entry in other.queue().values()] == [0, 0]
    assert gpuqd.run("drain", 0).returncode == 0  # what runs there goes on, and what is to run again waits
    os.kill(gpuqd.workers()[0], signal.SIGKILL)
    until(lambda: [entry.retries for entry in other.queue().values()] == [1, 1], "their retries")
    assert gpuqd.run("resume", 0).returncode == 0
    assert_failed(client.wait(bad), pb.E_FAULT, "wild", "it failed again when it ran alone")
    assert other.wait(victim).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * values)
