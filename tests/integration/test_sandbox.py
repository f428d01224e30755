# SPDX-License-Identifier: Apache-2.0
"""The system calls that each process gives up once it has started; tests/unit/util/test-sandbox.c tries all of them."""

import errno
import pathlib

import numpy
import pytest

from harness import inject, kernels, place, processes
from harness.patience import until

ALICE = 12345
GETPID, EXECVE, SETRESUID, UNSHARE = 39, 59, 117, 272
KEEP = -1


@pytest.fixture
def of_service(start_gpuqd):
    """A daemon of its own for all users, and one of them."""
    daemon = start_gpuqd(private=False)
    return daemon, daemon.connect(uid=ALICE)


def run_job(client):
    """Compiles, in a child of the worker, and runs."""
    module = client.load(kernels.BASIC)
    source, target = client.array(numpy.arange(8, dtype=numpy.int32)), client.arena(32)
    client.run_well(kernels.triple_job(module, source, target, 8))
    assert target.array("i4").tolist() == [3 * i for i in range(8)]


def parts(daemon):
    """The pid of the supervisor, and that of the only user's worker."""
    (supervisor,) = processes.named(daemon.process.pid, "gpuqd-supervisor")
    (worker,) = [pid for pid in processes.named(daemon.process.pid, "gpuqd-worker") if processes.is_users_worker(pid)]
    return supervisor, worker


def assert_filtered(daemon):
    of_keeper = processes.n_filters(daemon.process.pid)
    for pid in parts(daemon):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1\n" in status and "Seccomp:\t2\n" in status, status
        assert processes.n_filters(pid) == of_keeper + 1


def test_supervisor_and_worker_have_a_filter_each(gpuqd, client):
    run_job(client)
    assert_filtered(gpuqd)


@pytest.mark.root
def test_so_it_is_for_other_users(of_service):
    daemon, client = of_service
    run_job(client)
    assert_filtered(daemon)


@pytest.mark.root
def test_a_spare_has_another_once_it_has_its_user(start_gpuqd):
    daemon = start_gpuqd(private=False, spare_workers="1")
    client = daemon.connect(uid=ALICE)
    spares = until(lambda: [worker.pid for worker in client.status().workers if worker.state == "spare"], "a spare worker")
    of_keeper = processes.n_filters(daemon.process.pid)
    assert processes.n_filters(spares[0]) == of_keeper + 1
    run_job(client)
    assert processes.n_filters(spares[0]) == of_keeper + 2


@pytest.mark.root
@pytest.mark.skipif(inject.why_not() is not None, reason=str(inject.why_not()))
def test_their_own_code_cannot_make_the_calls(of_service):
    daemon, client = of_service
    run_job(client)
    supervisor, worker = parts(daemon)
    for pid in supervisor, worker:
        assert inject.call(pid, GETPID) == pid
        assert inject.call(pid, UNSHARE, 0) == inject.call(pid, SETRESUID, KEEP, KEEP, KEEP) == -errno.EPERM
    if not place.SANITIZED:
        assert inject.call(supervisor, EXECVE, 0, 0, 0) == -errno.EPERM
    assert inject.call(worker, EXECVE, 0, 0, 0) == -errno.EFAULT
    run_job(client)
