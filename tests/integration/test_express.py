# SPDX-License-Identifier: Apache-2.0
"""A long job of a user's own holds up nothing else of theirs: a second worker, the express worker, runs it meanwhile."""

import os
import signal

import numpy
import pytest

from harness import kernels, place
from harness.client import In, InOut, Job, Out, u64
from harness.kernels import FAR, Gate, assert_failed, copy_job, gate_job, held_job, note_job
from harness.messages import pb
from harness.patience import until

# Contexts share the GPU in slices: beside other tests' daemons a short job takes as long as a long one.
pytestmark = [pytest.mark.whole_machine] if place.on_gpu() else []
N = 64
COUNTER = r"""
__device__ int count;
extern "C" __global__ void tell(int *out)
{
        *out = ++count;
}
"""


def arange():
    return numpy.arange(N, dtype=numpy.int32)


@pytest.fixture
def gpuqd(lend_gpuqd):
    return lend_gpuqd(express="yes")


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def workers(client, express):
    return [worker for worker in client.status().workers if worker.express == express]


def jobs_of(client, express):
    return sum(worker.jobs for worker in workers(client, express))


def is_running(client, *ids):
    queue = client.queue()
    return all(job in queue and queue[job].state == pb.RUNNING for job in ids)


class Held:
    """A gate and a job at it that holds up the user's worker: the express worker runs."""

    def __init__(self, client, module, job=gate_job):
        self.client = client
        self.gate = Gate(client)
        self.id = client.submit(job(module, self.gate))
        until(lambda: is_running(client, self.id), "the long job to run")
        until(self._another, "a job in an express worker")

    def _another(self):
        """A short job may still be sent behind the long one, whose worker has made progress then. From the first that is not
        so on, none is."""
        before = jobs_of(self.client, True)
        self.client.run_well(Job())
        return jobs_of(self.client, True) > before

    def open(self):
        self.gate.open()
        assert self.client.wait(self.id).state == pb.DONE


def test_a_short_job_runs_beside_a_long_one_in_another_process(gpuqd, client, module):
    held = Held(client, module)
    main, express = workers(client, False)[0].pid, workers(client, True)[0].pid
    assert sorted(gpuqd.workers()) == sorted([main, express])
    before = jobs_of(client, False), jobs_of(client, True)

    source, target = client.array(arange()), client.arena(4 * N)
    for data in (arange(), arange() + 7):  # results right, in host and in device memory
        source.array(numpy.int32)[:] = data
        between = client.device_arena(4 * N)
        client.run_well(copy_job(module, source, between, N))
        client.run_well(copy_job(module, between, target, N))
        numpy.testing.assert_array_equal(target.array(numpy.int32), data)
    assert is_running(client, held.id)
    ran = jobs_of(client, False), jobs_of(client, True)
    assert ran == (before[0], before[1] + 4)
    held.open()
    assert workers(client, False)[0].pid == main


def test_a_module_loads_beside_a_long_job(client, module):
    held = Held(client, module)
    other = client.load(COUNTER.replace("__device__ int count;", "").replace("++count", "5"), name="other.cu")
    out = client.arena(4)
    client.run_well(Job().launch(other, "tell", [Out(out)]))
    assert out.array(numpy.int32)[0] == 5 and is_running(client, held.id)
    held.open()
    client.run_well(Job().launch(other, "tell", [Out(out)]))  # now in the main worker, which loads it too


def test_jobs_that_share_buffers_keep_their_order(client, module):
    source, between, target = client.array(arange()), client.arena(4 * N), client.arena(4 * N)
    held = Held(client, module, lambda module, gate: held_job(module, source, between, N, gate))
    express = jobs_of(client, True)
    behind = client.submit(copy_job(module, between, target, N))
    until(lambda: client.run_well(Job()) and jobs_of(client, True) > express, "a job in the express worker")
    assert is_running(client, held.id) and client.queue()[behind].state in (pb.RUNNING, pb.WAITING)
    held.open()
    assert client.wait(behind).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * arange())


def test_an_order_that_begins_in_one_worker_goes_on_in_the_other(client, module):
    log = client.arena(4 * 100)
    held, marks = Held(client, module), list(range(60))
    ids = client.submit(*[note_job(module, log, mark) for mark in marks[:30]])
    held.gate.open()  # from some job on they go to the main worker
    ids += client.submit(*[note_job(module, log, mark) for mark in marks[30:]])
    assert all(client.wait(job).state == pb.DONE for job in ids)
    assert log.array(numpy.int32)[1:61].tolist() == marks


def test_the_variables_of_a_module_stay_where_they_are(client, module):
    counter = client.load(COUNTER)
    out = client.arena(4)
    client.run_well(Job().launch(counter, "tell", [Out(out)]))
    held = Held(client, module)
    job = client.submit(Job().launch(counter, "tell", [Out(out)]))
    held.open()
    assert client.wait(job).state == pb.DONE
    assert out.array(numpy.int32)[0] == 2  # the other worker would count from 0


def test_a_fault_of_a_short_job_leaves_the_long_one_alone(client, module):
    source, target = client.array(arange()), client.arena(4 * N)
    held = Held(client, module, lambda module, gate: held_job(module, source, target, N, gate))
    wild = client.run(Job().launch(module, "wild", [InOut(client.arena(4)), u64(FAR)]))
    assert_failed(wild, pb.E_FAULT, "wild")
    assert is_running(client, held.id) and client.queue()[held.id].retries == 0
    held.open()
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * arange())


def test_a_fault_of_the_long_job_leaves_the_short_ones_alone(gpuqd, client):
    module = client.load(kernels.BASIC + r"""
extern "C" __global__ void held_wild(int *data, unsigned long long index, int *gate)
{
        wait_at(gate);
        data[index] = 1;
}
""")
    held = Held(client, module, lambda module, gate: Job().launch(
        module, "held_wild", [InOut(client.arena(4)), u64(FAR), In(gate.words)]))
    short, source, target = Gate(client), client.array(arange()), client.arena(4 * N)
    express = workers(client, True)[0].pid
    job = client.submit(held_job(module, source, target, N, short))
    short.wait_for()
    held.gate.open()
    assert_failed(client.wait(held.id), pb.E_FAULT, "held_wild")
    assert is_running(client, job) and client.queue()[job].retries == 0 and express in gpuqd.workers()
    short.open()
    assert client.wait(job).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * arange())


@pytest.mark.parametrize("express", [False, True])
def test_either_worker_may_be_killed(gpuqd, client, module, express):
    source, targets = client.array(arange()), [client.arena(4 * N) for _ in range(2)]
    held = Held(client, module, lambda module, gate: held_job(module, source, targets[0], N, gate))
    short = Gate(client)
    job = client.submit(held_job(module, source, targets[1], N, short))
    short.wait_for()
    os.kill(workers(client, express)[0].pid, signal.SIGKILL)
    killed, other = (job, held.id) if express else (held.id, job)
    assert_failed(client.wait(killed), pb.E_FAULT, "held")  # it was alone in its worker
    short.open()
    held.gate.open()
    assert client.wait(other).state == pb.DONE
    numpy.testing.assert_array_equal(targets[0 if express else 1].array(numpy.int32), 3 * arange())
    client.run_well(copy_job(module, source, targets[0], N))


def test_cancelling_the_long_job_stops_its_worker_alone(gpuqd, client, module):
    held = Held(client, module)
    short, source, target = Gate(client), client.array(arange()), client.arena(4 * N)
    job = client.submit(held_job(module, source, target, N, short))
    short.wait_for()
    client.cancel(held.id)
    assert_failed(client.wait(held.id), pb.E_CANCELLED)
    assert is_running(client, job) and client.queue()[job].retries == 0
    short.open()
    assert client.wait(job).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * arange())


def test_switched_off_there_is_one_worker(start_gpuqd):
    gpuqd = start_gpuqd(express="no")
    client = gpuqd.connect()
    module = client.load(kernels.BASIC)
    gate = Gate(client)
    job = client.submit(gate_job(module, gate))
    gate.wait_for()
    client.run_well(Job())
    assert len(gpuqd.workers()) == 1
    gate.open()
    assert client.wait(job).state == pb.DONE


def test_status_shows_it(gpuqd, client, module):
    held = Held(client, module)
    text = gpuqd.run("status", "--verbose").stdout
    assert sum("(express)" in line for line in text.splitlines()) == 1, text
    held.open()


def test_it_ends_when_idle(start_gpuqd):
    gpuqd = start_gpuqd(worker_idle_s=1, express="yes")
    client = gpuqd.connect()
    held = Held(client, client.load(kernels.BASIC))
    until(lambda: not workers(client, True), "the express worker's end")
    assert is_running(client, held.id)
    held.open()
