# SPDX-License-Identifier: Apache-2.0
"""Kernels that fault or never end, and processes that are killed: who pays, and who notices nothing."""

import os
import signal

import numpy
import pytest

from harness import kernels, place, processes
from harness.client import Client, Closed, In, InOut, Job, Out, Refused, u64
from harness.kernels import FAR, Gate, assert_failed, copy_job, gate_job, held_job
from harness.messages import pb
from harness.patience import until
from harness.threads import StoppedThread

N = 64


# For a while on its own, so that the worker's thread can be stopped meanwhile; should it be too short, nothing is found out.
LASTS = kernels.BASIC + r"""
extern "C" __global__ void lasts(const int *in, int *out, unsigned long long n, unsigned long long spins)
{
        for (volatile unsigned long long i = 0; i < spins; i = i + 1)
                ;
        for (unsigned long long i = 0; i < n; i++)
                out[i] = 3 * in[i];
}
"""
LASTING = 5_000_000 if place.on_gpu() else 150_000_000


def lasting_job(module, source, target, spins):
    return Job().launch(module, "lasts", [In(source), Out(target), u64(N), u64(spins)])


def arange(n=N):
    return numpy.arange(n, dtype=numpy.int32)


@pytest.fixture
def gpuqd(lend_gpuqd):
    """Jobs that are held are beside each other in one worker."""
    return lend_gpuqd(express="no")


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def wild_job(client, module, **fields):
    return Job(**fields).launch(module, "wild", [InOut(client.arena(4)), u64(FAR)])


def all_running(client, ids):
    queue = client.queue()
    return all(job in queue and queue[job].state == pb.RUNNING for job in ids)


# ---- faults ----

def test_a_fault_fails_its_own_job_and_names_the_kernel(client, module):
    completion = client.run(wild_job(client, module))
    assert_failed(completion, pb.E_FAULT, "wild")
    assert "error" in completion.error.text.lower() or "address" in completion.error.text.lower()


def test_the_next_job_finds_a_fresh_worker(gpuqd, client, module):
    client.run_well(Job().launch(module, "nothing"))
    before = set(gpuqd.workers())
    client.run(wild_job(client, module))
    target = client.arena(4 * N)
    client.run_well(copy_job(module, client.array(arange()), target, N))
    numpy.testing.assert_array_equal(target.array(numpy.int32), arange())
    assert not before & set(gpuqd.workers())


def test_jobs_in_flight_with_a_fault_still_give_right_results(gpuqd, client, module):
    source = client.array(arange())
    targets = [client.arena(4 * N) for _ in range(4)]
    others = [gpuqd.connect() for _ in targets]
    gate, ids = Gate(client, n_held=len(others)), []
    for other, target in zip(others, targets):
        ids.append(other.submit(held_job(other.load(kernels.BASIC), other.open_arena(source.id),
                                         other.open_arena(target.id), N, gate)))
        gate.wait_for(len(ids))
    bad = client.submit(wild_job(client, module))
    assert_failed(client.wait(bad), pb.E_FAULT, "wild")
    for other, job, target in zip(others, ids, targets):
        assert other.wait(job).state == pb.DONE
        numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * arange())


def test_a_job_whose_input_a_later_one_overwrote_is_not_run_on_that(gpuqd, client):
    """The worker's own thread stands still, the device goes on: nobody is told of an end before the worker is killed."""
    module = client.load(LASTS)
    first, second, result = client.array(arange()), client.array(1000 + arange()), client.arena(4 * N)
    client.run_well(copy_job(module, first, result, N))  # now the worker has the arenas and the kernels
    client.run_well(copy_job(module, second, client.arena(4 * N), N))
    client.run_well(lasting_job(module, first, result, 1))
    ids = client.submit(lasting_job(module, first, result, LASTING), copy_job(module, second, first, N))
    other = gpuqd.connect()
    other.run_well(Job().fill(other.device_arena(4), 4))  # what came to the worker before this is issued
    with StoppedThread(gpuqd.workers()[0]) as worker:
        until(lambda: (first.array(numpy.int32) == 1000 + arange()).all(), "the device has run both")
        os.kill(worker.pid, signal.SIGKILL)
    reader, writer = (client.wait(job) for job in ids)
    if reader.state == pb.DONE:
        numpy.testing.assert_array_equal(result.array(numpy.int32), 3 * arange())
    else:
        assert reader.error.code == pb.E_HALF_WRITTEN and f"arena {first.id}" in reader.error.text, reader
    assert writer.state == pb.DONE
    numpy.testing.assert_array_equal(first.array(numpy.int32), 1000 + arange())


def test_in_out_of_a_host_buffer_is_applied_once_although_it_ran_twice(gpuqd, client, module):
    """Staged: what a first, lost run wrote never reached the buffer."""
    data = client.array(arange())
    other = gpuqd.connect()
    theirs = other.load(kernels.BASIC)
    job = Job().launch(theirs, "add_one", [InOut(other.open_arena(data.id)), u64(N)], 1, N)
    gate = Gate(other, n_held=1)
    job.launch(theirs, "held", [In(other.open_arena(data.id)), Out(other.arena(4 * N)), u64(N), In(gate.words)])
    victim = other.submit(job)
    gate.wait_for()
    bad = client.submit(wild_job(client, module))
    assert client.wait(bad).error.code == pb.E_FAULT
    assert other.wait(victim).state == pb.DONE
    numpy.testing.assert_array_equal(data.array(numpy.int32), arange() + 1)


def test_what_is_in_device_arenas_stays(client, module):
    values = numpy.random.default_rng(1).integers(0, 1 << 30, 1 << 18).astype(numpy.int32)
    device = client.device_arena(values.nbytes)
    client.run_well(Job().copy(device, client.array(values), values.nbytes))
    for _ in range(3):
        assert client.run(wild_job(client, module)).error.code == pb.E_FAULT
        back = client.arena(values.nbytes)
        client.run_well(Job().copy(back, device, values.nbytes))
        numpy.testing.assert_array_equal(back.array(numpy.int32), values)


@pytest.mark.parametrize("repeatable", [False, True])
def test_a_job_that_changes_device_memory_in_place_is_not_repeated_silently(gpuqd, client, module, repeatable):
    """In flight at another's fault: told to be half written, with the buffer, unless declared repeatable."""
    other = gpuqd.connect()
    theirs = other.load(kernels.BASIC)
    device, gate = other.device_arena(4 * N), Gate(other, n_held=1)
    victim = other.submit(Job(repeatable=repeatable).launch(theirs, "held", [In(device), InOut(device), u64(N), In(gate.words)]))
    gate.wait_for()
    bad = client.submit(wild_job(client, module))
    assert client.wait(bad).error.code == pb.E_FAULT
    outcome = other.wait(victim)
    if repeatable:
        assert outcome.state == pb.DONE
    else:
        assert_failed(outcome, pb.E_HALF_WRITTEN, device.id)


def test_two_guilty_jobs_among_innocent_ones_are_found(gpuqd, client, module):
    source = client.array(arange())
    sessions = [gpuqd.connect() for _ in range(6)]
    gate, jobs = Gate(client, n_held=5), []  # the last one does it, and another is like it
    for i, session in enumerate(sessions):
        theirs = session.load(kernels.BASIC)
        if i in (2, 5):
            job = gate_job(theirs, gate).launch(theirs, "wild", [InOut(session.arena(4)), u64(FAR)])
        else:
            job = held_job(theirs, session.open_arena(source.id), session.arena(4 * N), N, gate)
        jobs.append(session.submit(job))
        if i < 5:
            gate.wait_for(i + 1)
    for i, (session, job) in enumerate(zip(sessions, jobs)):
        completion = session.wait(job)
        if i in (2, 5):
            assert_failed(completion, pb.E_FAULT, "wild")
        else:
            assert completion.state == pb.DONE, completion
    assert client.status().state == "ready"


def test_later_jobs_in_order_behind_a_fault_still_run(client, module):
    """Order is no dependency: what is behind a failed job in the same buffer runs all the same."""
    data = client.array(arange())
    wild = Job().launch(module, "wild", [InOut(data), u64(FAR)])
    bad, good = client.submit(wild, Job().launch(module, "add_one", [InOut(data), u64(N)], 1, N))
    assert_failed(client.wait(bad), pb.E_FAULT)
    assert client.wait(good).state == pb.DONE
    numpy.testing.assert_array_equal(data.array(numpy.int32), arange() + 1)


def test_a_fault_in_the_middle_of_a_long_job(client, module):
    data = client.array(arange())
    job = Job()
    for i in range(20):
        job.launch(module, "wild", [InOut(data), u64(FAR if i == 10 else 0)])
    assert_failed(client.run(job), pb.E_FAULT, "wild")
    # in-out reaches the arena only on success
    numpy.testing.assert_array_equal(data.array(numpy.int32), arange())


@pytest.mark.cpu
def test_just_beyond_a_buffer_is_a_guard_page(client, module):
    arena = client.device_arena(1 << 20)
    job = Job().launch(module, "wild", [InOut(arena), u64((2 << 20) // 4)])
    assert_failed(client.run(job), pb.E_FAULT)


def test_many_faults_one_after_the_other(client, module):
    for _ in range(5):
        assert client.run(wild_job(client, module)).error.code == pb.E_FAULT
    client.run_well(Job().launch(module, "nothing"))


# ---- kernels that never end ----

def test_a_timeout_ends_its_job_and_spares_those_in_flight(gpuqd, client, module):
    source, target = client.array(arange()), client.arena(4 * N)
    other = gpuqd.connect()
    theirs, gate = other.load(kernels.BASIC), Gate(other, n_held=1)
    victim = other.submit(held_job(theirs, other.open_arena(source.id), other.open_arena(target.id), N, gate))
    gate.wait_for()
    endless = client.submit(Job(timeout_ms=300).launch(module, "forever", [Out(client.arena(4))]))
    assert_failed(client.wait(endless), pb.E_TIMEOUT, "forever")
    assert other.wait(victim).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * arange())


def test_device_arenas_stay_after_a_timeout(client, module):
    device = client.device_arena(4096)
    client.run_well(Job().fill(device, 4096, 0x5a))
    assert client.run(Job(timeout_ms=200).launch(module, "forever", [Out(client.arena(4))])).error.code == pb.E_TIMEOUT
    back = client.arena(4096)
    client.run_well(Job().copy(back, device, 4096))
    assert back.map[:] == b"\x5a" * 4096


def test_the_cli_timeout(gpuqd, tmp_path):
    source = tmp_path / "endless.cu"
    source.write_text(kernels.BASIC)
    result = gpuqd.run("run", "--timeout", "2", f"{source}:forever", f"out:{tmp_path / 'o.npy'}:i4:1")
    assert result.returncode == 124, result.stdout + result.stderr
    assert "forever" in result.stderr


# ---- processes that die ----

def test_a_killed_worker_is_replaced_and_its_jobs_run_again(gpuqd, client, module):
    """Two in flight: neither is the only one, so neither is to blame."""
    source, targets = client.array(arange()), [client.arena(4 * N) for _ in range(2)]
    gate, jobs = Gate(client, n_held=2), []
    for target in targets:
        jobs.append(client.submit(held_job(module, source, target, N, gate)))
        gate.wait_for(len(jobs))
    for pid in gpuqd.workers():
        os.kill(pid, signal.SIGKILL)
    for job, target in zip(jobs, targets):
        completion = client.wait(job)
        assert completion.state == pb.DONE, completion
        numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * arange())


def test_a_stopped_worker_is_killed_at_the_timeout(gpuqd, client, module):
    client.run_well(Job().launch(module, "nothing"))
    worker = gpuqd.workers()[0]
    os.kill(worker, signal.SIGSTOP)
    completion = client.run(Job(timeout_ms=500).launch(module, "nothing"))
    assert completion.state in (pb.FAILED, pb.DONE)
    until(lambda: not processes.is_alive(worker), "the stopped worker to be killed")
    client.run_well(Job().launch(module, "nothing"))


def test_a_killed_client_gives_back_what_it_had(gpuqd, client):
    child = os.fork()
    if child == 0:
        try:
            own = Client(gpuqd.socket)
            own.arena(1 << 20)
            own.submit(Job().launch(own.load(kernels.BASIC), "forever", [Out(own.arena(4))]))
            until(lambda: any(entry.state == pb.RUNNING for entry in own.queue().values()), "it to run")
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    until(lambda: not client.queue(), "its jobs to go")
    until(lambda: client.status().users[0].arena_bytes == 0, "its memory to come back")
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))


def test_a_killed_supervisor_is_started_again(gpuqd):
    client = gpuqd.connect()
    module = client.load(kernels.BASIC)
    client.submit(Job().launch(module, "forever", [Out(client.arena(4))]))
    until(lambda: client.queue(), "the job")
    supervisor = gpuqd.supervisor()
    os.kill(supervisor, signal.SIGKILL)

    try:
        while True:
            reply, _fds = client.receive()
            assert reply.error.code == pb.E_SHUTDOWN or reply.completions.completions
    except Closed:
        pass

    def answers():
        try:
            with Client(gpuqd.socket) as fresh:
                return fresh.status().state == "ready"
        except (OSError, Closed, Refused):
            return False

    until(answers, "a new supervisor to serve")
    assert gpuqd.supervisor() != supervisor
    fresh = gpuqd.connect()
    target = fresh.arena(4 * N)
    fresh.run_well(copy_job(fresh.load(kernels.BASIC), fresh.array(arange()), target, N))
    numpy.testing.assert_array_equal(target.array(numpy.int32), arange())


def test_a_killed_keeper_takes_all_with_it(start_gpuqd):
    daemon = start_gpuqd()
    client = daemon.connect()
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    family = processes.descendants(daemon.process.pid)
    daemon.process.kill()
    daemon.process.wait()
    until(lambda: not any(processes.is_alive(pid) for pid in family), "its processes to end")
    daemon.socket.unlink(missing_ok=True)


@pytest.mark.root
def test_nobody_waits_for_anothers_compiler(gpuqd):
    """Nor does it go on when its client has gone."""
    client, other = gpuqd.connect(), gpuqd.connect()
    bomb = """
template <int A, int B> struct S { static constexpr long v = S<A - 1, B * 2>::v + S<A - 1, B * 2 + 1>::v; };
template <int B> struct S<0, B> { static constexpr long v = B; };
extern "C" __global__ void k(long *out) { out[0] = S<26, 1>::v; }
"""
    client.tell(module_load=pb.ModuleLoad(format=pb.SOURCE, image=client.image(bomb.encode()).id, length=len(bomb)))
    until(lambda: processes.named(gpuqd.process.pid, "gpuqd-compiler"), "a compiler at work")
    other.run_well(Job().launch(other.builtin(), "sum_f64", [In(other.arena(8)), Out(other.arena(8)), u64(1)]))
    assert processes.named(gpuqd.process.pid, "gpuqd-compiler")
    client.close()
    until(lambda: not processes.named(gpuqd.process.pid, "gpuqd-compiler"), "it to be ended")
