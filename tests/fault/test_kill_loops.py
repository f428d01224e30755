# SPDX-License-Identifier: Apache-2.0
"""Processes of the service killed at random points while four users with four processes each work: every job
ends once, every result is right or the job says why not, and nothing is left behind."""

import os
import signal
import time

import numpy
import pytest

from harness import kernels, processes
from harness.client import Closed
from harness.kernels import copy_job
from harness.load import E_CLOSED, E_CONNECT, Load, LoadInside, USERS
from harness.machine import Machine, why_not
from harness.messages import pb
from harness.patience import until
from harness.remains import Remains

pytestmark = pytest.mark.whole_machine

# What a job may end with when its own user's worker is killed: alone in flight it is taken for the guilty one.
KILLED = {pb.E_FAULT, pb.E_HALF_WRITTEN}
# So is a module that three workers in turn were killed over while they loaded it, whichever kind of job asked for it.
KILLED_LOADING = [f"GPUQ_E_INTERNAL kind {kind}: the worker process died while it loaded" for kind in range(7)]
# And when the daemon goes: the connection ends, with a last word or without.
GONE = {pb.E_SHUTDOWN, E_CLOSED, E_CONNECT}
NO_SYSTEMD = why_not()


def start(start_gpuqd, **settings):
    return start_gpuqd(private=False, cpu_threads=1, **settings)


def kill_now(pid):
    """Returns whose it was and the moment, or None when it has gone by itself."""
    if not pid:
        return None
    try:
        uid = processes.uid(pid)
        os.kill(pid, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return uid, time.monotonic_ns()


def recoveries(load, kills):
    return [ms for uid, at_ns in kills for ms in load.recovery_ms(at_ns, load.of(uid) if uid else None)]


class Witness:
    """Speaks the protocol itself, so that an end told twice is seen: the client refuses it."""

    def __init__(self, daemon, uid):
        self.client = daemon.connect(uid=uid)
        self.module = self.client.load(kernels.BASIC)
        self.values = numpy.arange(64, dtype=numpy.int32) + uid
        self.source = self.client.array(self.values)
        self.targets = [self.client.arena(self.source.size) for _ in range(3)]
        self.n_ended = 0

    def submit(self):
        self.ids = self.client.submit(*[copy_job(self.module, self.source, target, 64) for target in self.targets])

    def check(self):
        for job, target in zip(self.ids, self.targets):
            completion = self.client.wait(job)
            assert completion.state == pb.DONE or completion.error.code in KILLED and completion.error.text, completion
            if completion.state == pb.DONE:
                numpy.testing.assert_array_equal(target.array(numpy.int32), self.values)
            target.map[:] = bytes(target.size)
            self.n_ended += 1

    def finish(self):
        self.client.status()  # whatever was still on its way is read before its answer
        assert len(self.client.completions) == self.n_ended
        self.client.close()


@pytest.mark.root
def test_workers_killed_at_random_points(start_gpuqd, dice, rounds, tell):
    service = start(start_gpuqd)
    remains = Remains(service)
    kills, n_kills = [], rounds(30, 1000)
    with Load(service, seed=dice.randrange(1 << 20)) as load:
        witnesses = [Witness(service, uid) for uid in USERS]
        while len(kills) < n_kills:
            for witness in witnesses:
                witness.submit()
            load.after(dice.randrange(40))
            killed = kill_now(dice.choice(sorted(service.workers()) or [0]))
            if killed:
                kills.append(killed)
            for witness in witnesses:
                witness.check()
        load.progress(3)
        load.await_detached()
        for witness in witnesses:
            witness.finish()
    jobs, typed = load.assert_only(KILLED, told=KILLED_LOADING)
    assert not load.setup_codes(), f"not only jobs suffered: {load.setup_codes()}"
    assert all(member.n_connects() == 1 for member in load.members), "a session was lost"
    remains.assert_none()
    tell(faults=n_kills, jobs=jobs, typed=typed, recovery_ms=recoveries(load, kills))


@pytest.mark.root
def test_supervisors_killed_at_random_points(start_gpuqd, dice, rounds, tell):
    """Nobody loses more than a job that may not run twice, as the job says. Three a daemon: the keeper waits longer each time before it starts one that does not live long."""
    kills, jobs, typed, milliseconds = 0, 0, 0, []
    while kills < rounds(6, 1000):
        service = start(start_gpuqd)
        remains = Remains(service)
        with Load(service, seed=dice.randrange(1 << 20)) as load:
            times = []
            for _ in range(3):
                load.after(dice.randrange(200))
                times.append((None, kill_now(service.supervisor())[1]))
                load.progress(2)
            load.await_detached()
        jobs, typed = (a + b for a, b in zip((jobs, typed), load.assert_only({pb.E_HALF_WRITTEN})))
        assert not load.setup_codes(), f"not only jobs suffered: {load.setup_codes()}"
        assert all(member.n_connects() == 1 for member in load.members), "a session was lost"
        remains.assert_none()
        assert service.log().count("the supervisor was killed by signal 9") == 3
        service.stop()
        kills += 3
        milliseconds += recoveries(load, times)
    tell(faults=kills, jobs=jobs, typed=typed, recovery_ms=milliseconds)


@pytest.mark.root
def test_keepers_killed_at_random_points_without_systemd(start_gpuqd, dice, rounds, tell):
    """A clean end, a clear error, and the next one takes over the path and the clients."""
    service = start(start_gpuqd)
    n_kills, times = rounds(4, 1000), []
    with Load(service, seed=dice.randrange(1 << 20)) as load:
        for _ in range(n_kills):
            load.after(dice.randrange(200))
            raw = service.connect(uid=USERS[0])
            family = processes.descendants(service.process.pid)
            times.append((None, kill_now(service.process.pid)[1]))
            service.process.wait()
            until(lambda: not any(processes.is_alive(pid) for pid in family), "its processes to end")
            with pytest.raises((Closed, OSError)):
                raw.status()
            raw.close()
            refused = service.run("status")
            assert refused.returncode == 3 and str(service.socket) in refused.stderr, refused
            until(lambda: not processes.orphans(), "what it had just started to end with it")
            service.start()
            load.progress(2)
        load.await_detached()
    jobs, typed = load.assert_only(GONE)
    assert set(load.setup_codes()) <= GONE, load.setup_codes()
    tell(faults=n_kills, jobs=jobs, typed=typed, recovery_ms=recoveries(load, times))


# ---- under systemd ----

@pytest.fixture
def machine():
    with Machine("[gpuqd]\ndevice = cpu\ncpu_threads = 1\n") as machine:
        machine.write("/run/systemd/system/gpuqd.service.d/more.conf",
                      "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=50ms\n")
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "start", "gpuqd.socket")
        yield machine


@pytest.mark.cpu
@pytest.mark.skipif(NO_SYSTEMD is not None, reason=str(NO_SYSTEMD))
def test_keepers_killed_at_random_points_under_systemd(machine, dice, rounds, tell):
    """systemd has the socket and the descriptors: sessions, arenas and jobs outlive the keeper, though workers do not."""
    n_kills, times = rounds(4, 1000), []

    def keeper():
        return until(lambda: machine.main_process("gpuqd.service"), "a keeper")

    with LoadInside(machine, processes=2, seed=dice.randrange(1 << 20)) as load:
        for i in range(n_kills):
            load.after(dice.randrange(200))
            pid = keeper()
            family = [pid, *processes.descendants(pid)]
            times.append((None, kill_now(pid)[1]))
            load.progress(2)
            until(lambda: not any(processes.is_alive(pid) for pid in family), "its processes to end")
            until(lambda: machine.show("gpuqd.service", "NRestarts") == str(i + 1), "systemd to count it")
        load.await_detached()
    jobs, typed = load.assert_only({pb.E_HALF_WRITTEN})
    assert not load.setup_codes(), f"not only jobs suffered: {load.setup_codes()}"
    assert all(member.n_connects() == 1 for member in load.members), "a session was lost"
    assert machine.run("gpuq", "queue", "--noheader").strip() == ""
    until(lambda: machine.show("gpuqd.service", "NFileDescriptorStore") == "1", "systemd's store to be emptied of all but the ledger")
    tell(faults=n_kills, jobs=jobs, typed=typed, recovery_ms=recoveries(load, times))
