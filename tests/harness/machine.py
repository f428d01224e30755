# SPDX-License-Identifier: Apache-2.0
"""A machine with a systemd of its own, in namespaces: what the units promise is tried on the real thing."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from . import place, processes

SCRIPT = pathlib.Path(__file__).with_name("machine.sh")


def why_not():
    """Why such a machine cannot be booted here, or None."""
    if os.geteuid() != 0:
        return "needs root, to boot a systemd in namespaces"
    if place.SANITIZED:
        return "units shut out what sanitizers need"
    if not pathlib.Path("/lib/systemd/systemd").exists() or not shutil.which("unshare"):
        return "no systemd, or no unshare, to boot"
    probe = "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt && mkdir /mnt/u /mnt/w /mnt/r /mnt/c && " \
            "mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r && mount -t cgroup2 cgroup2 /mnt/c && " \
            "group=$(mktemp -d /mnt/c/gpuq-probe-XXXXXX) && rmdir $group"
    tried = subprocess.run(["unshare", "-mpf", "sh", "-c", probe], capture_output=True, text=True)
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else None


class Machine:
    """Booted by `with`; `run()` is a command inside, as root or another uid. It has this machine's files, and gpuq in /opt/gpuq; or
    what is below `base`, and no gpuq."""

    def __init__(self, settings="", base=None):
        self.settings, self.base = settings, base

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-machine-"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            name = f"@{self.folder}"
            ready.bind("\0" + name[1:])
            ready.settimeout(place.PATIENCE_S)
            self.console = open(self.folder.with_suffix(".log"), "w+")
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--kill-child", "sh", str(SCRIPT),
                 str(self.folder), *([str(self.base)] if self.base else ["/", str(place.STAGE)])],
                env={**os.environ, "NOTIFY_SOCKET": name}, stdout=self.console, stderr=self.console, stdin=subprocess.DEVNULL)
            try:
                while b"READY=1" not in ready.recv(4096).splitlines():
                    pass
            except TimeoutError:
                self.__exit__()
                raise AssertionError(f"systemd did not boot:\n{self.console_text()}") from None
        self.init = processes.children(self.process.pid)[0]
        if self.settings:
            self.write("/opt/gpuq/etc/gpuq/gpuqd.conf.d/base.conf", self.settings)
        return self

    def __exit__(self, *_):
        for pid in processes.children(self.process.pid):
            os.kill(pid, 9)  # process 1: the namespace ends with it
        self.process.wait(place.PATIENCE_S)
        self.console.close()
        remove = 'mount --make-rprivate / && mount -t cgroup2 cgroup2 "$1" && find "$1/${1##*/}" -depth -type d -exec rmdir {} +'
        subprocess.run(["unshare", "--mount", "sh", "-c", remove, "sh", str(self.folder)], check=True)
        self.folder.rmdir()
        self.folder.with_suffix(".log").unlink()

    def console_text(self):
        return self.folder.with_suffix(".log").read_text()

    def log(self):
        """What the service said."""
        return self.path("/gpuqd.log").read_text()

    def path(self, path):
        """Where a file of the machine is seen from outside."""
        return pathlib.Path(f"/proc/{self.init}/root{path}")

    def write(self, path, text):
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text)

    def enter(self, uid=0, namespaces=("pid", "uts", "ipc", "cgroup")):
        """What to put before a command, so that it runs inside. Without the namespace pid it is our own child."""
        return ["nsenter", f"--target={self.init}", "--mount", *[f"--{name}" for name in namespaces], "--root", "--wd", "env", "-i",
                "PATH=/opt/gpuq/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH=/opt/gpuq/lib",
                "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]

    def run(self, *command, uid=0, check=True):
        """What it printed. AssertionError unless it ended well, or `check` is the status wanted."""
        ended = subprocess.run(
            [*self.enter(uid), *command], capture_output=True, text=True, timeout=place.PATIENCE_S, stdin=subprocess.DEVNULL)
        wanted = 0 if check is True else check
        assert check is False or ended.returncode == wanted, \
            f"{' '.join(command)}: {ended.returncode}\n{ended.stdout}{ended.stderr}\n{self.log()}"
        return ended.stdout

    def main_process(self, unit):
        """The pid, as it is outside, of what systemd takes for the unit's main process; None while there is none."""
        inside = self.show(unit, "MainPID")
        return next((pid for pid in processes.descendants(self.init) if processes.number_inside(pid) == inside), None)

    def show(self, unit, name):
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()
