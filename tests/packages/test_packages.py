# SPDX-License-Identifier: Apache-2.0
"""The packages in a minimal Debian with a systemd of its own: installed, used by two users, upgraded under load, removed."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from harness import processes
from harness.machine import Machine, why_not
from harness.patience import until

PACKAGES = pathlib.Path(os.environ.get("GPUQ_PACKAGES", "/nonexistent"))
REASON = why_not() or (None if PACKAGES.is_dir() else "no packages were built: sh tests/packages/run.sh")
pytestmark = [pytest.mark.cpu, pytest.mark.timeout(600), pytest.mark.skipif(REASON is not None, reason=str(REASON))]

USERS = (12345, 12346)
NAMES = ("gpuqd", "gpuq", "libgpuq0", "python3-gpuq")
NEXT = "+next"  # of the version
LOAD = pathlib.Path(__file__).with_name("load.py")


def built(name):
    (path,) = PACKAGES.glob(f"{name}_*.deb")
    return path


def next_version(name, folder):
    """The same package under a later version."""
    tree = folder / name
    subprocess.run(["dpkg-deb", "--raw-extract", built(name), tree], check=True)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^(Version: \S+)", rf"\1{NEXT}", control.read_text(), flags=re.MULTILINE))
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, folder], check=True, stdout=subprocess.DEVNULL)


def apt(machine, *words):
    machine.run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "--yes", "--no-install-recommends", *words)


def install(machine, folder):
    """What is in this folder, as an administrator does who has these files."""
    inside = f"/opt/packages{NEXT if folder != PACKAGES else ''}"
    machine.path(inside).mkdir()
    for name in NAMES:
        (path,) = folder.glob(f"{name}_*.deb")
        shutil.copy(path, machine.path(inside))
    apt(machine, "install", *(f"{inside}/{path.name}" for path in machine.path(inside).iterdir()))


@pytest.fixture(scope="module")
def machine():
    with Machine(base=PACKAGES / "debian") as booted:
        apt(booted, "update")
        install(booted, PACKAGES)
        yield booted


@pytest.fixture(scope="module")
def serving(machine):
    """As README says for a machine without a GPU."""
    machine.run("sed", "-i", "s/^device = gpu$/device = cpu/", "/etc/gpuq/gpuqd.conf")
    machine.run("systemctl", "restart", "gpuqd")
    return machine


def version(machine, name):
    return machine.run("dpkg-query", "--show", "--showformat=${Version}", name)


def daemon_pid(machine):
    return machine.show("gpuqd.service", "MainPID")


# In this order: each goes on where the one before it ended.

def test_the_service_runs_after_the_installation_and_says_what_it_lacks(machine):
    assert machine.show("gpuqd.socket", "ActiveState") == machine.show("gpuqd.service", "ActiveState") == "active"
    assert machine.show("gpuqd.service", "UnitFileState") == "enabled"
    assert machine.show("gpuq-metrics.service", "UnitFileState") == "disabled"
    assert "libcuda.so.1" in machine.run("gpuq", "status", uid=USERS[0], check=3)
    users = machine.path("/etc/passwd").read_text()
    assert "\ngpuq:" in users and "\ngpuq-worker:" in users


def test_a_reload_is_heeded(serving):
    serving.write("/etc/gpuq/gpuqd.conf.d/more.conf", "[gpuqd]\njobs = 7777\n")
    serving.run("systemctl", "reload", "gpuqd")
    until(lambda: "jobs" in serving.log() and "7777" in serving.log(), "the new limit to be told")


def test_the_demo_as_two_users(serving):
    for uid in USERS:
        assert "100 of 100" in serving.run("/usr/libexec/gpuq/gpuq-demo", uid=uid)
    users = {processes.uid(pid) for pid in processes.descendants(serving.init) if processes.name(pid) == "gpuqd-worker"}
    assert users.issuperset(USERS)


@contextlib.contextmanager
def at_work(machine):
    """Both users work meanwhile; yields a function that waits until each has had so many more sums."""
    machine.write("/load/load.py", LOAD.read_text())
    outputs = [machine.path(f"/load/{uid}") for uid in USERS]
    with contextlib.ExitStack() as stack:
        members = [subprocess.Popen([*machine.enter(uid, namespaces=()), "python3", "/load/load.py", "/load/stop"], stdin=subprocess.DEVNULL,
                                    stdout=stack.enter_context(open(output, "w")), stderr=subprocess.STDOUT)
                   for uid, output in zip(USERS, outputs)]

        def counts():
            assert all(member.poll() is None for member in members), [output.read_text()[-2000:] for output in outputs]
            return [output.read_text().count("\n") for output in outputs]

        def go_on(n):
            goals = [count + n for count in counts()]
            until(lambda: all(count >= goal for count, goal in zip(counts(), goals)), "both users to go on")

        try:
            go_on(1)
            yield go_on
        finally:
            machine.write("/load/stop", "")
            ends = [member.wait(60) for member in members]
    said = {line for output in outputs for line in output.read_text().splitlines()}
    assert ends == [0, 0] and said == {"right"}, said


def test_an_upgrade_under_load_loses_nothing(serving):
    before, socket_since = daemon_pid(serving), serving.show("gpuqd.socket", "ActiveEnterTimestampMonotonic")
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            next_version(name, pathlib.Path(folder))
        with at_work(serving) as go_on:
            install(serving, pathlib.Path(folder))
            go_on(10)
    assert version(serving, "gpuqd").endswith(NEXT)
    assert daemon_pid(serving) != before, "the old gpuqd still runs"
    assert serving.show("gpuqd.socket", "ActiveEnterTimestampMonotonic") == socket_since, "the socket was closed"
    assert "device = cpu" in serving.path("/etc/gpuq/gpuqd.conf").read_text(), "the administrator's change is gone"


def test_an_upgrade_starts_nothing_that_was_stopped(serving):
    serving.run("systemctl", "stop", "gpuqd.socket", "gpuqd.service")
    apt(serving, "install", "--reinstall", f"/opt/packages{NEXT}/{next(serving.path(f'/opt/packages{NEXT}').glob('gpuqd_*.deb')).name}")
    assert serving.show("gpuqd.service", "ActiveState") == serving.show("gpuqd.socket", "ActiveState") == "inactive"
    serving.run("systemctl", "start", "gpuqd.socket", "gpuqd.service")


def test_what_is_purged_is_gone(serving):
    apt(serving, "purge", *NAMES)
    assert serving.show("gpuqd.socket", "LoadState") == "not-found"
    assert not [pid for pid in processes.descendants(serving.init) if processes.name(pid).startswith("gpuqd")]
    for path in ("/run/gpuq/gpuqd.sock", "/etc/gpuq", "/usr/libexec/gpuq", "/var/cache/gpuq"):
        assert not serving.path(path).exists(), path
    assert serving.path("/var/lib/gpuqd").exists(), "users' jobs and the history are gone"
