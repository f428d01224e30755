# SPDX-License-Identifier: Apache-2.0
"""A supervisor that is killed is started again, and takes over sessions, arenas, modules and jobs. Workers end with it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import pytest

from harness import kernels, processes
from harness.client import Client, In, InOut, Job, Out, Refused, u64
from harness.kernels import Gate, copy_job, gate_job, held_job
from harness.messages import pb
from harness.patience import until
from harness.remains import descriptors

N = 256


def kill_supervisor(daemon):
    """Returns once another one is up."""
    before = daemon.log().count("the supervisor is running again")
    supervisor = daemon.supervisor()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: daemon.log().count("the supervisor is running again") > before, "another supervisor")
    assert daemon.supervisor() != supervisor


def is_over(daemon):
    return "took over after" in daemon.log()


def add_one(module, what, **fields):
    return Job(**fields).launch(module, "add_one", [InOut(what), u64(N)], block=N)


@pytest.fixture
def daemon(start_gpuqd):
    return start_gpuqd()


@pytest.fixture
def client(daemon):
    return daemon.connect()


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


@pytest.fixture
def numbers(client):
    return client.array(numpy.arange(N, dtype=numpy.int32))


# ---- what is there again ----

def test_a_session_goes_on_with_its_arenas_and_modules(daemon, client, module, numbers):
    target = client.arena(4 * N)
    client.run_well(copy_job(module, numbers, target, N))
    session = client.session
    kill_supervisor(daemon)
    client.resume()
    assert client.session == session
    target.array(numpy.int32)[:] = 0
    client.run_well(copy_job(module, numbers, target, N))
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))


def test_an_arena_that_was_answered_is_there_again_however_slow_the_keeper_was(daemon, client):
    up = daemon.log().count("the supervisor is running again")
    with processes.stopped(daemon.process.pid):
        client.arena(4096).let_go()
        client.socket.settimeout(1)  # what is not answered by then is not looked for
        with contextlib.suppress(TimeoutError):
            for _ in range(600):
                client.arena(4096).let_go()
        os.kill(daemon.supervisor(), signal.SIGKILL)
    until(lambda: daemon.log().count("the supervisor is running again") > up, "another supervisor")
    assert client.arenas
    client.resume()


def test_the_log_tells_what_a_dead_supervisor_was_doing(daemon, client, module, numbers):
    client.run_well(add_one(module, numbers))
    kill_supervisor(daemon)
    assert re.search("was killed by signal 9 .*what it was doing: (?!an unknown|not known)", daemon.log()), daemon.log()


def test_it_is_killed_again_and_again(daemon, client, module, numbers):
    for i in range(5):
        client.run_well(add_one(module, numbers))
        kill_supervisor(daemon)
        client.resume()
    numpy.testing.assert_array_equal(numbers.array(numpy.int32), numpy.arange(N) + 5)


def test_device_memory_holds_what_it_held(daemon, client, module, numbers):
    device = client.device_arena(4 * N)
    client.run_well(Job().copy(device, numbers, 4 * N, direction=pb.OUT))
    kill_supervisor(daemon)
    client.resume()
    client.run_well(add_one(module, device))
    target = client.arena(4 * N)
    client.run_well(Job().copy(target, device, 4 * N, direction=pb.OUT))
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N) + 1)
    assert client.status().devices[0].memory_arenas == 4 * N


@contextlib.contextmanager
def open_when_read(fifo):
    """Whoever reads it goes on when the block ends."""
    writer = []

    def is_opened():
        with contextlib.suppress(OSError):  # nobody reads it yet
            writer.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        return writer

    until(is_opened, f"{fifo} to be read")
    try:
        yield
    finally:
        os.close(writer[0])


def is_read_by_a_probe(daemon, path):
    return any("--probe" in processes.command(pid) and str(path) in descriptors(pid)
               for pid in processes.named(daemon.process.pid, "gpuqd-worker"))


@pytest.mark.cpu
def test_a_driver_that_is_slow_to_show_its_devices_is_waited_for(start_gpuqd, tmp_path):
    """Longer than for clients: without devices all that is on them would be given up."""
    broken, fifo = tmp_path / "broken", tmp_path / "fifo"
    broken.touch()
    daemon = start_gpuqd(takeover_s=1, cpu_broken=broken)
    client = daemon.connect()
    numbers, device, target = client.array(numpy.arange(N, dtype=numpy.int32)), client.device_arena(4 * N), client.arena(4 * N)
    client.run_well(Job().copy(device, numbers, 4 * N, direction=pb.OUT))
    broken.unlink()
    os.mkfifo(fifo)
    os.link(fifo, broken)  # the driver does not come back from looking there what is broken
    kill_supervisor(daemon)
    with open_when_read(fifo):
        until(lambda: is_read_by_a_probe(daemon, broken), "the look for devices to be in the driver")
        time.sleep(2)  # what must not happen has no event
        broken.unlink()

    def is_over_when_it_is_let_go():
        os.close(os.open(fifo, os.O_RDWR))
        return is_over(daemon)

    until(is_over_when_it_is_let_go, "the takeover")
    client.resume()
    client.run_well(Job().copy(target, device, 4 * N, direction=pb.OUT))
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))


def test_a_prepared_job_has_the_same_number(daemon, client, module, numbers):
    target = client.arena(4 * N)
    job = Job().launch(module, "copy", [In(numbers), Out(target), u64(N)], block=N).message
    number = client.call(prepare=pb.Prepare(job=job)).prepared.prepared
    client.prepared[number] = job
    kill_supervisor(daemon)
    client.resume()
    client.tag += 1
    client.tell(fires=pb.Fires(fires=[pb.Fire(prepared=number, tag=client.tag)]))
    assert client.wait(client.session << 32 | client.tag).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))


def test_numbers_are_not_given_again(daemon, client, module, numbers):
    kill_supervisor(daemon)
    client.resume()
    other = daemon.connect()
    assert other.session > client.session
    assert client.arena(4).id > numbers.id
    assert client.load(kernels.BASIC).module > module.module


# ---- jobs ----

def test_a_running_job_runs_again_in_another_worker(daemon, client, module, numbers):
    target, gate = client.arena(4 * N), Gate(client, n_held=1)
    job = client.submit(held_job(module, numbers, target, N, gate))
    gate.wait_for()
    workers = daemon.workers()
    kill_supervisor(daemon)
    assert not any(processes.is_alive(pid) for pid in workers), "a worker outlived its supervisor"
    client.resume()
    assert client.wait(job).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * numpy.arange(N))


def test_a_running_job_that_may_not_run_twice_ends_with_its_buffers_named(daemon, client, module, numbers):
    gate, others = Gate(client), client.array(numpy.arange(N, dtype=numpy.int32))
    job = client.submit(Job().launch(module, "held", [In(numbers), InOut(others), u64(N), In(gate.words)]))
    gate.wait_for()
    kill_supervisor(daemon)
    client.resume()
    completion = client.wait(job)
    assert completion.error.code == pb.E_HALF_WRITTEN
    assert f"bytes 0 to {4 * N} of arena {others.id}" in completion.error.text
    client.run_well(add_one(module, numbers))
    numpy.testing.assert_array_equal(numbers.array(numpy.int32), numpy.arange(N) + 1)


def test_jobs_that_wait_run_once_each_in_their_order(daemon, client, module, numbers):
    """One job runs, which may run again; the others wait for it by `after`, and have not begun."""
    target, gate = client.arena(4 * N), Gate(client, n_held=1)
    first = client.submit(held_job(module, numbers, target, N, gate))
    others = client.submit(*[add_one(module, target, after=[first]) for _ in range(100)])
    gate.wait_for()
    kill_supervisor(daemon)
    client.resume()
    assert {client.wait(job).state for job in [first, *others]} == {pb.DONE}
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * numpy.arange(N) + 100)


def test_an_end_that_was_not_read_is_told_again_and_the_job_not_run_again(daemon, client, module, numbers):
    other = daemon.connect()
    job = client.submit(add_one(module, numbers))
    (completion,) = other.call(wait=pb.Wait(id=job)).completions.completions
    assert completion.state == pb.DONE
    other.close()
    kill_supervisor(daemon)
    client.resume()
    assert client.wait(job).state == pb.DONE
    numpy.testing.assert_array_equal(numbers.array(numpy.int32), numpy.arange(N) + 1)


def test_a_failure_that_was_not_read_is_told_again(daemon, client, module):
    other = daemon.connect()
    job = client.submit(Job().launch(module, "no_such_kernel"))
    (told,) = other.call(wait=pb.Wait(id=job)).completions.completions
    other.close()
    kill_supervisor(daemon)
    client.resume()
    completion = client.wait(job)
    assert completion.state == pb.FAILED
    assert (completion.error.code, completion.error.text) == (told.error.code, told.error.text)


def test_a_job_may_come_after_one_that_ended_before(daemon, client, module, numbers):
    ended = client.submit(add_one(module, numbers))
    client.wait(ended)
    kill_supervisor(daemon)
    client.resume()
    client.run_well(add_one(module, numbers, after=[ended]))
    (completion,) = client.call(wait=pb.Wait(id=ended)).completions.completions
    assert completion.state == pb.DONE


def test_a_job_comes_after_another_clients_that_is_said_again_later(daemon, client, module, numbers):
    target = client.arena(4 * N)
    second = daemon.connect()
    second.arenas[target.id] = second.open_arena(target.id)
    theirs = second.load(kernels.BASIC)
    gate = Gate(client, n_held=1)
    first = client.submit(held_job(module, numbers, target, N, gate))
    gate.wait_for()
    then = second.submit(add_one(theirs, target, after=[first]))
    until(lambda: then in client.queue(), "the second to be there")
    kill_supervisor(daemon)
    second.resume()
    client.resume()
    assert client.wait(first).state == pb.DONE
    assert second.wait(then).state == pb.DONE
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * numpy.arange(N) + 1)


def test_new_clients_are_served_while_others_are_away(start_gpuqd):
    daemon = start_gpuqd(takeover_s=3600)
    client = daemon.connect()
    target, gate = client.arena(4 * N), Gate(client, n_held=1)
    job = client.submit(held_job(client.load(kernels.BASIC), client.array(numpy.arange(N, dtype=numpy.int32)), target, N, gate))
    gate.wait_for()
    kill_supervisor(daemon)
    serve_another(daemon)
    client.resume()
    assert client.wait(job).state == pb.DONE


# ---- who does not come back ----

COUNTER = """
__device__ int counted;
extern "C" __global__ void count(int *to) { *to = ++counted; }
"""

CHILD = """
    import sys
    sys.path.insert(0, {tests!r})
    from harness.client import Client, Refused
    client = Client({socket!r}, hello={hello!r})
    {then}
"""


def start_child(daemon, then, hello=True):
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    text = textwrap.dedent(CHILD).format(tests=tests, socket=str(daemon.socket), hello=hello, then=then)
    return subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_job_after_one_of_the_dead_is_told(start_gpuqd):
    """Nobody waits takeover_s for a process that has ended."""
    daemon = start_gpuqd(takeover_s=3600)
    child = start_child(daemon, """
from harness import kernels
from harness.client import Job, Out
print(client.submit(Job().launch(client.load(kernels.BASIC), "forever", [Out(client.arena(4))])), flush=True); input()
""")
    job = int(child.stdout.readline())
    client = daemon.connect()
    until(lambda: job in client.queue(), "its job to be there")
    kill_supervisor(daemon)
    client.resume()
    child.kill()
    child.wait()
    with pytest.raises(Refused):
        client.call(wait=pb.Wait(id=job))


def test_jobs_of_one_who_is_away_are_waited_for_no_longer_than_that(start_gpuqd):
    daemon = start_gpuqd(takeover_s=1)
    late, other = daemon.connect(), daemon.connect()
    job = late.submit(Job().launch(late.load(kernels.BASIC), "forever", [Out(late.arena(4))]))
    until(lambda: late.queue()[job].state == pb.RUNNING, "it to run")
    kill_supervisor(daemon)
    other.resume()
    with pytest.raises(Refused):
        other.call(wait=pb.Wait(id=job))
    assert "has not reconnected" in daemon.log()
    late.resume()
    until(lambda: late.queue()[job].state == pb.RUNNING, "it to run again")
    assert late.queue()[job].retries == 1
    late.cancel(job)
    assert late.wait(job).state == pb.CANCELLED


# ---- who comes back later ----

def serve_another(daemon):
    client = daemon.connect()
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    return client


def n_sessions(client):
    return client.status().users[0].sessions


def test_an_idle_one_is_not_waited_for_and_finds_all_it_had(start_gpuqd):
    daemon = start_gpuqd(takeover_s=3600)
    late = daemon.connect()
    module = late.load(kernels.BASIC)
    numbers = late.array(numpy.arange(N, dtype=numpy.int32))
    device = late.device_arena(4 * N)
    late.run_well(Job().copy(device, numbers, 4 * N, direction=pb.OUT))
    work = Job().launch(module, "copy", [In(numbers), Out(late.arena(4 * N)), u64(N)], block=N).message
    late.prepared[late.call(prepare=pb.Prepare(job=work)).prepared.prepared] = work
    kill_supervisor(daemon)
    other = serve_another(daemon)
    assert is_over(daemon)
    assert n_sessions(other) == 2
    assert other.status().devices[0].memory_arenas == 4 * N
    late.resume()
    assert n_sessions(other) == 2
    late.run_well(add_one(module, device))
    late.run_well(Job().copy(numbers, device, 4 * N, direction=pb.OUT))
    numpy.testing.assert_array_equal(numbers.array(numpy.int32), numpy.arange(N) + 1)
    late.close()
    until(lambda: other.status().devices[0].memory_arenas == 0, "its arenas to be gone")


def test_it_may_be_killed_again_while_somebody_is_away(start_gpuqd):
    daemon = start_gpuqd()
    late = daemon.connect()
    module = late.load(kernels.BASIC)
    numbers = late.array(numpy.arange(N, dtype=numpy.int32))
    for _ in range(3):
        kill_supervisor(daemon)
        serve_another(daemon).close()
    late.resume()
    late.run_well(add_one(module, numbers))
    numpy.testing.assert_array_equal(numbers.array(numpy.int32), numpy.arange(N) + 1)


def test_its_job_runs_again_when_it_is_back(start_gpuqd):
    daemon = start_gpuqd(takeover_s=1)
    late = daemon.connect()
    module = late.load(kernels.BASIC)
    numbers, target, gate = late.array(numpy.arange(N, dtype=numpy.int32)), late.arena(4 * N), Gate(late, n_held=1)
    job = late.submit(held_job(module, numbers, target, N, gate))
    then = late.submit(add_one(module, target, after=[job]))
    gate.wait_for()
    kill_supervisor(daemon)
    until(lambda: "has not reconnected" in daemon.log(), "it not to be waited for any more")
    serve_another(daemon)
    late.resume()
    assert {late.wait(job).state, late.wait(then).state} == {pb.DONE}
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * numpy.arange(N) + 1)


def test_retries_are_counted_on(daemon, client, module):
    job = client.submit(Job().launch(module, "forever", [Out(client.arena(4))]))
    for n in range(3):
        until(lambda: client.queue()[job].state == pb.RUNNING, "it to run")
        assert client.queue()[job].retries == n
        kill_supervisor(daemon)
        client.resume()


def test_the_end_of_its_process_frees_all(start_gpuqd):
    daemon = start_gpuqd(takeover_s=1)
    child = start_child(daemon, """
from harness import kernels
from harness.client import Job, Out
arena = client.device_arena(4096)
client.submit(Job().launch(client.load(kernels.BASIC), "forever", [Out(client.arena(4))]))
print(client.session, flush=True); input()
""")
    assert int(child.stdout.readline())
    client = daemon.connect()
    until(lambda: any(entry.state == pb.RUNNING for entry in client.queue().values()), "its job to run")
    kill_supervisor(daemon)
    client.resume()
    assert n_sessions(client) == 2
    assert client.status().devices[0].memory_arenas == 4096
    child.kill()
    child.wait()
    until(lambda: n_sessions(client) == 1, "its session to be gone")
    until(lambda: client.status().devices[0].memory_arenas == 0, "its arena to be gone")


def test_variables_are_lost_with_their_worker_and_that_is_told_once(start_gpuqd):
    daemon = start_gpuqd()
    late = daemon.connect()
    module = late.load(COUNTER)
    count = late.arena(4)
    late.run_well(Job().launch(module, "count", [Out(count)]))
    kill_supervisor(daemon)
    late.resume()
    assert late.run(Job().launch(module, "count", [Out(count)])).error.code == pb.E_VARIABLES_LOST
    late.run_well(Job().launch(module, "count", [Out(count)]))
    assert count.array(numpy.int32)[0] == 1


def test_another_process_cannot_have_the_session(daemon, client):
    session = client.session
    kill_supervisor(daemon)
    child = start_child(daemon, hello=False, then=f"""
try:
    client.hello(resume={session})
except Refused as error:
    print(error.text)
""")
    assert "another process" in child.communicate()[0]
    client.resume()


def test_a_session_that_was_never_interrupted_is_not_resumed(daemon):
    client = Client(daemon.socket, hello=False)
    with pytest.raises(Refused, match="could not reconnect"):
        client.hello(resume=1)
    client.close()


def test_resumed_out_of_turn_is_a_protocol_error(daemon, client):
    client.tell(resumed=pb.Resumed(seen=0))
    (reply,) = client.assert_closed()
    assert reply.error.code == pb.E_PROTOCOL


def test_it_may_be_stopped_while_clients_are_away(start_gpuqd):
    daemon = start_gpuqd(takeover_s=3600)
    client = daemon.connect()
    job = client.submit(Job().launch(client.load(kernels.BASIC), "forever", [Out(client.arena(4))]))
    until(lambda: client.queue()[job].state == pb.RUNNING, "it to run")
    kill_supervisor(daemon)
    until(lambda: daemon.connect().status().state == "ready", "it to serve others")
    assert daemon.stop() == 0


# ---- the ledger ----

def ledger_of(daemon):
    """The keeper's memfd, as a path."""
    folder = f"/proc/{daemon.process.pid}/fd"
    return next(f"{folder}/{fd}" for fd in os.listdir(folder)
                if "gpuq-ledger" in os.readlink(f"{folder}/{fd}"))


@pytest.mark.parametrize("offset", (0, 8, 4096), ids=("magic", "version", "record"))
def test_a_damaged_ledger_is_set_aside(daemon, client, module, offset):
    os.kill(daemon.supervisor(), signal.SIGSTOP)
    with open(ledger_of(daemon), "r+b", buffering=0) as ledger:
        ledger.seek(offset)
        byte = ledger.read(1)[0]
        ledger.seek(offset)
        ledger.write(bytes([byte ^ 1]))
    workers = daemon.workers()
    kill_supervisor(daemon)
    client.close()
    client.connect()
    with pytest.raises(Refused, match="could not reconnect"):
        client.hello(resume=client.session)
    assert "set aside" in daemon.log()
    until(lambda: not any(processes.is_alive(pid) for pid in workers), "its workers to be gone")
    other = daemon.connect()
    other.run_well(Job().launch(other.load(kernels.BASIC), "nothing"))
    kill_supervisor(daemon)
    other.resume()


def test_nothing_is_left_of_those_who_left(daemon, client, module, numbers):
    client.run_well(add_one(module, numbers))
    kill_supervisor(daemon)
    client.resume()
    client.run_well(add_one(module, numbers))
    client.close()
    until(lambda: not any("gpuq-arena" in kind for kind in descriptors(daemon.process.pid)), "its arenas to be gone")
