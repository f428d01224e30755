# SPDX-License-Identifier: Apache-2.0
"""Two nodes of Debian's Slurm on this machine, each with a gpuqd of its own: docs/slurm.md."""

import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from harness import kernels, place, processes
from harness.patience import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "scontrol", "sinfo")
NODES = ("node0", "node1")
ALICE, BOB = "games", "man"  # users that every Debian has
CGROUPS = pathlib.Path("/sys/fs/cgroup")

pytestmark = [
    pytest.mark.root, pytest.mark.cpu,
    pytest.mark.xdist_group("slurm"),  # one at a time: the control groups of all are /slurm_node0 and /slurm_node1
    pytest.mark.skipif(any(not shutil.which(name) for name in PROGRAMS), reason="no Slurm here: sh tests/setup.sh ci"),
]

CONF = """ClusterName=test
SlurmctldHost={host}
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
GresTypes=gpu,shard
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
Prolog={folder}/prolog
Epilog={folder}/prolog
NodeName=node0 NodeHostname={host} Port={ports[1]} CPUs=1 Gres=gpu:1,shard:8
NodeName=node1 NodeHostname={host} Port={ports[2]} CPUs=1 Gres=gpu:1,shard:8
PartitionName=all Nodes=node[0-1] Default=YES OverSubscribe=FORCE:8
"""
GRES = "NodeName=node[0-1] Name=gpu File=/dev/null\nNodeName=node[0-1] Name=shard Count=8\n"
# What an administrator does not need, as a node has one gpuqd, in the usual places.
PROLOG = """#!/bin/sh
export SLURM_CONF={folder}/slurm.conf
. {folder}/$SLURMD_NODENAME.env
exec {program}
"""
ENVIRONMENT = """export GPUQ_SLURM_STATE={folder}/{node} GPUQ_SLURM_RELOAD='{reload}' GPUQ_SOCKET={socket}
"""


# Slurm uses cgroup v1 as it is; for v2 it needs a systemd that runs here.
CGROUP = """CgroupPlugin=cgroup/v1
CgroupMountpoint={mountpoint}
"""


def slurm_has_groups():
    """Whether Slurm can put jobs into control groups here."""
    try:
        probe = pathlib.Path(tempfile.mkdtemp(dir=CGROUPS / "freezer"))
    except OSError:
        return False
    has_groups = (probe / "freezer.state").exists()
    probe.rmdir()
    return has_groups


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    def __init__(self, folder, daemons):
        self.folder, self.daemons, self.started = folder, dict(zip(NODES, daemons)), []
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._write()
        try:
            self._start_all()
        except BaseException:
            self.end()
            raise

    def _start_all(self):
        folder = self.folder
        self._start("munged", "--foreground", f"--key-file={folder}/munge/key", f"--socket={folder}/munge/socket",
                    f"--pid-file={folder}/munge/pid", f"--log-file={folder}/munge/log", f"--seed-file={folder}/munge/seed", "--force")
        until((folder / "munge" / "socket").exists, "munged to listen")
        self._start("slurmctld", "-D", "-c", "-f", str(folder / "slurm.conf"))
        until(lambda: self._run("scontrol", "ping").stdout.count(" is UP") == 1, "slurmctld to answer")
        for node in NODES:
            self._start("slurmd", "-D", "-N", node, "-f", str(folder / "slurm.conf"))
        until(lambda: self._run("sinfo", "-h", "-o", "%t %D").stdout == "idle 2\n", "the nodes to be idle")

    def _write(self):
        for name in ("state", "munge", *NODES):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.has_groups = slurm_has_groups()
        (self.folder / "slurm.conf").write_text(CONF.format(folder=self.folder, host=socket.gethostname(), ports=free_ports(3),
                                                            proctrack="cgroup" if self.has_groups else "linuxproc"))
        if self.has_groups:
            (self.folder / "cgroup.conf").write_text(CGROUP.format(mountpoint=CGROUPS))
        (self.folder / "gres.conf").write_text(GRES)
        (self.folder / "prolog").write_text(PROLOG.format(folder=self.folder, program=place.STAGE / "libexec" / "gpuq" / "slurm"))
        (self.folder / "prolog").chmod(0o755)
        for node in NODES:
            self.set_reload(node, f"kill -HUP {self.daemons[node].process.pid}")

    def conf(self, node):
        return self.folder / node / "weights.conf"

    def weights_of(self, node):
        return self.conf(node).read_text() if self.conf(node).exists() else ""

    def set_reload(self, node, command):
        (self.folder / f"{node}.env").write_text(ENVIRONMENT.format(
            folder=self.folder, node=node, reload=command, socket=self.daemons[node].socket))

    def _start(self, *command):
        with open(self.folder / f"{command[0]}.log", "ab") as log:
            process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        processes.started.add(process.pid)
        self.started.append(process)

    def _run(self, *command):
        return subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=place.PATIENCE_S)

    def job(self, user, node, shards, command, *options):
        """Started by that user. Its program is a line of the shell, which finds gpuq and this node's gpuqd."""
        entry = pwd.getpwnam(user)
        environment = {**self.environment, "GPUQ_SOCKET": str(self.daemons[node.split(",")[0]].socket),
                       "PATH": f"{place.STAGE / 'bin'}:/usr/bin:/bin", "LD_LIBRARY_PATH": str(place.STAGE / "lib")}
        return subprocess.Popen(["srun", "-w", node, f"--gres=shard:{shards}", *options, "sh", "-c", command], env=environment,
                                user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd="/", stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def weights(self, node):
        with self.daemons[node].connect() as client:
            return {pwd.getpwuid(user.uid).pw_name: user.weight for user in client.status().users}

    def limit(self, node, user, key):
        with self.daemons[node].connect(uid=pwd.getpwnam(user).pw_uid) as client:
            return next(limit.limit for limit in client.status().limits if limit.key == key)

    def queued(self, node):
        """The Slurm jobs of those that have not ended."""
        ended = self.daemons[node].run("queue", "--json")
        return sorted(job["slurm_job"] for job in json.loads(ended.stdout)["jobs"])

    def end(self):
        for process in reversed(self.started):
            process.terminate()
        for process in reversed(self.started):
            try:
                process.wait(place.PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()  # a slurmd that waits for a program of its own
                process.wait()
        if self.has_groups:
            for node in NODES:
                self._remove_groups(CGROUPS / "freezer" / f"slurm_{node}")

    @staticmethod
    def _remove_groups(group):
        """With what is left of Slurm's own processes there, if a slurmd had to be killed."""
        def are_gone():
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    for pid in pathlib.Path(folder, "cgroup.procs").read_text().split():
                        os.kill(int(pid), signal.SIGKILL)
                    os.rmdir(folder)
            return not group.exists()
        until(are_gone, "the control groups to be empty")


@pytest.fixture
def slurm(start_gpuqd):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-slurm-"))  # other than pytest's, users may read it
    limits = f"[user {ALICE}]\njobs = 77\n[user {BOB}]\njobs = 88\n"  # system users run jobs only with a section
    daemons = [start_gpuqd(private=False, slurm_dir=folder / "node0", config=limits),
               start_gpuqd(private=False, slurm_dir=folder / "node1", state_dir="", config=limits)]
    try:
        made = Slurm(folder, daemons)
        yield made
        made.end()
    finally:
        shutil.rmtree(folder)


def test_shards_are_weights_while_jobs_run(slurm):
    signs = slurm.folder / "signs"
    signs.mkdir()
    signs.chmod(0o777)
    wait = f"gpuq status >/dev/null && touch {signs}/$SLURM_JOB_ID && while ! [ -e {signs}/end-$SLURM_JOB_ID ]; do sleep 0.1; done"
    jobs = [slurm.job(ALICE, "node0", 3, wait), slurm.job(ALICE, "node0", 2, wait), slurm.job(BOB, "node0", 1, wait),
            slurm.job(BOB, "node1", 4, wait)]
    until(lambda: len(list(signs.iterdir())) == 4, "four jobs to run")
    until(lambda: slurm.weights("node0").items() >= {ALICE: 5, BOB: 1}.items(), "the weights of node0")
    until(lambda: slurm.weights("node1")[BOB] == 4, "the weight of node1")
    assert [slurm.limit("node0", user, "jobs") for user in (ALICE, BOB)] == [77, 88], "the other limits are as ever"
    assert ALICE not in slurm.weights("node1")

    for path in list(signs.iterdir()):
        (signs / f"end-{path.name}").touch()
    for job in jobs:
        assert job.wait(place.PATIENCE_S) == 0, job.stdout.read()
    until(lambda: slurm.weights("node0").items() >= {ALICE: 1, BOB: 1}.items(), "the usual weights")
    until(lambda: "[slurm" not in slurm.conf("node1").read_text(), "no user to have a weight of node1")


def test_a_job_on_two_nodes_has_its_shards_on_each(slurm):
    go = slurm.folder / "go"
    job = slurm.job(ALICE, "node0,node1", 2, f"gpuq status >/dev/null; while ! [ -e {go} ]; do sleep 0.1; done", "-N2")
    until(lambda: all("weight = 2" in slurm.weights_of(node) for node in NODES), "the weights of both nodes")
    go.touch()
    assert job.wait(place.PATIENCE_S) == 0, job.stdout.read()


@pytest.mark.parametrize("lines, weights", [
    ("Nodes=node0 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0),shard:3(3/8)", {7: "3"}),
    ("Nodes=node0 CPU_IDs=0 Mem=0 GRES=shard:a100:5(5/8)", {7: "5"}),
    ("Nodes=node0 CPU_IDs=0 Mem=0 GRES=shard:tesla-v100:2(0/8,2/8)", {7: "2"}),
    ("Nodes=node[0-1] CPU_IDs=0 Mem=0 GRES=shard:nvidia_h200:4(4/8)", {7: "4"}),
    ("Nodes=node1 CPU_IDs=0 Mem=0 GRES=shard:9(9/9)", {}),
    ("Nodes=node0 CPU_IDs=0 Mem=0 GRES=shard:22528(22528/81920)", {7: "1000"}),
])
def test_shards_are_read_from_what_scontrol_prints(tmp_path, lines, weights):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"""#!/bin/sh
[ "$2" = hostnames ] && [ "$3" = "node[0-1]" ] && exec printf 'node0\\nnode1\\n'
[ "$2" = hostnames ] && exec echo "$3"
printf 'JobId=5 Account=physics\n     {lines}\n'
""")
    scontrol.chmod(0o755)
    program = tmp_path / "slurm"
    program.write_text((place.STAGE / "libexec" / "gpuq" / "slurm").read_text().replace("export PATH=", f"export PATH={tmp_path}:", 1))
    environment = {**os.environ, "GPUQ_SLURM_STATE": str(tmp_path / "state"), "GPUQ_SLURM_RELOAD": "true", "SLURM_JOB_ID": "5",
                   "SLURM_JOB_UID": "7", "SLURMD_NODENAME": "node0", "SLURM_SCRIPT_CONTEXT": "prolog_slurmd"}
    subprocess.run(["sh", program], env=environment, check=True)
    conf = tmp_path / "state" / "weights.conf"
    found = dict(re.findall(r"\[slurm (\d+)\]\nweight = (\S+)", conf.read_text())) if conf.exists() else {}
    assert found == {str(uid): weight for uid, weight in weights.items()}


def test_what_a_user_leaves_is_cancelled_after_the_last_job(slurm):
    source = slurm.folder / "forever.cu"
    source.write_text(kernels.BASIC)
    job = slurm.job(ALICE, "node0", 1, f"gpuq run --detach {source}:forever out:/dev/null:i4:1")
    assert job.wait(place.PATIENCE_S) == 0, job.stdout.read()
    with slurm.daemons["node0"].connect() as client:
        until(lambda: not client.queue(all_users=True), "what the job left to be cancelled")


def test_what_a_job_leaves_is_cancelled_when_it_ends(slurm):
    if not slurm.has_groups:
        pytest.skip("Slurm cannot make control groups here")
    source = slurm.folder / "forever.cu"
    source.write_text(kernels.BASIC)
    command = f"gpuq run --detach {source}:forever out:/dev/null:i4:1 && echo $SLURM_JOB_ID >{slurm.folder}/signs/%d && " \
              f"while ! [ -e {slurm.folder}/signs/end-%d ]; do sleep 0.1; done"
    signs = slurm.folder / "signs"
    signs.mkdir()
    signs.chmod(0o777)
    jobs = [slurm.job(ALICE, "node0", shards, command % (shards, shards)) for shards in (0, 1, 2)]
    until(lambda: all((signs / str(shards)).exists() for shards in (0, 1, 2)), "three jobs to run")
    until(lambda: all((signs / str(shards)).read_text().strip() for shards in (0, 1, 2)), "their numbers")
    numbers = {shards: int((signs / str(shards)).read_text()) for shards in (0, 1, 2)}
    assert slurm.queued("node0") == sorted(numbers.values())

    for shards in (1, 0, 2):
        (signs / f"end-{shards}").touch()
        assert jobs[shards].wait(place.PATIENCE_S) == 0, jobs[shards].stdout.read()
        del numbers[shards]
        until(lambda: slurm.queued("node0") == sorted(numbers.values()), "what that job left to be cancelled")


def test_a_report_sums_up_accounts(slurm):
    if not slurm.has_groups:
        pytest.skip("Slurm cannot make control groups here")
    source = slurm.folder / "nothing.cu"
    source.write_text(kernels.BASIC)
    for shards, account in ((1, "physics"), (0, "maths"), (1, "maths")):
        job = slurm.job(ALICE, "node0", shards, f"gpuq run {source}:nothing", f"--account={account}")
        assert job.wait(place.PATIENCE_S) == 0, job.stdout.read()

    def jobs():
        ended = slurm.daemons["node0"].run("report", "--by", "account", "--json")
        return {row["account"]: row["jobs"] for row in json.loads(ended.stdout)["report"]}
    until(lambda: jobs() == {"physics": 1, "maths": 2}, "the jobs in the history")
    assert "ACCOUNT" in slurm.daemons["node0"].run("report", "--by", "account").stdout


def test_jobs_run_while_gpuqd_does_not(slurm):
    slurm.set_reload("node0", "false")
    job = slurm.job(ALICE, "node0", 1, "echo ran")
    assert job.wait(place.PATIENCE_S) == 0 and "ran" in job.stdout.read()


def test_a_job_without_shards_changes_nothing(slurm):
    job = slurm.job(ALICE, "node1", 0, "echo ran")
    assert job.wait(place.PATIENCE_S) == 0, job.stdout.read()
    assert not slurm.conf("node1").exists()
