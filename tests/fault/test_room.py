# SPDX-License-Identifier: Apache-2.0
"""A device that has no memory for one more user's context."""

import os

import numpy
import pytest

from harness import kernels, processes
from harness.client import In, Job, Out, u64
from harness.kernels import GateJob, assert_failed, copy_job
from harness.messages import pb
from harness.patience import until

pytestmark = pytest.mark.root

N = 64
ALICE, BOB = 12345, 12346
MANY = 60  # an H200 with driver 580 has no memory for about the fiftieth context of a worker, whatever is free


@pytest.fixture
def full(start_gpuqd):
    """A service with one device, which a process can fill. Its workers must be able to read what says so."""
    daemon = start_gpuqd(private=False)
    file = daemon.folder / "broken"
    daemon.configure(cpu_broken=file)
    daemon.is_full_beside = lambda pid: file.write_text(f"0 full:{pid}\n")
    return daemon


def job_right(client, module):
    source, target = client.array(numpy.arange(N, dtype=numpy.int32)), client.arena(4 * N)
    client.run_well(copy_job(module, source, target, N))
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))


def worker_of(daemon, uid):
    return next((pid for pid in daemon.workers() if processes.uid(pid) == uid), None)


@pytest.mark.cpu
def test_an_idle_users_context_makes_room(full):
    """And nothing of that user is lost."""
    alice, bob = full.connect(uid=ALICE), full.connect(uid=BOB)
    kept, host = alice.device_arena(4096), alice.arena(4096)
    alice.run_well(Job().fill(kept, 4096, 0x11))
    alices = worker_of(full, ALICE)
    full.is_full_beside(alices)
    job_right(bob, bob.load(kernels.BASIC))
    assert not processes.is_alive(alices) and f"the idle one of uid {ALICE} ends" in full.log()
    alice.run_well(Job().copy(host, kept, 4096))
    assert host.map[:] == b"\x11" * 4096


@pytest.mark.cpu
def test_where_all_are_at_work_another_waits(full):
    alice, bob = full.connect(uid=ALICE), full.connect(uid=BOB)
    gate = GateJob(alice, alice.load(kernels.BASIC))
    gate.wait_for()
    alices = worker_of(full, ALICE)
    full.is_full_beside(alices)
    out = bob.arena(8)
    job = bob.submit(Job().fill(out, 8, 7))
    until(lambda: "room for its user's context on device 0 (others there: 1)" in bob.queue()[job].reason, "it to wait for room")
    assert worker_of(full, ALICE) == alices
    gate.open()
    assert bob.wait(job).state == pb.DONE and out.map[:] == b"\x07" * 8


@pytest.mark.cpu
def test_what_others_than_gpuq_fill_is_an_error(full):
    full.is_full_beside(os.getpid())
    bob = full.connect(uid=BOB)
    assert_failed(bob.run(Job().fill(bob.arena(8), 8, 1)), pb.E_NO_DEVICE, "CUDA_ERROR_OUT_OF_MEMORY")


@pytest.mark.gpu
@pytest.mark.whole_machine
def test_more_users_than_the_driver_has_contexts_for(service):
    for uid in range(ALICE, ALICE + MANY):
        client = service.connect(uid=uid)
        values, out = client.array(numpy.arange(N, dtype=numpy.float64)), client.arena(8)
        client.run_well(Job().launch(client.builtin(), "sum_f64", [In(values), Out(out), u64(N)], 1, 128))
        assert out.array(numpy.float64)[0] == N * (N - 1) / 2
