# SPDX-License-Identifier: Apache-2.0
"""Spare workers: a user's first job finds a worker that has its CUDA context already and becomes that user's."""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys

import numpy
import pytest

from harness import folders, kernels
from harness.client import In, Job, Out, Refused, u64
from harness.kernels import copy_job
from harness.patience import until

pytestmark = pytest.mark.root

ALICE, BOB = 12345, 12346
N = 100


@pytest.fixture
def service(start_gpuqd):
    """Its own, in which nobody has a worker."""
    return start_gpuqd(private=False, spare_workers="1")


@pytest.fixture
def fresh(start_gpuqd):
    """One like it whose cache is empty."""
    cache = folders.new("gpuq-cache-")
    daemon = start_gpuqd(private=False, spare_workers="1", cache_dir=cache)
    yield daemon
    daemon.stop()
    shutil.rmtree(cache)


@pytest.fixture
def private(start_gpuqd):
    return start_gpuqd(spare_workers="1")


def workers(client, spare):
    return [worker for worker in client.status().workers if (worker.state == "spare") == spare]


def spare_of(client):
    until(lambda: workers(client, True), "a spare worker")
    return workers(client, True)[0].pid


def run_copies(client):
    """Host and device memory, a module and a kernel: all that a worker does for its user."""
    module = client.load(kernels.BASIC)
    source, between, target = client.array(numpy.arange(N, dtype="i4")), client.device_arena(4 * N), client.arena(4 * N)
    client.run_well(copy_job(module, source, between, N))
    client.run_well(copy_job(module, between, target, N))
    assert target.array("i4").tolist() == list(range(N))


def status_of(pid):
    """Of each of its threads."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        yield dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)


def test_the_spare_becomes_the_worker_of_who_comes(service):
    admin = service.connect()
    spare = spare_of(admin)
    alice = service.connect(uid=ALICE)
    run_copies(alice)
    assert [worker.pid for worker in workers(alice, False) if worker.uid == ALICE] == [spare]  # the next spare may be starting

    assert spare_of(admin) != spare  # and there is another
    bob = service.connect(uid=BOB)
    run_copies(bob)
    assert {worker.uid for worker in workers(admin, False)} - {0} == {ALICE, BOB}  # root's: the next spare while it starts


def test_no_thread_of_it_keeps_a_right(service):
    spare = spare_of(service.connect())
    assert {thread["Uid"] for thread in status_of(spare)} == {"\t".join(["0"] * 4)}
    for thread in status_of(spare):  # CAP_SETGID and CAP_SETUID
        assert int(thread["CapEff"], 16) == int(thread["CapPrm"], 16) == 1 << 6 | 1 << 7
        assert int(thread["CapInh"], 16) == int(thread["CapAmb"], 16) == 0
    main = next(thread for thread in status_of(spare) if thread["Pid"].strip() == str(spare))
    assert main["NoNewPrivs"].strip() == "1"  # it starts all programs; libcuda's threads are older

    alice = service.connect(uid=ALICE)
    run_copies(alice)
    assert workers(alice, False)[0].pid == spare
    nogroup = pwd.getpwnam("nobody").pw_gid
    for thread in status_of(spare):
        assert set(thread["Uid"].split()) == {str(ALICE)} and set(thread["Gid"].split()) == {str(nogroup)}
        assert "0" not in thread["Groups"].split()
        for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            assert int(thread[name], 16) == 0


def test_its_user_can_neither_trace_nor_read_it(service):
    spare = spare_of(service.connect())
    alice = service.connect(uid=ALICE)
    run_copies(alice)
    program = (
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"assert libc.ptrace(0x4206, {spare}, None, None) == -1 and ctypes.get_errno() == 1\n"
        f"try:\n    open('/proc/{spare}/environ').read()\nexcept PermissionError:\n    sys.exit(0)\nsys.exit(1)\n")
    subprocess.run([sys.executable, "-c", program], user=ALICE, group=ALICE, extra_groups=[], check=True)


def test_a_compile_runs_as_the_user_and_in_their_cache(service):
    spare_of(service.connect())
    alice = service.connect(uid=ALICE)
    run_copies(alice)
    folder = pathlib.Path(service.settings["cache_dir"]) / str(ALICE)
    assert folder.stat().st_uid == ALICE
    entries = [path for path in folder.rglob("*") if path.is_file()]
    assert entries and {path.stat().st_uid for path in entries} == {ALICE}


@pytest.mark.gpu  # nothing of them has to be linked for the CPU driver
def test_what_a_spare_linked_serves_all(fresh):
    """gpuq's own kernels, whose link takes seconds. A worker that was no spare takes them too."""
    folder = fresh.settings["cache_dir"] / "builtin"
    admin = fresh.connect()
    spare_of(admin)
    until(lambda: list(folder.glob("*.gpuq")), "the spare's result")
    [entry] = folder.glob("*.gpuq")
    assert (entry.stat().st_uid, entry.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0, 0o644, 0o755)
    fresh.configure(spare_workers="0")
    until(lambda: not workers(admin, True), "the spare's end")
    for uid in ALICE, BOB:
        client = fresh.connect(uid=uid)
        module = client.builtin()
        values, out = client.array(numpy.ones(N)), client.arena(8)
        client.run_well(Job().launch(module, "sum_f64", [In(values), Out(out), u64(N)], 1, 128))
        assert out.array("f8").tolist() == [N]
        assert not list((folder.parent / str(uid)).glob("*.gpuq"))


def test_no_user_can_write_where_all_workers_read(service):
    """The folder of gpuq's own kernels: what is in it runs in every user's worker."""
    run_copies(service.connect(uid=ALICE))
    folder = pathlib.Path(service.settings["cache_dir"]) / "builtin"
    program = (
        "import os, pathlib, sys\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "os.listdir(folder)\n"
        "for attempt in (lambda: (folder / 'x.gpuq').write_bytes(b'x'), lambda: folder.rename(folder.parent / 'x'),\n"
        "                lambda: folder.rmdir(), lambda: folder.chmod(0o777)):\n"
        "    try:\n        attempt()\n    except PermissionError:\n        continue\n    sys.exit(1)\n")
    subprocess.run([sys.executable, "-c", program], user=ALICE, group=ALICE, extra_groups=[], check=True)


def test_after_a_kill_the_next_job_gets_the_spare(service):
    admin, alice = service.connect(), service.connect(uid=ALICE)
    run_copies(alice)
    spare = spare_of(admin)
    os.kill(workers(alice, False)[0].pid, signal.SIGKILL)
    until(lambda: [worker.pid for worker in workers(alice, False)] in ([], [spare]), "the killed worker's end")
    run_copies(alice)
    assert workers(alice, False)[0].pid == spare


def test_one_that_is_killed_is_no_loss(service):
    admin, alice = service.connect(), service.connect(uid=ALICE)
    os.kill(spare_of(admin), signal.SIGKILL)
    run_copies(alice)
    assert workers(alice, False)[0].uid == ALICE


def test_a_refused_user_is_told_why(service):
    """A system's user, who needs a section in gpuqd.conf, as with a worker that is started for them."""
    spare_of(service.connect())
    client = service.connect(uid=pwd.getpwnam("sys").pw_uid)
    with pytest.raises(Refused, match="add a section"):
        client.load(kernels.BASIC)
    run_copies(service.connect(uid=ALICE))  # nobody else waits for it


def test_a_private_gpuqd_has_one_too(private):
    client = private.connect()
    spare = spare_of(client)
    run_copies(client)
    assert workers(client, False)[0].pid == spare


def test_status_shows_it_without_a_user(private):
    spare = spare_of(private.connect())
    line = next(line for line in private.run("status", "--verbose").stdout.splitlines() if line.split()[:1] == [str(spare)])
    assert line.split()[2:5] == ["-", "-", "spare"]


def test_a_reload_decides_how_many_there_are(private):
    client = private.connect()
    spare = spare_of(client)
    private.configure(spare_workers="0")
    until(lambda: not workers(client, True), "the spare's end")
    private.configure(spare_workers="1")
    assert spare_of(client) != spare


def test_a_spare_that_gpuqd_ends_was_not_killed_by_somebody(start_gpuqd):
    daemon = start_gpuqd(spare_workers="1")
    pid = spare_of(daemon.connect())
    log = daemon.log
    text = []
    daemon.log = lambda: text.append(log()) or text[-1]
    daemon.stop()
    assert f"worker {pid} ended: gpuqd ended it" in text[-1] and "signal" not in text[-1]
