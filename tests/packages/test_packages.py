# SPDX-License-Identifier: Apache-2.0
"""The packages in a minimal Debian with a systemd of its own: installed, used by two users, looked at and drained by an
administrator, made a node of a Slurm cluster, upgraded under load, removed.

The upgrade is to the same files under a later version; test_upgrade.py has one from those of an earlier revision."""

import json
import re
import socket
import subprocess
import urllib.request

import pytest

from harness import place, processes
from harness.machine import Machine
from harness.patience import until
from packages import NAMES, NEXT, PACKAGES, REASON, USERS, apt, at_work, daemon_pid, install, n_ended, upgrade, use_cpu, version

pytestmark = [pytest.mark.cpu, pytest.mark.timeout(600), pytest.mark.skipif(REASON is not None, reason=str(REASON))]

DENIED = 5  # how gpuq exits


@pytest.fixture(scope="module")
def machine():
    with Machine(base=PACKAGES / "debian") as booted:
        apt(booted, "update")
        install(booted, PACKAGES)
        yield booted


@pytest.fixture(scope="module")
def serving(machine):
    use_cpu(machine)
    return machine


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


def refused(machine, *words):
    """What an ordinary user is told."""
    return machine.run("sh", "-c", 'exec "$@" 2>&1', "sh", "gpuq", *words, uid=USERS[0], check=DENIED)


def test_each_user_sees_their_own_history_and_root_all_of_it_after_a_restart_too(serving):
    before = n_ended(serving, 0)
    assert all(before[uid] >= 100 for uid in USERS)  # the demo's
    for uid in USERS:
        assert n_ended(serving, uid) == {uid: before[uid]}
    assert "only root and the admin group" in refused(serving, "history", "--user", str(USERS[1]))

    serving.run("systemctl", "restart", "gpuqd")
    assert n_ended(serving, 0) == before
    for uid in USERS:
        assert n_ended(serving, uid) == {uid: before[uid]}


def scrape(machine):
    told = until(lambda: re.search(r"listening on (\S+)", machine.path("/gpuq-metrics.log").read_text()), "the address to be told")
    with urllib.request.urlopen(f"http://{told[1]}/metrics", timeout=place.PATIENCE_S) as answer:
        return answer.read().decode()


def test_the_metrics_are_those_that_prometheus_reads(serving):
    assert "127.0.0.1:9836" in serving.show("gpuq-metrics.service", "ExecStart")  # as README says
    # The machine has no network of its own, in which that port would be free.
    serving.write("/run/systemd/system/gpuq-metrics.service.d/port.conf",
                  "[Service]\nExecStart=\nExecStart=/usr/bin/gpuq --socket /run/gpuq/gpuqd.sock metrics --listen 127.0.0.1:0\n")
    serving.run("systemctl", "enable", "--now", "gpuq-metrics.service")
    scraped, printed = scrape(serving), serving.run("gpuq", "metrics", uid=USERS[0])
    for text in (scraped, printed):
        assert 'gpuq_device_state{device="0",gpuq_device_state="ready"} 1' in text and text.endswith("# EOF\n"), text

    def heads(text):
        return [line for line in text.splitlines() if line.startswith("# ")]

    assert heads(scraped) == heads(printed)


def test_root_drains_and_resumes_a_device(serving):
    for verb in ("drain", "resume"):
        assert "only root and the admin group" in refused(serving, verb, "0")
    assert serving.run("gpuq", "drain", "0", "--reason", "a new fan") == "device 0 is drained\n"
    assert "a new fan" in serving.run("gpuq", "status", uid=USERS[0])
    demo = subprocess.Popen([*serving.enter(USERS[0], namespaces=()), "/usr/libexec/gpuq/gpuq-demo", "1"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: "a new fan" in serving.run("gpuq", "queue", "--json", uid=USERS[0]), "the job to wait for the device")
    assert demo.poll() is None
    assert serving.run("gpuq", "resume", "0") == "device 0 accepts jobs again\n"
    assert "1 of 1" in demo.communicate(timeout=place.PATIENCE_S)[0] and demo.returncode == 0


# docs/slurm.md, for one node that needs neither control groups nor a name service. Slurm's plugin for control groups of
# version 1 does nothing if nobody uses it; the other one, and the choice between the two, fail where both are mounted.
SLURM_CONF = """ClusterName=test
SlurmctldHost=node(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
SlurmUser=root
StateSaveLocation=/var/lib/slurm
SlurmdSpoolDir=/var/lib/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
GresTypes=gpu,shard
SelectType=select/cons_tres
Prolog=/usr/libexec/gpuq/slurm
Epilog=/usr/libexec/gpuq/slurm
NodeName=node NodeAddr=127.0.0.1 Port={ports[1]} Gres=gpu:1,shard:8
PartitionName=gpu Nodes=node Default=YES
"""
CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"
GRES_CONF = """NodeName=node Name=gpu File=/dev/null
NodeName=node Name=shard Count=8
"""


@pytest.fixture
def slurm(serving):
    """Debian's, of which this machine is the only node."""
    apt(serving, "install", "munge", "slurmctld", "slurmd", "slurm-client")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [free.getsockname()[1] for free in (one, other)]
    serving.write("/etc/slurm/slurm.conf", SLURM_CONF.format(ports=ports))
    serving.write("/etc/slurm/gres.conf", GRES_CONF)
    serving.write("/etc/slurm/cgroup.conf", CGROUP_CONF)
    serving.path("/var/lib/slurmd").mkdir()
    for uid in USERS:
        serving.run("useradd", "--uid", str(uid), f"user{uid}")
    serving.run("hostname", "node")
    serving.run("systemctl", "restart", "munge", "slurmctld", "slurmd")
    until(lambda: serving.run("sinfo", "-h", "-o", "%t", check=False) == "idle\n", "the node to be idle")
    yield serving
    serving.run("systemctl", "stop", "slurmd", "slurmctld", "munge")


def test_slurm_runs_a_job_that_asks_for_shards(slurm):
    said = slurm.run("srun", "--gres=shard:3", "sh", "-c", "/usr/libexec/gpuq/gpuq-demo 1 && gpuq status --json", uid=USERS[0])
    demo, status = said.split("{", 1)
    assert "1 of 1" in demo
    (me,) = [user for user in json.loads("{" + status)["users"] if user["uid"] == USERS[0]]
    assert me["weight"] == 3
    conf = slurm.path("/run/gpuq-slurm/weights.conf")
    until(lambda: "[slurm" not in conf.read_text(), "the epilog to take the weight back")


def test_an_upgrade_under_load_loses_nothing(serving):
    metrics, before, socket_since = serving.show("gpuq-metrics.service", "MainPID"), daemon_pid(serving), serving.show("gpuqd.socket", "ActiveEnterTimestampMonotonic")
    with at_work(serving) as go_on:
        upgrade(serving)
        go_on(10)
    assert version(serving, "gpuqd").endswith(NEXT)
    assert daemon_pid(serving) != before, "the old gpuqd still runs"
    assert serving.show("gpuqd.socket", "ActiveEnterTimestampMonotonic") == socket_since, "the socket was closed"
    assert "device = cpu" in serving.path("/etc/gpuq/gpuqd.conf").read_text(), "the administrator's change is gone"
    assert serving.show("gpuq-metrics.service", "MainPID") not in (metrics, "0"), "the old metrics service still runs, or none"
    assert all(count >= 100 for count in n_ended(serving, 0).values()), "the history is gone"


def test_an_upgrade_starts_nothing_that_was_stopped(serving):
    serving.run("systemctl", "stop", "gpuqd.socket", "gpuqd.service")
    apt(serving, "install", "--reinstall", f"/opt/packages{NEXT}/{next(serving.path(f'/opt/packages{NEXT}').glob('gpuqd_*.deb')).name}")
    assert serving.show("gpuqd.service", "ActiveState") == serving.show("gpuqd.socket", "ActiveState") == "inactive"
    serving.run("systemctl", "start", "gpuqd.socket", "gpuqd.service")


def test_what_is_purged_is_gone(serving):
    apt(serving, "purge", *NAMES)
    assert serving.show("gpuqd.socket", "LoadState") == "not-found"
    assert not [pid for pid in processes.descendants(serving.init) if processes.name(pid).startswith("gpuq")]
    for path in ("/run/gpuq/gpuqd.sock", "/etc/gpuq", "/usr/libexec/gpuq", "/var/cache/gpuq"):
        assert not serving.path(path).exists(), path
    assert serving.path("/var/lib/gpuqd").exists(), "users' jobs and the history are gone"
