#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small jobs through gpuq beside processes with contexts of their own, and the demo's 100 processes.

    python3 tests/bench/run.py --prefix build/stage [--device gpu] [--json FILE] [--reduced]

One run, one machine, one table; medians of --repeat runs of each row, contenders in turn.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time


class Daemon:
    """A private gpuqd in a folder of its own."""

    def __init__(self, prefix, device, folder):
        self.prefix = prefix
        self.socket = f"{folder}/gpuqd.sock"
        self.process = subprocess.Popen(
            [f"{prefix}/bin/gpuqd", "--private", "--socket", self.socket,
             "--set", f"device={device}", "--set", f"cache_dir={folder}/cache"])
        self.wait_until_ready()

    def wait_until_ready(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                sys.exit("bench: gpuqd ended at its start")
            status = self.status()
            if status and status["devices"] and status["devices"][0]["state"] == "ready":
                return
            time.sleep(0.05)
        sys.exit("bench: gpuqd is not ready after 30 s")

    def status(self):
        answer = subprocess.run([f"{self.prefix}/bin/gpuq", "--socket", self.socket, "status", "--json"],
                                capture_output=True, text=True)
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def supervisor_rss(self):
        """Bytes of memory of the supervisor, its own and its part of what it shares."""
        children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(self.process.pid)],
                                  capture_output=True, text=True).stdout.split("\n")
        for line in children:
            pid, _, name = line.strip().partition(" ")
            if name.strip().startswith("gpuqd-superviso"):
                rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                return 1024 * int(re.search(r"^Rss:\s+(\d+)", rollup, re.M).group(1))
        return 0

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def measure(arguments, daemon, row, seconds):
    contender, data, processes, in_flight = row
    command = [arguments.bench, "--contender", contender, "--processes", str(processes),
               "--in-flight", str(in_flight), "--seconds", str(seconds), "--n", str(arguments.n),
               "--socket", daemon.socket, "--kernels", f"{arguments.prefix}/libexec/gpuq/kernels",
               "--driver", arguments.driver]
    if data == "device":
        command.append("--device-data")
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if answer.returncode:
        return {"contender": contender, "data": data, "processes": processes, "in_flight": in_flight,
                "error": answer.stderr.strip().split("\n")[-1]}
    return json.loads(answer.stdout)


def median(runs):
    good = [run for run in runs if "error" not in run]
    if not good:
        return runs[0]
    row = dict(good[0])
    for key in ("jobs_per_s", "p50_us", "p99_us", "open_s"):
        row[key] = statistics.median(run[key] for run in good)
    return row


def demo(arguments, daemon, repeat):
    """The main job: seconds from the first fork to the last result of 100 processes."""
    times, last = [], ""
    for _ in range(repeat):
        answer = subprocess.run([f"{arguments.prefix}/libexec/gpuq/gpuq-demo", str(arguments.processes)],
                                env={"GPUQ_SOCKET": daemon.socket}, capture_output=True, text=True, timeout=300)
        if answer.returncode:
            sys.exit(f"bench: demo: {answer.stdout}{answer.stderr}")
        last = answer.stdout.strip().split("\n")[-1]
        times.append(float(re.search(r"in ([\d.]+) s", last).group(1)))
    return {"median_s": statistics.median(times), "runs_s": times, "last_line": last}


def table(rows):
    print("| data | processes | in flight | contender | jobs/s | p50 µs | p99 µs | open s |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        head = f"| {row['data']} | {row['processes']} | {row['in_flight']} | {row['contender']} "
        if "error" in row:
            print(f"{head}| failed: {row['error']} | | | |")
        else:
            print(f"{head}| {row['jobs_per_s']:,.0f} | {row['p50_us']:,.1f} | {row['p99_us']:,.1f} "
                  f"| {row['open_s']:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", default="build/stage")
    parser.add_argument("--bench", default=None, help="the bench program; default PREFIX/libexec/gpuq/gpuq-bench")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--json", default=None)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--n", type=int, default=10000)
    parser.add_argument("--processes", type=int, default=100, help="of the demo")
    parser.add_argument("--reduced", action="store_true", help="for rightness only")
    arguments = parser.parse_args()
    libexec = f"{arguments.prefix}/libexec/gpuq"
    arguments.bench = arguments.bench or f"{libexec}/gpuq-bench"
    arguments.driver = "libcuda.so.1" if arguments.device == "gpu" else f"{libexec}/libgpuq-cpu.so"
    if arguments.reduced:
        arguments.repeat, arguments.seconds, arguments.processes = 1, 0.1, 4
    counts = (1, 2) if arguments.reduced else (1, 16)

    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(arguments.prefix, arguments.device, folder)
        try:
            result = {"demo": demo(arguments, daemon, arguments.repeat)}
            rows = []
            for data in ("copies", "device"):
                for processes in counts:
                    for in_flight in (1, 32):
                        runs = {"own": [], "gpuq": []}
                        for _ in range(arguments.repeat):
                            for contender, done in runs.items():
                                done.append(measure(arguments, daemon, (contender, data, processes, in_flight),
                                                    arguments.seconds))
                        rows += [median(done) for done in runs.values()]
            result["rows"] = rows
            result["status"] = daemon.status()
            result["supervisor_rss_bytes"] = daemon.supervisor_rss()
        finally:
            daemon.end()

    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=1))
    table(result["rows"])
    print(f"demo, median of {arguments.repeat}: {result['demo']['median_s']:.2f} s; {result['demo']['last_line']}")
    print(f"supervisor after it: {result['supervisor_rss_bytes'] / 2**20:.1f} MiB")
    sys.exit(any("error" in row for row in result["rows"]))


if __name__ == "__main__":
    main()
