#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuq beside processes with contexts of their own, the same under MPS, and one process with streams.

    python3 tests/bench/run.py --prefix build/stage [--device gpu] [--json FILE] [--quick] [--only small,chain]
    python3 tests/bench/run.py --from FILE [--docs docs]

One run, one machine; medians of --repeats, contenders in turn. Prints tables; --docs puts them between the
marks of FOLDER/benchmarks.md and draws the curves beside it. --from shows a run that was made elsewhere. As root,
jobs of two users are measured too.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import signal
import sys

import contenders
import curves
import machine
import report
import result_file
import sections
from services import Daemon, Mps, public_folder


def numbers(text):
    return tuple(int(word) for word in text.split(","))


def names_of(allowed):
    def parse(text):
        words = text.split(",")
        unknown = set(words) - set(allowed)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: allowed are {', '.join(allowed)}")
        return words
    return parse


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--prefix", default="build/stage", help="the installed tree")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--json", help="where to leave all figures")
    parser.add_argument("--docs", metavar="FOLDER", help="put tables and curves there")
    parser.add_argument("--from", dest="source", help="show this JSON of an earlier run, measure nothing")
    parser.add_argument("--only", type=names_of(sections.ALL), default=list(sections.ALL),
                        help=",".join(sections.ALL))
    parser.add_argument("--contenders", type=names_of(("own", "mps", "gpuq")), default=["own", "mps", "gpuq"])
    parser.add_argument("--processes", type=numbers, default=(1, 2, 4, 8, 16, 32, 48, 100))
    parser.add_argument("--own-max", type=int, default=48,
                        help="own contexts from at most so many processes (48); 100 take 30 s to start")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each phase (0.4)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=480,
                        help="seconds for all sections; a repeat that would not fit is left out (480)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of gpuqd")
    parser.add_argument("--quick", action="store_true", help="in a minute: 1 and 16 processes, one repeat")
    parser.add_argument("--reduced", action="store_true", help="in seconds, on any machine: for rightness only")
    return sizes(parser.parse_args())


def sizes(arguments):
    """How large each section is: whole, --quick, --reduced."""
    arguments.n, arguments.burst, arguments.idle_s, arguments.user_processes = 10000, 100, 10, 8
    arguments.patience = 1
    arguments.large_processes, arguments.cpu_processes = (1, 4, 16), (1, 16)
    arguments.busy, arguments.busy_jobs = (0, 1, 2), ((1, 1), (4, 32), (16, 1))
    arguments.prepared = {1: (1,), 16: (1, 32)}  # jobs in flight, by processes: what the goals ask, for time is short
    arguments.spins, arguments.blocks = (("2 s kernels", 2_000_000), ("0.1 ms kernels", 100)), 1056
    if arguments.quick:
        arguments.repeats, arguments.seconds, arguments.processes = 1, 0.25, (1, 16)
        arguments.large_processes, arguments.cpu_processes, arguments.idle_s = (4,), (16,), 3
        arguments.own_max = 16
    if arguments.reduced:
        arguments.repeats, arguments.seconds, arguments.processes = 1, 0.05, (1, 2)
        arguments.n, arguments.burst, arguments.idle_s, arguments.user_processes = 1000, 4, 0.2, 1
        arguments.large_processes, arguments.cpu_processes = (1,), (1,)
        arguments.busy, arguments.busy_jobs = (0, 1), ((1, 1),)
        arguments.prepared = {1: (1,), 2: (1, 32)}
        arguments.patience = 8  # slow is no failure
        arguments.spins, arguments.blocks = (("20 ms kernels", 20_000),), 1
    libexec = pathlib.Path(arguments.prefix).resolve() / "libexec/gpuq"
    arguments.driver = "libcuda.so.1" if arguments.device == "gpu" else str(libexec / "libgpuq-cpu.so")
    return arguments


class Result(dict):
    """All figures, in the file --json as soon as they are known; `not_done` are the sections that are not whole."""

    def __init__(self, arguments, head):
        super().__init__(head, not_done=list(arguments.only))
        self.path = arguments.json and pathlib.Path(arguments.json)

    def save(self):
        if self.path:
            result_file.write(self.path, self)

    def keep(self, rows):
        """What there is by now of the first section that is not done."""
        self[self["not_done"][0]] = rows
        self.save()

    def finish(self, rows):
        self[self["not_done"].pop(0)] = rows
        self.save()


@contextlib.contextmanager
def a_daemon(arguments, *settings):
    with public_folder() as folder:
        daemon = Daemon(arguments.prefix, arguments.device, folder, [*arguments.set, *settings], private=os.getuid() != 0)
        try:
            yield daemon
        finally:
            daemon.end()


def measure(arguments):
    on_gpu = arguments.device == "gpu"
    arguments.gpu_before_mib = machine.gpu_used_mib() if on_gpu else None
    with public_folder() as folder, a_daemon(arguments) as daemon:
        mps = {}
        if on_gpu and "mps" in arguments.contenders:
            mps = {"mps": Mps(f"{folder}/mps"), "mps-all": Mps(f"{folder}/mps-all", "-multiuser-server")}
        try:
            found = contenders.contenders(arguments, daemon.socket, mps)
            result = Result(arguments, {"machine": machine.description(on_gpu), "seconds": arguments.seconds,
                                        "repeats": arguments.repeats, "n": arguments.n})
            bench = sections.Bench(arguments, found, daemon, functools.partial(a_daemon, arguments), result.keep)
            bench.warm()
            for name in arguments.only:
                result.finish(sections.ALL[name](bench))
            bench.note("done")
            result["status"] = daemon.status()
            result.save()
        finally:
            for service in mps.values():
                service.end()
    return result


def errors(result):
    """What gpuq could not do: the peers' own refusals are results."""
    return [row for section in sections.ALL for row in result.get(section, []) if isinstance(row, dict)
            and row.get("contender") in ("gpuq", "gpuq-prepared") and "error" in row]


def main():
    arguments = parse()
    if arguments.source:
        result = json.loads(pathlib.Path(arguments.source).read_text())
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended"))  # what was started is ended
        result = measure(arguments)
    print(report.text(result))
    if arguments.docs:
        report.put(result, pathlib.Path(arguments.docs, "benchmarks.md"))
        curves.draw(result, arguments.docs)
    sys.exit(1 if errors(result) else 0)


if __name__ == "__main__":
    main()
