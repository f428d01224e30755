# SPDX-License-Identifier: Apache-2.0
"""The units under a real systemd: activation, readiness, rights, restart, watchdog, reload, stop."""

import json
import os
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request

import numpy
import pytest

from harness import exposure, place, processes
from harness.load import LoadInside
from harness.machine import Machine, why_not
from harness.messages import pb
from harness.patience import until
from harness.remains import descriptors

REASON = why_not()
pytestmark = [pytest.mark.cpu, pytest.mark.skipif(REASON is not None, reason=str(REASON)), pytest.mark.xdist_group("systemd")]

USER = 12345
FOREVER = """
extern "C" __global__ void forever(volatile int *out)
{
        while (out[0] == 0)
                ;
}
"""
PROGRAMS = ("gpuqd", "gpuqd-supervisor", "gpuqd-worker", "gpuqd-compiler")


@pytest.fixture(scope="module")
def booted():
    with Machine("[gpuqd]\ndevice = cpu\n") as machine:
        yield machine


@pytest.fixture
def machine(booted):
    """With the socket enabled, and nobody connected yet."""
    booted.run("systemctl", "enable", "--now", "gpuqd.socket")
    yield booted
    for folder in ("/run/systemd/system/gpuqd.service.d", "/opt/gpuq/etc/gpuq/gpuqd.conf.d"):
        booted.path(f"{folder}/more.conf").unlink(missing_ok=True)
    booted.run("systemctl", "daemon-reload")
    booted.run("systemctl", "stop", "gpuqd.socket", "gpuqd.service")
    booted.run("systemctl", "reset-failed", "gpuqd.service", check=False)  # another test's starts do not count


def run_job(machine, uid=USER):
    """A job, by the command line."""
    numpy.save(machine.path("/tmp/x.npy"), numpy.arange(64, dtype=numpy.float32))
    told = machine.run("sh", "-c", "cd $(mktemp -d) && gpuq run --json builtin:scale_f32 f32:2 in:/tmp/x.npy out:y.npy:f4:64 u64:64 "
                       ">&2 && od -An -v -w4 -tf4 y.npy", uid=uid)
    assert [float(word) for word in told.split()][-64:] == [2.0 * i for i in range(64)]


def members(machine, program):
    return [pid for pid in processes.descendants(machine.init) if processes.name(pid) == program]


def only(machine, program):
    """The one process of that program. A child of the keeper runs the keeper's until it has become another."""
    if program == "gpuqd":
        return machine.main_process("gpuqd.service")
    (pid,) = members(machine, program)
    return pid


def workers(machine):
    """Of users, and the spare one; those that only look at devices are not meant."""
    return [pid for pid in members(machine, "gpuqd-worker") if processes.is_users_worker(pid)]


def status_exit(machine):
    """How a user's `gpuq status` exits."""
    return int(machine.run("sh", "-c", "gpuq status >/dev/null 2>&1; echo $?", uid=USER))


def is_active(machine):
    return machine.show("gpuqd.service", "ActiveState") == "active"


def was_restarted(machine):
    """By itself."""
    return machine.show("gpuqd.service", "NRestarts") != "0" and is_active(machine)


def assert_one_restart(machine):
    assert machine.show("gpuqd.service", "NRestarts") == "1", machine.log()


def test_the_service_sees_which_slurm_job_a_client_belongs_to(machine):
    """As Slurm does it with cgroup v2: a scope of its own, with a group for each task."""
    group = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"
    machine.write("/run/gpuq-slurm/account-7", "physics\n")
    numpy.save(machine.path("/tmp/x.npy"), numpy.arange(64, dtype=numpy.float32))
    machine.run("systemd-run", "--quiet", "--scope", "--unit=slurmstepd", "--property=Delegate=yes", "sh", "-c",
                f"mkdir -p {group} && echo $$ >{group}/cgroup.procs && exec setpriv --reuid {USER} --regid {USER} --clear-groups "
                "gpuq run --label slurm builtin:scale_f32 f32:2 in:/tmp/x.npy out:/dev/null:f4:64 u64:64")

    def rows():
        return json.loads(machine.run("gpuq", "history", "--label", "slurm", "--json"))["history"]
    (row,) = until(rows, "the job in the history")
    assert (row["slurm_job"], row["uid"]) == (7, USER)
    (row,) = json.loads(machine.run("gpuq", "report", "--by", "account", "--user", str(USER), "--json"))["report"]
    assert row["account"] == "physics"


def test_the_first_client_starts_it(machine):
    assert machine.show("gpuqd.service", "ActiveState") == "inactive"
    run_job(machine)
    assert is_active(machine) and machine.show("gpuqd.service", "Type") == "notify"


def test_each_part_has_its_user_and_no_right_too_many(machine):
    run_job(machine)
    users = dict(line.split(":")[0:3:2] for line in machine.path("/etc/passwd").read_text().splitlines())

    def capabilities(pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(status.split("CapEff:")[1].split()[0], 16), "NoNewPrivs:\t1" in status

    assert processes.uid(only(machine, "gpuqd-supervisor")) == int(users["gpuq"])
    uids = {processes.uid(pid) for pid in workers(machine) if "--spare" not in processes.command(pid) or processes.uid(pid)}
    assert USER in uids <= {USER, int(users["gpuq-worker"])}  # a spare that has no user yet is root's
    allowed = sum(1 << bit for bit in (5, 6, 7, 8))  # kill, setgid, setuid, setpcap
    assert capabilities(only(machine, "gpuqd")) == (allowed, True)
    assert capabilities(only(machine, "gpuqd-supervisor")) == (0, True)
    assert {capabilities(pid) for pid in workers(machine) if processes.uid(pid) == USER} == {(0, True)}
    n_of_unit = processes.n_filters(only(machine, "gpuqd"))
    for pid in only(machine, "gpuqd-supervisor"), *workers(machine):
        assert processes.n_filters(pid) > n_of_unit > 0
        assert processes.bounding_set(pid) == 0


def test_a_spare_keeps_what_it_needs_to_become_its_user_and_nothing_then(machine):
    machine.write("/opt/gpuq/etc/gpuq/gpuqd.conf.d/more.conf", "[gpuqd]\nspare_workers = 1\n")
    until(lambda: status_exit(machine) == 0, "a device")

    def spares():
        return {worker["pid"] for worker in json.loads(machine.run("gpuq", "status", "--json"))["workers"] if worker["state"] == "spare"}
    (spare,) = until(spares, "a spare worker")
    (pid,) = [pid for pid in members(machine, "gpuqd-worker") if processes.number_inside(pid) == str(spare)]
    assert "\nCapPrm:\t00000000000000c0\n" in pathlib.Path(f"/proc/{pid}/status").read_text()  # setgid, setuid
    assert processes.bounding_set(pid) == 0
    run_job(machine)
    assert processes.uid(pid) == USER and processes.bounding_set(pid) == 0
    assert "\nCapPrm:\t0000000000000000\n" in pathlib.Path(f"/proc/{pid}/status").read_text()


def can_read_kernel_log():
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
        return True
    except OSError:
        return False


@pytest.mark.skipif(not can_read_kernel_log(), reason="root itself cannot read /dev/kmsg here")
def test_the_units_sandbox_lets_it_read_the_kernels_log(machine):
    run_job(machine)
    (device,) = json.loads(machine.run("gpuq", "status", "--json"))["devices"]
    assert device["xids"] == 0
    who = [pid for pid in (only(machine, "gpuqd"), only(machine, "gpuqd-supervisor"), *workers(machine))
           if any(name.endswith("/dev/kmsg") for name in descriptors(pid))]
    assert who == [only(machine, "gpuqd"), only(machine, "gpuqd-supervisor")]


def test_roots_jobs_run_as_the_worker_user(machine):
    run_job(machine, uid=0)
    users = dict(line.split(":")[0:3:2] for line in machine.path("/etc/passwd").read_text().splitlines())
    assert {processes.uid(pid) for pid in workers(machine)} == {int(users["gpuq-worker"])}


def test_a_killed_supervisor_is_the_keepers_affair(machine):
    run_job(machine)
    keeper = only(machine, "gpuqd")
    os.kill(only(machine, "gpuqd-supervisor"), signal.SIGKILL)
    run_job(machine)
    assert only(machine, "gpuqd") == keeper and machine.show("gpuqd.service", "NRestarts") == "0"


@pytest.mark.parametrize("program", ("gpuqd-supervisor", "gpuqd"))
def test_clients_go_on_when_it_is_killed(machine, program):
    """The end of either is its workers' end: a job that was writing to its client's memory is not run twice."""
    run_job(machine)
    with LoadInside(machine, processes=1, seed=1) as load:
        load.progress(2)
        pid = only(machine, program)
        os.kill(pid, signal.SIGKILL)
        until(lambda: members(machine, program) not in ([], [pid]), "another one")
        load.progress(2)
    load.assert_only({pb.E_HALF_WRITTEN})
    assert not load.setup_codes(), load.setup_codes()
    assert all(member.n_connects() == 1 for member in load.members), "a session was lost"
    until(lambda: "took over after" in machine.log(), "the takeover to be told of")


def test_a_restart_under_load_loses_nothing(machine):
    """An upgrade: what is in flight ends first, so that jobs which may not run twice are whole too."""
    run_job(machine)
    with LoadInside(machine, processes=1, seed=2) as load:
        for _ in range(3):
            load.progress(2)
            keeper = machine.show("gpuqd.service", "MainPID")
            machine.run("systemctl", "restart", "gpuqd")
            assert machine.show("gpuqd.service", "MainPID") != keeper
        load.progress(2)
    load.assert_only(set())
    assert not load.setup_codes(), load.setup_codes()
    assert all(member.n_connects() == 1 for member in load.members), "a session was lost"
    assert machine.show("gpuqd.service", "Result") == "success"


def start_forever(machine):
    """A client of an ordinary user, who waits for a kernel that does not end."""
    machine.write("/tmp/forever.cu", FOREVER)
    client = subprocess.Popen([*machine.enter(USER, namespaces=()), "sh", "-c", "cd $(mktemp -d) && exec gpuq run /tmp/forever.cu:forever out:y.npy:i4:1"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: is_running(machine), "the kernel to run")
    return client


def is_running(machine):
    return any(job["state"] == "running" for job in json.loads(machine.run("gpuq", "queue", "--json"))["jobs"])


def test_a_restart_does_not_wait_for_a_kernel_without_end(machine):
    client = start_forever(machine)
    machine.run("systemctl", "restart", "gpuqd")
    assert "1 jobs in flight, which did not end within" in machine.log()
    assert machine.show("gpuqd.service", "Result") == "success" and is_active(machine)
    assert client.poll() is None or "E_HALF_WRITTEN" in client.stdout.read()
    run_job(machine, uid=USER + 1)
    client.kill()
    client.wait()


def test_a_stop_is_told_to_clients_and_is_the_end(machine):
    client = start_forever(machine)
    machine.run("systemctl", "stop", "gpuqd.service")
    told, _ = client.communicate()
    assert client.returncode and "gpuqd is shutting down" in told
    assert machine.show("gpuqd.service", "ActiveState") == "inactive"
    assert machine.show("gpuqd.service", "Job") == ""


def test_a_killed_keeper_is_started_again(machine):
    run_job(machine)
    before = {pid for name in PROGRAMS for pid in members(machine, name)}
    os.kill(only(machine, "gpuqd"), signal.SIGKILL)
    until(lambda: was_restarted(machine), "a restart")
    run_job(machine)
    assert_one_restart(machine)
    assert not any(processes.is_alive(pid) for pid in before)


def test_a_keeper_that_hangs_is_noticed_by_the_watchdog(machine):
    def watch(seconds):
        """From its next start on: a machine may be too slow for what is to be short here."""
        machine.write("/run/systemd/system/gpuqd.service.d/more.conf", f"[Service]\nWatchdogSec={seconds}s\nLimitCORE=0\n")
        machine.run("systemctl", "daemon-reload")

    watch(5)
    run_job(machine)
    watch(60)
    keeper = only(machine, "gpuqd")
    os.kill(keeper, signal.SIGSTOP)
    until(lambda: not processes.is_alive(keeper), "it to be killed")
    until(lambda: was_restarted(machine), "a restart")
    assert only(machine, "gpuqd") not in (None, keeper)
    run_job(machine)
    assert_one_restart(machine)


def test_a_reload_takes_a_right_change_and_leaves_a_wrong_one(machine):
    run_job(machine)
    more = "/opt/gpuq/etc/gpuq/gpuqd.conf.d/more.conf"
    machine.write(more, "[gpuqd]\ndevise = cpu\n")
    machine.run("systemctl", "reload", "gpuqd")
    until(lambda: "devise" in machine.log(), "the wrong key to be told")
    run_job(machine)
    machine.write(more, "[gpuqd]\nallow_groups = gpuq-admin\n")
    machine.run("systemctl", "reload", "gpuqd")
    until(lambda: status_exit(machine) == 5, "others to be shut out")
    machine.path(more).unlink()
    machine.run("systemctl", "reload", "gpuqd")
    until(lambda: status_exit(machine) == 0, "others to be let in")


def test_stopping_leaves_no_process_and_no_socket(machine):
    run_job(machine)
    machine.run("systemctl", "stop", "gpuqd.socket", "gpuqd.service")
    assert [name for name in PROGRAMS if members(machine, name)] == []
    assert not machine.path("/run/gpuq/gpuqd.sock").exists()
    assert machine.show("gpuqd.service", "Result") == "success"
    machine.run("gpuq", "status", uid=USER, check=3)


def test_a_wrong_configuration_is_told_by_the_unit(machine):
    machine.write("/opt/gpuq/etc/gpuq/gpuqd.conf.d/more.conf", "[gpuqd]\ndevise = cpu\n")
    machine.run("systemctl", "start", "gpuqd.service", check=1)
    assert "devise" in machine.log()


def test_without_a_gpu_it_says_what_it_waits_for(machine):
    machine.write("/opt/gpuq/etc/gpuq/gpuqd.conf.d/more.conf", "[gpuqd]\ndevice = gpu\n")


    def state():
        return json.loads(machine.run("gpuq", "status", "--json", uid=USER, check=3))["state"]

    until(lambda: state() != "gpuqd is looking for devices", "a first look for devices")
    assert is_active(machine) and "libcuda" in state(), state()


def test_the_metrics_unit_serves_as_a_user_without_rights(machine):
    run_job(machine)
    machine.write("/run/systemd/system/gpuq-metrics.service.d/port.conf",
                  "[Service]\nExecStart=\nExecStart=/opt/gpuq/bin/gpuq --socket /run/gpuq/gpuqd.sock metrics --listen 127.0.0.1:0\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "gpuq-metrics.service")
    log = machine.path("/gpuq-metrics.log")
    told = until(lambda: re.search(r"listening on (127\.0\.0\.1:\d+)\n", log.read_text()), "it to listen")
    with urllib.request.urlopen(f"http://{told[1]}/metrics", timeout=place.PATIENCE_S) as answer:
        assert f'gpuq_user_jobs_ended_total{{user="{USER}",uid="{USER}",outcome="done"}}' in answer.read().decode()
    pid = machine.main_process("gpuq-metrics.service")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    assert processes.uid(pid) not in (0, USER) and re.search(r"CapBnd:\t0+\n", status) and "NoNewPrivs:\t1" in status

    machine.run("systemctl", "stop", "gpuqd.socket", "gpuqd.service")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{told[1]}/metrics", timeout=place.PATIENCE_S)
    assert refused.value.code == 503 and "/run/gpuq/gpuqd.sock" in refused.value.read().decode()
    machine.run("systemctl", "stop", "gpuq-metrics.service")
    assert machine.show("gpuq-metrics.service", "Result") == "success"


@pytest.mark.parametrize("unit, most", [("gpuqd.service", 20), ("gpuq-metrics.service", 13)])
def test_no_unit_is_more_exposed_than_it_was(unit, most):
    """In tenths of what systemd-analyze says."""
    subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={most}",
                    place.STAGE / "lib" / "systemd" / "system" / unit], check=True, stdout=subprocess.DEVNULL)


def unit_text():
    return (place.STAGE / "lib" / "systemd" / "system" / "gpuqd.service").read_text()


@pytest.fixture(scope="module")
def no_filters():
    """Why the filters of processes cannot be read here, or None."""
    return exposure.why_not()


@pytest.mark.parametrize("program, most", [("gpuqd-supervisor", 0.8), ("gpuqd-worker", 1.5)])
def test_a_unit_with_what_each_process_has_would_score(machine, tmp_path, no_filters, program, most):
    """systemd rates units. So this rates the unit that would give a process what it is seen to have, and no more."""
    if no_filters:
        pytest.skip(no_filters)
    run_job(machine)
    (pid,) = [pid for pid in members(machine, program) if program == "gpuqd-supervisor" or processes.uid(pid) == USER]
    assert exposure.shares_namespaces(pid, only(machine, "gpuqd"))
    score, costs = exposure.rate(exposure.equivalent(unit_text(), pid), tmp_path)
    print(program, score, costs)
    if program == "gpuqd-supervisor" and not exposure.has_landlock():
        assert "PrivateDevices=" in costs
        pytest.skip("this kernel has no Landlock, which closes devices to the supervisor")
    assert score <= most, costs
    run_job(machine)


def test_an_equivalent_unit_claims_nothing_that_a_process_has_not(machine, tmp_path, no_filters):
    """The keeper has no filter of its own: it scores what its unit does, and a process outside of any unit far more."""
    if no_filters:
        pytest.skip(no_filters)
    run_job(machine)
    keeper = exposure.system_calls(exposure.filters(only(machine, "gpuqd")))
    assert "chown" in keeper[1].split() and "ptrace" not in keeper[1] and keeper[3] == "RestrictAddressFamilies=AF_UNIX"
    nothing = exposure.system_calls([])
    assert "ptrace" in nothing[1] and "AF_INET" in nothing[3] and "user" in nothing[4]
    (worker,) = [pid for pid in members(machine, "gpuqd-worker") if processes.uid(pid) == USER]
    assert "/dev/ptmx" in exposure.openable_devices(worker)
