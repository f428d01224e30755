# SPDX-License-Identifier: Apache-2.0
"""Workers live on when their supervisor is killed: it is the same process afterwards, and the same single run."""

import os
import signal

import numpy
import pytest

from harness import kernels, place, processes
from harness.client import In, InOut, Job, Out
from harness.kernels import Gate
from harness.messages import pb
from harness.patience import until

COUNTED = kernels.BASIC + r"""
// Counts its runs, then waits at the gate.
extern "C" __global__ void counted(int *runs, int *gate)
{
        atomicAdd(runs, 1);
        wait_at(gate);
}

// The same for who can only be told where the gate is.
extern "C" __global__ void counted_at(int *runs, unsigned long long gate)
{
        atomicAdd(runs, 1);
        wait_at((int *)gate);
}

// Counts its runs and tells their number.
extern "C" __global__ void counted_and_told(int *runs, int *out)
{
        *out = atomicAdd(runs, 1) + 1;
}

__device__ int total;

extern "C" __global__ void add_to_total(int *out)
{
        total += 1;
        *out = total;
}
"""

def kill_supervisor(daemon):
    """Returns once another one is up."""
    before = daemon.log().count("the supervisor is up again")
    os.kill(daemon.supervisor(), signal.SIGKILL)
    until(lambda: daemon.log().count("the supervisor is up again") > before, "another supervisor")


def worker_pid(client):
    (worker,) = client.status().workers
    return worker.pid


def number_in(client, arena):
    target = client.arena(4)
    client.run_well(Job().copy(target, arena, 4, direction=pb.OUT))
    return int(target.array(numpy.int32)[0])


@pytest.fixture
def daemon(start_gpuqd):
    return start_gpuqd()


@pytest.fixture
def client(daemon):
    return daemon.connect()


@pytest.fixture
def module(client):
    return client.load(COUNTED)


def test_a_job_runs_once_in_the_same_process_however_often_the_supervisor_is_killed(daemon, client, module):
    runs, gate = client.device_arena(4), Gate(client)
    job = client.submit(Job().launch(module, "counted", [InOut(runs), In(gate.words)]))
    gate.wait_for()
    pid = worker_pid(client)
    for _ in range(3):
        kill_supervisor(daemon)
        client.resume()
        until(lambda: client.queue()[job].state == pb.RUNNING, "the takeover to be over")
        until(lambda: worker_pid(client) == pid, "the worker to be known")

    gate.open()
    assert client.wait(job).state == pb.DONE
    assert number_in(client, runs) == 1
    assert worker_pid(client) == pid
    assert daemon.workers() == [pid]


def test_a_job_that_ends_while_nobody_looks_ran_once(daemon, client, module):
    client.run_well(Job().launch(module, "nothing"))
    runs, out, supervisor, pid = client.device_arena(4), client.arena(4), daemon.supervisor(), worker_pid(client)
    with processes.stopped(daemon.process.pid):  # no other supervisor meanwhile
        with processes.stopped(pid):
            job = client.submit(Job().launch(module, "counted_and_told", [InOut(runs), Out(out)]))
            until(lambda: client.queue()[job].state == pb.RUNNING, "it to be in the worker")
            os.kill(supervisor, signal.SIGKILL)
        until(lambda: out.array(numpy.int32)[0] == 1, "the job to end")
    until(lambda: "the supervisor is up again" in daemon.log(), "another supervisor")
    client.resume()
    assert client.wait(job).state == pb.DONE
    assert number_in(client, runs) == 1
    assert worker_pid(client) == pid


def test_variables_of_a_module_live_on_with_their_worker(daemon, client, module):
    out = client.arena(4)
    for wanted in range(1, 4):
        client.run_well(Job().launch(module, "add_to_total", [Out(out)]))
        assert out.array(numpy.int32)[0] == wanted
        kill_supervisor(daemon)
        client.resume()


def test_jobs_of_a_client_that_does_not_come_back_do_not_hold_the_worker(start_gpuqd):
    daemon = start_gpuqd(takeover_s=1)
    client, other = daemon.connect(), daemon.connect()
    module = client.load(COUNTED)
    other.submit(Job().launch(other.load(COUNTED), "forever", [Out(other.arena(4))]))
    until(lambda: [entry.state for entry in other.queue().values()] == [pb.RUNNING], "it to run")
    supervisor = daemon.supervisor()
    os.kill(supervisor, signal.SIGSTOP)
    other.close()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: daemon.supervisor() != supervisor, "another supervisor")
    client.resume()
    client.run_well(Job().launch(module, "nothing"))
    until(lambda: not client.status().running, "nothing to run")


def test_a_program_of_the_library_notices_nothing(daemon, client, module, tmp_path):
    source = tmp_path / "counted.cu"
    source.write_text(COUNTED)
    numpy.save(tmp_path / "runs.npy", numpy.zeros(1, numpy.int32))
    gate = Gate(client)
    program = daemon.start_program("gpuq", "run", "--grid", 1, "--block", 1, f"{source}:counted_at",
                                   f"inout:{tmp_path}/runs.npy", f"u64:{gate.address(module)}")
    gate.wait_for()
    pid = worker_pid(client)
    kill_supervisor(daemon)
    client.resume()
    gate.open()
    output, _ = program.communicate(timeout=place.PATIENCE_S)
    assert program.returncode == 0, output
    assert numpy.load(tmp_path / "runs.npy")[0] == 1
    assert daemon.workers() == [pid]
