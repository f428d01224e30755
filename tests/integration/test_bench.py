# SPDX-License-Identifier: Apache-2.0
"""The benchmark's programs give right results; how fast is for a machine with a GPU to say."""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from harness import place, processes

RUN = place.ROOT / "tests/bench/run.py"

# On a GPU each process makes a context of its own, several times.
pytestmark = [pytest.mark.whole_machine, pytest.mark.timeout(300)]


def run(*arguments):
    process = subprocess.Popen([sys.executable, RUN, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=280)
    finally:
        if process.poll() is None:  # cut off: it ends what it started
            process.terminate()
            try:
                process.communicate(timeout=place.PATIENCE_S)
            finally:
                process.kill()
    assert process.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    run("--prefix", place.STAGE, "--reduced", "--device", place.DEVICE, "--contenders", "own,gpuq", "--json", folder / "bench.json")
    return folder / "bench.json"


@pytest.fixture(scope="module")
def result(report):
    return json.loads(report.read_text())


def done(rows, contender):
    """How many rows; each is of jobs that were checked."""
    mine = [row for row in rows if row["contender"] == contender]
    assert all(row.get("jobs_per_s", 1) > 0 and "error" not in row for row in mine), mine
    return len(mine)


def test_every_contender_does_the_small_job_every_way(result):
    assert done(result["small"], "own") == 2 * 3 * 2  # processes, ways, in flight
    assert done(result["small"], "gpuq") == 2 * 2 * 2


def test_prepared_jobs_are_measured_where_the_goals_ask_for_them(result):
    rows = [(row["processes"], row["way"], row["in_flight"]) for row in result["small"] if row["contender"] == "gpuq-prepared"]
    assert sorted(rows) == sorted((processes, way, n) for way in ("host", "device") for processes, n in ((1, 1), (2, 1), (2, 32)))
    assert done(result["small"], "gpuq-prepared") == 6 and done(result["chain"], "gpuq-prepared") == 4


def test_large_jobs_and_chains_are_right(result):
    assert done(result["large"], "own") == 4 and done(result["large"], "gpuq") == 2
    assert done(result["chain"], "own") == 6 and done(result["chain"], "gpuq") == 4


def test_jobs_are_measured_beside_busy_programs(result):
    assert done(result["busy"], "own") == 2 and done(result["busy"], "gpuq") == 2
    for row in result["busy"]:
        assert row["cores"] > 0
        assert row["busy"] == "0 per core" or row["work_percent"] > 0


def test_short_lived_processes_are_timed_from_the_first_fork(result):
    assert [row["processes"] for row in result["burst"]] == [4, 4]
    assert all(0 < row["burst_s"] for row in result["burst"])


@pytest.mark.skipif(os.getuid() != 0, reason="two users need root")
def test_two_users_are_measured_at_once(result):
    assert done(result["users"], "own") == 2 and done(result["users"], "gpuq") == 2


def test_a_client_is_measured_beside_one_that_fills_the_device(result):
    rows = [row for row in result["latency"] if row["contender"] == "gpuq"]
    assert {row["beside"] for row in rows} == {"nothing", "20 ms kernels"}
    if os.getuid() == 0:
        assert {row["user"] for row in rows} == {"own", "another"}
        assert not [row for row in rows if "error" in row]


def test_cpu_time_and_wake_ups_are_told_by_process(result):
    assert all(row["supervisor_us"] > 0 and row["worker_us"] > 0 for row in result["cpu"])
    assert all(row[f"{role}_sleeps"] >= 0 for row in result["cpu"] for role in ("supervisor", "worker", "clients"))
    assert set(result["idle"]["percent"]) == {"keeper", "supervisor", "worker"}


def test_a_report_is_put_into_the_docs_with_its_curves(report, tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- run.py: begin -->\nof an earlier run\n<!-- run.py: end -->\nafter\n")
    shown = run("--from", report, "--docs", tmp_path)
    text = page.read_text()
    assert "### The small job with copies, one at a time" in text and text.count("\n") > shown.count("\n")
    assert text.startswith("before\n") and text.endswith("after\n") and "of an earlier run" not in text
    for name in ("jobs", "latency"):
        root = xml.etree.ElementTree.parse(tmp_path / f"benchmarks-{name}.svg").getroot()
        assert root.tag.endswith("svg")
        assert len(root.findall("{http://www.w3.org/2000/svg}circle")) >= 2 * 6 * 2  # processes, panels, contenders


def test_a_run_that_was_cut_off_has_left_what_it_measured(result, tmp_path, monkeypatch):
    assert result["not_done"] == []
    monkeypatch.syspath_prepend(RUN.parent)
    bench = importlib.import_module("run")
    kept = bench.Result(argparse.Namespace(only=["chain", "cpu", "idle"], json=tmp_path / "cut.json"),
                        {key: result[key] for key in ("machine", "seconds", "repeats")})
    kept.finish(result["chain"])
    kept.keep(result["cpu"][:1])
    shown = run("--from", tmp_path / "cut.json")
    assert "Interrupted; missing or incomplete: cpu, idle." in shown
    assert "### A chain of 16 launches" in shown and "### CPU time" in shown and "Idle for" not in shown


def test_a_daemon_that_never_gets_ready_is_ended(tmp_path, monkeypatch):
    """It would hold open what the benchmark's output goes to."""
    monkeypatch.syspath_prepend(RUN.parent)
    services = importlib.import_module("services")
    broken = tmp_path / "broken"
    broken.write_text("driver 100\n")  # CUDA_ERROR_NO_DEVICE
    monkeypatch.setattr(services.Daemon, "READY_S", 1)
    with pytest.raises(SystemExit, match="gpuqd is not ready after 1 s"):
        services.Daemon(place.STAGE, "cpu", tmp_path, [f"cpu_broken={broken}"])
    assert not processes.reap_orphans()


def test_prepared_jobs_have_columns_of_their_own_if_they_were_measured(report, tmp_path):
    shown, result = run("--from", report), json.loads(report.read_text())
    assert "| gpuq: p50 µs | prepared: p50 µs |" in shown and re.search(r"chain of 16 launches .* \(prepared [\d.,]+\) \|", shown)
    assert re.search(r"^\| the same, prepared, p50 µs \| [\d.,]+ \| – \| [\d.,]+ \| [\d.,]+ \| 16 \|", shown, re.M)
    for section in ("small", "chain"):  # as runs of before had it
        result[section] = [row for row in result[section] if row["contender"] != "gpuq-prepared"]
    (tmp_path / "old.json").write_text(json.dumps(result))
    shown = run("--from", tmp_path / "old.json")
    assert "prepared:" not in shown and "| the same, prepared, p50 µs | " in shown


@pytest.mark.skipif(place.on_gpu(), reason="the image is for the CPU driver")
def test_a_wrong_result_is_no_figure(tmp_path):
    libexec = place.STAGE / "libexec/gpuq"
    source = tmp_path / "wrong.cu"
    source.write_text("""extern "C" __global__ void add_f32(const float *a, const float *b, float *c, unsigned long long n)
{
        for (unsigned long long i = 0; i < n; i++)
                c[i] = i == n / 2 ? a[i] - b[i] : a[i] + b[i];
}
""")
    subprocess.run([sys.executable, place.ROOT / "kernels/compile-for-cpu.py", libexec / "gpuqd-compiler", "source", libexec, source,
                    tmp_path / "builtin.cpu.so"], check=True, timeout=place.PATIENCE_S)
    answer = subprocess.run([libexec / "gpuq-bench", "--contender", "own", "--driver", libexec / "libgpuq-cpu.so", "--kernels",
                             tmp_path, "copies/1/0.01"], capture_output=True, text=True, timeout=place.PATIENCE_S)
    assert answer.returncode != 0 and answer.stdout == ""
    assert "element 5000 is" in answer.stderr


@pytest.mark.skipif(place.SANITIZED, reason="the interpreter is not built with the sanitizers")
def test_the_table_of_reductions_has_each_length_and_its_sum():
    script = place.ROOT / "tests/bench/reductions.py"
    output = subprocess.run([sys.executable, script, "--prefix", place.STAGE, "--device", place.DEVICE, "--ways", "gpuq", "--n", "1000,70000",
                             "--kernels", "sum_f32,argmax_f64", "--seconds", "0.02"], capture_output=True, text=True, timeout=200, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines()[2:]]
    assert [row[:3] for row in rows] == [[kernel, n, "gpuq"] for kernel in ("sum_f32", "argmax_f64") for n in ("1,000", "70,000")]
    assert float(rows[1][-1]) == pytest.approx(35000, rel=0.01)


@pytest.mark.skipif(place.SANITIZED, reason="the interpreter is not built with the sanitizers")
def test_the_table_of_matrix_products_has_each_type_and_way():
    script = place.ROOT / "tests/bench/library_ops.py"
    output = subprocess.run([sys.executable, script, "--prefix", place.STAGE, "--device", place.DEVICE, "--ways", "gpuq,gpuq-kernels",
                             "--sizes", "64", "--types", "f32,f16", "--seconds", "0.02"], capture_output=True, text=True, timeout=200,
                            check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines()[2:]]
    assert [row[:3] for row in rows] == [[kind, "64", way] for way in ("gpuq", "gpuq-kernels") for kind in ("f32", "f16")]
    assert all(float(row[3].replace(",", "")) > 0 for row in rows)


@pytest.mark.skipif(place.SANITIZED, reason="the interpreter is not built with the sanitizers")
def test_the_table_of_scans_sorts_and_random_numbers():
    script, kinds = place.ROOT / "tests/bench/library_ops.py", ["scan", "sort", "pairs", "uniform", "normal"]
    output = subprocess.run([sys.executable, script, "--prefix", place.STAGE, "--device", place.DEVICE, "--ways", "gpuq", "--sizes", "100",
                             "--types", ",".join(kinds), "--seconds", "0.02"], capture_output=True, text=True, timeout=200, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines()[2:]]
    assert [row[:3] for row in rows] == [[kind, "100", "gpuq"] for kind in kinds]
    assert all(float(row[3].replace(",", "")) > 0 for row in rows)


@pytest.mark.skipif(place.SANITIZED, reason="the interpreter is not built with the sanitizers")
def test_the_table_of_the_fence_has_each_kernel_in_both_ways():
    script = place.ROOT / "tests/bench/fence.py"
    output = subprocess.run([sys.executable, script, "--prefix", place.STAGE, "--device", place.DEVICE, "--kernels", "add,histogram", "--size",
                             "0.01", "--rounds", "3"], capture_output=True, text=True, timeout=200, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines()[2:]]
    assert [row[0] for row in rows] == ["add", "histogram"]
    assert all(float(cell.replace(",", "")) > 0 for row in rows for cell in row[2:4])
