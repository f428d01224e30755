#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python examples beside the plain programs they replace, and the package's own figures.

    python3 tests/bench/python_bench.py --prefix build/stage [--device gpu] [--json FILE] [--only job,hundred] [--reduced]

One run, one machine; medians of --repeat processes of each row, contenders in turn, what is short before what is long. A row that
cannot be had (a package is missing, say, or there is no memory for it) gives its reason. --json is written anew after each process; what was
not reached by then, or did not fit into --budget, is in it as such. The interpreter that runs this runs the programs; those need numpy, the
plain ones also CuPy, Numba or PyTorch.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import result_file
from services import Daemon

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "client" / "python"
SLOW_S = 20  # what takes longer is run once
LAST = "hundred_tasks"  # CuPy's pool of a hundred takes most of a minute
NOT_REACHED = "not reached"
NOT_ENDED = "not ended after"
PARTS = ["job", "import", "hundred", "programs"]  # in the order in which they are measured

# Program, what the plain one uses, how often each process runs it, sizes for --reduced.
PROGRAMS = [
    ("chunk_sum", "CuPy", 3, {"n": 10000}),
    ("hundred_tasks", "CuPy", 1, {"tasks": 8, "processes": 4}),
    ("refine", "CuPy", 1, {"n": 1000, "steps": 3}),
    ("add_pool", "PyCUDA's form (CuPy)", 1, {"size": 1000, "chunks": 3, "processes": 2}),
    ("producer_consumer", "PyCUDA's form (CuPy)", 1, {"size": 1000, "sets": 3}),
    ("postprocess", "PyCUDA's form (CuPy)", 3, {"n": 10000, "chunks": 4, "processes": 2}),
    ("solve_linear", "PyTorch", 5, {"n": 1000}),
    ("squares", "PyTorch", 5, {"n": 1000}),
    ("affine", "PyTorch", 5, {"n": 64}),
    ("executor", "ProcessPoolExecutor", 3, {"n": 20, "processes": 2}),
    ("split_devices", "CuPy", 5, {"n": 10000}),
    ("double", "CuPy", 1, {"n": 1000}),
    ("two_streams", "CuPy", 5, {"n": 1000}),
    ("replay", "CuPy", 5, {"n": 1000, "replays": 3, "together": 2}),
    ("polynomial", "Numba", 5, {"n": 1000}),
    ("matmul", "CuPy", 5, {"n": 64}),
    ("train", "PyTorch", 3, {"iterations": 20, "together": 10}),
]


class Runner:
    """Runs programs against the daemon and reads the line of JSON that each prints."""

    def __init__(self, prefix, socket, patience_s):
        self.patience_s = patience_s
        path = os.pathsep.join(filter(None, (str(PACKAGE / "src"), os.environ.get("PYTHONPATH"))))
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.environment = {**kept, "GPUQ_SOCKET": socket, "PYTHONPATH": path,
                            "GPUQ_LIBRARY": str(pathlib.Path(prefix).resolve() / "lib" / "libgpuq.so.0")}

    def run(self, *command, patience_s=None):
        """What it told, with its whole time in `whole_s`; or why there is nothing, in `reason`."""
        patience_s = patience_s or self.patience_s
        start = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], env=self.environment, text=True, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=patience_s)
            whole = time.perf_counter() - start
        except subprocess.TimeoutExpired:
            out, err = "", end_all_of(process)
            return {"reason": reason(err, f"{NOT_ENDED} {patience_s:.0f} s")}
        except BaseException:
            end_all_of(process)
            raise
        if process.returncode:
            return {"reason": reason(err, last_line(err)[:200] or f"exit status {process.returncode}")}
        try:
            return {**json.loads(last_line(out)), "whole_s": whole}
        except ValueError:
            return {"reason": f"what it told is no JSON: {last_line(out)[:200]!r}"}

    def python(self, path, *options):
        return self.run(sys.executable, path, *options)


NO_MEMORY = re.compile(r"^(?=\S).*(?:out ?of ?memory|MemoryError|cannot allocate memory).*$", re.IGNORECASE | re.MULTILINE)


def end_all_of(process):
    """A pool whose processes fail starts others for ever, and they outlive it: the whole session goes. What it said until then."""
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[1]


def last_line(text):
    return text.strip().split("\n")[-1]


def reason(err, otherwise):
    """Memory is what the machine has too little of, wherever among many processes' words that stands."""
    found = NO_MEMORY.search(err)
    return f"out of memory: {found.group().strip()[:200]}" if found else otherwise


def medians(runs):
    """Of each number that the runs told; `n` of them."""
    if not runs:
        return {"reason": NOT_REACHED}
    good = [run for run in runs if "reason" not in run]
    if len(good) < len(runs):
        return next(run for run in runs if "reason" in run)
    row = {key: statistics.median(run[key] for run in good)
           for key, value in good[0].items() if isinstance(value, (int, float))}
    return {**row, "n": len(good)}


def as_options(sizes):
    return [word for name, value in sizes.items() for word in (f"--{name}", value)]


class Row:
    """Commands that are run in turn, and what is shown of what they told."""

    def __init__(self, name, commands, repeat, show):
        self.name, self.repeat, self.show = name, repeat, show
        self.commands = {way: [str(word) for word in command] for way, command in commands.items()}
        self.runs = {way: [] for way in commands}

    def wants(self, way):
        """What failed or is slow is run once."""
        done = self.runs[way]
        return len(done) < self.repeat and (not done or ("reason" not in done[0] and done[0]["whole_s"] < SLOW_S))

    def expected_s(self, way):
        return max((run.get("whole_s", 0) for run in self.runs[way]), default=0)

    def shown(self):
        return self.show({way: medians(done) for way, done in self.runs.items()})


def program_row(program, arguments):
    name, package, again, small = program
    again = 2 if arguments.reduced else again
    options = ["--json", "--repeat", again, *as_options(small if arguments.reduced else {})]
    examples = PACKAGE / "examples"

    def show(told):
        for row in told.values():
            if "again_s" in row:
                row["whole_s"] -= row["again_s"] * (again - 1)
        return [{"program": name, "package": package, **told}]

    return Row(name, {"gpuq": [sys.executable, examples / f"{name}.py", *options],
                      "plain": [sys.executable, examples / "plain" / f"{name}.py", *options]}, arguments.repeat, show)


def program_rows(arguments):
    names = set(arguments.programs.split(",")) if arguments.programs else {program[0] for program in PROGRAMS}
    rows = [program_row(program, arguments) for program in PROGRAMS if program[0] in names]
    return sorted(rows, key=lambda row: row.name == LAST)


# ---- figures ----


def measuring(*words):
    return [sys.executable, HERE / "python_measure.py", *words]


def pool(folder, processes, tasks, start, *options):
    return measuring("hundred", folder, "--processes", processes, "--tasks", tasks, "--start", start, *options)


def hundred_figure(name, told, tasks):
    goals = {"forked": "at most 0.3"}
    goal = goals.get(name.rsplit(", ", 1)[1], "at most 1.5") if name.startswith("gpuq") else ""
    return figure(f"{tasks} tasks, {name}, to the last result", told, "seconds", "s", goal)


def hundred_rows(arguments):
    """The first are worth most."""
    tasks, some = (4, 2) if arguments.reduced else (100, 16)
    examples = PACKAGE / "examples"
    commands = {
        f"gpuq, {tasks} processes, forked": pool(examples, tasks, tasks, "fork"),
        f"numpy alone, {tasks} processes, forked": pool("-", tasks, tasks, "fork"),
        f"gpuq, {tasks} processes, forkserver": pool(examples, tasks, tasks, "forkserver"),
        f"gpuq, {tasks} processes, spawned": pool(examples, tasks, tasks, "spawn"),
        f"numpy alone, {tasks} processes, spawned": pool("-", tasks, tasks, "spawn"),
        f"gpuq, {tasks} processes, spawned, one BLAS thread each": pool(examples, tasks, tasks, "spawn", "--lone"),
        f"numpy alone, {tasks} processes, spawned, one BLAS thread each": pool("-", tasks, tasks, "spawn", "--lone"),
        f"CuPy, {some} processes, forked": pool(examples / "plain", some, tasks, "fork"),
        f"CuPy, {some} processes, spawned": pool(examples / "plain", some, tasks, "spawn"),
        f"CuPy, {some} processes, spawned, one BLAS thread each": pool(examples / "plain", some, tasks, "spawn", "--lone"),
    }

    def show(told):
        return [hundred_figure(name, row, tasks) for name, row in told.items()]

    return [Row(f"{tasks} tasks", commands, arguments.repeat, show)]


def cupys_hundred_row(arguments, programs):
    """CuPy's pool of a hundred: its first run as a program serves here too."""
    tasks = 4 if arguments.reduced else 100
    name = f"CuPy, {tasks} processes, forked"
    known = next((row for row in programs if row.name == LAST), None)
    if not known:
        command = {name: pool(PACKAGE / "examples/plain", tasks, tasks, "fork")}
        return Row(name, command, arguments.repeat, lambda told: [hundred_figure(name, told[name], tasks)])

    def show(_):
        told = medians(known.runs["plain"])
        return [hundred_figure(name, told if "reason" in told else {**told, "seconds": told["first_s"]}, tasks)]

    return Row(name, {}, 0, show)


def import_rows(arguments):
    def show(told):
        return [figure("import gpuq, over numpy", told["import"], "import_s", "ms", "at most 30", 1e3),
                figure("import gpuq, with what a first program names", told["import"], "in_use_s", "ms", "at most 30", 1e3)]

    return [Row("import", {"import": measuring("import")}, 3 if arguments.reduced else 15, show)]


def job_row(data, arguments, socket):
    seconds = 0.1 if arguments.reduced else 1.0
    python = measuring("job", "--data", data, "--seconds", seconds)
    c = [f"{arguments.prefix}/libexec/gpuq/gpuq-bench", "--contender", "gpuq", "--processes", 1, "--n", 10000,
         "--socket", socket, f"{data}/1/{seconds}"]

    def show(told):
        return [figure(f"small job, {data}, p50 from Python", told["python"], "p50_us", "µs"),
                figure(f"small job, {data}, prepared, p50 from Python", told["prepared"], "p50_us", "µs"),
                figure(f"small job, {data}, p50 from C", told["c"], "p50_us", "µs"),
                figure(f"small job, {data}, Python over C", difference(told), "p50_us", "µs", "at most 15")]

    return Row(f"small job, {data}", {"python": python, "prepared": [*python, "--prepared"], "c": c}, arguments.repeat, show)


def job_rows(arguments, socket):
    return [job_row(data, arguments, socket) for data in ("copies", "device")]


def difference(told):
    for row in (told["python"], told["c"]):
        if "reason" in row:
            return row
    return {"p50_us": told["python"]["p50_us"] - told["c"]["p50_us"], "n": told["python"]["n"]}


def training_figure(rows):
    row = next((row for row in rows if row["program"] == "train"), None)
    if not row:
        return []
    for way in ("gpuq", "plain"):
        if "reason" in row[way]:
            return [figure("training loop, PyTorch's eager time over gpuq's", row[way], "", "×")]
    ratio = {"ratio": row["plain"]["again_s"] / row["gpuq"]["again_s"], "n": row["gpuq"]["n"]}
    return [figure("training loop, PyTorch's eager time over gpuq's", ratio, "ratio", "×", "above 1")]


def figure(what, told, key, unit, goal="", factor=1):
    if "reason" in told:
        return {"figure": what, "unit": unit, "goal": goal, "reason": told["reason"]}
    return {"figure": what, "value": told[key] * factor, "unit": unit, "goal": goal, "n": told["n"]}


# ---- the tables ----


def seconds(told, key):
    if "reason" in told:
        return short(told)
    return f"{told[key]:,.4f}" if key in told else ""


def short(row):
    return "out of memory" if row["reason"].startswith("out of memory") else "–"


def note(row):
    notes = [f"{way}: {row[way]['reason']}" for way in ("gpuq", "plain") if "reason" in row[way]]
    return "; ".join(notes + [f"{way} run {row[way]['n']}×" for way in ("gpuq", "plain") if row[way].get("n") == 1])


def print_table(result):
    print("| program | the plain one's way | whole process, s: gpuq | plain | first run, s: gpuq | plain "
          "| again, s: gpuq | plain | note |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in result["programs"]:
        cells = [seconds(row[way], key) for key in ("whole_s", "first_s", "again_s") for way in ("gpuq", "plain")]
        print(f"| {row['program']} | {row['package']} | {' | '.join(cells)} | {note(row)} |")
    for row in result["figures"]:
        value = f"{row['value']:,.4g} {row['unit']}" if "value" in row else short(row)
        goal = f"goal: {row['goal']} {row['unit']}" if row["goal"] else ""
        once = "run 1×" if row.get("n") == 1 else ""
        notes = "; ".join(filter(None, (goal, row.get("reason"), once)))
        print(f"| **{row['figure']}** | | {value} | | | | | | {notes} |")


# ---- the run ----


class Run:
    """The rows in the order in which they are measured, what was, and until when there is time."""

    def __init__(self, runner, arguments):
        self.runner, self.arguments = runner, arguments
        self.started = time.monotonic()
        want = set(arguments.only)
        self.programs = program_rows(arguments) if "programs" in want else []
        hundred = hundred_rows(arguments) if "hundred" in want else []
        last = [cupys_hundred_row(arguments, self.programs)] if "hundred" in want else []
        self.figures = [*(job_rows(arguments, runner.environment["GPUQ_SOCKET"]) if "job" in want else []),
                        *(import_rows(arguments) if "import" in want else []), *hundred, *last]
        self.rows = [*self.figures[:len(self.figures) - len(last)], *self.programs, *last]

    def passed_s(self):
        return time.monotonic() - self.started

    def left_s(self):
        return self.arguments.budget - self.passed_s()

    def note(self, text):
        print(f"{self.passed_s():6.1f} s  {text}", file=sys.stderr, flush=True)

    def result(self):
        """What is known by now; the rest is there as not reached."""
        order = [program[0] for program in PROGRAMS]
        programs = [shown for row in sorted(self.programs, key=lambda row: order.index(row.name)) for shown in row.shown()]
        figures = [shown for row in self.figures for shown in row.shown()]
        return {"programs": programs, "figures": [*figures, *training_figure(programs)]}

    def save(self):
        if self.arguments.json:
            result_file.write(pathlib.Path(self.arguments.json), self.result())

    def run_in_time(self, command, expected_s):
        """None where the time for all is too short for it; that it was cut short then says nothing about the program."""
        left_s, patience_s = self.left_s(), self.runner.patience_s
        if left_s <= expected_s:
            return None
        told = self.runner.run(*command, patience_s=min(patience_s, left_s))
        cut_short = left_s < patience_s and told.get("reason", "").startswith(NOT_ENDED)
        return None if cut_short else told

    def measure_row(self, row):
        for _ in range(row.repeat):
            for way, command in row.commands.items():
                if not row.wants(way):
                    continue
                told = self.run_in_time(command, row.expected_s(way))
                if not told:
                    self.note(f"{row.name}: {way}: left out, it is {self.arguments.budget:.0f} s in all")
                    continue
                row.runs[way].append(told)
                self.save()
        self.save()
        for shown in row.shown():
            self.note(told_briefly(shown))

    def measure(self):
        """The daemon has served a job before, as one that runs since the machine's start has."""
        self.save()
        self.runner.python(PACKAGE / "examples" / "matmul.py", "--n", 64, "--json")
        for row in self.rows:
            self.measure_row(row)
        return self.result()


def told_briefly(shown):
    if "figure" in shown:
        value = shown["reason"] if "reason" in shown else f"{shown['value']:,.4g} {shown['unit']}"
        return f"{shown['figure']}: {value}"
    times = (f"{way} {shown[way].get('reason') or format(shown[way]['whole_s'], '.3f') + ' s'}" for way in ("gpuq", "plain"))
    return f"{shown['program']}: {', '.join(times)}"


def has_failed(result):
    reasons = [row["gpuq"].get("reason") for row in result["programs"]]
    reasons += [row.get("reason") for row in result["figures"] if row["figure"].startswith(("import", "small"))]
    return any(reason and reason != NOT_REACHED for reason in reasons)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="build/stage")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--json", default=None)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--programs", default="", help="names with commas between; then no figures, but for --only")
    parser.add_argument("--budget", type=float, help="seconds for all; a process that would not fit is left out (480; --reduced: none)")
    parser.add_argument("--patience", type=float, default=150, help="seconds for one process")
    parser.add_argument("--reduced", action="store_true", help="for rightness only")
    arguments = parser.parse_args()
    arguments.only = arguments.only or (["programs"] if arguments.programs else PARTS)
    if set(arguments.only) - set(PARTS):
        parser.error(f"--only: some of {','.join(PARTS)}")
    if arguments.budget is None:
        arguments.budget = float("inf") if arguments.reduced else 480
    if arguments.reduced:
        arguments.repeat = 1
    return arguments


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("python_bench: ended"))  # what was started is ended
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(arguments.prefix, arguments.device, folder)
        try:
            result = Run(Runner(arguments.prefix, daemon.socket, arguments.patience), arguments).measure()
        finally:
            daemon.end()
    print_table(result)
    sys.exit(has_failed(result))


if __name__ == "__main__":
    main()
