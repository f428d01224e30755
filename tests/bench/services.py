# SPDX-License-Identifier: Apache-2.0
"""What the contenders need beside them: a gpuqd and an MPS, of this run alone."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine


@contextlib.contextmanager
def public_folder():
    """Other users' processes reach what serves them: CUDA would leave MPS out in silence."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield folder


class Daemon:
    """A gpuqd in a folder of its own: for all users if this is root, else for one."""

    READY_S = 30  # how long it may take to find its first device

    def __init__(self, prefix, device, folder, settings=(), private=True):
        self.prefix = prefix
        self.socket = f"{folder}/gpuqd.sock"
        settings = [f"device={device}", f"cache_dir={folder}/cache", "state_dir=", "worker_idle_s=86400", *settings]
        if not private:
            settings += ["supervisor_user=daemon", "worker_user=nobody"]
        self.process = subprocess.Popen(
            [f"{prefix}/bin/gpuqd", *(["--private"] if private else []), "--socket", self.socket,
             *(word for setting in settings for word in ("--set", setting))], stdin=subprocess.DEVNULL)
        try:
            self.wait_until_ready()
        except BaseException:  # nobody else knows of the process, and it holds our output open
            self.end()
            raise

    def wait_until_ready(self):
        deadline = time.monotonic() + self.READY_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                sys.exit("bench: gpuqd ended at its start")
            status = self.status()
            if status and status["devices"] and status["devices"][0]["state"] == "ready":
                return
            time.sleep(0.05)
        sys.exit(f"bench: gpuqd is not ready after {self.READY_S} s")

    def status(self):
        answer = subprocess.run([f"{self.prefix}/bin/gpuq", "--socket", self.socket, "status", "--json"],
                                capture_output=True, text=True)
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def family(self):
        return machine.family(self.process.pid)

    def count(self, what):
        """What machine.py counts of a process, so far, of each kind of process."""
        counts = {"keeper": 0, "supervisor": 0, "worker": 0}
        for pid, name in self.family().items():
            role = name.removeprefix("gpuqd-") if name != "gpuqd" else "keeper"
            if role in counts:
                counts[role] += what(pid)
        return counts

    def cpu_ns(self):
        return self.count(machine.cpu_ns)

    def workers(self, state=None):
        return [worker for worker in self.status()["workers"] if state in (None, worker["state"])]

    def wait_for_spares(self, n):
        """They have a context then. gpuq's own kernels take them at most so long, and nothing tells."""
        while len(self.workers("spare")) < n:
            time.sleep(0.02)
        time.sleep(3 * n)

    def kill_workers(self):
        """Those of users. Returns when they have ended."""
        pids = {worker["pid"] for worker in self.workers() if worker["state"] != "spare"}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        while pids & {worker["pid"] for worker in self.workers()}:
            time.sleep(0.002)

    def fault(self):
        """By a job of its own. Returns when that is known, which takes the driver some time."""
        with tempfile.NamedTemporaryFile("w", suffix=".cu") as source:
            source.write("__global__ void fault() { *(volatile int *)16 = 1; }\n")
            source.flush()
            subprocess.run([f"{self.prefix}/bin/gpuq", "--socket", self.socket, "run", f"{source.name}:fault"],
                           capture_output=True, timeout=60)

    def supervisor_rss(self):
        return sum(machine.rss_bytes(pid) for pid, name in self.family().items() if name == "gpuqd-supervisor")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class Mps:
    """An MPS control daemon with pipes and logs of its own: only who gets environment() is served by it."""

    PROGRAM = "nvidia-cuda-mps-control"

    def __init__(self, folder, *options):
        self.folder, self.options, self.problem = pathlib.Path(folder), options, None
        for name in ("pipe", "log"):
            (self.folder / name).mkdir(parents=True)
        self.start()

    def start(self):
        if not shutil.which(self.PROGRAM):
            self.problem = f"{self.PROGRAM} is not installed"
            return
        answer = subprocess.run([self.PROGRAM, "-d", *self.options], env=self.environment(), stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=60)
        self.problem = f"{self.PROGRAM}: {(answer.stdout + answer.stderr).strip()}" if answer.returncode else None

    def environment(self):
        return {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(self.folder / "pipe"),
                "CUDA_MPS_LOG_DIRECTORY": str(self.folder / "log")}

    def ours(self):
        """Its processes: those that were given our folder."""
        found, wanted = [], f"CUDA_MPS_PIPE_DIRECTORY={self.folder / 'pipe'}".encode()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            if machine.program(entry).startswith("nvidia-cuda-mps"):
                try:
                    environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if wanted in environment:
                    found.append(int(entry))
        return found

    def end(self):
        """As it is asked to; one that cannot, since a client of it was killed, is killed too."""
        if self.problem:
            return
        try:
            subprocess.run([self.PROGRAM], input="quit\n", env=self.environment(), text=True, capture_output=True, timeout=5)
        except subprocess.TimeoutExpired:
            pass
        if not self.is_gone(3):
            for pid in self.ours():
                os.kill(pid, signal.SIGKILL)
            self.is_gone(10)

    def is_gone(self, patience_s):
        deadline = time.monotonic() + patience_s
        while self.ours() and time.monotonic() < deadline:
            time.sleep(0.05)
        return not self.ours()
