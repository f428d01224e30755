# SPDX-License-Identifier: Apache-2.0
"""What an administrator does with the packages, and users meanwhile: of the tests in this folder."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness.machine import why_not
from harness.patience import until

PACKAGES = pathlib.Path(os.environ.get("GPUQ_PACKAGES", "/nonexistent"))
REASON = why_not() or (None if PACKAGES.is_dir() else "no packages were built: sh tests/packages/run.sh")
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


def upgrade(machine):
    """To the present packages, under a later version."""
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            next_version(name, pathlib.Path(folder))
        install(machine, pathlib.Path(folder), f"/opt/packages{NEXT}")


def use_cpu(machine, more=""):
    """As README says for a machine without a GPU."""
    machine.run("sed", "-i", f"s/^device = gpu$/device = cpu{more}/", "/etc/gpuq/gpuqd.conf")
    machine.run("systemctl", "restart", "gpuqd")


def apt(machine, *words):
    """Nobody is there to be asked, so a file of /etc that was changed stays as it is."""
    machine.run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "--yes", "--no-install-recommends",
                "--option", "Dpkg::Options::=--force-confold", *words)


def install(machine, folder, inside="/opt/packages"):
    """What is in this folder, as an administrator does who has these files; they are `inside` the machine then."""
    machine.path(inside).mkdir()
    for name in NAMES:
        (path,) = folder.glob(f"{name}_*.deb")
        shutil.copy(path, machine.path(inside))
    apt(machine, "install", *(f"{inside}/{path.name}" for path in machine.path(inside).iterdir()))


def version(machine, name):
    return machine.run("dpkg-query", "--show", "--showformat=${Version}", name)


def daemon_pid(machine):
    return machine.show("gpuqd.service", "MainPID")


def document(machine, *words, uid=0):
    return json.loads(machine.run("gpuq", *words, "--json", uid=uid))


def n_ended(machine, uid):
    """How many jobs this user sees in the history, of each user."""
    counts = collections.Counter()
    for row in document(machine, "history", "--since", "now-1d", uid=uid)["history"]:
        counts[row["uid"]] += row["jobs"]
    return counts


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
