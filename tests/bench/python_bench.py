#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python examples beside the plain programs they replace, and the package's own figures.

    python3 tests/bench/python_bench.py --prefix build/stage [--device gpu] [--json FILE] [--reduced]

One run, one machine; medians of --repeat processes of each row, contenders in turn. A row that cannot be had (a package
is missing, say, or there is no memory for it) gives its reason. The interpreter that runs this runs the programs; those need numpy, the
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

from services import Daemon

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "client" / "python"
SLOW_S = 20  # what takes longer is run once

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

    def run(self, *command):
        """What it told, with its whole time in `whole_s`; or why there is nothing, in `reason`."""
        start = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], env=self.environment, text=True, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=self.patience_s)
            whole = time.perf_counter() - start
        except subprocess.TimeoutExpired:
            out, err = "", end_all_of(process)
            return {"reason": reason(err, f"not ended after {self.patience_s:.0f} s")}
        if process.returncode:
            return {"reason": reason(err, last_line(err)[:200] or f"exit status {process.returncode}")}
        try:
            return {**json.loads(last_line(out)), "whole_s": whole}
        except ValueError:
            return {"reason": f"what it told is no JSON: {last_line(out)[:200]!r}"}

    def python(self, path, *options):
        return self.run(sys.executable, path, *options)

    def in_turn(self, contenders, repeat):
        """Medians of several commands run in turn: {name: told}. What failed or is slow is run once."""
        runs = {name: [] for name in contenders}
        for _ in range(repeat):
            for name, command in contenders.items():
                done = runs[name]
                if not done or ("reason" not in done[0] and done[0]["whole_s"] < SLOW_S):
                    done.append(self.python(*command))
        return {name: medians(done) for name, done in runs.items()}


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
    good = [run for run in runs if "reason" not in run]
    if len(good) < len(runs):
        return next(run for run in runs if "reason" in run)
    row = {key: statistics.median(run[key] for run in good)
           for key, value in good[0].items() if isinstance(value, (int, float))}
    return {**row, "n": len(good)}


def as_options(sizes):
    return [word for name, value in sizes.items() for word in (f"--{name}", value)]


def measure_program(runner, program, arguments):
    name, package, again, small = program
    options = ["--json", "--repeat", 2 if arguments.reduced else again, *as_options(small if arguments.reduced else {})]
    examples = PACKAGE / "examples"
    row = runner.in_turn({"gpuq": [examples / f"{name}.py", *options],
                          "plain": [examples / "plain" / f"{name}.py", *options]}, arguments.repeat)
    for told in row.values():
        if "again_s" in told:
            told["whole_s"] -= told["again_s"] * (int(options[2]) - 1)
    return {"program": name, "package": package, **row}


# ---- figures ----


def hundred_figures(runner, arguments, programs):
    """CuPy's pool of a hundred takes most of a minute: its first run as a program serves here too."""
    tasks = 4 if arguments.reduced else 100
    measure, examples = HERE / "python_measure.py", PACKAGE / "examples"

    def pool(folder, processes, start, *options):
        return [measure, "hundred", folder, "--processes", processes, "--tasks", tasks, "--start", start, *options]

    some = 2 if arguments.reduced else 16
    known = next((row["plain"] for row in programs if row["program"] == "hundred_tasks"), None)
    told = runner.in_turn({
        f"gpuq, {tasks} processes, spawned": pool(examples, tasks, "spawn"),
        f"gpuq, {tasks} processes, spawned, one BLAS thread each": pool(examples, tasks, "spawn", "--lone"),
        f"numpy alone, {tasks} processes, spawned": pool("-", tasks, "spawn"),
        f"numpy alone, {tasks} processes, spawned, one BLAS thread each": pool("-", tasks, "spawn", "--lone"),
        f"gpuq, {tasks} processes, forkserver": pool(examples, tasks, "forkserver"),
        f"gpuq, {tasks} processes, forked": pool(examples, tasks, "fork"),
        f"numpy alone, {tasks} processes, forked": pool("-", tasks, "fork"),
        f"CuPy, {some} processes, forked": pool(examples / "plain", some, "fork"),
        f"CuPy, {some} processes, spawned": pool(examples / "plain", some, "spawn"),
        f"CuPy, {some} processes, spawned, one BLAS thread each": pool(examples / "plain", some, "spawn", "--lone"),
        **({} if known else {f"CuPy, {tasks} processes, forked": pool(examples / "plain", tasks, "fork")}),
    }, arguments.repeat)
    if known:
        told[f"CuPy, {tasks} processes, forked"] = known if "reason" in known else {**known, "seconds": known["first_s"]}
    goals = {"forked": "at most 0.3"}
    return [figure(f"{tasks} tasks, {name}, to the last result", row, "seconds", "s",
                   goals.get(name.rsplit(", ", 1)[1], "at most 1.5") if name.startswith("gpuq") else "") for name, row in told.items()]


def import_figures(runner, arguments):
    told = runner.in_turn({"import": [HERE / "python_measure.py", "import"]}, 3 if arguments.reduced else 15)["import"]
    return [figure("import gpuq, over numpy", told, "import_s", "ms", "at most 30", 1e3),
            figure("import gpuq, with what a first program names", told, "in_use_s", "ms", "at most 30", 1e3)]


def job_figures(runner, arguments):
    seconds = 0.1 if arguments.reduced else 1.0
    figures = []
    for data in ("copies", "device"):
        python = [HERE / "python_measure.py", "job", "--data", data, "--seconds", seconds]
        c = [f"{arguments.prefix}/libexec/gpuq/gpuq-bench", "--contender", "gpuq", "--processes", 1, "--n", 10000,
             "--socket", runner.environment["GPUQ_SOCKET"], f"{data}/1/{seconds}"]
        runs = {"python": [], "prepared": [], "c": []}
        for _ in range(arguments.repeat):
            runs["python"].append(runner.python(*python))
            runs["prepared"].append(runner.python(*python, "--prepared"))
            runs["c"].append(runner.run(*c))
        told = {name: medians(done) for name, done in runs.items()}
        figures += [figure(f"small job, {data}, p50 from Python", told["python"], "p50_us", "µs"),
                    figure(f"small job, {data}, prepared, p50 from Python", told["prepared"], "p50_us", "µs"),
                    figure(f"small job, {data}, p50 from C", told["c"], "p50_us", "µs"),
                    figure(f"small job, {data}, Python over C", difference(told), "p50_us", "µs", "at most 15")]
    return figures


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


def measure(runner, arguments):
    """The daemon has served a job before, as one that runs since the machine's start has."""
    runner.python(PACKAGE / "examples" / "matmul.py", "--n", 64, "--json")
    names = set(arguments.programs.split(",")) if arguments.programs else None
    programs = [measure_program(runner, program, arguments) for program in PROGRAMS if not names or program[0] in names]
    figures = training_figure(programs)
    if arguments.figures or not names:
        figures = [*hundred_figures(runner, arguments, programs), *import_figures(runner, arguments),
                   *job_figures(runner, arguments), *figures]
    return {"programs": programs, "figures": figures}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="build/stage")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--json", default=None)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--programs", default="", help="names with commas between; then no figures, but for --figures")
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--patience", type=float, default=150, help="seconds for one process")
    parser.add_argument("--reduced", action="store_true", help="for rightness only")
    arguments = parser.parse_args()
    if arguments.reduced:
        arguments.repeat = 1

    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(arguments.prefix, arguments.device, folder)
        try:
            result = measure(Runner(arguments.prefix, daemon.socket, arguments.patience), arguments)
        finally:
            daemon.end()

    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=1))
    print_table(result)
    failed = any("reason" in row["gpuq"] for row in result["programs"])
    sys.exit(failed or any("reason" in row for row in result["figures"] if row["figure"].startswith(("import", "small"))))


if __name__ == "__main__":
    main()
