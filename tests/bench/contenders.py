# SPDX-License-Identifier: Apache-2.0
"""Who is measured, and one contender's processes going through their phases."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading


TITLES = {"own": "own contexts", "alone": "one process, 16 streams", "mps": "MPS", "mps-all": "MPS, one server for all users",
          "gpuq": "gpuq"}


class Failed(Exception):
    """A contender's processes did not do it; the text says why."""


class Contender:
    """A way to the GPU. Its ways to hold host data: `host` where it has but one."""

    def __init__(self, name, command, environment=None, problem=None, ways=("in-place", "copies", "device")):
        self.name, self.title, self.problem, self.ways = name, TITLES[name], problem, ways
        self.command, self.environment = command, environment or dict(os.environ)

    def recover(self):
        """After processes were killed in the middle: what serves them may be left as it should not be."""

    def phase(self, way, in_flight, seconds):
        return f"{'copies' if way == 'host' else way}/{in_flight}/{seconds}"

    def host_ways(self):
        """The best first."""
        return [way for way in self.ways if way != "device"]


class OfService(Contender):
    """Own contexts that a service shares among them."""

    def __init__(self, name, command, service):
        super().__init__(name, command, service.environment(), service.problem)
        self.service = service

    def recover(self):
        self.service.end()
        self.service.start()
        self.problem = self.service.problem


def contenders(arguments, socket, mps):
    """Own contexts; one process with streams; MPS, and where two users share it; gpuq. @mps: the services by name."""
    libexec = pathlib.Path(arguments.prefix).resolve() / "libexec/gpuq"
    program = [str(libexec / "gpuq-bench"), "--kernels", str(libexec / "kernels"), "--spins", str(libexec / "bench")]
    own = [*program, "--contender", "own", "--driver", arguments.driver]
    found = [Contender("own", own), Contender("alone", [*own, "--streams", "16"]),
             Contender("gpuq", [*program, "--contender", "gpuq", "--socket", socket], ways=("host", "device"))]
    found = [contender for contender in found if contender.name in arguments.contenders]
    found += [OfService(name, own, service) for name, service in mps.items()]
    return {contender.name: contender for contender in found}


class Crew:
    """Processes of one contender. They are ready(), told to go(), and give a row() for each phase; then end()."""

    def __init__(self, contender, phases, processes=1, *options, uid=None, limit_s=90):
        if contender.problem:
            raise Failed(contender.problem)
        self.complaints = tempfile.TemporaryFile("w+")
        user = {"user": uid, "group": uid, "extra_groups": []} if uid is not None else {}
        self.process = subprocess.Popen(
            [*contender.command, "--hold", "--processes", str(processes), *options, *phases],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints, text=True, cwd="/",
            env=contender.environment, **user)
        self.late = False
        self.limit_s = limit_s
        self.watchdog = threading.Timer(limit_s, self._stop)
        self.watchdog.start()

    def _stop(self):
        self.late = True
        self.process.kill()

    def _line(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.watchdog.cancel()
        if self.late:
            raise Failed(f"not done after {self.limit_s} s")
        self.complaints.seek(0)
        text = [line.strip() for line in self.complaints if line.strip()]
        raise Failed(text[0] if text else f"ended with {self.process.returncode}")

    def ready(self):
        return self._line()

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def row(self):
        return self._line()

    def end(self):
        """Lets the processes close, and waits for the last."""
        try:
            if self.process.poll() is None:
                self.process.communicate("\n")
        except BrokenPipeError:
            pass
        self.watchdog.cancel()
        self.complaints.close()

    def kill(self):
        self.process.kill()
        self.end()


def burst(contender, way, processes, limit_s):
    """One job a process: {burst_s}, or what went wrong."""
    if contender.problem:
        raise Failed(contender.problem)
    command = [*contender.command, "--burst", "--processes", str(processes), contender.phase(way, 1, 1)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, env=contender.environment, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {limit_s} s") from None
    if answer.returncode:
        raise Failed((answer.stderr.strip() or f"ended with {answer.returncode}").split("\n")[0])
    return json.loads(answer.stdout)
