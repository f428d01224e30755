# SPDX-License-Identifier: Apache-2.0
"""An upgrade from the packages of an earlier revision, under load: `sh tests/packages/run.sh --from REVISION`. What the
older gpuqd wrote to disk and left with systemd is read by the present one, and clients of both libraries work."""

import contextlib
import os
import pathlib
import re
import subprocess

import pytest

from harness.machine import Machine
from harness.patience import until
from packages import NEXT, PACKAGES, REASON, USERS, apt, at_work, daemon_pid, document, install, n_ended, upgrade, use_cpu, version

FROM = pathlib.Path(os.environ.get("GPUQ_PACKAGES_FROM") or "/nonexistent")
pytestmark = [pytest.mark.cpu, pytest.mark.timeout(600), pytest.mark.skipif(REASON is not None, reason=str(REASON)),
              pytest.mark.skipif(not FROM.is_dir(), reason="no earlier packages were built: sh tests/packages/run.sh --from REVISION")]

HOLDER = pathlib.Path(__file__).with_name("holder.py")
OTHER = 1  # the device that is drained
SCALE = "cd /home/upgrade && gpuq run {options} builtin:scale_f32 f32:2 in:x.npy out:{name}.npy:f4:64 u64:64"
SAVE = "import gpuq, numpy; numpy.save('/home/upgrade/x.npy', numpy.arange(64, dtype=numpy.float32))"


@pytest.fixture(scope="module")
def older():
    """A machine with the older packages, two devices, and a folder in which a user works."""
    with Machine(base=PACKAGES / "debian") as machine:
        apt(machine, "update")
        install(machine, FROM)
        use_cpu(machine, "\\ncpu_devices = 2")
        machine.run("install", "-d", "-o", str(USERS[0]), "/home/upgrade")
        machine.run("python3", "-c", SAVE)
        yield machine


def scale(machine, name, options=""):
    """What `gpuq run` printed."""
    return machine.run("sh", "-c", SCALE.format(name=name, options=options), uid=USERS[0]).strip()


def is_scaled(machine, name):
    code = f"import numpy; print((numpy.load('/home/upgrade/{name}.npy') == 2 * numpy.load('/home/upgrade/x.npy')).all())"
    return machine.run("python3", "-c", code) == "True\n"


@contextlib.contextmanager
def held_data(machine):
    """Both users have data in gpuqd meanwhile, which is still there afterwards."""
    machine.write("/load/holder.py", HOLDER.read_text())
    holders = [subprocess.Popen([*machine.enter(uid, namespaces=()), "python3", "/load/holder.py", "/load/let-go"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for uid in USERS]
    try:
        assert [holder.stdout.readline() for holder in holders] == ["holds\n"] * len(USERS)
        yield
    finally:
        machine.write("/load/let-go", "")
        said = [holder.communicate(timeout=60)[0] for holder in holders]
    assert said == ["right\n"] * len(USERS), said


def rows(machine):
    """The history of root, of rows that later jobs do not join: of jobs that have an id."""
    return {row["id"]: row for row in document(machine, "history", "--since", "now-1d")["history"] if row["id"]}


def waiting(machine):
    return {job["id"]: job["reason"] for job in document(machine, "queue")["jobs"] if job["state"] == "waiting"}


def test_an_upgrade_under_load_loses_nothing(older):
    before = version(older, "gpuqd"), daemon_pid(older)
    scale(older, "direct", "--label kept")
    kept = scale(older, "kept", "--detach")
    older.run("gpuq", "wait", kept, uid=USERS[0])
    older.run("gpuq", "drain", str(OTHER), "--reason", "a new fan")
    later = scale(older, "later", f"--detach --device {OTHER}")
    until(lambda: later in waiting(older), "the stored job to wait for its device")
    until(lambda: any(row["label"] == "kept" for row in rows(older).values()), "the history to be written")

    with at_work(older) as go_on, held_data(older):
        go_on(10)
        counts, old_rows = n_ended(older, 0), rows(older)
        upgrade(older)
        go_on(10)
    assert version(older, "gpuqd") == before[0] + NEXT and daemon_pid(older) != before[1]
    assert older.show("gpuqd.service", "Result") == "success"

    n_kept = [int(n) for n in re.findall(r"took over after \S+ s: (\d+) sessions may reconnect", older.log())]
    assert n_kept[-1] >= 2 * len(USERS), "the sessions of the older gpuqd were not taken over"

    new_rows = rows(older)
    for number, row in old_rows.items():
        # Of each time there is one in a row; older versions told it to about 10 % alone.
        told = {key: value for key, value in row.items() if key not in ("waited_each_us", "ran_each_us")}
        assert told == {key: new_rows[number][key] for key in told}, "the history of the older gpuqd is another"
        assert new_rows[number]["ran_each_us"]["median"] == row["ran_us"]
    assert all(n_ended(older, 0)[uid] >= counts[uid] >= 10 for uid in USERS), "jobs of the history are gone"
    assert document(older, "status")["history_lost"] == 0 and not document(older, "status")["history_problem"]

    assert "a new fan" in waiting(older)[later], "the device is drained no more"
    older.run("gpuq", "resume", str(OTHER))
    for job, name in (kept, "kept"), (later, "later"):
        older.run("gpuq", "fetch", job, uid=USERS[0])
        assert is_scaled(older, name)
    assert is_scaled(older, "direct")


def test_clients_of_the_new_library_work(older):
    scale(older, "after", "--label after")
    assert is_scaled(older, "after")
    until(lambda: any(row["label"] == "after" for row in rows(older).values()), "the history to be written")
