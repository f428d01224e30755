# SPDX-License-Identifier: Apache-2.0
"""A daemon without a usable device says so at once, and serves those who want to wait for one."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from harness import place, processes
from harness.client import Job, Refused, pb
from harness.daemon import Daemon
from harness.kernels import BASIC, assert_failed
from harness.patience import until

pytestmark = pytest.mark.cpu  # where there is a driver, there is a device
NO_DAEMON, JOB_FAILED = 3, 1


@pytest.fixture
def deviceless(compile_cache):
    daemon = Daemon(cache=compile_cache, device="gpu")
    daemon.launch()
    until(lambda: state(daemon) is not None, "gpuqd to look for devices")
    yield daemon
    daemon.stop()


@pytest.fixture
def late(compile_cache):
    """A daemon that has found no device, until late.find_one()."""
    daemon = Daemon(cache=compile_cache)
    broken = daemon.folder / "broken"
    broken.write_text("driver 100\n")  # CUDA_ERROR_NO_DEVICE
    daemon.write_config(cpu_broken=broken)
    daemon.launch()
    daemon.find_one = broken.unlink
    until(lambda: state(daemon, "CUDA_ERROR_NO_DEVICE") is not None, "gpuqd to look for devices")
    yield daemon
    daemon.stop()


def state(daemon, word="libcuda"):
    """Why there is no device; None while the daemon has not found out."""
    try:
        with daemon.connect() as client:
            told = client.status().state
    except OSError:
        return None
    return told if word in told else None


def gpuq(daemon, *arguments, **environment):
    return subprocess.run([place.program("gpuq"), "--socket", daemon.socket, *arguments], capture_output=True, text=True,
                          timeout=place.PATIENCE_S, env={**os.environ, **environment})


def test_work_fails_at_once_with_the_reason(deviceless):
    with deviceless.connect(waits_for_device=False) as client:
        arena = client.arena(64)
        assert_failed(client.run(Job().fill(arena, 8, 1)), pb.E_NO_DEVICE, "no usable device: ", "libcuda",
                      "GPUQ_WAIT_FOR_DEVICE=1")
        with pytest.raises(Refused) as refused:
            client.load(BASIC)
        assert refused.value.code == pb.E_NO_DEVICE and "libcuda" in refused.value.text
        assert not client.queue()


def test_the_list_of_builtin_kernels_needs_no_device(deviceless):
    listed = gpuq(deviceless, "kernels")
    assert listed.returncode == 0 and "gemm_f64" in listed.stdout and not listed.stderr


def test_work_waits_for_a_client_that_asks_for_it(deviceless):
    with deviceless.connect(waits_for_device=True) as client:
        job = client.submit(Job().fill(client.arena(64), 8, 1))
        until(lambda: client.queue(), "the job to wait")
        entry = client.queue()[job]
        assert entry.reason.startswith("no device: ") and "libcuda" in entry.reason
        client.cancel(job)


def test_device_memory_is_refused_at_once_with_the_reason(deviceless):
    with deviceless.connect(waits_for_device=False) as client:
        with pytest.raises(Refused) as refused:
            client.device_arena(64)
        assert refused.value.code == pb.E_NO_DEVICE and "libcuda" in refused.value.text
        assert "GPUQ_WAIT_FOR_DEVICE=1" in refused.value.text


def test_device_memory_waits_for_a_client_that_asks_for_it(late):
    """One goes before there is a device, and another asks for a device that never comes."""
    gone, kept = late.connect(waits_for_device=True), late.connect(waits_for_device=True)
    create = pb.ArenaCreate(place=pb.DEVICE, size=4096)
    gone.tell(arena_create=create)
    gone.status()
    gone.close()
    asked = kept.tell(arena_create=create)
    beyond = kept.tell(arena_create=pb.ArenaCreate(place=pb.DEVICE, size=64, device=8))
    (user,) = kept.status().users
    assert user.device_bytes == 4096 + 64  # both wait
    late.find_one()
    with pytest.raises(Refused) as refused:
        kept.answer(beyond)
    assert refused.value.code == pb.E_NOT_FOUND and "no device 7: this machine has one device" in refused.value.text
    reply, _fds = kept.answer(asked)
    assert reply.arena.size == 4096 and reply.arena.place == pb.DEVICE
    (user,) = kept.status().users
    assert user.device_bytes == 4096  # nothing of what the others asked for


PYTHON = place.ROOT / "client" / "python" / "src"
unsanitized = pytest.mark.skipif(place.SANITIZED, reason="the interpreter is not built with the sanitizers")
A_THREAD_WAITS = """
import threading, gpuq
threading.Thread(target=gpuq.device_array, args=(4, "f4"), daemon=True).start()
with gpuq.connect() as other:
    while not any(user.device_bytes for user in other.status().users):
        pass
gpuq.zeros(1 << 20, "f4")
print("host memory", flush=True)
"""
THE_MAIN_THREAD_WAITS = """
import signal, gpuq
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    gpuq.device_array(4, "f4")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@contextlib.contextmanager
def python(daemon, program):
    """Runs it, and ends it if it has not ended of itself."""
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": str(PYTHON), "GPUQ_LIBRARY": str(place.STAGE / "lib" / "libgpuq.so.0"),
                                    "GPUQ_SOCKET": str(daemon.socket), "GPUQ_WAIT_FOR_DEVICE": "1"})
    with running:
        try:
            yield running
        finally:
            running.kill()


def told_by(running):
    return running.communicate(timeout=place.PATIENCE_S)[0]


@unsanitized
def test_who_waits_for_device_memory_keeps_no_other_thread_from_host_memory(deviceless):
    with python(deviceless, A_THREAD_WAITS) as running:
        assert told_by(running) == "host memory\n"


@unsanitized
def test_ctrl_c_ends_a_wait_for_device_memory(deviceless):
    with python(deviceless, THE_MAIN_THREAD_WAITS) as running, deviceless.connect() as client:
        until(lambda: any(user.device_bytes for user in client.status().users), "the program to wait")
        running.send_signal(signal.SIGINT)
        assert told_by(running) == "interrupted\n"


def test_the_command_line_does_not_wait(deviceless, tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(BASIC)
    status = gpuq(deviceless, "status", "--json")
    assert status.returncode == NO_DAEMON and "libcuda" in json.loads(status.stdout)["state"]
    run = gpuq(deviceless, "run", f"{source}:nothing")
    assert run.returncode == JOB_FAILED and "no usable device" in run.stderr and "libcuda" in run.stderr


def test_the_command_line_waits_where_the_environment_says_so(deviceless, tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(BASIC)
    running = subprocess.Popen([place.program("gpuq"), "--socket", deviceless.socket, "run", f"{source}:nothing"],
                               env={**os.environ, "GPUQ_WAIT_FOR_DEVICE": "1"}, stderr=subprocess.PIPE, text=True)
    said = running.stderr.readline()
    assert said.startswith(f"gpuq: {source} is not loaded yet: no device: ") and "libcuda" in said
    (module,) = json.loads(gpuq(deviceless, "queue", "--json").stdout)["modules"]
    assert module["device"] == -1 and module["reason"] in said
    assert running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.communicate()


@pytest.mark.root
def test_the_owner_of_a_private_daemon_is_its_administrator(compile_cache):
    owner = 12345
    daemon = Daemon(cache=None)
    os.chown(daemon.folder, owner, owner)
    daemon.launch(user=owner, group=owner, extra_groups=[])
    processes.started.add(daemon.process.pid)

    def as_owner(*arguments):
        return subprocess.run([place.program("gpuq"), "--socket", daemon.socket, *arguments], capture_output=True, text=True,
                              timeout=place.PATIENCE_S, user=owner, group=owner, extra_groups=[])

    try:
        until(lambda: as_owner("status").returncode == 0, "gpuqd to serve")
        drained = as_owner("drain", "0", "--reason", "a test")
        assert drained.returncode == 0, drained.stderr
        assert as_owner("resume", "0").returncode == 0
    finally:
        daemon.stop()


def test_the_hint_to_start_a_daemon_works_without_a_runtime_folder():
    def told(**environment):
        return subprocess.run([place.program("gpuq"), "--socket", "/nonexistent/gpuqd.sock", "status"], text=True,
                              stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], **environment}).stderr

    assert "'gpuqd --private --socket PATH' and set GPUQ_SOCKET=PATH" in told()
    assert "with 'gpuqd --private'" in told(XDG_RUNTIME_DIR="/run/user/0")
