# SPDX-License-Identifier: Apache-2.0
"""Clients in control groups that are named like those of Slurm, without a Slurm: what gpuqd makes of the job's number.
With a real one: test_slurm.py."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from harness import kernels, place
from harness.patience import until
from harness.terminal import on_terminal

UID = 12345  # no passwd entry, like a deleted user's


def mount_of_groups():
    """Of cgroup v2, if groups can be made there."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, folder, kind = line.split()[:3]
        if kind == "cgroup2" and os.access(folder, os.W_OK):
            return pathlib.Path(folder)
    return None


MOUNT = mount_of_groups()
pytestmark = [pytest.mark.root, pytest.mark.cpu, pytest.mark.skipif(not MOUNT, reason="no groups of cgroup v2 can be made here")]


@pytest.fixture
def group():
    """group("system.slice/..."): a new one."""
    made = []

    def make(path):
        for parent in reversed((pathlib.Path(path), *pathlib.Path(path).parents)):
            folder = MOUNT / parent
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        return MOUNT / path

    yield make
    for folder in reversed(made):
        until(lambda: not (folder / "cgroup.procs").read_text(), "the group's processes to end")
        folder.rmdir()


@pytest.fixture
def slurm_job(group):
    """slurm_job(7): the group of a task of that job."""
    return lambda number: group(f"system.slice/test{os.getpid()}_slurmstepd.scope/job_{number}/step_0/user/task_0")


def run(daemon, group, *arguments, **options):
    """gpuq, in that group."""
    enter = f'echo $$ >{group}/cgroup.procs && exec setpriv --reuid {UID} --regid {UID} --clear-groups "$@"'
    return daemon.run_program("/bin/sh", "-c", enter, "sh", place.STAGE / "bin" / "gpuq", *arguments, **options)


def documents(daemon, *arguments, **options):
    ended = daemon.run(*arguments, "--json", **options)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture
def folder():
    """Other than pytest's, users may read it."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-slurm-job-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def source(folder):
    (folder / "basic.cu").write_text(kernels.BASIC)
    return folder / "basic.cu"


def detach_forever(daemon, group, source):
    """Its id."""
    ended = run(daemon, group, "run", "--detach", f"{source}:forever", "out:/dev/null:i4:1")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()[-1]


@contextlib.contextmanager
def clients_of(daemon, groups):
    """Processes in these groups that are connected, and do nothing."""
    code = ("import os, sys, socket; connection = socket.socket(socket.AF_UNIX); open(sys.argv[1], 'w').write(str(os.getpid())); "
            f"os.setresuid({UID}, {UID}, {UID}); connection.connect(sys.argv[2]); print(flush=True); sys.stdin.read()")
    clients = [subprocess.Popen(["/usr/bin/python3", "-c", code, group / "cgroup.procs", daemon.socket],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE) for group in groups]
    try:
        for client in clients:
            assert client.stdout.readline()
        yield
    finally:
        for client in clients:
            client.communicate()


def queued(daemon):
    """The Slurm job of each unfinished job."""
    return {job["id"]: job["slurm_job"] for job in documents(daemon, "queue")["jobs"]}


def test_the_history_has_the_slurm_job(service, slurm_job, group, source):
    for place_of_it in (slurm_job(7), slurm_job(8), group(f"user.slice/test{os.getpid()}_slurmstepd.scope/job_9")):
        for _ in range(2):
            ended = run(service, place_of_it, "run", f"{source}:nothing")
            assert ended.returncode == 0, ended.stderr

    def jobs(*arguments):
        rows = documents(service, "history", "--user", UID, *arguments)["history"]
        return {number: sum(row["jobs"] for row in rows if row["slurm_job"] == number) for number in {row["slurm_job"] for row in rows}}
    until(lambda: jobs() == {7: 2, 8: 2, 0: 2}, "the rows of the jobs")
    assert jobs("--slurm-job", 8) == {8: 2} and jobs("--slurm-job", 9) == {}
    table = service.run("history", "--user", UID, "--slurm-job", 7).stdout.splitlines()
    assert "SLURM" in table[0] and all(" 7 " in line for line in table[1:])
    assert "SLURM" not in service.run("history", "--user", 0).stdout

    sums = documents(service, "report", "--user", UID, "--by", "slurm-job")["report"]
    assert {row["slurm_job"]: row["jobs"] for row in sums} == {7: 2, 8: 2, 0: 2}
    assert service.run("report", "--user", UID, "--by", "slurm-job", "--csv").stdout.splitlines()[0].endswith(",slurm_job,account")
    assert "SLURM JOB" in service.run("report", "--user", UID, "--by", "slurm-job").stdout


def test_what_a_slurm_job_left_is_cancelled_after_a_restart(start_gpuqd, slurm_job, source):
    daemon = start_gpuqd(private=False)
    ids = {detach_forever(daemon, slurm_job(number), source): number for number in (7, 8)}
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(place.PATIENCE_S) == 0
    daemon.start()
    until(lambda: queued(daemon) == ids, "both jobs to be known again")
    assert "SLURM" in daemon.run("queue").stdout
    lines = on_terminal(80, "--socket", daemon.socket, "queue").splitlines()
    column = slice(lines[0].index("SLURM"), lines[0].index("SLURM") + len("SLURM"))
    assert {line[column].strip() for line in lines[1:]} >= {"7", "8"} and max(map(len, lines)) <= 80

    assert daemon.run("cancel", "--slurm-job", 7, uid=UID + 1).stdout == "0 jobs cancelled\n"
    assert daemon.run("cancel", "--slurm-job", 7, uid=UID).stdout == "1 job cancelled\n"
    until(lambda: list(queued(daemon).values()) == [8], "the first job to end")
    assert documents(daemon, "cancel", "--slurm-job", 8)["ended"] == 1  # by root
    until(lambda: not queued(daemon), "the second job to end")


def test_a_slurm_job_is_told_to_its_user_alone(service, slurm_job, source):
    detach_forever(service, slurm_job(7), source)
    assert [job["slurm_job"] for job in documents(service, "queue", uid=UID)["jobs"]] == [7]
    assert [job["slurm_job"] for job in documents(service, "queue", uid=UID + 1)["jobs"]] == [0]
    assert service.run("cancel", "--slurm-job", 7).returncode == 0
    until(lambda: not queued(service), "it to end")
    assert "SLURM" not in service.run("queue").stdout


def test_the_status_has_the_slurm_jobs_of_connected_clients(start_gpuqd, slurm_job, folder):
    (folder / "account-7").write_text("physics\n")
    (folder / "weights.conf").write_text(f"[slurm {UID}]\nweight = 3\n")
    daemon = start_gpuqd(private=False, slurm_dir=folder)
    assert documents(daemon, "status")["slurm_jobs"] == [] and "SLURM" not in daemon.run("status", "--verbose").stdout
    with clients_of(daemon, [slurm_job(8), slurm_job(7), slurm_job(7)]):  # listed by number
        wanted = {7: (UID, "physics", 3, 2), 8: (UID, None, 3, 1)}

        def jobs(**options):
            return {job["number"]: (job["uid"], job["account"], job["weight"], job["clients"])
                    for job in documents(daemon, "status", **options)["slurm_jobs"]}
        until(lambda: jobs() == wanted, "both jobs to be listed")
        assert jobs(uid=UID) == wanted and jobs(uid=UID + 1) == {}
        words = [line.split() for line in daemon.run("status", "--verbose").stdout.splitlines()]
        at = next(n for n, line in enumerate(words) if line[:1] == ["SLURM"])
        assert [line[0:1] + line[2:] for line in words[at + 1:at + 3]] == [["7", "physics", "3", "2"], ["8", "-", "3", "1"]]
        assert "SLURM" not in daemon.run("status").stdout
    until(lambda: documents(daemon, "status")["slurm_jobs"] == [], "no client of a job to be left")


@pytest.mark.parametrize("arguments, words", [
    (("cancel", "--slurm-job", "0"), "--slurm-job `0': expected the number of a job of Slurm"),
    (("cancel", "--slurm-job", "4294967296"), "expected the number"),
    (("cancel", "--slurm-job", "7", "--all"), "expected job ids, --all or --slurm-job"),
    (("cancel", "--slurm-job", "7", "1.2"), "expected job ids, --all or --slurm-job"),
    (("history", "--slurm-job", "x"), "expected the number"),
])
def test_wrong_numbers_are_told(service, arguments, words):
    ended = service.run(*arguments)
    assert ended.returncode == 2 and words in ended.stderr
