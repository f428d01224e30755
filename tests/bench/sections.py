# SPDX-License-Identifier: Apache-2.0
"""What is measured, a function a section. Each returns the rows that report.py shows."""

import os
import statistics
import sys
import tempfile
import time

import contenders
import machine
from burners import Burners
from contenders import Crew, Failed, Gpuq
from services import public_folder

SLOW_S = 5  # what takes so long to start is timed once
IN_FLIGHT = (1, 32)
USERS = (12345, 12346)  # no passwd entry is needed
MEDIANS = ("jobs_per_s", "p50_us", "p99_us", "open_s", "burst_s", "gpu_mib", "cores", "work_percent", "beyond_percent")


class Bench:
    """The contenders, the daemon and how long to measure."""

    def __init__(self, arguments, found, daemon, another_daemon, keep):
        self.arguments, self.contenders, self.daemon = arguments, found, daemon
        self.another_daemon = another_daemon  # a context manager: one with other settings
        self.seconds, self.repeats = arguments.seconds, arguments.repeats
        self.started = time.monotonic()
        self.gpu_before_mib = arguments.gpu_before_mib
        self.keep = keep  # gets a section's rows so far

    def note(self, text):
        print(f"{time.monotonic() - self.started:6.1f} s  {text}", file=sys.stderr, flush=True)

    def get(self, *names):
        return [self.contenders[name] for name in names if name in self.contenders]

    def rounds(self, share):
        """A section's repeats, as many as fit into its share of the time: one at least."""
        began, longest = time.monotonic(), 0
        for i in range(self.repeats):
            start = time.monotonic()
            yield i
            longest = max(longest, time.monotonic() - start)
            if time.monotonic() - began + longest > share * self.arguments.budget:
                return

    def warm(self):
        """gpuqd's worker is there before anybody asks, as it is in use."""
        for contender in self.get("gpuq"):
            contenders.burst(contender, "host", 1, 60)

    def gpu_mib(self, contender, before):
        """What the contender holds, beside what is there without it."""
        used = machine.gpu_used_mib() if before is not None else None
        if used is None:
            return None
        if isinstance(contender, Gpuq):
            return machine.gpu_mib_of(self.daemon.family()) or used - self.gpu_before_mib
        return used - before


class Tally:
    """Repeats of the same rows, and their medians. What failed, or was slow to start, is not repeated."""

    def __init__(self, keep):
        self.keep = keep
        self.runs = {}
        self.finished = set()

    def wants(self, key):
        return key not in self.finished

    def add(self, turn, row):
        self.runs.setdefault((turn, row.get("way"), row.get("in_flight")), []).append(row)
        self.keep(self.rows())

    def finish(self, turn):
        self.finished.add(turn)

    def rows(self):
        return [median(runs) for runs in self.runs.values()]


def median(runs):
    good = [run for run in runs if "error" not in run]
    if not good:
        return runs[0]
    row = {**good[0], "repeats": len(good)}
    for key in MEDIANS:
        values = [run[key] for run in good if run.get(key) is not None]
        if values:
            row[key] = statistics.median(values)
    return row


def turn(bench, tally, contender, ways, in_flight, processes, *options):
    """One set of processes through all phases of a contender, unless that was slow or failed before."""
    key = (contender.name, processes, options)
    head = {"contender": contender.name, "processes": processes}
    if not tally.wants(key):
        return
    plan = [(way, n) for way in ways for n in in_flight]
    before = bench.gpu_before_mib if isinstance(contender, Gpuq) else machine.gpu_used_mib()
    began, memory = time.monotonic(), None
    try:
        crew = Crew(contender, [contender.phase(way, n, bench.seconds) for way, n in plan], processes, *options)
        for i, (way, n) in enumerate(plan):
            crew.ready()
            if i == 0:
                memory = bench.gpu_mib(contender, before)
                if time.monotonic() - began > SLOW_S:
                    tally.finish(key)
            crew.go()
            tally.add(key, {**crew.row(), **head, "way": way, "gpu_mib": memory})
        crew.end()
    except Failed as e:
        bench.note(f"{contender.title}, {processes} processes: {e}")
        tally.add(key, {**head, "way": None, "in_flight": None, "error": str(e)})
        tally.finish(key)


def small(bench):
    """The small job three ways, one at a time and 32 in flight, from many processes."""
    tally = Tally(bench.keep)
    for repeat in bench.rounds(0.62):
        for processes in bench.arguments.processes:
            bench.note(f"small, repeat {repeat + 1}, {processes} processes")
            for contender in bench.get("own", "mps", "gpuq"):
                if contender.name != "own" or processes <= bench.arguments.own_max:
                    turn(bench, tally, contender, contender.ways, IN_FLIGHT, processes)
            for contender in bench.get("gpuq-prepared"):
                if processes in bench.arguments.prepared:
                    turn(bench, tally, contender, contender.ways, bench.arguments.prepared[processes], processes)
    return tally.rows()


def large(bench):
    """1,000,000 elements in host memory."""
    tally = Tally(bench.keep)
    for repeat in bench.rounds(0.13):
        for processes in bench.arguments.large_processes:
            bench.note(f"large, repeat {repeat + 1}, {processes} processes")
            for contender in bench.get("own", "mps", "gpuq"):
                turn(bench, tally, contender, contender.host_ways(), (1, 4), processes,
                     "--n", str(100 * bench.arguments.n))
    return tally.rows()


def chain(bench):
    """16 launches on 64 KiB, each on what the last one wrote; the peers run it as a graph."""
    tally = Tally(bench.keep)
    for repeat in bench.rounds(0.05):
        bench.note(f"chain, repeat {repeat + 1}")
        for contender in bench.get("own", "mps", "gpuq", "gpuq-prepared"):
            turn(bench, tally, contender, contender.ways, (1, 8), 1, "--n", "16384", "--launches", "16")
    return tally.rows()


def burst(bench):
    """Short-lived processes with one job each. The peers also with fewer, where all are refused or take too long."""
    tally = Tally(bench.keep)
    for repeat in bench.rounds(0.08):
        for contender in bench.get("own", "mps", "gpuq"):
            for processes in burst_counts(bench.arguments, contender):
                if tally.wants((contender.name, processes)):
                    bench.note(f"burst, repeat {repeat + 1}, {contender.title}, {processes} processes")
                    one_burst(tally, contender, processes)
    return tally.rows()


def burst_counts(arguments, contender):
    fewer = min(arguments.burst, arguments.own_max)
    if contender.name == "own":
        return [fewer]
    return sorted({arguments.burst, min(48, fewer)}) if contender.name == "mps" else [arguments.burst]


def one_burst(tally, contender, processes):
    key = (contender.name, processes)
    head = {"contender": contender.name, "processes": processes}
    try:
        row = contenders.burst(contender, contender.host_ways()[0], processes, 60)
        tally.add(key, {**row, **head})
        if row["burst_s"] > SLOW_S:
            tally.finish(key)
    except Failed as e:
        tally.add(key, {**head, "error": str(e)})
        tally.finish(key)


def users(bench):
    """Two users at once, half of the processes each."""
    if os.getuid() != 0:
        return [{"contender": name, "error": "two users need root"} for name in bench.contenders]
    tally = Tally(bench.keep)
    for repeat in bench.rounds(0.10):
        bench.note(f"two users, repeat {repeat + 1}")
        for contender in bench.get("own", "mps", "mps-all", "gpuq"):
            if not tally.wants(contender.name):
                continue
            try:
                for row in two_crews(bench, contender):
                    tally.add(contender.name, row)
            except Failed as e:
                tally.add(contender.name, {"contender": contender.name, "error": str(e)})
                tally.finish(contender.name)
    return tally.rows()


def two_crews(bench, contender):
    half = bench.arguments.user_processes
    way = contender.host_ways()[0]
    phases = [contender.phase(way, n, bench.seconds) for n in IN_FLIGHT]
    crews, rows = [], []
    try:
        for uid in USERS:
            crews.append(Crew(contender, phases, half, uid=uid, limit_s=10 * bench.arguments.patience))
        for n in IN_FLIGHT:
            for crew in crews:
                crew.ready()
            for crew in crews:
                crew.go()
            both = [crew.row() for crew in crews]
            rows.append({"contender": contender.name, "way": way, "processes": 2 * half, "in_flight": n,
                         "jobs_per_s": sum(row["jobs_per_s"] for row in both),
                         "p50_us": max(row["p50_us"] for row in both), "p99_us": max(row["p99_us"] for row in both)})
    except Failed:
        for crew in crews:
            crew.kill()
        contender.recover()
        raise
    for crew in crews:
        crew.end()
    return rows


def latency(bench):
    """One small job at a time, beside nothing and beside what fills the GPU, of another user and of its own."""
    rows = []
    for contender in bench.get("own", "mps", "mps-all", "gpuq"):
        for name, spin_us in (("nothing", 0), *bench.arguments.spins):
            for user in latency_users(contender, spin_us):
                head = {"contender": contender.name, "beside": name, "user": user}
                bench.note(f"latency, {contender.title}, beside {name}, {user} user")
                uids = (None, None) if user == "own" else USERS
                try:
                    rows.append({**beside(bench, contender, spin_us, uids), **head})
                except Failed as e:
                    rows.append({**head, "error": str(e)})
                bench.keep(rows)
    return rows


def latency_users(contender, spin_us):
    """Whose the other process is. To the driver a context is a context; one user alone has an MPS server."""
    if not spin_us or os.getuid() != 0:
        return [] if contender.name == "mps-all" else ["own"]
    return {"own": ["another"], "mps": ["own"], "mps-all": ["another"], "gpuq": ["own", "another"]}[contender.name]


def beside(bench, contender, spin_us, uids):
    """The client is ready before the GPU is filled, and measured while it is: two spins in flight, then none."""
    way = contender.host_ways()[0]
    seconds = max(bench.seconds, 1.75e-6 * spin_us)
    crews = [Crew(contender, [contender.phase(way, 1, seconds)], uid=uids[0],
                  limit_s=25 * bench.arguments.patience)]
    try:
        crews[0].ready()
        if spin_us:
            spinning = contender.phase(way, 2, 0 if spin_us > 1e6 else seconds + 0.5)
            crews.append(Crew(contender, [spinning], 1, "--cold", "--spin-us", str(spin_us), "--blocks",
                              str(bench.arguments.blocks), uid=uids[1],
                              limit_s=20 * bench.arguments.patience))
            crews[1].ready()
            crews[1].go()
            time.sleep(0.05)  # the first spin is on the GPU by now
        crews[0].go()
        row = crews[0].row()
        if spin_us:
            crews[1].row()
    except Failed:
        for crew in crews:
            crew.kill()
        contender.recover()
        raise
    for crew in crews:
        crew.end()
    return row


def count_sleeps(daemon, crew):
    clients = sum(machine.sleeps(pid) for pid in machine.family(crew.process.pid) if pid != crew.process.pid)
    return {**daemon.count(machine.sleeps), "clients": clients}


def cpu(bench):
    """What a job costs gpuqd's processes in CPU time, and how often somebody slept and was woken for it. A daemon that
    polls uses a core whatever it does: what a job costs shows in one that does not."""
    rows = []
    for contender in bench.get("gpuq"):
        for processes in bench.arguments.cpu_processes:
            bench.note(f"CPU time, {processes} processes")
            rows += cpu_rows(bench, bench.daemon, contender, processes, IN_FLIGHT)
            bench.keep(rows)
        bench.note(f"CPU time, {processes} processes, polling off")
        with bench.another_daemon("poll_us=0") as daemon:
            sleepy = contender.at(daemon.socket)
            contenders.burst(sleepy, "host", 1, 60)
            rows += [{**row, "polling": "off"} for row in cpu_rows(bench, daemon, sleepy, processes, IN_FLIGHT[-1:])]
    return rows


def cpu_rows(bench, daemon, contender, processes, in_flight):
    plan = [(way, n) for way in contender.ways for n in in_flight]
    crew = Crew(contender, [contender.phase(way, n, bench.seconds) for way, n in plan], processes)
    for way, n in plan:
        crew.ready()
        slept, before = count_sleeps(daemon, crew), daemon.cpu_ns()
        crew.go()
        row = crew.row()
        after, sleeps = daemon.cpu_ns(), count_sleeps(daemon, crew)
        yield {**row, "way": way, "processes": processes, "polling": "on",
               **{f"{role}_us": (after[role] - before[role]) / row["jobs"] / 1e3 for role in after},
               **{f"{role}_sleeps": (sleeps[role] - slept[role]) / row["jobs"] for role in sleeps}}
    crew.end()


def busy(bench):
    """Beside programs that keep the cores busy. How much less these get done says what the jobs cost them."""
    tally = Tally(bench.keep)
    for repeat in bench.rounds(0.25):
        for per_core in bench.arguments.busy:
            with tempfile.TemporaryDirectory() as folder:
                burners = Burners(per_core * os.cpu_count(), folder)
                try:
                    busy_turns(bench, tally, burners, f"{per_core} per core", repeat)
                finally:
                    burners.end()
    return tally.rows()


def busy_turns(bench, tally, burners, title, repeat):
    burners.wait()
    alone = work_rate(burners, lambda: time.sleep(2 * bench.seconds))
    for contender in bench.get("own", "mps", "gpuq", "gpuq-prepared"):
        for processes, n in bench.arguments.busy_jobs:
            bench.note(f"busy cores, repeat {repeat + 1}, {title}, {contender.title}, {processes} x {n}")
            head = {"contender": contender.name, "busy": title, "processes": processes, "in_flight": n}
            try:
                row = busy_row(bench, contender, burners, processes, n, alone)
                tally.add((contender.name, title, processes), {**row, **head})
            except Failed as e:
                tally.add((contender.name, title, processes), {**head, "error": str(e)})


def work_rate(burners, wait):
    began, before = time.monotonic(), burners.work()
    wait()
    return (burners.work() - before) / (time.monotonic() - began)


def busy_row(bench, contender, burners, processes, n, alone):
    """The burners' work, beside what they would do on the cores that the contender left them."""
    crew = Crew(contender, [contender.phase(contender.host_ways()[0], n, bench.seconds)], processes)
    crew.ready()
    before, began = busy_cpu_ns(bench, contender, crew), time.monotonic()
    crew.go()
    rows = []
    rate = work_rate(burners, lambda: rows.append(crew.row()))
    cores = (busy_cpu_ns(bench, contender, crew) - before) / (time.monotonic() - began) / 1e9
    crew.end()
    left = 1 - cores / os.cpu_count()
    return {**rows[0], "cores": cores, "work_percent": 100 * rate / alone if alone else None,
            "beyond_percent": 100 * (1 - rate / alone / left) if alone else None}


def busy_cpu_ns(bench, contender, crew):
    """CPU time of those who compute for the contender."""
    cpu_ns = sum(machine.cpu_ns(pid) for pid in machine.family(crew.process.pid))
    return cpu_ns + (sum(bench.daemon.cpu_ns().values()) if isinstance(contender, Gpuq) else 0)


def starts(bench):
    """How long a job takes for which gpuqd has no worker of its user's, with and without a spare worker."""
    tally = Tally(bench.keep)
    for contender in bench.get("gpuq"):
        for repeat in bench.rounds(0.15):
            for spares in (0, 1):
                bench.note(f"starts, repeat {repeat + 1}, {spares} spare workers")
                with public_folder() as folder:
                    start_all(bench, tally, contender, spares, [f"spare_workers={spares}", f"cache_dir={folder}/cache"])
    return tally.rows()


def start_all(bench, tally, contender, spares, settings):
    began = time.monotonic()
    with bench.another_daemon(*settings) as daemon:
        started = contender.at(daemon.socket)
        start(tally, spares, "gpuqd itself starts, its cache empty", started, began=began)
        daemon.wait_for_spares(spares)
        daemon.kill_workers()
        start(tally, spares, "after their worker was killed", started)
        daemon.wait_for_spares(spares)
        daemon.fault()
        start(tally, spares, "after a kernel faulted", started)
    began = time.monotonic()
    with bench.another_daemon(*settings) as daemon:
        start(tally, spares, "gpuqd itself starts", contender.at(daemon.socket), began=began)
    with bench.another_daemon(*settings) as daemon:
        daemon.wait_for_spares(spares)
        start(tally, spares, "a user's first", contender.at(daemon.socket))


def start(tally, spares, what, contender, began=None):
    """@began: when to count from; else from the client's start."""
    row = contenders.burst(contender, "host", 1, 60)
    if began:
        row["burst_s"] = time.monotonic() - began
    tally.add((what, spares), {**row, "what": what, "spares": spares})


def idle(bench):
    """Of the daemon with a worker that is warm: CPU time over some seconds of nothing, and memory."""
    time.sleep(min(1, bench.arguments.idle_s))  # what still tells or tidies up after the last job has done so
    bench.note(f"idle for {bench.arguments.idle_s} s")
    before, began = bench.daemon.cpu_ns(), time.monotonic()
    libcuda = bench.daemon.count(machine.cpu_ns_of_libcuda)
    time.sleep(bench.arguments.idle_s)
    took, after = time.monotonic() - began, bench.daemon.cpu_ns()
    libcuda = sum(bench.daemon.count(machine.cpu_ns_of_libcuda).values()) - sum(libcuda.values())
    return {"seconds": took, "percent": {role: (after[role] - before[role]) / took / 1e7 for role in after},
            "libcuda_percent": libcuda / took / 1e7,
            "supervisor_rss_mib": bench.daemon.supervisor_rss() / 2**20}


ALL = {"small": small, "large": large, "chain": chain, "burst": burst, "users": users, "latency": latency,
       "cpu": cpu, "busy": busy, "starts": starts, "idle": idle}
