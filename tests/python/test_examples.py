# SPDX-License-Identifier: Apache-2.0
"""Every example, small, against numpy (each compares itself); and what an example and its plain twin have in common."""

import difflib
import importlib.util
import json
import os
import subprocess
import sys

import pytest

from harness import place
from harness.patience import until

PACKAGE = place.ROOT / "client" / "python"
EXAMPLES = PACKAGE / "examples"

SIZES = {
    "add_pool": {"size": 1000, "chunks": 4, "processes": 2},
    "affine": {"n": 37},
    "chunk_sum": {"n": 10_001, "processes": 3},
    "double": {"n": 1000},
    "executor": {"n": 40, "processes": 2},
    "hundred_tasks": {"n": 500, "tasks": 12, "processes": 4},
    "matmul": {"n": 45},
    "polynomial": {"n": 1000},
    "postprocess": {"n": 10_001, "chunks": 4, "processes": 2},
    "producer_consumer": {"size": 1000, "sets": 4},
    "refine": {"n": 1000, "steps": 4},
    "replay": {"n": 1000, "replays": 7, "together": 3},
    "solve_linear": {"n": 1000},
    "split_devices": {"n": 10_001},
    "squares": {"n": 1000, "batches": 3},
    "train": {"iterations": 50, "together": 20},
    "two_streams": {"n": 1000},
}
POOLS = ["add_pool", "chunk_sum", "double", "hundred_tasks", "postprocess", "producer_consumer", "refine"]
PLAIN_NEEDS = {"executor": None, "polynomial": "numba", **dict.fromkeys(("solve_linear", "squares", "affine", "train"), "torch")}


def environment(daemon):
    return {**daemon.environment(), "GPUQ_LIBRARY": str(place.STAGE / "lib" / "libgpuq.so.0"),
            "PYTHONPATH": str(PACKAGE / "src"), "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}  # sizes are small on purpose


def told_by(daemon, path, *arguments, **sizes):
    """What the example says of itself, as JSON; it fails where numpy disagrees."""
    options = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    ended = subprocess.run([sys.executable, str(path), "--json", *arguments, *options], env=environment(daemon),
                           capture_output=True, text=True, timeout=place.PATIENCE_S, stdin=subprocess.DEVNULL)
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr, ended.stderr
    assert ended.stdout.count("\n") == 1
    return json.loads(ended.stdout)


def test_each_example_is_tested_and_has_its_plain_twin():
    for folder in (EXAMPLES, EXAMPLES / "plain"):
        assert {path.stem for path in folder.glob("*.py")} - {"common"} == set(SIZES)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_example(lend_gpuqd, name):
    gpuqd = lend_gpuqd(devices=None) if name == "split_devices" else lend_gpuqd()  # all that there are
    told = told_by(gpuqd, EXAMPLES / f"{name}.py", "--repeat", "2", **SIZES[name])
    assert (told["program"], told["way"]) == (name, "gpuq")
    assert 0 < told["first_s"] and 0 < told["again_s"]
    assert SIZES[name].items() <= told["sizes"].items()


@pytest.mark.parametrize("name", POOLS)
def test_example_with_spawned_processes(gpuqd, name):
    told_by(gpuqd, EXAMPLES / f"{name}.py", start="spawn", **SIZES[name])


def test_example_with_a_forkserver(gpuqd):
    told_by(gpuqd, EXAMPLES / "hundred_tasks.py", start="forkserver", **SIZES["hundred_tasks"])


@pytest.mark.cpu
def test_work_is_split_over_several_devices(start_gpuqd):
    daemon = start_gpuqd(cpu_devices=2)
    told_by(daemon, EXAMPLES / "split_devices.py", **SIZES["split_devices"])
    with daemon.connect() as client:
        assert {worker.device for worker in client.status().workers} == {0, 1}


@pytest.mark.parametrize("name", sorted(SIZES))
def test_plain_twin_takes_the_same_sizes(gpuqd, name):
    """Where its package is, and a GPU (the executor's twin needs neither)."""
    package = PLAIN_NEEDS.get(name, "cupy")
    if package and not place.on_gpu():
        pytest.skip("no GPU in this run")
    if package and not importlib.util.find_spec(package):
        pytest.skip(f"no {package} here")
    told = told_by(gpuqd, EXAMPLES / "plain" / f"{name}.py", **SIZES[name])
    assert (told["program"], told["way"]) == (name, "plain")


def test_one_changed_line_turns_a_process_pool_into_gpuqs_executor():
    ours, plain = ((EXAMPLES / folder / "executor.py").read_text().splitlines() for folder in ("", "plain"))
    changed = [line for line in difflib.ndiff(plain, ours) if line[0] in "+-"]
    assert changed == ["- from concurrent.futures import ProcessPoolExecutor",
                       "+ from gpuq import Executor as ProcessPoolExecutor"]


def test_an_example_tells_its_result_in_one_line(gpuqd):
    ended = subprocess.run([sys.executable, str(EXAMPLES / "polynomial.py"), "--n", "4"], env=environment(gpuqd),
                           capture_output=True, text=True, timeout=place.PATIENCE_S)
    assert ended.stdout.startswith("polynomial (gpuq): 30, as numpy says; "), ended.stderr


def test_bench_degrades_with_a_reason(tmp_path):
    """The side-by-side run: where a plain program's package is missing its row says so, and the others have times."""
    bench = place.ROOT / "tests" / "bench" / "python_bench.py"
    ended = subprocess.run(
        [sys.executable, str(bench), "--prefix", str(place.STAGE), "--device", place.DEVICE, "--reduced",
         "--programs", "executor,matmul", "--json", str(tmp_path / "table.json")],
        capture_output=True, text=True, timeout=4 * place.PATIENCE_S, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = {row["program"]: row for row in json.loads((tmp_path / "table.json").read_text())["programs"]}
    assert rows["executor"]["gpuq"]["first_s"] > 0 and rows["executor"]["plain"]["first_s"] > 0
    assert rows["matmul"]["gpuq"]["first_s"] > 0
    if not importlib.util.find_spec("cupy"):
        assert "No module named 'cupy'" in rows["matmul"]["plain"]["reason"]
    assert "| matmul |" in ended.stdout


class Recorder:
    """A runner whose processes all tell the same at once. Keeps what was on disk before each."""

    def __init__(self, path):
        self.path = path
        self.told = {name: 1.0 for name in ("whole_s", "first_s", "again_s", "seconds", "p50_us", "import_s", "in_use_s")}
        self.environment, self.patience_s, self.before = {"GPUQ_SOCKET": "/no/such/socket"}, 1, []

    def python(self, *command):
        pass

    def run(self, *command, patience_s):
        self.before.append(json.loads(self.path.read_text()))
        return dict(self.told)


def not_reached(result):
    told = [row["reason"] for row in result["figures"] if "reason" in row]
    told += [row[way]["reason"] for row in result["programs"] for way in ("gpuq", "plain") if "reason" in row[way]]
    return told.count("not reached")


def bench_run(monkeypatch, path, *options):
    monkeypatch.syspath_prepend(place.ROOT / "tests" / "bench")
    monkeypatch.setattr(sys, "argv", ["python_bench.py", "--json", str(path), *options])
    import python_bench
    recorder = Recorder(path)
    return python_bench, recorder, python_bench.Run(recorder, python_bench.parse())


def test_bench_leaves_what_it_measured_after_each_process(tmp_path, monkeypatch, capsys):
    _, recorder, run = bench_run(monkeypatch, tmp_path / "table.json", "--repeat", "1")
    result = run.measure()
    left = [not_reached(before) for before in recorder.before]
    assert len(left) == 2 * 3 + 15 + 10 + 2 * 17
    assert left == sorted(left, reverse=True) and left[0] == 8 + 2 + 11 + 34 + 1 and left[-1] == 2  # and CuPy's pool of a hundred
    assert not_reached(result) == 0 and result == json.loads((tmp_path / "table.json").read_text())
    assert "hundred_tasks: gpuq 1.000 s, plain 1.000 s" in capsys.readouterr().err


def test_bench_says_what_did_not_fit_into_its_time(tmp_path, monkeypatch, capsys):
    bench, recorder, run = bench_run(monkeypatch, tmp_path / "table.json", "--budget", "0", "--only", "import,programs")
    result = run.measure()
    assert recorder.before == [] and not_reached(result) == 2 + 34 + 1 == not_reached(json.loads((tmp_path / "table.json").read_text()))
    assert not bench.has_failed(result)
    assert "matmul: gpuq: left out, it is 0 s in all" in capsys.readouterr().err


class Lasting(Recorder):
    """Its processes last as long as said, by the run's own clock, and are ended where that is longer than there is patience."""

    def __init__(self, path, run, lasts):
        super().__init__(path)
        self.patience_s, self.lasts, self.passed_s = 8, iter(lasts), 0
        run.runner, run.passed_s = self, lambda: self.passed_s

    def run(self, *command, patience_s):
        lasts = next(self.lasts)
        self.passed_s += min(lasts, patience_s)
        return {**self.told, "whole_s": lasts} if lasts <= patience_s else {"reason": f"not ended after {patience_s:.0f} s"}


@pytest.mark.parametrize("lasts, gpuq, plain, failed", [
    ([2, 2, 100], {"n": 1}, {"n": 1}, False),
    ([4, 100], {"n": 1}, {"reason": "not reached"}, False),
    ([3, 2, 1, 100], {"n": 2}, {"n": 1}, False),
    ([100, 1], {"reason": "not ended after 8 s"}, {"n": 1}, True),
], ids=["second", "first", "of the other", "no patience left"])
def test_bench_leaves_out_what_its_time_cut_short(tmp_path, monkeypatch, capsys, lasts, gpuq, plain, failed):
    """The good runs count. What lasts longer than any one process may is a failure all the same."""
    bench, _, run = bench_run(monkeypatch, tmp_path / "table.json", "--budget", "10", "--programs", "matmul")
    Lasting(tmp_path / "table.json", run, lasts)
    result = run.measure()
    row, = result["programs"]
    assert gpuq.items() <= row["gpuq"].items() and plain.items() <= row["plain"].items()
    assert bench.has_failed(result) == failed
    assert "left out, it is 10 s in all" in capsys.readouterr().err


HUNGRY = """
import multiprocessing, sys

def begin():
    raise MemoryError("Out of memory allocating 80,384 bytes")

if __name__ == "__main__":
    with multiprocessing.Pool(2, begin) as pool:
        pool.map(abs, range(4))
"""


def test_bench_has_a_row_for_a_contender_without_memory(tmp_path, monkeypatch, capsys):
    """Whether it ends, or goes on for ever with processes that fail as they start, which then end with it."""
    monkeypatch.syspath_prepend(place.ROOT / "tests" / "bench")
    import python_bench
    runner = python_bench.Runner(place.STAGE, "/no/such/socket", 2)
    (tmp_path / "hungry.py").write_text(HUNGRY)
    while (endless := runner.python(tmp_path / "hungry.py"))["reason"].startswith("not ended"):  # nor begun
        runner.patience_s *= 2
    runner.patience_s = place.PATIENCE_S
    ended = runner.python("-c", "raise SystemExit('cupy.cuda.memory.OutOfMemoryError: Out of memory\\n(total 1)')")
    silent = runner.python("-c", "print('no JSON')")
    assert endless["reason"] == "out of memory: MemoryError: Out of memory allocating 80,384 bytes"
    assert ended["reason"] == "out of memory: cupy.cuda.memory.OutOfMemoryError: Out of memory"
    assert "no JSON" in silent["reason"]
    until(lambda: not subprocess.run(["pgrep", "-f", str(tmp_path / "hungry.py")], capture_output=True).stdout, "its processes to end")
    python_bench.print_table({"programs": [{"program": "hundred", "package": "CuPy", "gpuq": {"whole_s": 1.0, "n": 3}, "plain": ended}],
                              "figures": [python_bench.figure("pool", endless, "seconds", "s")]})
    told = capsys.readouterr().out
    assert "| hundred | CuPy | 1.0000 | out of memory |" in told and "| **pool** | | out of memory |" in told
