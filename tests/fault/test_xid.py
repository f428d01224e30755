# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's driver says of its devices in the kernel's log, here in a file that stands in for it."""

import json
import os
import random
import signal

import pytest

from harness import kernels, processes
from harness.client import Client, InOut, Job, u64
from harness.kernels import FAR, assert_failed
from harness.messages import pb
from harness.patience import until

LAUNCH_FAILED = 719  # CUresult: of a kernel, as the worker has to take it

pytestmark = pytest.mark.cpu


class KernelLog:
    """Records as /dev/kmsg has them, of devices of the CPU driver."""

    def __init__(self, path):
        self.path = path
        self.number = 0
        self.says("before gpuqd started: ffff:00:00 79")
        self.xid(0, 79, "GPU has fallen off the bus.")

    def write(self, data):
        with open(self.path, "ab") as file:
            file.write(data)

    def says(self, text, facility=0):
        self.number += 1
        self.write(f"{facility << 3 | 6},{self.number},{self.number * 1000},-;{text}\n SUBSYSTEM=pci\n".encode())

    def xid(self, device, number, text, pid=None, **fields):
        process = f"pid={pid}, name=gpuqd-worker, " if pid else ""
        self.says(f"NVRM: Xid (PCI:ffff:{device:02x}:00): {number}, {process}{text}", **fields)


@pytest.fixture
def log(tmp_path):
    return KernelLog(tmp_path / "kmsg")


@pytest.fixture
def start(start_gpuqd, log):
    return lambda **settings: start_gpuqd(kernel_log=log.path, **settings)


@pytest.fixture
def gpuqd(start):
    return start(cpu_devices=2)


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def devices(gpuqd):
    return json.loads(gpuqd.run("status", "--json").stdout)["devices"]


def is_drained(gpuqd, device=0):
    with Client(gpuqd.socket) as client:
        return client.status().devices[device].drained == pb.ITSELF


def own_pid(gpuqd, client, module, **fields):
    """Of the one worker there is, after it did something."""
    client.run_well(Job(**fields).launch(module, "nothing"))
    (pid,) = gpuqd.workers()
    return pid


def wild_job(client, module, **fields):
    return Job(**fields).launch(module, "wild", [InOut(client.arena(4)), u64(FAR)])


def test_the_guilty_jobs_error_names_it(gpuqd, client, module, log):
    pid = own_pid(gpuqd, client, module, device=1)
    log.xid(0, 45, "Ch 00000008", pid)
    log.xid(0, 31, "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS", pid)
    log.xid(0, 31, "Ch 00000009, of another", pid + 1)
    completion = client.run(wild_job(client, module, device=1))
    assert_failed(completion, pb.E_FAULT, "wild: ", "no other job was in flight",
                  "; Xid 31 (GPU memory page fault): Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS (this job")
    assert [device["xids"] for device in devices(gpuqd)] == [3, 0]
    assert not is_drained(gpuqd)

    # Each explains one fault.
    completion = client.run(wild_job(client, module, device=1))
    assert_failed(completion, pb.E_FAULT, "wild")
    assert "Xid" not in completion.error.text


def test_of_a_record_without_a_process_the_number_alone(gpuqd, client, module, log):
    own_pid(gpuqd, client, module, device=1)
    log.says("NVRM: Xid (PCI:ffff:00:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ESR 0x57c730=0xc04000b")
    completion = client.run(wild_job(client, module, device=1))
    assert_failed(completion, pb.E_FAULT, "Xid 13 (graphics engine exception), for which the kernel log names no process")
    assert "ESR" not in completion.error.text


def test_a_fatal_one_drains_the_device_until_it_is_given_back(gpuqd, client, module, log):
    log.xid(0, 79, "GPU has fallen off the bus.")
    log.xid(0, 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    until(lambda: is_drained(gpuqd), "it to be drained")
    reason = "Xid 79, GPU has fallen off the bus: restart the machine"
    state = devices(gpuqd)
    assert [device["drained"] for device in state] == ["itself", None]
    assert state[0]["state"] == f"drained automatically: {reason}" and "Xid 79" in gpuqd.run("status").stdout

    # What left the choice goes to the other one, what named it waits and says why.
    named = client.submit(Job(device=1).launch(module, "nothing"))
    assert client.run_well(Job().launch(module, "nothing")).device == 1
    until(lambda: reason in client.queue()[named].reason, "it to wait for the device")
    gpuqd.run("resume", 0)
    assert client.wait(named).state == pb.DONE and client.completions[named].device == 0


def test_where_the_hardware_failed_work_moves_and_nobody_is_blamed(start, tmp_path, log):
    """The driver's word to the worker is one of a kernel's own fault: the log knows better."""
    broken = tmp_path / "broken"
    gpuqd = start(cpu_devices=2, cpu_broken=broken)
    client = gpuqd.connect()
    module = client.load(kernels.BASIC)
    pid = own_pid(gpuqd, client, module, device=1)
    broken.write_text(f"0 {LAUNCH_FAILED}\n")
    log.xid(0, 95, "uncontained ECC error", pid)
    jobs = client.submit(*[Job().launch(module, "nothing") for _ in range(20)])
    assert all(client.wait(job).state == pb.DONE and client.completions[job].device == 1 for job in jobs)
    assert "faulted" not in gpuqd.log()
    assert "Xid 95" in devices(gpuqd)[0]["state"]


def test_rubbish_changes_nothing(gpuqd, client, module, log):
    draw = random.Random(1)
    for _ in range(50):
        log.write(draw.randbytes(1000))
    log.write(b"\n6,1,1,-;NVRM: Xid (PCI:ffff:00:00): " + b"9" * 20000 + b"\n")
    log.says("NVRM: Xid (PCI:ffff:00:00): 79, GPU has fallen off the bus.", facility=1)  # as a program writes it
    log.says("gpuq: NVRM: Xid (PCI:ffff:00:00): 79, GPU has fallen off the bus.")
    log.xid(7, 79, "GPU has fallen off the bus.")
    log.write(b"6,1,1,-;NVRM: Xid (PCI:ffff:00:")  # the rest comes below
    pid = own_pid(gpuqd, client, module, device=1)
    log.write(f"00): 31, pid={pid}, name=gpuqd-worker, Ch 1\n".encode())
    assert_failed(client.run(wild_job(client, module, device=1)), pb.E_FAULT, "Xid 31")
    assert [device["drained"] for device in devices(gpuqd)] == [None, None]
    assert [device["xids"] for device in devices(gpuqd)] == [1, 0]


def test_the_next_supervisor_goes_on_where_the_last_one_was(gpuqd, log):
    """What it had read, and what came while nobody read."""
    log.xid(0, 48, "An uncorrectable double bit error (DBE) has been detected")
    until(lambda: is_drained(gpuqd), "it to be drained")
    dead = gpuqd.supervisor()
    processes.stop(dead)
    log.xid(1, 119, "Timeout after 6s of waiting for RPC response from GPU1 GSP!")
    os.kill(dead, signal.SIGKILL)
    until(lambda: gpuqd.supervisor() != dead and gpuqd.is_serving() and is_drained(gpuqd, 1), "the next one to read it")
    first, second = devices(gpuqd)
    assert first["drained"] == "itself" and "Xid 48, double bit ECC error: reset the GPU" in first["state"]
    assert "Xid 119, GSP RPC timeout: reset the GPU" in second["state"]
    assert [first["xids"], second["xids"]] == [0, 1]  # of this supervisor

    gpuqd.run("resume", 0)
    dead = gpuqd.supervisor()
    os.kill(dead, signal.SIGKILL)
    until(lambda: gpuqd.supervisor() != dead and gpuqd.is_serving(), "another one")
    assert [device["drained"] for device in devices(gpuqd)] == [None, "itself"]


def test_a_fifo_does_as_well(start_gpuqd, tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    gpuqd = start_gpuqd(kernel_log=path)
    log = KernelLog(path)  # it comes and goes with each record
    until(lambda: is_drained(gpuqd), "it to be drained")
    gpuqd.run("resume", 0)
    log.xid(0, 62, "2023b230 20238a3a")
    until(lambda: is_drained(gpuqd), "it to be drained")
    assert "Xid 62, internal micro-controller halt" in devices(gpuqd)[0]["state"]


@pytest.mark.parametrize("kernel_log", ("", "/nowhere/kmsg", "/tmp"))
def test_without_a_log_all_else_goes_on(start_gpuqd, kernel_log):
    gpuqd = start_gpuqd(kernel_log=kernel_log)
    client = gpuqd.connect()
    module = client.load(kernels.BASIC)
    completion = client.run(wild_job(client, module))
    assert_failed(completion, pb.E_FAULT, "wild")
    assert "Xid" not in completion.error.text
    assert devices(gpuqd)[0]["xids"] is None
