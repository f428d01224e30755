# SPDX-License-Identifier: Apache-2.0
"""What only a GPU can show; the other system tests run there too, by GPUQ_TEST_DEVICE=gpu."""

import json
import re

import numpy
import pytest

from harness import kernels
from harness.client import In, InOut, Job, Out, u64
from harness.messages import pb
from harness.patience import until

pytestmark = pytest.mark.gpu

CLUSTER = r"""
extern "C" __global__ void rank(unsigned int *out)
{
        unsigned int r;
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
        out[blockIdx.x] = r;
}
"""


def test_the_device_is_a_gpu(client):
    status = client.status()
    assert status.driver == "cuda" and status.driver_version
    assert all(device.uuid.startswith("GPU-") and ":" in device.pci for device in status.devices)


def test_one_context_of_at_most_600_mib_serves_many_processes(gpuqd):
    clients = [gpuqd.connect() for _ in range(16)]
    for client in clients:
        values = client.array(numpy.ones(10000))
        out = client.arena(8)
        client.run_well(Job().launch(client.builtin(), "sum_of_squares_f64", [In(values), Out(out), u64(10000)],
                                     1, 256))
        assert out.array(numpy.float64)[0] == 10000
    workers = until(lambda: [w for w in clients[0].status().workers if w.memory], "a worker's memory to be told")
    assert len(workers) == 1 and workers[0].contexts == 1
    assert workers[0].memory <= 600 << 20


def test_clusters(client):
    module = client.load(CLUSTER)
    out = client.arena(32)
    client.run_well(Job().launch(module, "rank", [Out(out)], 8, 32, cluster=4))
    assert out.array(numpy.uint32).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


def test_a_kernel_compiled_for_clusters_leaves_them_to_no_other(client):
    """A graph's node kept them: whatever was launched by it next ran 2 blocks of 3."""
    others = [f"count{i}" for i in range(6)]
    source = 'extern "C" __global__ void __cluster_dims__(2, 1, 1) pairs(unsigned int *n) { atomicAdd(n, 1); }\n'
    module = client.load(source + "".join(f'extern "C" __global__ void {name}(unsigned int *n) {{ atomicAdd(n, 1); }}\n'
                                          for name in others))
    for name in others:
        for kernel, n_blocks in ("pairs", 4), (name, 3):
            out = client.arena(4)
            client.run_well(Job().launch(module, kernel, [Out(out)], n_blocks, 32))
            assert out.array(numpy.uint32).tolist() == [32 * n_blocks]


def test_gpu_time_is_told(client):
    module = client.load(kernels.BASIC)
    source, target = client.array(numpy.arange(8, dtype=numpy.int32)), client.arena(32)
    completion = client.run_well(kernels.triple_job(module, source, target, 8, timed=True))
    assert 0 < completion.gpu_ns // 1000 <= completion.ran_us


def test_misaligned_access_is_a_fault(client):
    source = """extern "C" __global__ void crooked(char *p) { *(volatile double *)(p + 1) = 1; }"""
    module = client.load(source)
    completion = client.run(Job().launch(module, "crooked", [InOut(client.arena(64))]))
    kernels.assert_failed(completion, pb.E_FAULT, "crooked")


def test_a_faults_error_names_the_xid(gpuqd, client):
    """Whatever the number is: this driver's own words, in this kernel's log."""
    if json.loads(gpuqd.run("status", "--json").stdout)["devices"][0]["xids"] is None:
        pytest.skip("gpuqd cannot read the kernel's log here")
    module = client.load(kernels.BASIC)
    completion = client.run(Job().launch(module, "wild", [InOut(client.arena(4)), u64(kernels.FAR)]))
    kernels.assert_failed(completion, pb.E_FAULT, "wild", "caused the fault")
    assert re.search(r"; Xid \d+ \([^)]+\)", completion.error.text), completion.error.text
    assert client.status().devices[0].drained == pb.NOBODY


def test_a_cubin_is_loaded_as_it_is(client):
    import shutil
    import subprocess
    import tempfile
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not shutil.which(nvcc):
        pytest.skip("no nvcc here")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/k.cu", "w") as file:
            file.write(kernels.BASIC)
        for kind, arch in (("cubin", "native"), ("fatbin", "native"), ("ptx", "compute_80")):
            subprocess.run([nvcc, f"-{kind}", f"-arch={arch}", "-o", f"{folder}/k.{kind}", f"{folder}/k.cu"], check=True)
            with open(f"{folder}/k.{kind}", "rb") as file:
                module = client.load(file.read(), name=f"k.{kind}")
            data = client.array(numpy.zeros(10, numpy.int32))
            client.run_well(Job().launch(module, "add_one", [InOut(data), u64(10)], 1, 32))
            assert set(data.array(numpy.int32)) == {1}


SMS = r"""
extern "C" __global__ void where(unsigned int *sms)
{
        long long until = clock64() + 50000;
        unsigned int sm;

        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        while (clock64() < until)
                ;
        if (threadIdx.x == 0)
                sms[blockIdx.x] = sm;
}
"""


@pytest.mark.root
def test_kernels_of_users_with_a_share_of_the_sms_run_on_no_more(start_gpuqd):
    """While kernels of others run on all of them. A driver without green contexts says so in the log, and this fails."""
    alice, bob, carol = 23456, 23457, 23458
    n_blocks, n_jobs = 4096, 20
    daemon = start_gpuqd(private=False, config=f"[user {alice}]\nsms = 25%\n[user {bob}]\nsms = 16\n")
    clients = {uid: daemon.connect(uid=uid) for uid in (alice, bob, carol)}
    outs, jobs = {}, {}
    for uid, client in clients.items():
        module = client.load(SMS)
        outs[uid] = [client.arena(4 * n_blocks) for _ in range(n_jobs)]
        # Half of the jobs have two launches, which are a graph where there is no share.
        jobs[uid] = [Job().launch(module, "where", [Out(out)], n_blocks, 256) for out in outs[uid]]
        for job, out in zip(jobs[uid][::2], outs[uid][::2]):
            job.launch(module, "where", [Out(out)], n_blocks, 256)
    ids = {uid: client.submit(*jobs[uid]) for uid, client in clients.items()}
    for uid, client in clients.items():
        assert {client.wait(job).state for job in ids[uid]} == {pb.DONE}

    seen = {uid: {sm for out in outs[uid] for sm in out.array(numpy.uint32).tolist()} for uid in clients}
    n_all = len(seen[carol])
    told = re.findall(r"kernels use (\d+) of (\d+) SMs \(sms = (25%|16)\)", daemon.log())
    assert {share: int(n) for n, _, share in told} == {"25%": -(-n_all // 32) * 8, "16": 16}, daemon.log()
    assert {int(whole) for _, whole, _ in told} == {n_all}
    assert len(seen[alice]) <= -(-n_all // 32) * 8 and len(seen[bob]) <= 16
    assert not [w for w in clients[carol].status().workers if w.uid in (alice, bob) and w.counters.graph_misses]
