# SPDX-License-Identifier: Apache-2.0
"""The daemon as its administrator sees it: start, socket, configuration, processes, end."""

import os
import re
import signal
import socket
import stat
import subprocess

import numpy
import pytest

from harness import kernels, place, processes
from harness.client import Client, Closed, Job, Refused
from harness.daemon import Daemon
from harness.kernels import copy_job
from harness.messages import pb
from harness.patience import until
from harness.remains import descriptors


def ends(daemon):
    """Starts it and waits for its end. Returns status and log."""
    daemon.launch()
    daemon.process.wait(place.PATIENCE_S)
    log = daemon.log()
    return daemon.process.returncode, log


@pytest.fixture
def prepare(compile_cache):
    """Daemons that are expected not to start."""
    import shutil
    made = []

    def make(**settings):
        made.append(Daemon(cache=compile_cache, **settings))
        return made[-1]

    yield make
    for daemon in made:
        if daemon.process and daemon.process.poll() is None:
            daemon.process.kill()
            daemon.process.wait()
        shutil.rmtree(daemon.folder, ignore_errors=True)
    assert not processes.reap_orphans()


# ---- the socket ----

def test_sigterm_ends_all_and_leaves_nothing(start_gpuqd):
    daemon = start_gpuqd()
    client = daemon.connect()
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    assert daemon.workers()
    assert daemon.stop() == 0


def test_sigterm_ends_a_kernel_that_never_ends(start_gpuqd):
    daemon = start_gpuqd()
    client = daemon.connect()
    module = client.load(kernels.BASIC)
    endless = client.submit(Job().launch(module, "forever", [kernels.Out(client.arena(4))]))
    until(lambda: client.queue()[endless].state == pb.RUNNING, "it to run")
    assert daemon.stop() == 0


def test_a_client_hears_of_the_end(start_gpuqd):
    daemon = start_gpuqd()
    client = Client(daemon.socket)
    daemon.process.send_signal(signal.SIGTERM)
    replies = client.assert_closed()
    assert all(reply.error.code == pb.E_SHUTDOWN for reply in replies if reply.error.code)
    client.close()
    assert daemon.process.wait(place.PATIENCE_S) == 0  # asked twice it would not take its time


def test_a_stale_socket_is_replaced(start_gpuqd, prepare):
    daemon = prepare()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(daemon.socket))
    left.close()
    assert daemon.socket.exists()
    daemon.start()
    assert daemon.connect().status().state == "ready"
    assert daemon.stop() == 0


def test_a_socket_in_use_is_left_alone(gpuqd, prepare):
    second = prepare()
    second.socket = gpuqd.socket
    status, log = ends(second)
    assert status != 0
    assert str(gpuqd.socket) in log and "in use" in log.lower()
    assert gpuqd.connect().status().state == "ready"


def test_a_path_that_cannot_be_written(prepare):
    daemon = prepare()
    daemon.socket = daemon.folder / "no" / "such" / "folder" / "gpuqd.sock"
    status, log = ends(daemon)
    assert status != 0 and str(daemon.socket) in log


def test_a_path_that_is_no_socket_is_not_removed(prepare):
    daemon = prepare()
    daemon.socket.write_text("precious")
    status, log = ends(daemon)
    assert status != 0 and str(daemon.socket) in log
    assert daemon.socket.read_text() == "precious"


def test_a_path_too_long_for_a_socket(prepare):
    daemon = prepare()
    daemon.socket = daemon.folder / ("x" * 120)
    status, log = ends(daemon)
    assert status != 0 and log.strip()


def test_the_private_socket_is_its_owners_alone(gpuqd):
    assert stat.S_IMODE(os.stat(gpuqd.socket).st_mode) & 0o077 == 0


@pytest.mark.root
def test_the_service_socket_is_open_to_all(service):
    assert stat.S_IMODE(os.stat(service.socket).st_mode) & 0o666 == 0o666


def test_a_socket_passed_by_the_service_manager(start_gpuqd, prepare):
    """As systemd does it: descriptor 3, LISTEN_FDS and LISTEN_PID."""
    daemon = prepare()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(daemon.socket))
    listener.listen(16)
    script = "exec 3<&$1; shift; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\""
    command = ["bash", "-c", script, "bash", str(listener.fileno()), *daemon.arguments()]
    with open(daemon.log_path, "ab") as log:
        daemon.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          pass_fds=[listener.fileno()])
    processes.started.add(daemon.process.pid)
    listener.close()
    until(daemon.is_serving, "it to serve")
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(place.PATIENCE_S) == 0
    assert daemon.socket.exists(), "the manager's socket is not ours to remove"


# ---- configuration ----

@pytest.mark.parametrize("line, words", [
    ("no_such_key = 1", ["no_such_key", "gpuqd.conf:"]),
    ("device = toaster", ["toaster", "auto", "gpu", "cpu"]),
    ("cpu_devices = many", ["cpu_devices", "many"]),
    ("inflight_jobs = -1", ["inflight_jobs"]),
    ("weight = 0", ["weight"]),
    ("isolation = maybe", ["isolation", "maybe"]),
])
def test_a_wrong_line_names_file_line_and_what_is_allowed(prepare, line, words):
    daemon = prepare()
    daemon.config.write_text(daemon.config.read_text() + line + "\n")
    number = len(daemon.config.read_text().splitlines())
    status, log = ends(daemon)
    assert status != 0
    for word in [*words, f"{daemon.config}:{number}"]:
        assert word in log, log


def test_a_configuration_that_is_not_there(prepare):
    daemon = prepare()
    daemon.config.unlink()
    status, log = ends(daemon)
    assert status != 0 and str(daemon.config) in log


def test_conf_d_comes_after_the_file(start_gpuqd, prepare):
    daemon = prepare(modules=1)
    folder = daemon.folder / "gpuqd.conf.d"
    folder.mkdir()
    (folder / "20-more.conf").write_text("[gpuqd]\nmodules = 3\n")
    (folder / "10-less.conf").write_text("[gpuqd]\nmodules = 2\n")
    (folder / "ignored.txt").write_text("nonsense")
    daemon.start()
    client = daemon.connect()
    for _ in range(3):
        client.load(kernels.BASIC)
    with pytest.raises(Refused):
        client.load(kernels.BASIC)
    assert daemon.stop() == 0


def test_a_reload_with_a_wrong_file_keeps_the_old_configuration(start_gpuqd):
    daemon = start_gpuqd(modules=2)
    client = daemon.connect()
    module = client.load(kernels.BASIC)
    daemon.config.write_text("[gpuqd]\nmodules = 1\nnonsense = yes\n")
    daemon.reload()
    until(lambda: "nonsense" in daemon.log(), "the mistake to be logged")
    assert f"{daemon.config}:3" in daemon.log()
    client.load(kernels.BASIC)
    with pytest.raises(Refused):
        client.load(kernels.BASIC)
    client.run_well(Job().launch(module, "nothing"))


def test_a_reload_logs_what_changed_and_what_waits_for_a_restart(start_gpuqd):
    daemon = start_gpuqd(modules=2, config="[user 54321]\njobs = 10\n")
    daemon.sections = "[user 54321]\njobs = 20\n"
    daemon.configure(modules=3)
    assert "gpuqd: configuration reloaded: modules 2 -> 3, [user 54321] jobs 10 -> 20\n" in daemon.log()
    daemon.write_config(cpu_devices=7)
    daemon.reload()
    until(lambda: "configuration reloaded: nothing changed\n" in daemon.log(), "the other reload")
    assert "changes that take effect when gpuqd is restarted: cpu_devices 1 -> 7\n" in daemon.log()


def test_a_supervisor_started_again_beside_a_wrong_file_has_the_old_configuration(start_gpuqd):
    daemon = start_gpuqd(modules=2)
    daemon.config.write_text("[gpuqd]\nmodules = 1\nnonsense = yes\n")
    daemon.reload()
    until(lambda: "nonsense" in daemon.log(), "the mistake to be logged")
    first = daemon.supervisor()
    os.kill(first, signal.SIGKILL)
    until(lambda: daemon.log().count("the supervisor is running again"), "another supervisor")
    assert daemon.supervisor() != first
    until(daemon.is_serving, "it to serve")
    client = daemon.connect()
    module = client.load(kernels.BASIC)
    client.load(kernels.BASIC)
    with pytest.raises(Refused):
        client.load(kernels.BASIC)
    client.run_well(Job().launch(module, "nothing"))


def test_a_supervisor_started_again_has_what_the_last_reload_brought(start_gpuqd):
    daemon = start_gpuqd(modules=1)
    daemon.write_config(modules=2)
    daemon.reload()
    until(lambda: "configuration reloaded" in daemon.log(), "it to be read")
    daemon.config.unlink()
    os.kill(daemon.supervisor(), signal.SIGKILL)
    until(lambda: daemon.log().count("the supervisor is running again"), "another supervisor")
    until(daemon.is_serving, "it to serve")
    client = daemon.connect()
    client.load(kernels.BASIC)
    client.load(kernels.BASIC)
    with pytest.raises(Refused):
        client.load(kernels.BASIC)


@pytest.mark.skipif(os.getuid() != 0, reason="only root's gpuqd runs as others")
@pytest.mark.parametrize("key", ("supervisor_user", "worker_user"))
def test_a_user_that_is_not_there_is_told_at_start(prepare, key):
    status, log = ends(prepare(private=False, **{key: "gpuq-nobody-here"}))
    assert status == 1
    assert f"{key} = gpuq-nobody-here" in log and "systemd-sysusers" in log
    assert "serving" not in log and "failed to start" not in log


@pytest.mark.skipif(os.getuid() != 0, reason="only root's gpuqd runs as others")
def test_a_reload_with_a_user_that_is_not_there_keeps_the_old_configuration(start_gpuqd):
    daemon = start_gpuqd(private=False)
    daemon.write_config(worker_user="gpuq-nobody-here")
    daemon.reload()
    until(lambda: "worker_user = gpuq-nobody-here" in daemon.log(), "the mistake to be logged")
    assert "cannot reload the configuration" in daemon.log()
    client = daemon.connect()
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))


def test_a_check_needs_no_place_for_a_socket_or_a_cache(tmp_path):
    config = tmp_path / "gpuqd.conf"
    config.write_text("[gpuqd]\njobs = 1\n")
    result = subprocess.run([place.program("gpuqd"), "--private", "--check", "-c", config], env={},
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    first, cache, state, memory, *lines = result.stdout.splitlines()
    assert first == f"{config}: ok"
    assert [cache, state] == ["cache_dir: /var/cache/gpuq", "state_dir: /var/lib/gpuqd"]
    assert memory.startswith("memory of gpuqd that one user can take: ") and memory.endswith(" MiB"), memory
    assert any("unfinished jobs (queued_bytes)" in line for line in lines), lines
    config.write_text("[gpuqd]\nlibraries = /opt/a:/opt/b\n")
    result = subprocess.run([place.program("gpuqd"), "--private", "--check", "-c", config], env={},
                            capture_output=True, text=True)
    assert "libraries: /opt/a:/opt/b" in result.stdout.splitlines()
    config.write_text("[gpuqd]\njobs = many\n")
    result = subprocess.run([place.program("gpuqd"), "--private", "--check", "-c", config], env={},
                            capture_output=True, text=True)
    assert result.returncode == 1 and "gpuqd.conf:2" in result.stderr


def test_a_section_of_a_user_that_is_not_there(start_gpuqd, tmp_path):
    text = "[gpuqd]\nallow_groups = gpuq-no-group\n[user gpuq-nobody-here]\njobs = 1\n[user 54321]\njobs = 1\n[class a]\ngroup = gpuq-none\n"
    unknown = ("[user gpuq-nobody-here]: this machine has no such user",
               "[class a], group = gpuq-none: this machine has no such group",
               "allow_groups = gpuq-no-group: this machine has no such group")
    config = tmp_path / "checked.conf"
    config.write_text(text)
    result = subprocess.run([place.program("gpuqd"), "--private", "--check", "-c", config], env={},
                            capture_output=True, text=True)
    assert result.returncode == 1 and result.stdout == ""
    assert [line for line in unknown if line in result.stderr] == list(unknown) and "54321" not in result.stderr

    daemon = start_gpuqd(config=text.partition("\n")[2])
    log = daemon.log()
    assert [line for line in unknown if line in log] == list(unknown) and "54321" not in log
    daemon.reload()
    until(lambda: all(daemon.log().count(line) == 2 for line in unknown), "the warnings at the reload")


def test_help_and_version():
    for option in ("--help", "--version"):
        result = subprocess.run([place.program("gpuqd"), option], capture_output=True, text=True)
        assert result.returncode == 0 and result.stdout


def test_an_unknown_option():
    result = subprocess.run([place.program("gpuqd"), "--frobnicate"], capture_output=True, text=True)
    assert result.returncode != 0 and "frobnicate" in result.stderr


# ---- its processes ----

CUDA = ("libcuda", "libgpuq-cpu", "libnvrtc", "libnvidia")


def test_keeper_and_supervisor_never_load_a_driver(gpuqd, client):
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    keeper, supervisor, worker = gpuqd.process.pid, gpuqd.supervisor(), gpuqd.workers()[0]
    for pid in (keeper, supervisor):
        assert not any(library in processes.maps(pid) for library in CUDA)
    assert any(library in processes.maps(worker) for library in CUDA), "the test would see one"


def test_keeper_and_supervisor_are_not_linked_with_a_driver():
    for name in ("gpuqd", "gpuqd-supervisor"):
        listing = subprocess.run(["ldd", place.program(name)], capture_output=True, text=True).stdout
        assert "libc.so" in listing
        assert not any(library in listing for library in CUDA), listing
        with open(place.program(name), "rb") as file:
            content = file.read()
        assert not any(library.encode() in content for library in ("libcuda.so", "libgpuq-cpu.so"))


def test_the_supervisor_has_no_device_open_and_no_arena_mapped(gpuqd, client):
    arena = client.array(numpy.arange(1000, dtype=numpy.int32))
    client.run_well(copy_job(client.load(kernels.BASIC), arena, client.arena(4000), 1000))
    supervisor = gpuqd.supervisor()
    targets = descriptors(supervisor)
    assert not any("nvidia" in target for target in targets)
    arenas = [target for target in targets if "memfd:" in target]
    assert arenas, "it holds them"


@pytest.mark.skipif(place.SANITIZED, reason="a sanitizer's own memory")
def test_the_supervisor_with_a_hundred_clients_fits_in_20_mib(gpuqd):
    clients = [gpuqd.connect() for _ in range(100)]
    for client in clients:
        values = client.array(numpy.arange(10000, dtype=numpy.float64))
        out = client.arena(8)
        client.run_well(Job().launch(client.builtin(), "sum_of_squares_f64",
                                     [kernels.In(values), kernels.Out(out), kernels.u64(10000)], 1, 256))
    assert processes.resident_bytes(gpuqd.supervisor()) <= 20 << 20


def test_a_worker_is_warm_for_a_while_and_then_goes(start_gpuqd):
    daemon = start_gpuqd(worker_idle_s=1)
    client = daemon.connect()
    module = client.load(kernels.BASIC)

    def n_ready():
        return len(re.findall(r"worker \d+ is ready on device", daemon.log()))

    client.run_well(Job().launch(module, "nothing"))
    until(lambda: not daemon.workers(), "the idle worker to go")
    before = n_ready()
    client.run_well(Job().launch(module, "nothing"))
    until(lambda: n_ready() > before > 0, "another one to be told of")


def test_a_worker_serves_all_processes_of_a_user(gpuqd):
    for _ in range(5):
        client = gpuqd.connect()
        client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    assert len(gpuqd.workers()) == 1
    status = client.status()
    assert sum(worker.contexts for worker in status.workers) == 1
    assert status.driver == ("cuda" if place.on_gpu() else "cpu")


def test_nobody_can_trace_or_read_a_worker(gpuqd, client):
    """A worker's environment is made from nothing: no LD_*, nothing of whoever started the daemon."""
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    with open(f"/proc/{gpuqd.workers()[0]}/environ", "rb") as file:
        names = {entry.split(b"=")[0].decode() for entry in file.read().split(b"\0") if entry}
    assert not [name for name in names if name.startswith(("LD_", "GPUQ_"))]
    assert "HOME" not in names or len(names) < 15


def test_a_dead_connection_is_not_mistaken_for_a_live_one(gpuqd):
    with pytest.raises((Closed, OSError)):
        client = gpuqd.connect()
        client.close()
        client.status()
