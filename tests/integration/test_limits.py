# SPDX-License-Identifier: Apache-2.0
"""What gpuqd.service forbids its processes, they do not need: neither on the CPU driver nor with NVIDIA's."""

import platform
import subprocess
import sys

import numpy
import pytest

from harness import kernels, limits, place, processes
from harness.client import In, InOut, Job, Out, u64
from harness.kernels import copy_job
from harness.messages import pb

pytestmark = [
    pytest.mark.skipif(place.SANITIZED, reason="sanitizers need calls that the unit forbids"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter is written for x86-64"),
    pytest.mark.skipif(not limits.PACKED.exists() and not limits.SCRIPT.exists(), reason="no list of the unit's calls"),
]


@pytest.fixture
def start_limited(start_gpuqd, monkeypatch):
    """Starts a daemon under the unit's limits from its first instruction."""
    from harness.daemon import Daemon
    start = Daemon.start

    def start_limited(**options):
        monkeypatch.setattr(Daemon, "start", lambda daemon: start(daemon, preexec_fn=limits.limiter(**options)))
        return start_gpuqd(cache_dir=None)

    return start_limited


@pytest.fixture
def gpuqd(start_limited):
    return start_limited()


FORBIDDEN = """
import ctypes, mmap
try:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
except PermissionError:
    print("memory")
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(0, 0, 0, 0) and ctypes.get_errno() == 1:
    print("call")
"""


def test_the_limits_bind():
    told = subprocess.run([sys.executable, "-c", FORBIDDEN], capture_output=True, text=True, preexec_fn=limits.limiter())
    assert told.stdout.split() == ["memory", "call"], told


def test_source_is_compiled_and_runs(gpuqd, client):
    module = client.load(kernels.BASIC)
    source, target = client.array(numpy.arange(100, dtype=numpy.int32)), client.arena(400)
    client.run_well(copy_job(module, source, target, 100))
    assert target.array(numpy.int32).tolist() == list(range(100))


def test_supervisor_and_worker_have_filters_of_their_own_besides(gpuqd, client):
    client.run_well(Job().fill(client.arena(64), 64, 0x11))
    n_of_keeper = processes.n_filters(gpuqd.process.pid)
    found = processes.named(gpuqd.process.pid, "gpuqd-supervisor") + processes.named(gpuqd.process.pid, "gpuqd-worker")
    assert [processes.n_filters(pid) - n_of_keeper for pid in found] == [1, 1]


def test_where_they_can_have_none_all_goes_on(start_limited):
    daemon = start_limited(without=[limits.SECCOMP])
    client = daemon.connect()
    client.run_well(Job().fill(client.arena(64), 64, 0x11))
    assert "gpuqd-supervisor: runs without a filter of system calls" in daemon.log()
    assert "gpuqd-worker: runs without a filter of system calls" in daemon.log()


def test_builtin_kernels_run(gpuqd, client):
    values, out = client.array(numpy.ones(10000)), client.arena(8)
    client.run_well(Job().launch(client.builtin(), "sum_of_squares_f64", [In(values), Out(out), u64(10000)], 1, 256))
    assert out.array(numpy.float64)[0] == 10000


def test_device_arenas_outlive_a_fault(gpuqd, client):
    kept, host = client.device_arena(4096), client.arena(4096)
    client.run_well(Job().fill(kept, 4096, 0x11))
    bad = client.run(Job().launch(client.load(kernels.BASIC), "wild", [InOut(client.arena(4)), u64(kernels.FAR)]))
    assert bad.error.code == pb.E_FAULT
    client.run_well(Job().copy(host, kept, 4096))
    assert host.map[:] == b"\x11" * 4096
