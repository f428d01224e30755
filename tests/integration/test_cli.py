# SPDX-License-Identifier: Apache-2.0
"""gpuq, the command line: each verb, each exit code, JSON, NumPy files, and what is wrong said plainly."""

import json
import os
import re
import signal
import subprocess

import numpy
import pytest

from harness import kernels, place
from harness.client import Job, Out, i32
from harness.patience import until
from harness.terminal import on_terminal

OK, JOB_FAILED, USAGE, NO_DAEMON, NO_JOB, DENIED, TIMEOUT = 0, 1, 2, 3, 4, 5, 124
VERBS = ["status", "kernels", "run", "queue", "explain", "trace", "cancel", "wait", "fetch", "history", "report", "metrics", "top", "doctor"]
TEXT_VERBS = ["metrics", "top", "trace"]  # they have no --json

SOURCE = kernels.BASIC + r"""
#ifndef FACTOR
#define FACTOR 3
#endif
extern "C" __global__ void times(const float *x, float *y, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                y[i] = FACTOR * x[i];
}

extern "C" __global__ void hello(int n)
{
        printf("hello %d\n", n);
}

extern "C" __global__ void shape(unsigned *out)
{
        if (blockIdx.x + blockIdx.y + blockIdx.z + threadIdx.x + threadIdx.y + threadIdx.z == 0) {
                out[0] = gridDim.x; out[1] = gridDim.y; out[2] = gridDim.z;
                out[3] = blockDim.x; out[4] = blockDim.y; out[5] = blockDim.z;
        }
}
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "kernels.cu"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def save(tmp_path):
    """save("a", array): an .npy file."""
    def save(name, array):
        path = tmp_path / f"{name}.npy"
        numpy.save(path, array)
        return path
    return save


def assert_ends(ended, code, *words):
    """With this code, and these words on standard error."""
    assert ended.returncode == code, (ended.stdout, ended.stderr)
    for word in words:
        assert str(word) in ended.stderr, ended.stderr


def document(ended, code=OK):
    assert ended.returncode == code, (ended.stdout, ended.stderr)
    value = json.loads(ended.stdout)
    assert value["version"] == 1
    return value


def run_ok(daemon, *arguments):
    ended = daemon.run("run", *arguments)
    assert_ends(ended, OK)
    return ended


# ---- usage, without a daemon ----

def gpuq(*arguments, **variables):
    environment = {**os.environ, "GPUQ_SOCKET": "/nonexistent/gpuqd.sock", **variables}
    return subprocess.run([place.program("gpuq"), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=place.PATIENCE_S, env=environment)


def test_help_lists_the_verbs_and_each_verb_has_its_own():
    text = gpuq("--help")
    assert text.returncode == OK and not text.stderr
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", text.stdout, re.M)
        ended = gpuq(verb, "--help")
        assert ended.returncode == OK and ended.stdout.startswith(f"Usage: gpuq {verb} ")
        assert ("--json" in ended.stdout) == (verb not in TEXT_VERBS)


def test_the_version_is_told():
    assert re.match(r"gpuq \d+\.\d+", gpuq("--version").stdout)


@pytest.mark.parametrize("arguments, words", [
    ([], "Usage: gpuq"),
    (["--frob"], "--frob"),
    (["--socket"], "--socket"),
    (["stauts"], "did you mean `status'?"),
    (["frobnicate"], "unknown verb `frobnicate'"),
    (["status", "--frob"], "unknown option `--frob'"),
    (["run", "--gird", "3", "builtin:add_f32"], "unknown option `--gird'; did you mean `--grid'?"),
    (["run", "--check", "-maxregcount=3", "builtin:add_f32"], "unknown option `-maxregcount'; did you mean `--maxrregcount'?"),
    (["run", "--tiemout=3", "builtin:add_f32"], "unknown option `--tiemout'; did you mean `--timeout'?"),
    (["status", "now"], "unexpected argument"),
    (["queue", "--user", "no-such-user!"], "--user `no-such-user!': this machine has no such user"),
    (["cancel"], "expected job ids, --all or --slurm-job"),
    (["cancel", "1.1", "--all"], "expected job ids, --all or --slurm-job"),
    (["cancel", "one"], "`one' is not a job id"),
    (["wait"], "expected one job id"),
    (["explain"], "expected one job id"),
    (["explain", "one"], "`one' is not a job id"),
    (["wait", "1.1", "1.2"], "expected one job id"),
    (["run"], "expected FILE:KERNEL"),
    (["run", "add"], "`add': expected FILE:KERNEL"),
    (["run", "--grid", "0", "builtin:add_f32"], "--grid `0'"),
    (["run", "--block", "1,2,3,4", "builtin:add_f32"], "--block `1,2,3,4'"),
    (["run", "--timeout", "soon", "builtin:add_f32"], "--timeout `soon'"),
    (["run", "--priority", "101", "builtin:add_f32"], "--priority `101'"),
    (["run", "builtin:add_f32", "u64:1", "u64:2", "f32:abc"], "argument 3 `f32:abc': not a number"),
    (["run", "builtin:add_f32", "u8:256"], "argument 1 `u8:256': out of range for u8"),
    (["run", "builtin:add_f32", "u64:-1"], "argument 1 `u64:-1': out of range for u64: 0 to 18446744073709551615"),
    (["run", "builtin:add_f32", "u64:-x"], "argument 1 `u64:-x': not a number"),
    (["run", "--grid", "4294967296", "builtin:add_f32"], "--grid `4294967296': expected X[,Y[,Z]], each from 1 to 4294967295"),
    (["run", "builtin:add_f32", "a.npy"], "argument 1 `a.npy': expected in:FILE"),
    (["run", "builtin:add_f32", "out:y.npy:f9:3"], "unknown dtype `f9'"),
    (["run", "builtin:add_f32", "in:/nonexistent/a.npy"], "/nonexistent/a.npy: cannot open"),
    (["run", "builtin:add_f32", "out:/nonexistent/y.npy:f8:3"], "/nonexistent/y.npy: cannot write"),
    (["run", "builtin:add_f32", "out:/tmp/y.npy:f8:3", "out:/tmp/y.npy:f8:3"],
     "argument 2 `out:/tmp/y.npy:f8:3': argument 1 already writes this file"),
])
def test_bad_usage_exits_2_and_says_why(arguments, words):
    ended = gpuq(*arguments)
    assert_ends(ended, USAGE, words)
    assert not ended.stdout


@pytest.mark.parametrize("arguments", [["status"], ["queue"], ["cancel", "1.1"], ["cancel", "--all"],
                                       ["wait", "1.1"], ["run", "builtin:sum_f32"]])
def test_a_daemon_that_is_not_there_exits_3(arguments):
    assert_ends(gpuq(*arguments), NO_DAEMON, "/nonexistent/gpuqd.sock")
    assert_ends(gpuq("--socket", "/nonexistent/other.sock", *arguments), NO_DAEMON, "/nonexistent/other.sock")
    assert_ends(gpuq(*arguments, "--socket=/nonexistent/other.sock"), NO_DAEMON, "/nonexistent/other.sock")


def test_an_output_that_cannot_be_printed_is_a_failure():
    with open("/dev/full", "w") as full:
        ended = subprocess.run([place.program("gpuq"), "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert_ends(ended, JOB_FAILED, "No space left")


# ---- NumPy files, refused before the daemon is asked ----

def refuse_file(path, *words):
    ended = gpuq("run", "builtin:sum_f64", f"in:{path}")
    assert_ends(ended, USAGE, f"argument 1 `in:{path}': {path}: ", *words)


def test_a_file_that_is_no_npy_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    for content in (b"", b"not one", b"\x93NUMPX\x01\x00v\x00", b"PK\x03\x04" + bytes(100)):
        path.write_bytes(content)
        refuse_file(path, "not an NPY file")
    refuse_file(tmp_path, "cannot read: Is a directory")


def test_a_file_cut_anywhere_is_refused(tmp_path, save):
    whole = save("a", numpy.arange(5.0)).read_bytes()
    path = tmp_path / "cut.npy"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        ended = gpuq("run", "builtin:sum_f64", f"in:{path}")
        assert ended.returncode == USAGE, length
    refuse_file(path, "too short: it holds 39 bytes of data, but its header declares 40")
    path.write_bytes(whole + b"x")
    refuse_file(path, "too long: it holds 41 bytes of data, but its header declares 40")


@pytest.mark.parametrize("array, words", [
    (numpy.zeros(3, ">f8"), "big-endian (`>f8')"),
    (numpy.array(["a", "bc"]), "its dtype is `<U2'; expected one of bool, int8"),
    (numpy.zeros(3, "M8[ns]"), "its dtype is `<M8[ns]'"),
    (numpy.zeros(3, [("a", "f4"), ("b", "i4")]), "records"),
    (numpy.zeros(3, numpy.longdouble), "its dtype is `<f16'"),
])
def test_other_dtypes_are_refused(save, array, words):
    refuse_file(save("a", array), words)


def test_python_objects_are_refused(tmp_path):
    path = tmp_path / "o.npy"
    numpy.save(path, numpy.array([None, {}], dtype=object), allow_pickle=True)
    refuse_file(path, "Python objects")


# ---- status, kernels ----

def test_status_as_tables_and_as_json(gpuqd):
    text = gpuqd.run("status")
    assert_ends(text, OK)
    for heading in ("DEV", "MEM USED", "SHARE", "Your limits:", "gpuqd ", "driver ", "0 waiting, 0 running"):
        assert heading in text.stdout
    assert "\x1b" not in text.stdout
    internals = ("CONTEXTS", "COALESCED", "IN PLACE", "GRAPHS", "QUANTA", "WEIGHT")
    verbose = gpuqd.run("status", "--verbose").stdout
    assert all(heading in verbose and heading not in text.stdout for heading in internals)

    status = document(gpuqd.run("status", "--json"))
    assert status["state"] == "ready" and status["queued"] == status["running"] == 0
    assert status["driver"] == ("cuda" if place.on_gpu() else "cpu")
    assert set(status) == {"version", "daemon", "driver", "driver_version", "state", "uptime_us", "lacks", "queued",
                           "running", "devices", "workers", "users", "isolation", "history_problem", "history_lost", "uid", "limits",
                           "slurm_jobs"}
    assert set(status["devices"][0]) == {"index", "name", "uuid", "pci", "state", "drained", "memory_total",
                                         "memory_arenas", "memory_used", "queued", "running", "quanta", "overruns", "xids"}
    assert status["devices"][0]["state"] == "ready"
    for user in status["users"]:
        assert set(user) == {"uid", "user", "weight", "share", "gpu_seconds", "sessions", "queued", "running",
                             "modules", "arena_bytes", "device_bytes", "usage_seconds", "window_seconds", "done", "failed",
                             "cancelled", "waited_each_us", "sms"}


def test_status_has_how_long_jobs_waited(start_gpuqd):
    gpuqd = start_gpuqd()
    client = gpuqd.connect()

    def waited():
        (user,) = [user for user in document(gpuqd.run("status", "--json"))["users"] if user["uid"] == client.welcome.uid]
        return user["waited_each_us"]
    assert waited() is None
    module = client.load(kernels.BASIC)
    gate = kernels.GateJob(client, module)
    late = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    gate.open()
    late_us = client.wait(late).waited_us
    spread = waited()
    assert set(spread) == {"median", "p95", "p99"} and spread["median"] <= spread["p95"] <= spread["p99"]
    assert 0.8 * late_us <= spread["p99"] <= 1.2 * late_us + 1


def test_status_shows_your_limits_and_what_is_left_of_each(start_gpuqd):
    gpuqd = start_gpuqd(jobs=50, arena_bytes="8M", gpu_seconds=3600)
    client = gpuqd.connect()
    arena = client.arena(1 << 20)
    status = document(gpuqd.run("status", "--json"))
    limits = {limit["key"]: limit for limit in status["limits"]}
    assert list(limits) == ["sessions", "jobs", "queued_bytes", "arena_bytes", "device_bytes", "modules", "detached_jobs",
                            "detached_bytes", "gpu_seconds"]
    for limit in limits.values():
        assert set(limit) == {"uid", "key", "limit", "used", "left"} and limit["uid"] == status["uid"] == client.welcome.uid
    assert (limits["jobs"]["limit"], limits["jobs"]["used"], limits["jobs"]["left"]) == (50, 0, 50)
    assert limits["sessions"]["used"] == 2
    held = limits["arena_bytes"]
    assert held["used"] >= arena.size and held["left"] <= held["limit"] - held["used"] and held["limit"] == 8 << 20
    assert limits["device_bytes"]["limit"] is None
    assert (limits["gpu_seconds"]["limit"], limits["gpu_seconds"]["left"]) == (3600, 3600)

    text = gpuqd.run("status").stdout
    assert "gpuqd's memory for waiting jobs" in text and "size of detached jobs on disk" in text
    assert re.search(r"^jobs +0 +50 +50 unfinished jobs$", text, re.M), text
    assert re.search(r"^gpu_seconds +0 s +3600 s +3600 s ", text, re.M), text


def test_status_shows_the_worker_that_ran_a_job(gpuqd, save):
    run_ok(gpuqd, "builtin:add_f32", *2 * [f"in:{save('a', numpy.ones(5, 'f4'))}"],
           f"out:{os.devnull}:f4:5", "u64:5")
    (worker,) = document(gpuqd.run("status", "--json"))["workers"]
    assert set(worker) == {"pid", "device", "uid", "state", "memory", "contexts", "running", "jobs", "express", "counters"}
    assert set(worker["counters"]) == {"batches", "coalesced", "in_place", "staged_by_kernel", "staged_by_copy",
                                       "graph_hits", "graph_misses", "graph_evictions", "direct"}
    assert worker["contexts"] == 1 and worker["jobs"] >= 1
    assert str(worker["pid"]) in gpuqd.run("status", "--verbose").stdout


def test_kernels_lists_the_builtin_ones():
    text = gpuq("kernels")  # without a daemon
    assert_ends(text, OK)
    assert text.stdout.startswith("KERNEL")
    assert re.search(r"^add_f64 +in:a:f64:n in:b:f64:n out:c:f64:n u64:n +c\[i\] = .* +any grid and block$", text.stdout, re.M), text.stdout
    names = [row.split()[0] for row in text.stdout.splitlines()[1:]]
    assert names == sorted(names)
    assert not gpuq("kernels", "-h").stdout.startswith("KERNEL")

    listed = {kernel["name"]: kernel for kernel in document(gpuq("kernels", "--json"))["kernels"]}
    assert {"gemm_f32", "divide_f64", "sum_of_squares_f64"} <= set(listed)
    scale = listed["scale_f32"]
    assert set(scale) == {"name", "text", "parameters"} and scale["text"]
    assert [parameter["kind"] for parameter in scale["parameters"]][:3] == ["f32", "pointer", "pointer"]


def rows_on_terminal(columns, *arguments, socket="/nonexistent/gpuqd.sock", locale="C.UTF-8"):
    return on_terminal(columns, "--socket", socket, *arguments, LC_ALL=locale).splitlines()


@pytest.mark.parametrize("columns", [60, 74, 80, 100, 132])
def test_kernels_breaks_lines_between_words(columns):
    rows = rows_on_terminal(columns, "kernels")
    words = set(gpuq("kernels").stdout.split())
    assert max(map(len, rows)) <= columns
    assert [word for row in rows for word in row.split() if word not in words] == []
    assert columns < 80 or sum("grid" in row for row in rows) >= 18


def test_kernels_keeps_to_80_columns_where_characters_are_escaped():
    rows = rows_on_terminal(80, "kernels", locale="C")
    assert any("\\xc3" in row for row in rows) and max(map(len, rows)) <= 80


def test_status_and_queue_keep_to_80_columns(drained, source):
    process = start_gpuq(drained, "run", f"{source}:hello", "i32:1")
    try:
        reason = first_line(process).split(": ", 2)[2]
        for verb, kept in (("status", {"STATE", "FREE", "WAITING", "RUNNING", "USER", "SHARE", "LEFT"}),
                           ("queue", {"ID", "USER", "STATE", "REASON", "WAITED", "DEV"})):
            rows = rows_on_terminal(80, verb, socket=drained.socket)
            words = " ".join(rows).split()
            assert max(map(len, rows)) <= 80 and kept <= set(words)
            assert set(reason.split()) - {"device", "0", "is"} <= set(words), rows
            assert "UUID" not in words
    finally:
        process.kill()
        process.communicate()


# ---- run ----

def test_a_builtin_kernel_gives_numpys_answer(gpuqd, save, tmp_path):
    random = numpy.random.default_rng(3)
    a, b = random.random(10007), random.random(10007)
    ended = run_ok(gpuqd, "builtin:add_f64", f"in:{save('a', a)}", f"in:{save('b', b)}",
                   f"out:{tmp_path / 'c.npy'}:f64:10007", "u64:10007")
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "c.npy"), a + b)
    for word in ("add_f64: read ", ", load ", ", waited ", ", ran ", ", write ", ", device 0"):
        assert word in ended.stdout
    told = re.sub(r"gpuq: (job \S+ is (waiting: .*|running(: .*)?)|\S+ is not loaded yet.*|job \S+ has not ended yet.*)\n", "", ended.stderr)
    assert not told  # but what a slow machine's user is told after a second
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npy", "c.npy"]


def test_a_kernel_from_source_with_a_macro(gpuqd, source, save, tmp_path):
    x = numpy.arange(1000, dtype="f4").reshape(10, 100)
    for options, factor in (([], 3), (["-DFACTOR=7"], 7), (["-D", "FACTOR=2", "--std", "c++17"], 2)):
        run_ok(gpuqd, *options, f"{source}:times", f"in:{save('x', x)}", f"out:{tmp_path / 'y.npy'}:float32:10,100",
               "i32:1000")
        y = numpy.load(tmp_path / "y.npy")
        assert y.dtype == numpy.float32 and y.shape == (10, 100)
        numpy.testing.assert_array_equal(y, factor * x)


@pytest.mark.skipif(place.no_opencl() is not None, reason=str(place.no_opencl()))
def test_opencl_with_local_memory(gpuqd, tmp_path):
    source = tmp_path / "reversed.cl"
    source.write_text("""__kernel void f(__global const int *x, __global int *y, __local int *t)
    {
            int i = get_local_id(0);
            t[i] = x[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            y[i] = t[get_local_size(0) - 1 - i];
    }""")
    numpy.save(tmp_path / "x.npy", numpy.arange(64, dtype=numpy.int32))
    run_ok(gpuqd, "--block", "64", f"{source}:f", f"in:{tmp_path / 'x.npy'}", f"out:{tmp_path / 'y.npy'}:int32:64", "local:256")
    assert (numpy.load(tmp_path / "y.npy") == numpy.arange(64)[::-1]).all()
    assert_ends(gpuqd.run("run", f"{source}:f", "null", "null", "local:x"), 2, "`local:x': `x' is not a number of bytes")


def test_a_checked_run_names_the_argument_and_the_line(gpuqd, source, save, tmp_path):
    x = save("x", numpy.ones(1000, "f4"))
    y = tmp_path / "y.npy"
    run_ok(gpuqd, "--check", f"{source}:times", f"in:{x}", f"out:{y}:float32:1000", "i32:1000")
    numpy.testing.assert_array_equal(numpy.load(y), numpy.full(1000, 3, "f4"))
    before = y.read_bytes()
    ended = gpuqd.run("run", "--check", "--grid", "8", f"{source}:times", f"in:{x}", f"inout:{y}", "i32:1001")
    line = SOURCE[:SOURCE.index("y[i] = FACTOR")].count("\n") + 1
    assert_ends(ended, JOB_FAILED, "gpuq: run: times: kernel times: a load of 4 bytes at element 1000 of argument 1 (in), which "
                f"has 1000 elements, by thread (232,0,0) of block (3,0,0), at {source}:{line} (ld.global")
    assert y.read_bytes() == before


def test_a_checked_run_names_what_it_reads_and_nobody_wrote(gpuqd, tmp_path):
    source = tmp_path / "sum.cu"
    source.write_text('extern "C" __global__ void sum(int *y) { y[threadIdx.x] += 1; }')
    y = tmp_path / "y.npy"
    ended = gpuqd.run("run", "--check", "--block", "8", f"{source}:sum", f"out:{y}:int32:8")
    assert_ends(ended, JOB_FAILED, "gpuq: run: sum: kernel sum: a load of 4 bytes that nobody wrote, at element ")
    numpy.save(y, numpy.arange(8, dtype=numpy.int32))
    run_ok(gpuqd, "--check", "--block", "8", f"{source}:sum", f"inout:{y}")
    assert list(numpy.load(y)) == list(range(1, 9))


def test_a_null_pointer(gpuqd, tmp_path):
    source = tmp_path / "null.cu"
    source.write_text('extern "C" __global__ void is_null(const int *x, int *y) { y[0] = x == nullptr; }')
    run_ok(gpuqd, f"{source}:is_null", "null", f"out:{tmp_path / 'y.npy'}:int32:1")
    assert list(numpy.load(tmp_path / "y.npy")) == [1]


def test_the_ptx_like_name_is_free_when_the_first_bytes_tell(gpuqd, source, save, tmp_path):
    plain = source.with_suffix(".txt")
    source.rename(plain)
    run_ok(gpuqd, f"{plain}:times", f"in:{save('x', numpy.ones(4, 'f4'))}", f"out:{tmp_path / 'y.npy'}:f4:4", "i32:4")
    assert list(numpy.load(tmp_path / "y.npy")) == [3, 3, 3, 3]


@pytest.mark.parametrize("order", ["C", "F"])
def test_inout_is_written_back_in_its_order(gpuqd, source, save, order):
    x = numpy.asarray(numpy.arange(60, dtype="i4").reshape(3, 4, 5), order=order)
    path = save("x", x)
    path.chmod(0o640)
    run_ok(gpuqd, f"{source}:add_one", f"inout:{path}", "u64:60")
    back = numpy.load(path)
    numpy.testing.assert_array_equal(back, x + 1)
    assert back.flags.f_contiguous == (order == "F")
    assert path.stat().st_mode & 0o777 == 0o640


def test_each_type_of_scalar_arrives(gpuqd, source, tmp_path):
    out = tmp_path / "y.npy"
    run_ok(gpuqd, f"{source}:scalars", "i8:-5", "i16:-300", "i32:-70000", "i64:0x100000000", "f32:2.5", "f64:1e-3",
           f"out:{out}:f64:6")
    assert list(numpy.load(out)) == [-5, -300, -70000, 2 ** 32, 2.5, 1e-3]


def test_the_launch_is_as_given_or_one_thread_an_element(gpuqd, source, tmp_path):
    out = tmp_path / "y.npy"
    run_ok(gpuqd, "--grid", "2,3,4", "--block", "8,2,4", f"{source}:shape", f"out:{out}:u4:6")
    assert list(numpy.load(out)) == [2, 3, 4, 8, 2, 4]
    run_ok(gpuqd, f"{source}:shape", f"out:{out}:u4:1000")
    assert list(numpy.load(out)[:6]) == [4, 1, 1, 256, 1, 1]


def test_empty_and_0d_arrays_are_fine(gpuqd, source, save, tmp_path):
    out = tmp_path / "y.npy"
    run_ok(gpuqd, "builtin:sum_f64", f"in:{save('x', numpy.zeros(0))}", f"out:{out}:f64:1", "u64:0")
    assert list(numpy.load(out)) == [0]
    run_ok(gpuqd, f"{source}:times", f"in:{save('x', numpy.float32(5))}", f"out:{out}:f4:0", "i32:0")
    assert numpy.load(out).shape == (0,)
    one = save("one", numpy.array(41, "i4"))
    run_ok(gpuqd, f"{source}:add_one", f"inout:{one}", "u64:1")
    assert numpy.load(one) == 42 and numpy.load(one).shape == ()


def test_every_dtype_and_version_is_read(gpuqd, source, tmp_path):
    data = numpy.arange(16, dtype="i4")
    path, out = tmp_path / "x.npy", tmp_path / "y.npy"
    for dtype in ("i1", "u1", "?", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"):
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(path, "wb") as file:
                numpy.lib.format.write_array(file, data.view(dtype), version)
            run_ok(gpuqd, f"{source}:copy", f"in:{path}", f"out:{out}:int32:16", "u64:16")
            numpy.testing.assert_array_equal(numpy.load(out), data)


def test_a_pipe_is_read_and_dev_null_written(gpuqd, source, save):
    path = save("x", numpy.ones(4, "i4"))
    command = f"cat {path} | {place.program('gpuq')} run -q {source}:copy in:/dev/stdin out:/dev/null:i4:4 u64:4"
    ended = subprocess.run(["sh", "-c", command], env=gpuqd.environment(), capture_output=True, text=True)
    assert_ends(ended, OK)
    assert not ended.stdout


def test_what_a_kernel_prints_is_printed(gpuqd, source):
    ended = run_ok(gpuqd, "--grid=1", "--block=1", f"{source}:hello", "i32:7")
    assert ended.stdout.startswith("hello 7\n") and "hello: read" in ended.stdout
    ended = run_ok(gpuqd, "-q", "--grid=1", "--block=1", f"{source}:hello", "i32:7")
    assert ended.stdout == "hello 7\n"
    value = document(gpuqd.run("run", "--json", "--grid=1", "--block=1", f"{source}:hello", "i32:7"))
    assert value["output"] == "hello 7\n"


def test_run_as_json(gpuqd, source, save, tmp_path):
    out = tmp_path / "y.npy"
    value = document(gpuqd.run("run", "--json", f"{source}:times", f"in:{save('x', numpy.ones((2, 3), 'f4'))}",
                               f"out:{out}:f4:2,3", "i32:6"))
    assert set(value) == {"version", "id", "state", "error", "text", "output", "device", "waited_us", "ran_us",
                          "gpu_ns", "source", "kernel", "grid", "block", "read_us", "load_us", "write_us", "outputs"}
    assert value["state"] == "done" and value["error"] is None and re.fullmatch(r"\d+\.\d+", value["id"])
    assert value["kernel"] == "times" and value["source"] == str(source)
    assert value["grid"] == [1, 1, 1] and value["block"] == [256, 1, 1]
    assert value["outputs"] == [{"argument": 2, "file": str(out), "dtype": "float32", "shape": [2, 3]}]
    assert value["gpu_ns"] > 0


def test_an_instance_of_a_template_is_run_by_its_name(gpuqd, source, save):
    code = source.with_name("template.cu")
    code.write_text("namespace ns { template <class T, int N> __global__ void fill(T *out) { out[threadIdx.x] = N; } }\n"
                    "extern \"C\" __global__ void plain(int *out) { out[0] = 1; }\n")
    out = source.with_name("filled.npy")
    run_ok(gpuqd, "--block", "8", f"{code}:ns::fill<float, 3>", f"out:{out}:f4:8")
    assert (numpy.load(out) == numpy.full(8, 3, numpy.float32)).all()
    run_ok(gpuqd, "--block", "1", f"{code}:plain", f"out:{out}:i4:1")
    assert numpy.load(out)[0] == 1
    assert_ends(gpuqd.run("run", f"{code}:fil<float, 3>", f"out:{out}:f4:8"), USAGE, "fil<float, 3>", "fill", "plain")


def test_headers_are_read_by_the_command_and_not_by_the_daemon(gpuqd, source):
    folder = source.with_name("inc")
    folder.mkdir()
    (folder / "far.h").write_text("#define FAR 7\n")
    source.with_name("near.h").write_text("#include <far.h>\n#define NEAR FAR\n")
    code = source.with_name("includes.cu")
    code.write_text('#include "near.h"\nextern "C" __global__ void fill(int *out) { out[threadIdx.x] = NEAR; }\n')
    out = source.with_name("filled.npy")
    run_ok(gpuqd, "-I", folder, "--maxrregcount", "32", "--generate-line-info", "--block", "4", f"{code}:fill",
           f"out:{out}:i4:4")
    assert (numpy.load(out) == 7).all()
    run_ok(gpuqd, f"--include-path={folder}", "-maxrregcount=32", "-lineinfo", "-ftz=true", "--fmad=false", "-D", "UNUSED=1",
           "--block", "4", f"{code}:fill", f"out:{out}:i4:4")
    assert (numpy.load(out) == 7).all()
    missing = gpuqd.run("run", "-I", f"{folder}/none", "-I", folder, "--block", "4", f"{code}:fill", f"out:{out}:i4:4")
    assert missing.returncode == OK and f"the include folder {folder}/none does not exist" in missing.stderr
    failed = gpuqd.run("run", f"{code}:fill", f"out:{out}:i4:4")
    assert failed.returncode != OK and f"{source.with_name('near.h')}" in failed.stderr


def test_kernels_of_a_file_are_listed_with_what_they_need(gpuqd, source):
    code = source.with_name("listed.cu")
    source.with_name("listed.h").write_text("#define SIZE 64\n")
    code.write_text('#include "listed.h"\n__global__ void scale(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= SIZE; }\n')
    listed = document(gpuqd.run("kernels", "--json", code))["kernels"]
    assert [kernel["name"] for kernel in listed] == ["scale"] and listed[0]["symbol"] == "_Z5scalePfi"
    assert listed[0]["max_threads_per_block"] == 1024 and listed[0]["num_regs"] > 0
    assert [parameter["kind"] for parameter in listed[0]["parameters"]] == ["pointer", "i32"]
    text = gpuqd.run("kernels", code).stdout.splitlines()
    assert text[0].split() == ["KERNEL", "ARGUMENTS", "THREADS", "REGISTERS", "SHARED", "LOCAL"]
    assert text[1].split()[:4] == ["scale", "pointer", "i32", "1024"]
    assert_ends(gpuqd.run("kernels", code.with_name("none.cu")), USAGE, "none.cu", "cannot read")
    assert_ends(gpuqd.run("kernels", code, code), USAGE, "unexpected argument")


# ---- run, wrong ----

def test_a_kernel_that_is_not_there_lists_the_names(gpuqd, source):
    assert_ends(gpuqd.run("run", f"{source}:tmies"), USAGE, "tmies", "times", "hello", "add_one")
    assert_ends(gpuqd.run("run", "builtin:ad_f64"), USAGE, "ad_f64", "gemm_f32", "did you mean `add_f64'?")
    assert "mean" not in gpuqd.run("run", f"{source}:smooth").stderr
    empty = source.with_name("empty.cu")
    empty.write_text("static const int nothing = 0;\n")
    assert_ends(gpuqd.run("run", f"{empty}:k"), USAGE, "has no kernel `k'; it has: none")


@pytest.mark.parametrize("arguments, words", [
    (["in:{wide}", "in:{narrow}", "out:{y}:f8:4"], ["argument 2 ", "`in:b:f64:n' of add_f64 must be float64, not float32", "a.astype('float64')"]),
    (["in:{wide}", "in:{wide}", "out:{y}:f4:4"], ["argument 3 ", "`out:c:f64:n' of add_f64 must be float64, not float32"]),
    (["in:{wide}", "out:{y}:f8:4", "in:{wide}"], ["argument 2 ", "add_f64 only reads `in:b:f64:n'"]),
    (["in:{wide}", "in:{wide}", "in:{wide}"], ["argument 3 ", "add_f64 writes `out:c:f64:n'", "its result would be lost"]),
])
def test_an_array_that_a_builtin_kernel_does_not_take(gpuqd, save, tmp_path, arguments, words):
    files = {"wide": save("wide", numpy.ones(4)), "narrow": save("narrow", numpy.ones(4, "f4")), "y": tmp_path / "y.npy"}
    ended = gpuqd.run("run", "builtin:add_f64", *[argument.format(**files) for argument in arguments], "u64:4")
    assert_ends(ended, USAGE, *words)
    assert not files["y"].exists()


@pytest.mark.parametrize("dtype, suffix", [("f4", "f32"), ("f8", "f64")])
@pytest.mark.parametrize("kernel", ["argmin", "argmax"])
def test_the_index_that_a_builtin_kernel_finds_is_an_integer(gpuqd, save, tmp_path, kernel, dtype, suffix):
    x, y = numpy.random.default_rng(5).permutation(1000).astype(dtype), tmp_path / "y.npy"
    given = ["run", "--block", "256", f"builtin:{kernel}_{suffix}", f"in:{save('x', x)}"]
    assert_ends(gpuqd.run(*given, f"out:{y}:u64:1", "u64:1000"), OK)
    found = numpy.load(y)
    assert found.dtype == numpy.uint64 and found[0] == getattr(x, kernel)()
    y.unlink()
    for wrong, name in ((dtype, x.dtype.name), ("int64", "int64")):
        ended = gpuqd.run(*given, f"out:{y}:{wrong}:2", "u64:1000")
        assert_ends(ended, USAGE, "argument 2 ", f"`out:s:u64:1' of {kernel}_{suffix} must be uint64, not {name}")
    assert not y.exists()


def test_builtin_kernels_take_the_types_of_their_description(gpuqd, save, tmp_path):
    """Of arrays whose elements are not those of the kernel's name, and of kernels of integers."""
    reals, words, out = save("reals", numpy.ones(4, "f4")), save("words", numpy.ones(4, "u4")), tmp_path / "y.npy"
    for kernel, arguments, wanted in (
            ("mean_f32", [f"in:{reals}", f"out:{out}:u64:1", "u64:4"], "`out:s:f32:1' of mean_f32 must be float32, not uint64"),
            ("scan_parts_f32", [f"in:{reals}", f"out:{out}:f32:2", "u64:4", "u64:1"], "`out:s:u64:p' of scan_parts_f32 must be uint64, not float32"),
            ("scan_f32", [f"in:{reals}", f"in:{reals}", f"out:{out}:f32:4", "u64:4", "u64:1", "u64:0"],
             "`in:s:u64:p' of scan_f32 must be uint64, not float32"),
            ("sort_count_u32", [f"in:{words}", f"out:{out}:u32:512", *4 * ["u64:1"]], "`out:c:u64:256,m' of sort_count_u32 must be uint64, not uint32"),
            ("sort_move_u32", [f"in:{words}", f"in:{reals}", *3 * [f"in:{words}"], *5 * ["u64:1"]],
             "`in:v:u32:n,k' of sort_move_u32 must be uint32, not float32"),
            ("random_bits_u32", [f"out:{out}:i32:4", *5 * ["u64:1"]], "`out:x:u32:n' of random_bits_u32 must be uint32, not int32")):
        assert_ends(gpuqd.run("run", f"builtin:{kernel}", *arguments), USAGE, wanted)
    assert not out.exists()
    sums = tmp_path / "sums.npy"
    run_ok(gpuqd, "--grid", "1", "--block", "256", "builtin:scan_parts_u32", f"in:{words}", f"out:{sums}:u64:1", "u64:4", "u64:1")
    assert numpy.load(sums).dtype == numpy.uint64
    run_ok(gpuqd, "--grid", "1", "--block", "256", "builtin:scan_u32", f"in:{words}", f"in:{sums}", f"out:{out}:u32:4",
           "u64:4", "u64:1", "u64:0")
    assert numpy.load(out).tolist() == [1, 2, 3, 4]


def test_a_small_array_has_no_room_behind_its_end(gpuqd, save, tmp_path):
    """Of those below 16 bytes, which were once rounded up."""
    one, out = save("one", numpy.ones(1, "f4")), tmp_path / "y.npy"
    for n in (2, 4):
        ended = gpuqd.run("run", "builtin:scale_f32", "f32:2", f"in:{one}", f"out:{out}:f32:4", f"u64:{n}")
        assert_ends(ended, USAGE, f"argument 2 needs {4 * n} bytes ({n} elements of 4 bytes), but its buffer has 4")
    assert not out.exists()
    run_ok(gpuqd, "builtin:scale_f32", "f32:2", f"in:{one}", f"out:{out}:f32:1", "u64:1")
    assert numpy.load(out).tolist() == [2]


def test_wrong_number_and_kind_of_arguments(gpuqd, save, tmp_path):
    x, y = f"in:{save('x', numpy.ones(4))}", f"out:{tmp_path / 'y.npy'}:f64:4"
    assert_ends(gpuqd.run("run", "builtin:scale_f64", "f64:2", x, y), USAGE, "scale_f64 takes 4 arguments", "not 3")
    for arguments in (["f32:2", x, y, "u64:4"], ["f64:2", x, y, "f64:4"], ["f64:2", x, "u64:4", y],
                      [x, "f64:2", y, "u64:4"]):
        ended = gpuqd.run("run", "builtin:scale_f64", *arguments)
        assert_ends(ended, USAGE, "scale_f64", "argument")
    assert not (tmp_path / "y.npy").exists()


def test_source_that_does_not_compile_shows_the_log(gpuqd, tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text('extern "C" __global__ void k(int *x)\n{\n        x[0] = undeclared_name;\n}\n')
    assert_ends(gpuqd.run("run", f"{path}:k", "i32:1"), JOB_FAILED, "broken.cu", "undeclared_name", "3")


def test_a_file_that_is_no_module(gpuqd, tmp_path):
    path = tmp_path / "x.cubin"
    path.write_bytes(os.urandom(100))
    assert_ends(gpuqd.run("run", f"{path}:k"), JOB_FAILED, "gpuq: run: ")
    assert_ends(gpuqd.run("run", f"{tmp_path / 'missing.cu'}:k"), USAGE, "missing.cu: cannot read: No such file")


def test_a_grid_beyond_the_limits(gpuqd, source, tmp_path):
    ended = gpuqd.run("run", "--block", "4096", f"{source}:shape", f"out:{tmp_path / 'y.npy'}:u4:6")
    assert_ends(ended, USAGE, "shape", "4096")


def test_a_device_that_is_not_there(gpuqd, source):
    ended = gpuqd.run("run", "--device", "99", f"{source}:hello", "i32:1")
    assert_ends(ended, USAGE, "99")


def test_a_job_that_fails_leaves_old_outputs_as_they_were(gpuqd, source, save, tmp_path):
    old = save("x", numpy.arange(4, dtype="i4"))
    before = old.read_bytes()
    ended = gpuqd.run("run", f"{source}:wild", f"inout:{old}", f"u64:{kernels.FAR}")
    assert_ends(ended, JOB_FAILED, "gpuq: run: wild: ")
    assert old.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["kernels.cu", "x.npy"]


def test_a_kernel_that_never_ends_meets_its_timeout(gpuqd, source, tmp_path):
    arguments = ["run", "--timeout", "2", "--grid=1", "--block=1"]
    ended = gpuqd.run(*arguments, f"{source}:forever", f"out:{tmp_path / 'y.npy'}:i4:1")
    assert_ends(ended, TIMEOUT, "gpuq: run: forever: ")
    assert not (tmp_path / "y.npy").exists()

    value = document(gpuqd.run(*arguments, "--json", f"{source}:forever", f"out:{tmp_path / 'y.npy'}:i4:1"), TIMEOUT)
    assert value["state"] == "failed" and value["error"] == "GPUQ_E_TIMEOUT" and value["outputs"] == []


def test_over_quota_exits_5(start_gpuqd, source, save):
    gpuqd = start_gpuqd(arena_bytes=64 << 20)
    big = save("big", numpy.zeros(128 << 20, "i1"))
    assert_ends(gpuqd.run("run", f"{source}:copy", f"in:{big}", "out:/dev/null:i4:1", "u64:0"), DENIED,
                f"argument 1 `in:{big}'")


# ---- queue, cancel, wait ----

@pytest.fixture
def endless(gpuqd, source, tmp_path):
    """Starts `gpuq run` of a kernel that never ends; gives the process and the id of its job."""
    started = []

    def start(label, *options):
        process = gpuqd.start_program("gpuq", "run", "--label", label, "--grid=1", "--block=1", *options,
                                      f"{source}:forever", f"out:{tmp_path / label}.npy:i4:1")
        started.append(process)

        def running():
            assert process.poll() is None, process.stdout.read()
            return [job for job in document(gpuqd.run("queue", "--json"))["jobs"]
                    if job["label"] == label and job["state"] == "running"]
        return process, until(running, f"{label} to run")[0]["id"]

    yield start
    for process in started:
        process.terminate()
        process.communicate()


def test_an_empty_queue(gpuqd):
    assert gpuqd.run("queue").stdout.split() == ["ID", "USER", "LABEL", "KERNEL", "STATE", "REASON", "WAITED",
                                                 "RAN", "PRI", "DEV", "RETRIES"]
    assert gpuqd.run("queue", "-h").stdout == ""
    told = document(gpuqd.run("queue", "--json"))
    assert set(told) == {"version", "jobs", "modules"} and told["jobs"] == told["modules"] == []


def test_the_queue_shows_what_runs(gpuqd, endless):
    _, job_id = endless("mine", "--priority", "7")
    (job,) = document(gpuqd.run("queue", "--json", "--me"))["jobs"]
    assert set(job) == {"id", "uid", "user", "label", "kernel", "state", "reason", "waited_us", "ran_us", "priority",
                        "device", "retries", "slurm_job"}
    assert job["id"] == job_id and job["kernel"] == "forever" and not job["slurm_job"] and job["uid"] == os.getuid()
    assert job["priority"] == 7 and job["device"] == 0

    row = gpuqd.run("queue", "-h").stdout.split()
    assert row[0] == job_id and row[2:5] == ["mine", "forever", "running"]
    assert gpuqd.run("queue", "-h", "-u", os.getuid()).stdout.split()[0] == job_id
    assert gpuqd.run("queue", "-h", "-u", job["user"]).stdout.split()[0] == job_id
    assert gpuqd.run("queue", "-h", "-u", "12345").stdout == ""


def test_a_label_cannot_speak_to_the_terminal(gpuqd, source):
    ended = gpuqd.run("run", "--label", "\x1b]0;owned\x07", f"{source}:hello", "i32:1")
    assert_ends(ended, USAGE, "label")


def test_colours_only_on_a_terminal_and_without_no_color(gpuqd, endless):
    endless("green")
    for no_color, coloured in (("", True), ("1", False)):
        shown = on_terminal(120, "queue", **{**gpuqd.environment(), "NO_COLOR": no_color})
        assert "STATE" in shown and ("\x1b[" in shown) == coloured, shown


def test_a_waiting_job_says_why(gpuqd, client, source):
    module = client.load(source.read_text())
    gate = kernels.GateJob(client, client.load(kernels.BASIC))
    second = client.submit(Job(after=[gate.id]).launch(module, "hello", [i32(1)]))

    def waits():
        return [job for job in document(gpuqd.run("queue", "--json"))["jobs"] if job["state"] == "waiting"]
    (job,) = until(waits, "a job to wait")
    assert job["id"] == f"{second >> 32}.{second & 0xffffffff}" and job["reason"]
    assert job["reason"] in gpuqd.run("queue").stdout
    assert_ends(gpuqd.run("cancel", "--all"), OK)


def test_run_names_its_job_after_a_second(gpuqd, source, tmp_path):
    process = subprocess.Popen([place.program("gpuq"), "--socket", gpuqd.socket, "run", f"{source}:forever", f"out:{tmp_path}/x.npy:i4:1"],
                               stderr=subprocess.PIPE, text=True)
    try:
        lines = iter(process.stderr.readline, "")
        said = next(line for line in lines if "is not loaded yet" not in line)  # which may take longer too
        named = re.fullmatch(r"gpuq: job ([0-9]+\.[0-9]+) is (running(: .*)?|waiting: .*)\n", said)
        assert named, said
        assert_ends(gpuqd.run("cancel", named[1]), OK)
        assert process.wait(place.PATIENCE_S) == JOB_FAILED
    finally:
        process.kill()
        process.communicate()


def test_run_as_json_names_its_job_after_a_second_and_at_its_end(gpuqd, source, tmp_path):
    process = subprocess.Popen([place.program("gpuq"), "--socket", gpuqd.socket, "run", "--json", f"{source}:forever",
                                f"out:{tmp_path}/x.npy:i4:1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = next(line for line in iter(process.stderr.readline, "") if line.startswith("gpuq: job "))
        job_id = said.split()[2]
        assert_ends(gpuqd.run("cancel", job_id), OK)
        output, _ = process.communicate(timeout=place.PATIENCE_S)
        assert json.loads(output)["id"] == job_id
    finally:
        process.kill()
        process.communicate()


# ---- a drained device ----

@pytest.fixture
def drained(gpuqd, source):
    """Its device was drained, and has compiled the module before."""
    run_ok(gpuqd, f"{source}:hello", "i32:1")
    assert_ends(gpuqd.run("drain", "0", "--reason", "a new fan"), OK)
    return gpuqd


def first_line(process):
    """What it says on standard error while it waits."""
    return process.stderr.readline().rstrip("\n")


def start_gpuq(gpuqd, *arguments):
    return subprocess.Popen([place.program("gpuq"), "--socket", gpuqd.socket, *map(str, arguments)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_on_a_drained_device_run_says_that_it_waits_and_why(drained, source):
    process = start_gpuq(drained, "run", f"{source}:hello", "i32:1")
    try:
        said = first_line(process)
        assert said.startswith(f"gpuq: {source} is not loaded yet: device 0 is drained by ") and said.endswith("a new fan")
        queue = document(drained.run("queue", "--json"))
        (module,) = queue["modules"]
        assert set(module) == {"uid", "user", "name", "reason", "waited_us", "device"} and not queue["jobs"]
        assert module["name"] == str(source) and said.endswith(module["reason"]) and module["waited_us"] > 0
        row = drained.run("queue", "-h").stdout
        assert row.split()[:1] == ["-"] and f"{source} loading" in " ".join(row.split()) and module["reason"] in row

        assert_ends(drained.run("resume", "0"), OK)
        output, _ = process.communicate(timeout=place.PATIENCE_S)
        assert process.returncode == OK and output.startswith("hello 1")
        assert not document(drained.run("queue", "--json"))["modules"]
    finally:
        process.kill()
        process.communicate()


def test_on_a_drained_device_a_job_says_why_it_waits(gpuqd, client, source):
    module = client.load(source.read_text())
    assert_ends(gpuqd.run("drain", "0", "--reason", "a new fan"), OK)
    job = client.submit(Job().launch(module, "hello", [i32(1)]))
    (waiting,) = until(lambda: document(gpuqd.run("queue", "--json"))["jobs"], "the job to wait")
    assert waiting["state"] == "waiting" and waiting["reason"].startswith("device 0 is drained by ")
    client.cancel(job)


def test_drain_keeps_the_reason_until_another_is_given(gpuqd):
    def drain(*arguments):
        ended = gpuqd.run("drain", "0", *arguments)
        assert_ends(ended, OK)
        return ended.stdout
    assert drain("--reason", "a new fan") == "device 0 is drained\n"
    again = drain()
    assert re.fullmatch(r"device 0 was drained already and stays drained by \S+: a new fan\n", again), again
    other = drain("--reason", "a new board")
    assert re.fullmatch(r"device 0 is now drained by \S+: a new board; until now it was drained by \S+: a new fan\n", other), other
    told = json.loads(drain("--json"))
    assert set(told) == {"version", "device", "running", "was_drained", "state"} and told["was_drained"]
    assert told["state"].endswith(": a new board") and told["state"] == document(gpuqd.run("status", "--json"))["devices"][0]["state"]
    assert_ends(gpuqd.run("resume", "0"), OK)
    assert json.loads(drain("--json"))["was_drained"] is False


@pytest.mark.root
def test_the_name_of_anothers_module_is_hidden(service):
    one, other = 65001, 65002
    assert_ends(service.run("drain", "0"), OK)
    process = subprocess.Popen([place.program("gpuq"), "--socket", service.socket, "run", "builtin:sum_f32"],
                               user=one, group=one, extra_groups=[], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def modules(uid, *options):
            return document(service.run("queue", "--json", *options, uid=uid))["modules"]

        (seen,) = until(lambda: modules(one, "--me"), "its module to wait")
        assert seen["uid"] == one and seen["name"] == "builtin"
        (hidden,) = modules(other)
        assert hidden["uid"] == one and hidden["name"] == "" and hidden["reason"] == seen["reason"]
        assert not modules(other, "--me") and len(modules(0)) == 1 and modules(0)[0]["name"] == "builtin"
    finally:
        process.kill()
        process.wait()


def test_cancel_from_another_process(gpuqd, endless, tmp_path):
    process, job_id = endless("victim")
    ended = gpuqd.run("cancel", job_id)
    assert_ends(ended, OK)
    assert ended.stdout == f"{job_id} cancelled\n"
    output, _ = process.communicate(timeout=place.PATIENCE_S)
    assert process.returncode == JOB_FAILED and "gpuq: run: forever: " in output
    assert not (tmp_path / "victim.npy").exists()


def test_cancel_names_each_that_is_unknown(gpuqd, endless):
    process, job_id = endless("victim")
    ended = gpuqd.run("cancel", "999999.1", job_id, "999999.2")
    assert_ends(ended, NO_JOB, "999999.1: no such job", "999999.2: no such job")
    assert ended.stdout == f"{job_id} cancelled\n"
    process.communicate(timeout=place.PATIENCE_S)

    value = document(gpuqd.run("cancel", "--json", "999999.1"), NO_JOB)
    assert (value["ended"], value["unknown"], value["denied"]) == (0, 1, 0)
    assert value["jobs"] == [{"id": "999999.1", "outcome": "unknown"}]


def test_cancel_all(gpuqd, endless):
    processes = [endless("one")[0], endless("two")[0]]
    value = document(gpuqd.run("cancel", "--all", "--json"))
    assert value["ended"] == 2 and value["jobs"] == []
    for process in processes:
        process.communicate(timeout=place.PATIENCE_S)
        assert process.returncode == JOB_FAILED
    assert gpuqd.run("cancel", "--all").stdout == "0 jobs cancelled\n"


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_the_job(gpuqd, endless, number, code, tmp_path):
    process, _ = endless("mine")
    process.send_signal(number)
    process.communicate(timeout=place.PATIENCE_S)
    assert process.returncode == code
    until(lambda: not document(gpuqd.run("queue", "--json"))["jobs"], "the job to go")
    assert os.listdir(tmp_path) == ["kernels.cu"]


def test_wait_for_a_job_that_is_done(gpuqd, client, source):
    module = client.load(source.read_text())
    gate = kernels.GateJob(client, client.load(kernels.BASIC))
    job_id = client.submit(Job(after=[gate.id]).launch(module, "hello", [i32(1)]))
    waiter = gpuqd.start_program("gpuq", "wait", "--json", f"{job_id >> 32}.{job_id & 0xffffffff}")
    gate.open()
    output, _ = waiter.communicate(timeout=place.PATIENCE_S)
    assert waiter.returncode == OK
    value = json.loads(output)
    assert value["state"] == "done" and value["error"] is None
    assert set(value) == {"version", "id", "state", "error", "text", "output", "device", "waited_us", "ran_us",
                          "gpu_ns"}


def wait_in_another_process(gpuqd, job_id):
    return gpuqd.start_program("gpuq", "wait", job_id)


def test_wait_for_a_job_that_is_cancelled(gpuqd, endless):
    _, job_id = endless("victim")
    waiter = wait_in_another_process(gpuqd, job_id)
    assert_ends(gpuqd.run("cancel", job_id), OK)
    output, _ = waiter.communicate(timeout=place.PATIENCE_S)
    # Asked after the end, a job may be forgotten already.
    assert waiter.returncode in (JOB_FAILED, NO_JOB) and "gpuq: wait: " in output


def test_wait_for_a_job_that_meets_its_timeout(gpuqd, client):
    module = client.load(kernels.BASIC)
    gate = kernels.GateJob(client, module)
    job_id = client.submit(Job(after=[gate.id], timeout_ms=300).launch(module, "forever", [Out(client.arena(4))]))
    waiter = wait_in_another_process(gpuqd, f"{job_id >> 32}.{job_id & 0xffffffff}")
    until(lambda: client.status().users[0].sessions == 2, "it to be there")
    gate.open()
    output, _ = waiter.communicate(timeout=place.PATIENCE_S)
    assert waiter.returncode == TIMEOUT and "gpuq: wait: " in output


def test_wait_for_an_unknown_job(gpuqd):
    assert_ends(gpuqd.run("wait", "999999.1"), NO_JOB, "gpuq: wait: ")


def test_the_daemon_going_away_exits_3(gpuqd, endless):
    process, _ = endless("mine")
    gpuqd.stop()
    output, _ = process.communicate(timeout=place.PATIENCE_S)
    assert process.returncode == NO_DAEMON and "gpuq: run: " in output


@pytest.mark.root
def test_other_users_jobs_are_denied(service):
    one, other = 65001, 65002
    client = service.connect(uid=one)
    module = client.load(SOURCE)
    job = kernels.GateJob(client, module).id
    job_id = f"{job >> 32}.{job & 0xffffffff}"

    assert_ends(service.run("cancel", job_id, uid=other), DENIED, "permission denied")
    value = document(service.run("cancel", "--json", job_id, uid=other), DENIED)
    assert value["jobs"] == [{"id": job_id, "outcome": "denied"}]
    assert service.run("wait", job_id, uid=other).returncode in (NO_JOB, DENIED)
    assert_ends(service.run("cancel", job_id), OK)


# ---- what is installed beside it ----

def test_files_and_arguments_are_in_the_help_and_the_completion():
    completion = (place.STAGE / "share/bash-completion/completions/gpuq").read_text()
    text = gpuq("run", "--help").stdout
    for ending in ("cu", "cl", "ptx", "cubin", "fatbin"):
        assert f"(.{ending})" in text
        assert re.search(rf"@\([a-z|]*\b{ending}\b", completion), ending
    for argument in ("in:", "inout:", "out:", "null", "local:"):
        assert re.search(rf"^  {argument}", text, re.M), argument
        assert f" {argument} " in completion or f" {argument}'" in completion, argument


def test_the_man_page_and_the_completion_know_every_option():
    page = (place.STAGE / "share/man/man1/gpuq.1").read_text().replace("\\-", "-")
    completion = (place.STAGE / "share/bash-completion/completions/gpuq").read_text()
    for verb in VERBS:
        assert f".Ss gpuq {verb}" in page
        assert verb in completion
        for option in re.findall(r"--([a-z_]+)", gpuq(verb, "--help").stdout):
            assert f"Fl -{option}" in page, option
            assert f"--{option}" in completion, option
