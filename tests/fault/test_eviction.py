# SPDX-License-Identifier: Apache-2.0
"""A device that has no memory for one more user's context."""

import pathlib
import threading

import numpy
import pytest

from harness import kernels, processes
from harness.client import In, Job, Out, u64
from harness.kernels import GateJob, assert_failed, copy_job
from harness.messages import pb
from harness.patience import until

pytestmark = pytest.mark.root

N = 64
ALICE, BOB, CAROL = 12345, 12346, 12347
MANY = 60  # with some dozens of workers an H200 with driver 580 refused another context; how many it takes was not counted

COUNTER = """
__device__ int n;
extern "C" __global__ void count(int *out) { out[0] = ++n; }
"""


def with_room(daemon):
    """daemon.has_room(n): for so many contexts on device 0. Its workers must be able to read what says so."""
    file = daemon.folder / "broken"
    for place in range(4):
        file.with_suffix(f".{place}").touch()
    daemon.configure(cpu_broken=file)

    def has_room(n):
        fresh = file.with_suffix(".new")
        fresh.write_text(f"0 room:{n}\n")
        fresh.rename(file)

    daemon.has_room = has_room
    return daemon


@pytest.fixture
def service(start_gpuqd):
    """With room for one."""
    daemon = with_room(start_gpuqd(private=False))
    daemon.has_room(1)
    return daemon


class Busy:
    """A user whose jobs come without a pause, for as long as the block lasts."""

    def __init__(self, client):
        self.client, self.n_done, self.is_over = client, 0, False
        self.thread = threading.Thread(target=self.work)

    def work(self):
        module = self.client.builtin()
        values, out = self.client.array(numpy.ones(100000)), [self.client.arena(8) for _ in range(8)]
        jobs = []
        while not self.is_over:
            jobs.append(self.client.submit(Job().launch(module, "sum_f64", [In(values), Out(out[len(jobs)]), u64(100000)], 1, 128)))
            if len(jobs) == len(out):
                assert all(self.client.wait(job).state == pb.DONE for job in jobs)
                self.n_done += len(jobs)
                jobs.clear()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.is_over = True
        self.thread.join()


def job_right(client, module):
    source, target = client.array(numpy.arange(N, dtype=numpy.int32)), client.arena(4 * N)
    client.run_well(copy_job(module, source, target, N))
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))


def worker_of(daemon, uid):
    return next((pid for pid in daemon.workers() if processes.uid(pid) == uid), None)


@pytest.mark.cpu
def test_an_idle_users_context_makes_room(service):
    """And nothing of that user is lost."""
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    kept, host = alice.device_arena(4096), alice.arena(4096)
    alice.run_well(Job().fill(kept, 4096, 0x11))
    alices = worker_of(service, ALICE)
    job_right(bob, bob.load(kernels.BASIC))
    assert not processes.is_alive(alices) and f"the idle worker of uid {ALICE} is stopped" in service.log()
    alice.run_well(Job().copy(host, kept, 4096))
    assert host.map[:] == b"\x11" * 4096


@pytest.mark.cpu
def test_where_all_are_at_work_another_waits(service):
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    gate = GateJob(alice, alice.load(kernels.BASIC))
    gate.wait_for()
    alices = worker_of(service, ALICE)
    out = bob.arena(8)
    job = bob.submit(Job().fill(out, 8, 7))
    until(lambda: "device 0 has no memory for this user's context" in bob.queue()[job].reason, "it to wait for room")
    assert worker_of(service, ALICE) == alices
    gate.open()
    assert bob.wait(job).state == pb.DONE and out.map[:] == b"\x07" * 8


@pytest.mark.cpu
def test_what_others_than_gpuq_fill_is_an_error(service):
    service.has_room(0)
    bob = service.connect(uid=BOB)
    assert_failed(bob.run(Job().fill(bob.arena(8), 8, 1)), pb.E_NO_DEVICE, "CUDA_ERROR_OUT_OF_MEMORY")


@pytest.mark.cpu
def test_who_pauses_makes_room(service):
    """Room for two, both at work but for moments: a third is not kept out, and then those two go on."""
    service.has_room(2)
    alice, bob, carol = (service.connect(uid=uid) for uid in (ALICE, BOB, CAROL))
    with Busy(alice) as one, Busy(carol) as two:
        until(lambda: one.n_done and two.n_done, "both to be at work")
        out = bob.arena(8)
        bob.run_well(Job().fill(out, 8, 7))
        assert out.map[:] == b"\x07" * 8
        before = one.n_done, two.n_done
        until(lambda: one.n_done > before[0] + 100 and two.n_done > before[1] + 100, "both to go on")
    assert 1 <= service.log().count("the idle worker of uid") <= 10, service.log()


@pytest.mark.cpu
def test_work_goes_to_a_device_with_room(start_gpuqd):
    daemon = with_room(start_gpuqd(private=False, cpu_devices=2))
    daemon.has_room(1)
    alice, bob = daemon.connect(uid=ALICE), daemon.connect(uid=BOB)
    module = alice.load(COUNTER, device=0)
    alice.run_well(Job(device=0).launch(module, "count", [Out(alice.arena(4))]))  # its variables keep the worker, idle as it is
    assert [worker.device for worker in alice.status().workers] == [0]
    assert all([bob.load(source) for source in (COUNTER, kernels.BASIC)])
    assert bob.run_well(Job().fill(bob.arena(8), 8, 7)).device == 1


@pytest.mark.gpu
@pytest.mark.whole_machine
def test_more_users_than_the_driver_has_contexts_for(start_gpuqd):
    """Their workers need gpuq's own kernels, which are linked once for all of them."""
    daemon = start_gpuqd(private=False, spare_workers="1")
    until(lambda: list((pathlib.Path(daemon.settings["cache_dir"]) / "builtin").glob("*.gpuq")), "gpuq's own kernels")
    for uid in range(ALICE, ALICE + MANY):
        client = daemon.connect(uid=uid)
        out = client.arena(8)
        client.run_well(Job().fill(out, 8, 7))
        assert out.map[:] == b"\x07" * 8
