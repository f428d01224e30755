# SPDX-License-Identifier: Apache-2.0
"""Prepared jobs that a worker takes by itself, from the direct ring: with the same results, order and errors as others, whatever comes between."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from conftest import SOURCES
from harness import place
from harness.messages import pb
from harness.patience import until

N = 64
CONFIG = (1, N)


def n_direct(gpuqd):
    """By another connection: a request of its own would end a client's use of its ring. Workers report now and then."""
    client = gpuqd.connect()
    counters = [worker.counters.direct for worker in client.status().workers]
    client.close()
    return sum(counters)


def go_direct(gpuqd, prepared, n_most=20000):
    """Fires it until its worker takes it by itself. How often it was fired."""
    for n in range(1, n_most + 1):
        prepared.fire().wait()
        if n % 500 == 0 and n_direct(gpuqd):
            return n
    raise AssertionError("the worker takes nothing by itself")


def wait_for(gpuqd, job_id):
    """Asks for its end by another connection."""
    client = gpuqd.connect()
    completion = client.call(wait=pb.Wait(id=job_id)).completions.completions[0]
    client.close()
    return completion.state


@pytest.fixture
def counter(gpuq):
    """One number on the device, and a prepared job that adds 1 to it."""
    return gpuq.device_array(N, np.int32)


@pytest.fixture
def increment(gpuq, counter):
    source = 'extern "C" __global__ void increment(int *x) { x[threadIdx.x] += 1; }'
    return gpuq.module(source)["increment"].prepare(CONFIG, gpuq.InOut(counter))


def test_a_worker_takes_them_by_itself(gpuqd, increment, counter):
    n = go_direct(gpuqd, increment)
    jobs = [increment.fire() for _ in range(1000)]
    for job in jobs:
        assert job.wait().state == "done"
    assert (counter.get() == n + 1000).all()
    assert jobs[-1].result.ran >= 0 and jobs[-1].result.device == 0


def test_they_keep_their_order_with_all_other_jobs(gpuq, gpuqd, increment, counter):
    expected = go_direct(gpuqd, increment)
    double = gpuq.module('extern "C" __global__ void twice(int *x) { x[threadIdx.x] = (x[threadIdx.x] * 2) % 1000003; }')["twice"]
    for _ in range(30):
        for _ in range(100):
            increment.fire()
        double.submit(CONFIG, gpuq.InOut(counter))
        expected = (expected + 100) * 2 % 1000003
        increment.fire()
        expected += 1
    assert (counter.get() == expected).all()


def test_those_that_share_buffers_follow_each_other(gpuq, gpuqd):
    source = """
        extern "C" __global__ void step(const int *in, int *out, int k) { out[threadIdx.x] = (in[threadIdx.x] * 3 + k) % 10007; }
    """
    step = gpuq.module(source)["step"]
    a, b, c = (gpuq.device_array(N, np.int32) for _ in range(3))
    lone = gpuq.device_array(N, np.int32)
    jobs = [step.prepare(CONFIG, gpuq.In(a), gpuq.Out(b), 1), step.prepare(CONFIG, gpuq.In(b), gpuq.Out(c), 2),
            step.prepare(CONFIG, gpuq.In(c), gpuq.Out(a), 3), step.prepare(CONFIG, gpuq.In(a), gpuq.Out(lone), 4)]
    n, value = 0, 0
    while n < 20000 and not (n % 500 == 0 and n and n_direct(gpuqd)):
        for job in jobs:
            job.fire()
        n += 1
    for _ in range(500):
        for job in jobs:
            last = job.fire()
        n += 1
    last.wait()
    for _ in range(n):
        for k in (1, 2, 3):
            value = (value * 3 + k) % 10007
    assert (a.get() == value).all() and (lone.get() == (value * 3 + 4) % 10007).all()


def test_host_memory_in_place_or_not(gpuq, gpuqd, module):
    x, y = gpuq.array(np.arange(N, dtype=np.int32)), gpuq.zeros(N, np.int32)
    prepared = module["add_int"].prepare(CONFIG, gpuq.In(x), gpuq.Out(y), 5, N)
    go_direct(gpuqd, prepared)
    for value in range(100):
        x[:] = value
        prepared.fire().wait()
        assert (y == value + 5).all()


def test_what_others_ask_about_them_is_known(gpuq, gpuqd, increment):
    go_direct(gpuqd, increment)
    job = increment.fire()
    assert wait_for(gpuqd, job.id) == pb.DONE  # known by its number alone
    for _ in range(200):
        job = increment.fire()
    assert wait_for(gpuqd, job.id) == pb.DONE
    job = gpuq.job()
    job.after(increment.fire())
    job.launch(gpuq.module('extern "C" __global__ void nothing(int *x) {}')["nothing"], (1, 1), gpuq.InOut(gpuq.device_array(1, np.int32)))
    job.run()


def n_in_history(client):
    page = client.call(history_get=pb.HistoryGet(kernel="increment")).history
    return sum(row.jobs for row in page.rows)


def test_the_history_has_all_of_them(gpuqd, increment):
    n = go_direct(gpuqd, increment)
    client = gpuqd.connect()
    until(lambda: n_in_history(client) == n, "the history counts them")
    assert client.status().users[0].done >= n


def test_one_that_runs_long_can_be_cancelled(gpuq, gpuqd, module):
    flag, x, y = gpuq.device_array(1, np.int32), gpuq.device_array(1, np.int32), gpuq.device_array(1, np.int32)
    flag.set(np.array([1], np.int32))
    gated = module["gated"].prepare((1, 1), gpuq.In(flag), gpuq.In(x), gpuq.Out(y))
    go_direct(gpuqd, gated)
    with gpuq.connect() as other:
        other.job().fill(flag, 0).run()
    job = gated.fire()
    with pytest.raises(gpuq.TimeoutError):
        job.wait(timeout=0.3)
    job.cancel()
    with pytest.raises(gpuq.CancelledError):
        job.wait()


def test_one_that_faults_fails_alone(gpuq, gpuqd, module, increment, counter):
    n = go_direct(gpuqd, increment)
    wild = module["wild"].prepare((1, 1), gpuq.InOut(gpuq.device_array(1, np.int32)), 1 << 40)
    with pytest.raises(gpuq.Error):
        wild.fire().wait()
    for _ in range(2000):
        increment.fire()
    increment.fire().wait()
    assert (counter.get() == n + 2001).all()


def test_a_worker_that_is_killed_loses_nothing(gpuq, gpuqd, increment, counter):
    """A job that changes memory in place cannot run again if it had begun; it is told, and counted here."""
    n_done, n_failed = go_direct(gpuqd, increment), 0
    for _ in range(3):
        jobs = []
        for i in range(3000):
            jobs.append(increment.fire())
            if i == 1500:
                os.kill(gpuqd.workers()[0], signal.SIGKILL)
        for job in jobs:
            try:
                job.wait()
                n_done += 1
            except gpuq.Error:
                n_failed += 1
        value = int(counter.get()[0])
        assert n_done <= value <= n_done + n_failed and (counter.get() == value).all()
        assert n_failed < 3 * 600, "only what was in flight"


def test_a_supervisor_that_is_killed_loses_nothing(gpuq, gpuqd, increment, counter):
    n_done, n_failed = go_direct(gpuqd, increment), 0
    for _ in range(2):
        jobs = []
        for i in range(3000):
            jobs.append(increment.fire())
            if i == 1500:
                os.kill(gpuqd.supervisor(), signal.SIGKILL)
        for job in jobs:
            try:
                job.wait()
                n_done += 1
            except gpuq.Error:
                n_failed += 1
        value = int(counter.get()[0])
        assert n_done <= value <= n_done + n_failed
        n_done = value  # those that failed may have run
        n_failed = 0
        n_done += go_direct(gpuqd, increment)


def test_a_client_that_dies_leaves_nothing(gpuqd, environment):
    program = """
import os, numpy as np, gpuq
x = gpuq.device_array(64, np.int32)
job = gpuq.module('extern "C" __global__ void increment(int *x) { x[threadIdx.x] += 1; }')["increment"].prepare((1, 64), gpuq.InOut(x))
for _ in range(5000):
    job.fire().wait()
for _ in range(300):
    job.fire()
os._exit(0)
"""
    for _ in range(3):
        subprocess.run([sys.executable, "-c", program], check=True)
    assert n_direct(gpuqd) > 0
    client = gpuqd.connect()
    until(lambda: not client.status().users or not any(user.running or user.queued for user in client.status().users), "no job is left")


def test_settings_and_devices_change_under_them(gpuq, gpuqd, increment, counter):
    n = go_direct(gpuqd, increment)
    for change in ("no", "yes"):
        gpuqd.configure(direct=change)
        for _ in range(2000):
            increment.fire()
        increment.fire().wait()
        n += 2001
    assert (counter.get() == n).all()
    admin = gpuqd.connect()
    done = []
    thread = threading.Thread(target=lambda: done.extend(increment.fire().wait() for _ in range(3000)))
    thread.start()
    admin.call(drain=pb.Drain(device=0, reason="test"))
    until(lambda: admin.status().devices[0].running == 0, "the device is drained")
    admin.call(resume=pb.Resume(device=0))
    thread.join()
    assert len(done) == 3000 and (counter.get() == n + 3000).all()


def test_several_threads_and_callbacks(gpuq, gpuqd, increment, counter):
    n = go_direct(gpuqd, increment)
    seen = []

    def fire():
        for _ in range(1000):
            job = increment.fire()
            job.add_done_callback(lambda job: seen.append(job)) if hasattr(job, "add_done_callback") else seen.append(job)
            job.wait()

    threads = [threading.Thread(target=fire) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.get() == n + 4000).all() and len(seen) == 4000


def test_a_forked_child_takes_no_part(gpuq, gpuqd, increment, counter):
    n = go_direct(gpuqd, increment)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for _ in range(1000):
        increment.fire()
    increment.fire().wait()
    assert (counter.get() == n + 1001).all()


def test_a_client_that_is_closed_harms_no_other(gpuq, gpuqd, increment, counter):
    """Its jobs in flight go on or are cancelled; the worker, which others use, stays."""
    n = go_direct(gpuqd, increment)
    worker = gpuqd.workers()
    for _ in range(5):
        other = gpuq.connect()
        x = other.device_array(N, np.int32)
        prepared = other.module('extern "C" __global__ void increment(int *x) { x[threadIdx.x] += 1; }')["increment"].prepare(CONFIG, gpuq.InOut(x))
        go_direct(gpuqd, prepared)
        for _ in range(300):
            prepared.fire()
        other.close()
        increment.fire().wait()
        n += 1
    assert (counter.get() == n).all() and gpuqd.workers() == worker


def test_a_program_that_waits_for_none_stays_there(gpuq, gpuqd, increment, counter):
    n = go_direct(gpuqd, increment)

    def most_go_there():
        """On a busy machine a job may take long, and its worker gives the ring back, so one time may be too few."""
        nonlocal n
        before = n_direct(gpuqd)
        for _ in range(5000):
            increment.fire()
        increment.fire().wait()
        n += 5001
        return n_direct(gpuqd) > before + 2500

    until(most_go_there, "most of them go direct")
    assert (counter.get() == n).all()


def test_a_long_job_before_them_holds_nothing_up(gpuq, gpuqd, module, increment, counter, gate):
    n = go_direct(gpuqd, increment)
    out = gpuq.device_array(1, np.int32)
    job = module["gated"].submit((1, 1), gate.flag, gpuq.In(gpuq.device_array(1, np.int32)), gpuq.Out(out))
    for _ in range(1000):
        last = increment.fire()
    last.wait()
    assert job.state != "done" and (counter.get() == n + 1000).all()
    gate.open()
    job.wait()


def test_what_had_not_begun_runs_after_a_restart(gpuq, gpuqd, increment, counter):
    """Only what a worker had taken may have begun."""
    n = go_direct(gpuqd, increment)
    os.kill(gpuqd.workers()[0], signal.SIGSTOP)
    jobs = [increment.fire() for _ in range(200)]
    os.kill(gpuqd.supervisor(), signal.SIGKILL)
    n_failed = 0
    for job in jobs:
        try:
            job.wait()
        except gpuq.HalfWrittenError:
            n_failed += 1
    assert n_failed <= 1 and n + 199 <= int(counter.get()[0]) <= n + 200


def test_threads_that_poll_take_no_end_from_one_that_waits(gpuq, gpuqd, increment):
    go_direct(gpuqd, increment)
    for _ in range(1000):
        jobs = [increment.fire() for _ in range(2)]
        thread = threading.Thread(target=jobs[0].wait)
        thread.start()
        while not jobs[1].done():
            pass
        thread.join(timeout=60)
        assert not thread.is_alive()


TWO_USERS = """
import sys, time
import numpy as np
import gpuq

x = gpuq.device_array(64, np.int32)
increment = gpuq.module('extern "C" __global__ void increment(int *x) { x[threadIdx.x] += 1; }')["increment"].prepare((1, 64), gpuq.InOut(x))
increment.fire().wait()
print("ready", flush=True)
sys.stdin.readline()
n, end = 1, time.monotonic() + 2
while time.monotonic() < end:
    jobs = [increment.fire() for _ in range(100)]
    jobs[-1].wait()
    n += 100
assert (x.get() == n).all()
print(n, flush=True)
"""


@pytest.mark.root
def test_two_users_both_get_their_turns(service):
    """Neither keeps the device by a ring while the other has work; and the order of each one's jobs stays."""
    environment = {**os.environ, "GPUQ_LIBRARY": str(place.STAGE / "lib" / "libgpuq.so.0"), "GPUQ_SOCKET": str(service.socket),
                   "PYTHONPATH": SOURCES, "HOME": "/"}
    programs = [subprocess.Popen([sys.executable, "-c", TWO_USERS], user=uid, group=uid, extra_groups=[], env=environment, cwd="/", text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE) for uid in (12345, 12346)]
    for program in programs:
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        program.stdin.write("go\n")
        program.stdin.flush()
    counts = [int(program.stdout.readline()) for program in programs]
    assert all(program.wait() == 0 for program in programs) and min(counts) > max(counts) / 20
