# SPDX-License-Identifier: Apache-2.0
"""Programs that use libgpuq, the command line or the Python package while the supervisor is killed: none of them
notices. What the daemon does then is test_takeover.py's."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import pytest

from harness import kernels, place
from harness.messages import pb
from harness.patience import until

# Every scenario of gpuq-test-client that needs a daemon which stays.
SCENARIOS = ["run", "buffers", "small-buffers", "dependencies", "modules", "loop", "threads", "callbacks", "many", "checked",
             "prepared", "cancel", "fork", "free-client-first"]
# The moment of the kill is any: from the first words to the last job.
MOMENTS_S = (0.01, 0.04, 0.1)

PYTHON = """
import numpy, sys
import gpuq

module = gpuq.module(open(sys.argv[1]).read())
x = gpuq.array(numpy.arange(256, dtype=numpy.int32))
y = gpuq.zeros(256, numpy.int32)
job = module["slow"].submit((1, 1), gpuq.In(x), gpuq.Out(y), 256)
print("submitted", flush=True)
job.wait()
assert (numpy.asarray(y) == 3 * numpy.arange(256)).all()
print("right", flush=True)
"""


# It has to be killed over; then it runs again.
SLOW = kernels.BASIC + """
extern "C" __global__ void slow(const int *in, int *out, unsigned long long n)
{
        for (int i = 0; i < 30000; i++) {
                __nanosleep(100000);
#ifdef __GPUQ_CPU__ // where that returns at once
                for (long long start = clock64(); clock64() - start < 100000;)
                        ; // it counts nanoseconds
#endif
        }
        for (unsigned long long i = 0; i < n; i++)
                out[i] = 3 * in[i];
}
"""

# As a notebook between two cells: nothing is called while the supervisor dies, nor for long after.
IDLE = """
import numpy, sys
import gpuq

module = gpuq.module(open(sys.argv[1]).read())
x = gpuq.array(numpy.arange(256, dtype=numpy.int32))
y = gpuq.zeros(256, numpy.int32)
triple = module["triple"]
triple.submit((1, 1), gpuq.In(x), gpuq.Out(y), 256).wait()
print("idle", flush=True)
sys.stdin.readline()
triple.submit((1, 1), gpuq.In(y), gpuq.Out(x), 256).wait()
assert (numpy.asarray(x) == 9 * numpy.arange(256)).all()
print("right", flush=True)
"""


# The next supervisor is told the built-in module again, which names the operation.
PRODUCTS = """
import numpy, sys
import gpuq

a, b = numpy.random.default_rng(1).integers(-9, 9, (2, 40, 40)).astype(numpy.float32)
x, y = gpuq.to_device(a), gpuq.zeros((40, 40), numpy.float32)
prepared = gpuq.job().matmul(x, gpuq.array(b), y).prepare()
prepared.run()
assert (numpy.asarray(y) == a @ b).all()
print("idle", flush=True)
sys.stdin.readline()
y[...] = 0
prepared.run()
assert (numpy.asarray(y) == a @ b).all() and (numpy.asarray(gpuq.matmul(b, a)) == b @ a).all()
print("right", flush=True)
"""


# Its kernel is compiled again by the next worker, with the header and the name that the daemon has kept.
NAMED = """
import numpy, sys
import gpuq

code = '#include "times.h"\\ntemplate <class T> __global__ void times(T *x) { x[threadIdx.x] *= TIMES; }'
module = gpuq.module(code, names=["times<int>"], headers={"times.h": "#define TIMES 3\\n"})
x = gpuq.array(numpy.arange(32, dtype=numpy.int32))
module["times<int>"].run((1, 32), gpuq.InOut(x))
print("idle", flush=True)
sys.stdin.readline()
module["times<int>"].run((1, 32), gpuq.InOut(x))
assert (numpy.asarray(x) == 9 * numpy.arange(32)).all()
print("right", flush=True)
"""


def kill_supervisor(daemon):
    pid = daemon.supervisor()
    os.kill(pid, signal.SIGKILL)
    return pid


def until_taken_over(daemon, n):
    until(lambda: daemon.log().count("took over after") >= n, "the next supervisor to take over")


@pytest.fixture
def daemon(start_gpuqd):
    return start_gpuqd()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_c_program_does_not_notice(daemon, scenario):
    for n, moment_s in enumerate(MOMENTS_S, 1):
        program = daemon.start_program(place.test_program("gpuq-test-client"), scenario)
        time.sleep(moment_s)
        kill_supervisor(daemon)
        output, _nothing = program.communicate(timeout=2 * place.PATIENCE_S)
        assert program.returncode == 0, output
        until_taken_over(daemon, n)


def test_a_c_program_that_polls_does_not_notice(start_gpuqd):
    """Completion words and rings included, whatever the machine's number of cores."""
    daemon = start_gpuqd(poll_us=200)
    for n, (scenario, moment_s) in enumerate(itertools.product(("many", "threads"), MOMENTS_S[:2]), 1):
        program = daemon.start_program(place.test_program("gpuq-test-client"), scenario)
        time.sleep(moment_s)
        kill_supervisor(daemon)
        output, _nothing = program.communicate(timeout=2 * place.PATIENCE_S)
        assert program.returncode == 0, output
        until_taken_over(daemon, n)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "k.cu").write_text(SLOW)
    numpy.save(tmp_path / "x.npy", numpy.arange(256, dtype=numpy.int32))
    return tmp_path


def the_job_that_runs(client):
    (job,) = until(lambda: [job for job, entry in client.queue().items() if entry.state == pb.RUNNING], "a job to run")
    return job


def n_sessions(client):
    return client.status().users[0].sessions


def test_gpuq_run_and_gpuq_wait_do_not_notice(daemon, files):
    client = daemon.connect()
    run = daemon.start_program("gpuq", "run", "--grid", 1, "--block", 1, "--label", "slow one", f"{files}/k.cu:slow",
                               f"in:{files}/x.npy", f"out:{files}/y.npy:i4:256", "u64:256")
    job = the_job_that_runs(client)
    wait = daemon.start_program("gpuq", "wait", f"{job >> 32}.{job & 0xffffffff}")
    until(lambda: n_sessions(client) == 3, "somebody to wait for it")
    kill_supervisor(daemon)
    client.resume()
    until(lambda: [entry.retries for entry in client.queue().values()] == [1], "it to be run again")
    for program in (run, wait):
        output, _nothing = program.communicate(timeout=2 * place.PATIENCE_S)
        assert program.returncode == 0, output
    numpy.testing.assert_array_equal(numpy.load(files / "y.npy"), 3 * numpy.arange(256))


def test_gpuq_status_is_always_answered(daemon):
    for n in range(1, 4):
        kill_supervisor(daemon)
        for _ in range(10):
            ended = daemon.run("status")
            assert ended.returncode == 0, ended.stderr
        until_taken_over(daemon, n)


def start_python(daemon, files, text, *args, **options):
    sources = place.ROOT / "client" / "python" / "src"
    if not sources.exists():
        sources = place.STAGE / "lib" / "python3" / "dist-packages"
    program = files / "program.py"
    program.write_text(f"import sys\nsys.path.insert(0, {str(sources)!r})\n" + textwrap.dedent(text))
    library = next((place.STAGE / "lib").rglob("libgpuq.so.0"))
    return daemon.start_program("/usr/bin/env", f"GPUQ_LIBRARY={library}", sys.executable, program, files / "k.cu", *args,
                                **options)


@pytest.mark.skipif(place.SANITIZED, reason="a sanitized library cannot be loaded into python3")
def test_a_python_program_does_not_notice(daemon, files):
    client = daemon.connect()
    started = start_python(daemon, files, PYTHON)
    line = started.stdout.readline()
    assert line == "submitted\n", line + started.stdout.read()
    the_job_that_runs(client)
    kill_supervisor(daemon)
    assert started.stdout.read() == "right\n"
    assert started.wait(place.PATIENCE_S) == 0


@pytest.mark.skipif(place.SANITIZED, reason="a sanitized library cannot be loaded into python3")
def test_a_python_program_that_was_idle_for_long_does_not_notice(start_gpuqd, files):
    daemon = start_gpuqd(takeover_s=1)
    started = start_python(daemon, files, IDLE, stdin=subprocess.PIPE)
    assert started.stdout.readline() == "idle\n"
    kill_supervisor(daemon)
    until_taken_over(daemon, 1)
    over = time.monotonic() + 1
    until(lambda: time.monotonic() > over, "takeover_s to be over, whatever is waited for")
    output, _nothing = started.communicate("go on\n", timeout=place.PATIENCE_S)
    assert output == "right\n"
    assert started.returncode == 0


@pytest.mark.skipif(place.SANITIZED, reason="a sanitized library cannot be loaded into python3")
def test_names_and_headers_of_a_module_outlive_the_supervisor(daemon, files):
    started = start_python(daemon, files, NAMED, stdin=subprocess.PIPE)
    assert started.stdout.readline() == "idle\n"
    kill_supervisor(daemon)
    until_taken_over(daemon, 1)
    output, _nothing = started.communicate("go on\n", timeout=place.PATIENCE_S)
    assert output == "right\n"
    assert started.returncode == 0


@pytest.mark.skipif(place.SANITIZED, reason="a sanitized library cannot be loaded into python3")
def test_library_operations_go_on_after_the_supervisor(daemon, files):
    started = start_python(daemon, files, PRODUCTS, stdin=subprocess.PIPE)
    assert started.stdout.readline() == "idle\n"
    kill_supervisor(daemon)
    until_taken_over(daemon, 1)
    output, _nothing = started.communicate("go on\n", timeout=place.PATIENCE_S)
    assert output == "right\n"
    assert started.returncode == 0
