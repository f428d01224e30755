# SPDX-License-Identifier: Apache-2.0
"""Devices that are taken out of service, by an administrator or because they broke, and drivers that are not there yet."""

import json
import os
import re
import signal
import subprocess

import numpy
import pytest

from harness import kernels, place, processes
from harness.client import Client, InOut, Job, u64
from harness.daemon import Daemon
from harness.kernels import FAR, GateJob, copy_job, triple_job
from harness.messages import pb
from harness.patience import until

N = 64
ECC, NO_DEVICE, NOT_READY = 214, 100, 802  # CUresult

pytestmark = pytest.mark.cpu


@pytest.fixture
def gpuqd(start_gpuqd):
    return start_gpuqd(cpu_devices=2)


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


class Breakable:
    """A daemon whose devices the test breaks and mends by the file that the CPU driver reads."""

    def __init__(self, start, folder, **settings):
        self.file = folder / "broken"
        self.daemon = start(cpu_broken=self.file, **settings)

    def breaks(self, *lines):
        """Whole at once: a driver never reads half of it."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.rename(self.file)

    def state(self, device=0):
        with Client(self.daemon.socket) as client:
            return client.status().devices[device]


@pytest.fixture
def breakable(start_gpuqd, tmp_path):
    return lambda **settings: Breakable(start_gpuqd, tmp_path, **settings)


def job_right(client, module, **fields):
    """Runs one job, and returns the device that gave the right result."""
    source, target = client.array(numpy.arange(N, dtype=numpy.int32)), client.arena(4 * N)
    completion = client.run_well(copy_job(module, source, target, N, **fields))
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))
    return completion.device


def waits_for(client, job, words):
    return until(lambda: words in client.queue()[job].reason, f"it to wait for {words}")


# ---- by an administrator ----

def test_drain_and_resume_by_the_cli(gpuqd, client, module):
    assert gpuqd.run("drain", "--reason", "a new fan", 0).stdout == "device 0 is drained\n"
    named = client.submit(Job(device=1).launch(module, "nothing"))
    waits_for(client, named, "a new fan")
    assert job_right(client, module) == 1
    shown = gpuqd.run("status").stdout
    assert re.search(r"drained by \w+: a new fan", shown), shown
    devices = json.loads(gpuqd.run("status", "--json").stdout)["devices"]
    assert [device["drained"] for device in devices] == ["admin", None]
    assert "a new fan" in devices[0]["state"]
    assert "a new fan" in gpuqd.run("queue").stdout

    assert gpuqd.run("resume", 0).stdout == "device 0 accepts jobs again\n"
    assert client.wait(named).state == pb.DONE and client.completions[named].device == 0
    assert json.loads(gpuqd.run("resume", "--json", 0).stdout)["was_drained"] is False


def test_what_runs_there_ends_well_and_is_counted(gpuqd, client, module):
    gate = GateJob(client, module, device=1)
    until(lambda: client.queue()[gate.id].state == pb.RUNNING, "the gate to run")
    drained = json.loads(gpuqd.run("drain", "--json", 0).stdout)
    assert drained["device"] == 0 and drained["running"] == 1
    # What opens it has its data there, and comes too late: it waits like all that is new.
    other = gpuqd.connect()
    opener = other.submit(Job().fill(other.open_arena(gate.words.id), 4, 1, width=4))
    waits_for(other, opener, "drained")
    assert client.queue()[gate.id].state == pb.RUNNING
    gpuqd.run("resume", 0)
    assert client.wait(gate.id).state == pb.DONE


def test_gpuq_run_says_what_it_waits_for(start_gpuqd, tmp_path):
    gpuqd = start_gpuqd()
    source = tmp_path / "k.cu"
    source.write_text(kernels.BASIC)
    gpuqd.run("drain", "--reason", "a new fan", 0)
    running = subprocess.Popen([place.program("gpuq"), "--socket", gpuqd.socket, "run", f"{source}:nothing"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        said = running.stderr.readline()
        assert said == f"gpuq: {source} is not loaded yet: device 0 is drained by root: a new fan\n"
        gpuqd.run("resume", 0)
        assert running.wait(place.PATIENCE_S) == 0
    finally:
        running.kill()
        running.communicate()


def test_data_on_a_drained_device_waits_and_stays(gpuqd, client, module):
    kept = client.device_arena(4 * N, 0)
    client.run_well(Job().copy(kept, client.array(numpy.arange(N, dtype=numpy.int32)), 4 * N))
    gpuqd.run("drain", 0)
    back = client.arena(4 * N)
    job = client.submit(Job().copy(back, kept, 4 * N))
    waits_for(client, job, "device 0 is drained")
    until(lambda: all(worker.device != 0 for worker in client.status().workers), "its idle workers to go")
    gpuqd.run("resume", 0)
    assert client.wait(job).state == pb.DONE
    numpy.testing.assert_array_equal(back.array(numpy.int32), numpy.arange(N))


def test_all_drained_everything_waits_and_goes_on(gpuqd, client, module):
    gpuqd.run("drain", 0)
    gpuqd.run("drain", 1)
    jobs = client.submit(*[Job().launch(module, "nothing") for _ in range(20)])
    waits_for(client, jobs[0], "drained")
    gpuqd.run("resume", 1)
    assert all(client.wait(job).device == 1 for job in jobs)
    assert all(client.completions[job].state == pb.DONE for job in jobs)


def test_a_drain_outlives_the_supervisor(gpuqd, client):
    gpuqd.run("drain", "--reason", "a new fan", 1)
    supervisor = gpuqd.supervisor()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: gpuqd.supervisor() != supervisor, "another supervisor")
    until(gpuqd.is_serving, "it to serve")
    devices = gpuqd.connect().status().devices
    assert devices[0].state == "ready"
    assert devices[1].drained == pb.ADMIN and "a new fan" in devices[1].state
    gpuqd.run("resume", 1)
    os.kill(gpuqd.supervisor(), signal.SIGKILL)
    until(lambda: gpuqd.is_serving() and gpuqd.connect().status().devices[1].state == "ready", "no drain to come back")


@pytest.mark.root
def test_only_administrators(service):
    denied = service.run("drain", 0, uid=12345)
    assert denied.returncode == 5 and "admin group" in denied.stderr
    assert service.run("resume", 0, uid=12345).returncode == 5
    assert service.run("drain", 0).returncode == 0
    assert service.connect(uid=12345).status().devices[0].drained == pb.ADMIN


def test_what_the_cli_refuses(gpuqd):
    for arguments in (["drain"], ["drain", "x"], ["drain", "0", "1"], ["drain", "7"], ["resume", "-1"],
                      ["drain", "--reason", "x" * 201, "0"]):
        assert gpuqd.run(*arguments).returncode == 2, arguments


# ---- by itself ----

def test_a_device_that_breaks_is_drained_and_comes_back(breakable):
    """Its jobs go to the other one, none fails, and none is blamed."""
    broken = breakable(cpu_devices=2, worker_idle_s=0)
    client = broken.daemon.connect()
    module = client.load(kernels.BASIC)
    broken.breaks(f"0 {ECC}")
    jobs = client.submit(*[Job().launch(module, "nothing") for _ in range(50)])
    assert all(client.wait(job).state == pb.DONE for job in jobs)
    pinned = client.submit(Job(device=1).launch(module, "nothing"))
    until(lambda: broken.state().drained == pb.ITSELF, "it to be drained")
    assert "CUDA_ERROR_ECC_UNCORRECTABLE" in broken.state().state
    waits_for(client, pinned, "CUDA_ERROR_ECC_UNCORRECTABLE")
    assert job_right(client, module) == 1

    broken.breaks()
    assert client.wait(pinned).state == pb.DONE and client.completions[pinned].device == 0
    assert broken.state().state == "ready"


def test_a_fault_of_the_hardware_costs_a_retry(breakable):
    """Under a running job: it runs again on the other device, and its kernel is not blamed."""
    broken = breakable(cpu_devices=2)
    client = broken.daemon.connect()
    module = client.load(kernels.BASIC)
    for device in (1, 2):
        client.run_well(Job(device=device).launch(module, "nothing"))
    broken.breaks(f"0 {ECC}")
    for _ in range(10):
        assert job_right(client, module) in (0, 1)
    assert "faulted" not in broken.daemon.log()


def test_the_only_device_breaks_and_work_waits(breakable):
    broken = breakable()
    client = broken.daemon.connect()
    module = client.load(kernels.BASIC)
    client.run_well(Job().launch(module, "nothing"))
    broken.breaks(f"0 {ECC}")
    job = client.submit(Job().launch(module, "nothing"))
    waits_for(client, job, "CUDA_ERROR_ECC_UNCORRECTABLE")
    broken.breaks()
    assert client.wait(job).state == pb.DONE


def test_a_device_that_falls_off_takes_nobody_elses_place(breakable):
    """Behind it the others move up in every new process: index 1 must stay the same device."""
    broken = breakable(cpu_devices=2, worker_idle_s=0)
    client = broken.daemon.connect()
    module = client.load(kernels.BASIC)
    broken.breaks("0 gone")
    until(lambda: not client.status().workers, "the workers that still have it to go")
    assert job_right(client, module, device=2) == 1
    assert job_right(client, module) == 1
    kept = client.device_arena(4096, 1)
    client.run_well(Job().fill(kept, 4096, 7))
    pinned = client.submit(Job(device=1).launch(module, "nothing"))
    waits_for(client, pinned, "no longer finds the device")
    until(lambda: broken.state(0).drained == pb.ITSELF, "the check")
    assert broken.state(1).state == "ready"
    broken.breaks()
    assert client.wait(pinned).state == pb.DONE


def test_an_administrators_drain_is_not_taken_back_by_a_look(breakable):
    broken = breakable(cpu_devices=2)
    client = broken.daemon.connect()
    module = client.load(kernels.BASIC)
    broken.breaks(f"0 {ECC}")
    pinned = client.submit(Job(device=1).launch(module, "nothing"))
    until(lambda: broken.state().drained == pb.ITSELF, "it to be drained")
    broken.daemon.run("drain", "--reason", "out for repair", 0)
    broken.breaks()
    until(lambda: "is healthy again" in broken.daemon.log(), "the look")
    assert broken.state().drained == pb.ADMIN
    waits_for(client, pinned, "out for repair")
    broken.daemon.run("resume", 0)
    assert client.wait(pinned).state == pb.DONE


def test_boot_before_the_driver(start_gpuqd, tmp_path, compile_cache, request):
    """It serves, says what it waits for, and what is asked of it meanwhile is done when the driver comes."""
    file = tmp_path / "broken"
    file.write_text(f"driver {NOT_READY}\n")
    daemon = Daemon(cache=compile_cache, cpu_broken=file)
    request.node.daemons.append(daemon)
    daemon.launch()

    def says_why():
        try:
            with Client(daemon.socket) as client:
                return "CUDA_ERROR_SYSTEM_NOT_READY" in client.status().state
        except OSError:
            return False

    until(says_why, "it to say what it waits for")
    client = daemon.connect()
    module = client.tell(module_load=pb.ModuleLoad(format=pb.BUILTIN))
    arena = client.tell(arena_create=pb.ArenaCreate(place=pb.DEVICE, size=4096))
    refused = daemon.run("drain", 0)
    assert refused.returncode != 0 and "CUDA_ERROR_SYSTEM_NOT_READY" in refused.stderr
    file.write_text("")
    replies = {}
    while len(replies) < 2:
        reply, _fds = client.receive()
        replies[reply.serial] = reply
    assert replies[module].module.module and replies[arena].arena.size == 4096
    until(daemon.is_serving, "it to be ready")
    assert job_right(client, client.load(kernels.BASIC)) == 0


# ---- kernels and users that fault ----

@pytest.mark.root
def test_who_crashes_in_a_loop_is_slowed_down_and_nobody_else(service):
    mine, theirs = service.connect(uid=12345), service.connect(uid=12346)
    module, their_module = mine.load(kernels.BASIC), theirs.load(kernels.BASIC)
    job_right(theirs, their_module)
    data = mine.arena(4)
    jobs = mine.submit(*[Job().launch(module, "wild", [InOut(data), u64(FAR)]) for _ in range(100)])
    until(lambda: any("ended repeatedly" in entry.reason for entry in mine.queue().values()), "it to be slowed down")
    for _ in range(5):
        job_right(theirs, their_module)
    assert mine.queue(), "they did not have to wait"
    mine.cancel(*jobs)
    codes = [mine.wait(job).error.code for job in jobs]
    assert set(codes) == {pb.E_FAULT, pb.E_CANCELLED} and codes.count(pb.E_FAULT) >= 8


def test_a_kernel_that_faulted_costs_nobody_a_second_retry(gpuqd, client, module):
    """Beside other jobs of its user: those notice at most its first fault."""
    client.run(Job().launch(module, "wild", [InOut(client.arena(4)), u64(FAR)]))
    other = gpuqd.connect()
    theirs = other.load(kernels.BASIC, name="other.cu")
    source, target = other.array(numpy.arange(N, dtype=numpy.int32)), other.arena(4 * N)
    seen = []
    for _ in range(4):
        other.run_well(triple_job(theirs, source, target, N, device=1))
        with processes.stopped(*gpuqd.workers()):
            good = other.submit(triple_job(theirs, source, target, N, device=1))
            until(lambda: other.queue()[good].state == pb.RUNNING, "the good one to be in the worker")
            bad = client.submit(Job(device=1).launch(module, "wild", [InOut(client.arena(4)), u64(FAR)]))
            until(lambda: bad in other.queue(), "the bad one to wait")
        while good not in other.completions or bad not in client.completions:
            queue = other.queue()
            seen += [queue[job].retries for job in (good, bad) if job in queue]
            for session, job in ((other, good), (client, bad)):
                if job not in queue:
                    session.wait(job)
        assert other.completions[good].state == pb.DONE
        assert client.completions[bad].error.code == pb.E_FAULT
    assert not any(seen), seen
