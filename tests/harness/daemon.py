# SPDX-License-Identifier: Apache-2.0
"""A real gpuqd in a folder of its own."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from . import place, processes
from .client import Client, Closed
from .patience import until, while_short

# What a sanitizer or an assertion prints when it has found a mistake of ours.
MISTAKE = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|\.c(pp)?:\d+:.*(runtime error|Assertion .* failed)")


class Daemon:
    """Started by start(); its folder goes with stop(), which also looks for what it left behind."""

    mistake = MISTAKE

    def __init__(self, private=True, cache=None, config="", **settings):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-"))
        self.folder.chmod(0o755)
        self.socket = self.folder / "gpuqd.sock"
        self.config = self.folder / "gpuqd.conf"
        self.log_path = self.folder / "log"
        self.private = private
        self.settings = {"device": place.DEVICE, "cache_dir": cache or self.folder / "cache",
                         "state_dir": self.folder / "state",
                         # Most tests count workers.
                         "spare_workers": os.environ.get("GPUQ_TEST_SPARES", "0"),
                         "express": os.environ.get("GPUQ_TEST_EXPRESS", "no")}
        if place.on_gpu():
            self.settings["connections"] = 8  # a context is there in a third of the time
            if place.n_gpus() > 1:
                self.settings["devices"] = "0"  # most tests say what happens where there is one
        else:
            self.settings["cpu_threads"] = 4
        if not private:
            self.settings.update(supervisor_user="daemon", worker_user="nobody")
        self.settings.update(settings)
        self.sections = config
        self.process = None
        self.clients = []
        self.lent = None  # how it was when a test got it that others had before
        self.write_config()

    # ---- life ----

    def write_config(self, **settings):
        """Written anew with these settings beside the old ones; a reload() makes them count."""
        self.settings.update(settings)
        lines = [f"{key} = {value}" for key, value in self.settings.items() if value is not None]
        self.config.write_text("[gpuqd]\n" + "\n".join(lines) + "\n" + self.sections)

    def arguments(self):
        return [place.program("gpuqd"), *(["--private"] if self.private else []),
                "--socket", str(self.socket), "--config", str(self.config)]

    def launch(self, **options):
        """Starts the process and does not wait for it to serve."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.arguments(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, **options)
        processes.started.add(self.process.pid)
        return self

    def start(self, **options):
        self.launch(**options)
        until(self.is_serving, "gpuqd to serve")
        return self

    def is_serving(self):
        if self.process.poll() is not None:
            raise AssertionError(f"gpuqd ended with {self.process.returncode}:\n{self.log()}")
        try:
            with Client(self.socket) as client:
                return client.status().state == "ready"
        except (OSError, Closed):
            return False

    def stop(self):
        """SIGTERM, and a look at what is left. Returns the exit status."""
        for client in self.clients:
            client.close()
        family = processes.descendants(self.process.pid)
        named = processes.named_memory(family)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(place.PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"gpuqd did not end on SIGTERM:\n{self.log()}") from None
        finally:
            # What ended with its parent, as a worker's compiler does, may take a moment, and more under load.
            while_short(lambda: any(processes.is_alive(pid) for pid in family), place.PATIENCE_S)
            left = [pid for pid in family if processes.is_alive(pid)]
            strays = processes.reap_orphans()
            socket_left = self.socket.exists()
            log = self.log()
            shutil.rmtree(self.folder, ignore_errors=True)
        assert not left and not strays, f"left behind: {left} {strays}\n{log}"
        assert not socket_left, "the socket is left behind"
        assert not named, f"memory with a name, which is left behind: {named}"
        assert not self.mistake.search(log), log
        return self.process.returncode

    def log(self):
        try:
            return self.log_path.read_text(errors="replace")
        except OSError:
            return ""

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def configure(self, **settings):
        """Returns once the keeper has read them; workers keep those that they were started with."""
        before = self.log().count("configuration reloaded")
        self.write_config(**settings)
        self.reload()
        until(lambda: self.log().count("configuration reloaded") > before, "the configuration to be read")

    @contextlib.contextmanager
    def configured(self, **settings):
        """The same for as long as the block lasts."""
        before = {key: self.settings.get(key) for key in settings}
        self.configure(**settings)
        try:
            yield
        finally:
            self.configure(**before)

    # ---- its processes ----

    def supervisor(self):
        return until(lambda: processes.named(self.process.pid, "gpuqd-supervisor"), "a supervisor")[0]

    def workers(self):
        """Of users: not one that only looks at devices, nor what a worker starts (compilers, a leak checker)."""
        return [pid for pid in processes.children(self.process.pid) if processes.is_users_worker(pid)]

    # ---- its detached jobs ----

    def jobs_folder(self):
        return pathlib.Path(self.settings["state_dir"]) / "jobs"

    def detached(self):
        """NUMBER.UID of each that has a file."""
        folder = self.jobs_folder()
        return {path.stem for path in folder.iterdir() if path.suffix in (".in", ".out")} if folder.exists() else set()

    # ---- its clients ----

    def connect(self, uid=None, **options):
        client = Client(self.socket, uid=uid, **options)
        self.clients.append(client)
        return client

    def run(self, *arguments, uid=None, timeout=None, **options):
        """The CLI. Returns the ended process, its output as text."""
        return self.run_program("gpuq", *arguments, uid=uid, timeout=timeout, **options)

    def run_program(self, name, *arguments, uid=None, timeout=None, **options):
        path = name if "/" in name else place.program(name)
        return subprocess.run([path, *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout or place.PATIENCE_S,
                              env=self.environment(), **as_user(uid), **options)

    def start_program(self, name, *arguments, uid=None, stdin=subprocess.DEVNULL, **options):
        path = name if "/" in name else place.program(name)
        return subprocess.Popen([path, *map(str, arguments)], stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=self.environment(), **as_user(uid), **options)

    def environment(self):
        return {**os.environ, "GPUQ_SOCKET": str(self.socket)}


def as_user(uid):
    return {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
