# SPDX-License-Identifier: Apache-2.0
"""Other programs keep the supervisor's core busy: it notices, sleeps instead of polling, and takes precedence when it is woken."""

import importlib
import os
import resource
import subprocess

import pytest

from harness import place
from harness.patience import until

NORMAL, RAISED = 0, -10

pytestmark = [pytest.mark.whole_machine,
              pytest.mark.skipif(os.nice(0) != NORMAL, reason="gpuqd keeps a niceness with which it is started"),
              pytest.mark.skipif(os.getuid() != 0 and resource.getrlimit(resource.RLIMIT_NICE)[1] < 20 - RAISED,
                                 reason="no right to a higher priority, by which the supervisor shows that it has noticed")]


@pytest.fixture
def daemon(lend_gpuqd):
    return lend_gpuqd(poll_us=5000)


@pytest.fixture
def burners(daemon, monkeypatch, tmp_path):
    """Two programs on the supervisor's core."""
    monkeypatch.syspath_prepend(place.ROOT / "tests/bench")
    core = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(daemon.supervisor(), core)
    burners = importlib.import_module("burners").Burners(2, tmp_path)
    for process in burners.processes:
        os.sched_setaffinity(process.pid, core)
    yield burners
    burners.end()
    os.sched_setaffinity(daemon.supervisor(), os.sched_getaffinity(0))


@pytest.fixture
def jobs(daemon):
    """A program that runs one small job after the other."""
    process = subprocess.Popen(
        [place.program("gpuq-bench"), "--kernels", place.STAGE / "libexec/gpuq/kernels", "--contender", "gpuq",
         "--socket", daemon.socket, "--n", "100", "copies/1/3600"], stdout=subprocess.DEVNULL)
    yield process
    assert process.poll() is None
    process.kill()
    process.wait()


def niceness(pid):
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_the_supervisor_notices_that_its_core_is_wanted_and_that_it_is_free_again(daemon, burners, jobs):
    supervisor = daemon.supervisor()
    until(lambda: niceness(supervisor) == RAISED, "the supervisor to sleep and take precedence")
    burners.end()
    until(lambda: niceness(supervisor) == NORMAL, "the supervisor to poll again")


def test_nothing_that_runs_or_reads_users_code_can_take_precedence(daemon, burners, jobs):
    supervisor = daemon.supervisor()
    until(lambda: niceness(supervisor) == RAISED, "the supervisor to notice")
    for thread in map(int, os.listdir(f"/proc/{supervisor}/task")):
        assert thread == supervisor or niceness(thread) == NORMAL
    if not place.on_gpu():
        (worker,) = daemon.workers()
        assert resource.prlimit(worker, resource.RLIMIT_NICE) == (0, 0)
        assert niceness(worker) == NORMAL
