# SPDX-License-Identifier: Apache-2.0
"""Who is measured, and one contender's processes going through their phases."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading

TITLES = {"own": "own contexts", "mps": "MPS", "mps-all": "MPS, one server for all users", "gpuq": "gpuq",
          "gpuq-prepared": "gpuq, prepared jobs"}


class Failed(Exception):
    """A contender's processes did not do it; the text says why."""


class Contender:
    """A way to the GPU, and how it holds data: in its ways, of those for host data the best first."""

    ways = ("in-place", "copies", "device")

    def __init__(self, name, program, arguments):
        self.name, self.title, self.problem = name, TITLES[name], None
        self.program, self.arguments, self.environment = program, arguments, dict(os.environ)

    def command(self, processes):
        return [*self.program, *self.arguments, "--processes", str(processes)]

    def recover(self):
        """After processes were killed in the middle: what serves them may be left as it should not be."""

    def phase(self, way, in_flight, seconds):
        return f"{'copies' if way == 'host' else way}/{in_flight}/{seconds}"

    def host_ways(self):
        return [way for way in self.ways if way != "device"]


class Gpuq(Contender):
    """A job on host buffers is one request, and the service chooses its way."""

    ways = ("host", "device")

    def at(self, socket):
        """The same at another daemon's socket."""
        arguments = [*self.arguments]
        arguments[arguments.index("--socket") + 1] = socket
        return Gpuq(self.name, self.program, arguments)


class Own(Contender):
    """Contexts of their own. One process's 32 jobs end half as fast again in 4 streams as in one each; where contexts take turns
    each turn gets more done with one each."""

    def command(self, processes):
        return [*super().command(processes), *(FEW_STREAMS if processes == 1 else [])]


class Shared(Contender):
    """The same, shared by an MPS."""

    def __init__(self, name, program, arguments, service):
        super().__init__(name, program, arguments)
        self.service, self.environment, self.problem = service, service.environment(), service.problem

    def command(self, processes):
        return [*super().command(processes), *FEW_STREAMS]

    def recover(self):
        self.service.end()
        self.service.start()
        self.problem = self.service.problem


FEW_STREAMS = ["--streams", "4"]


def contenders(arguments, socket, mps):
    """By name. @mps: the services by name: one for each user in turn, one that all users share."""
    libexec = pathlib.Path(arguments.prefix).resolve() / "libexec/gpuq"
    program = [str(libexec / "gpuq-bench"), "--kernels", str(libexec / "kernels"), "--spins", str(libexec / "bench")]
    own = ["--contender", "own", "--driver", arguments.driver]
    found = [Own("own", program, own), *(Shared(name, program, own, service) for name, service in mps.items()),
             Gpuq("gpuq", program, ["--contender", "gpuq", "--socket", socket]),
             Gpuq("gpuq-prepared", program, ["--contender", "prepared", "--socket", socket])]
    return {contender.name: contender for contender in found if contender.name.split("-")[0] in arguments.contenders}


class Crew:
    """Processes of one contender. They are ready(), told to go(), and give a row() for each phase; then end()."""

    def __init__(self, contender, phases, processes=1, *options, uid=None, limit_s=90):
        if contender.problem:
            raise Failed(contender.problem)
        self.complaints = tempfile.TemporaryFile("w+")
        user = {"user": uid, "group": uid, "extra_groups": []} if uid is not None else {}
        self.process = subprocess.Popen(
            [*contender.command(processes), "--hold", *options, *phases],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints, text=True, cwd="/",
            env=contender.environment, **user)
        self.late = False
        self.limit_s = limit_s
        self.watchdog = threading.Timer(limit_s, self._stop)
        self.watchdog.daemon = True
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
    command = [*contender.command(processes), "--burst", contender.phase(way, 1, 1)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, env=contender.environment, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {limit_s} s") from None
    if answer.returncode:
        raise Failed((answer.stderr.strip() or f"ended with {answer.returncode}").split("\n")[0])
    return json.loads(answer.stdout)
