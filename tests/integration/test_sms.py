# SPDX-License-Identifier: Apache-2.0
"""A share of a device's SMs (key sms): the user's kernels run on no more. On the CPU driver an SM is a thread."""

import grp
import math
import os
import pwd
import re
import subprocess

import numpy
import pytest

from harness import kernels, place
from harness.client import Job, Out
from harness.kernels import Gate, gate_job
from harness.messages import pb
from harness.patience import until

ALICE = 12345
THREADS = 8
N_BLOCKS = 2048 if place.on_gpu() else 64
# Each block stays for a while, so that the next one goes elsewhere.
SOURCE = r"""
extern "C" __global__ void where(uint2 *sms)
{
        long long until = clock64() + 20000;
        uint2 sm;

        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm.x));
        asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sm.y));
        while (clock64() < until)
                ;
        if (threadIdx.x == 0)
                sms[blockIdx.x] = sm;
}
"""


def group_of(user):
    return grp.getgrgid(user.pw_gid).gr_name


def myself():
    return pwd.getpwuid(os.geteuid()).pw_name


def where_job(module, out, n_launches=1, n_blocks=N_BLOCKS):
    job = Job()
    for i in range(n_launches):
        job.launch(module, "where", [Out(out.slice(8 * n_blocks * i, 8 * n_blocks))], n_blocks, 64)
    return job


def count(sms):
    """How many SMs there are for the kernels that wrote these. A GPU's driver tells all kernels of all its SMs."""
    return len(set(sms[:, 0])) if place.on_gpu() else sms[:, 1].max()


def sms_of(client, n_launches=1):
    module, out = client.load(SOURCE), client.arena(8 * N_BLOCKS * n_launches)
    client.run_well(where_job(module, out, n_launches))
    return count(out.array(numpy.uint32).reshape(-1, 2))


def most_of(n_all, part):
    """The share, rounded up as the device does: to 8 on compute capability 9.0 and later, to 2 on the CPU driver."""
    step = 8 if place.on_gpu() else 2
    return math.ceil(math.ceil(int(n_all) * part) / step) * step


def assert_is_share(n, n_all, part):
    if not place.on_gpu():
        assert n_all == THREADS and n == most_of(n_all, part)
    assert 0 < n <= most_of(n_all, part) < n_all


@pytest.mark.root
def test_a_class_has_its_share_and_others_have_all(start_gpuqd):
    nobody = pwd.getpwnam("nobody")
    config = f"[class part]\ngroup = {group_of(nobody)}\nsms = 25%\n"
    service = start_gpuqd(private=False, cpu_threads=THREADS, config=config)
    alice, member = service.connect(uid=ALICE), service.connect(uid=nobody.pw_uid)
    assert_is_share(sms_of(member), sms_of(alice), 0.25)
    until(lambda: re.search(r"kernels use \d+ of \d+ SMs \(sms = 25%\)", service.log()), "the number of SMs in the log")
    assert {user.uid: user.sms for user in alice.status().users if user.uid} == {ALICE: "", nobody.pw_uid: "25%"}
    heading, *rows = [line.split() for line in service.run("status").stdout.splitlines()
                      if line.startswith(("USER", "nobody", str(ALICE)))]
    assert heading[-1] == "SMS" and {row[0]: row[-1] for row in rows} == {"nobody": "25%", str(ALICE): "all"}


def test_it_holds_however_a_kernel_is_launched(start_gpuqd):
    """Alone, with others of a job, which are a graph elsewhere, and together with small jobs."""
    n_all = sms_of(start_gpuqd(cpu_threads=THREADS).connect())
    client = start_gpuqd(cpu_threads=THREADS, config=f"[user {myself()}]\nsms = 50%\n").connect()
    assert_is_share(sms_of(client), n_all, 0.5)
    assert_is_share(sms_of(client, 3), n_all, 0.5)

    module, outs = client.load(SOURCE), [client.arena(4096) for _ in range(64)]
    for _ in range(3):
        jobs = [client.submit(where_job(module, out, n_blocks=32)) for out in outs]
        assert {client.wait(job).state for job in jobs} == {pb.DONE}
        sms = numpy.concatenate([out.array(numpy.uint32)[:64].reshape(-1, 2) for out in outs])
        assert_is_share(count(sms), n_all, 0.5)


def test_a_number_of_sms_is_rounded_up(start_gpuqd):
    client = start_gpuqd(cpu_threads=THREADS, config=f"[user {myself()}]\nsms = 3\n").connect()
    assert 0 < sms_of(client) <= (8 if place.on_gpu() else 4)


@pytest.mark.cpu
def test_a_cooperative_grid_must_fit_on_them(start_gpuqd):
    """A thread of the CPU driver takes 32 blocks of 64 threads at once."""
    client = start_gpuqd(cpu_threads=THREADS, config=f"[user {myself()}]\nsms = 25%\n").connect()
    module, out = client.load(SOURCE), client.arena(8 * 65)
    client.run_well(Job().launch(module, "where", [Out(out)], 64, 64, cooperative=True))
    refused = client.run(Job().launch(module, "where", [Out(out)], 65, 64, cooperative=True))
    kernels.assert_failed(refused, pb.E_INVALID, "the user's share of the SMs can run 64 of them at once")


def test_a_user_with_a_share_takes_no_spare(start_gpuqd):
    """Its context is made for all SMs."""
    daemon = start_gpuqd(cpu_threads=THREADS, spare_workers=1, config=f"[user {myself()}]\nsms = 25%\n")
    client = daemon.connect()
    spare, = until(lambda: [worker.pid for worker in client.status().workers if worker.state == "spare"], "a spare")
    assert sms_of(client) <= (40 if place.on_gpu() else 2)
    assert spare not in [worker.pid for worker in client.status().workers if worker.state != "spare"]


def test_the_express_worker_has_the_same_share(start_gpuqd):
    client = start_gpuqd(cpu_threads=THREADS, express="yes", config=f"[user {myself()}]\nsms = 25%\n").connect()
    module, where, out = client.load(kernels.BASIC), client.load(SOURCE), client.arena(8 * N_BLOCKS)
    gate = Gate(client)
    held = client.submit(gate_job(module, gate))

    def n_express(job):
        client.run_well(job)
        return sum(worker.jobs for worker in client.status().workers if worker.express)

    before = until(lambda: n_express(Job()), "a job in the express worker")
    assert n_express(where_job(where, out)) > before
    assert count(out.array(numpy.uint32).reshape(-1, 2)) <= (40 if place.on_gpu() else 2)
    gate.open()
    assert client.wait(held).state == pb.DONE


def test_another_share_counts_when_the_worker_is_idle(start_gpuqd):
    daemon = start_gpuqd(cpu_threads=THREADS)
    client = daemon.connect()
    n_all, before = sms_of(client), daemon.workers()
    daemon.sections = f"[user {myself()}]\nsms = 25%\n"
    daemon.configure()
    until(lambda: not set(before) & set(daemon.workers()), "the end of the worker with all SMs")
    assert_is_share(sms_of(client), n_all, 0.25)
    daemon.sections, before = "", daemon.workers()
    daemon.configure()
    until(lambda: not set(before) & set(daemon.workers()), "the end of the worker with a share")
    assert sms_of(client) > most_of(n_all, 0.25)


@pytest.mark.cpu
@pytest.mark.parametrize("call", ["cuDeviceGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc",
                                  "cuDevicePrimaryCtxSetFlags", "cuGreenCtxCreate", "cuCtxFromGreenCtx"])
def test_if_a_call_fails_kernels_use_all(start_gpuqd, tmp_path, call):
    broken = tmp_path / "broken"
    broken.write_text(f"{call} 801\n")
    daemon = start_gpuqd(cpu_threads=THREADS, cpu_broken=broken, config=f"[user {myself()}]\nsms = 25%\n")
    assert sms_of(daemon.connect()) == THREADS
    warning = f"kernels use all SMs, although sms = 25%: {call}: CUDA_ERROR_NOT_SUPPORTED: operation not supported"
    until(lambda: warning in daemon.log(), "the warning")
    assert daemon.log().count(warning) == 1
    broken.unlink()


def test_shared_isolation_ignores_it_and_says_so(start_gpuqd):
    section = f"[user {myself()}]\nsms = 25%\n"
    warning = f"[user {myself()}] sms = 25% has no effect: with isolation = shared all users share each worker"
    daemon = start_gpuqd(cpu_threads=THREADS, isolation="shared", config=section)
    assert warning in daemon.log()
    client = daemon.connect()
    if not place.on_gpu():
        assert sms_of(client) == THREADS
    assert not any(user.sms for user in client.status().users)
    daemon.configure()
    until(lambda: daemon.log().count(warning) == 2, "the warning at the reload")
    checked = subprocess.run([place.program("gpuqd"), "--private", "--check", "-c", daemon.config], capture_output=True,
                             text=True)
    assert checked.returncode == 0 and warning in checked.stderr
