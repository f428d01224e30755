# SPDX-License-Identifier: Apache-2.0
"""Jobs of many sessions that run as one launch: results, and that it happened."""

import numpy
import pytest

from harness import kernels
from harness.client import In, InOut, Job, Out, i64, u64
from harness.kernels import GateJob
from harness.messages import pb
from harness.patience import until

SESSIONS, EACH, N = 12, 8, 500

# One that jumps far off at once: one that runs on past its end would first write over what else its user has there.
SHIFTED = r"""
extern "C" __global__ void shifted(const float *a, const float *b, float *c, unsigned long long n, long long offset)
{
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        if (i < n)
                c[(long long)i + offset] = a[i] + b[i];
}
"""


def counters(gpuqd):
    """Of the one worker, as `gpuq status` tells them."""
    (worker,) = gpuqd.connect().status().workers
    return worker.counters


def all_told(gpuqd):
    told = counters(gpuqd)
    return told if told.in_place + told.staged_by_kernel == SESSIONS * EACH else None


class Crowd:
    """Sessions of one user, each with jobs that add two slices of its own."""

    def __init__(self, gpuqd, shifted=False):
        self.clients = [gpuqd.connect() for _ in range(SESSIONS)]
        self.modules = [client.load(SHIFTED) if shifted else client.builtin() for client in self.clients]
        self.kernel, self.last = ("shifted", [i64(0)]) if shifted else ("add_f32", [])
        random = numpy.random.default_rng(7)
        self.data = [random.standard_normal((EACH, 2, N)).astype("f4") for _ in self.clients]
        self.inputs = [client.array(data) for client, data in zip(self.clients, self.data)]
        self.outputs = [client.arena(EACH * N * 4) for client in self.clients]

    def job(self, i, k, **fields):
        def slice_of(arena, n):
            return arena.slice(4 * N * n, 4 * N)
        return Job(**fields).launch(self.modules[i], self.kernel,
                                    [In(slice_of(self.inputs[i], 2 * k)), In(slice_of(self.inputs[i], 2 * k + 1)),
                                     Out(slice_of(self.outputs[i], k)), u64(N), *self.last], grid=2, block=256)

    def submit(self, **fields):
        return [(client, client.submit(self.job(i, k, **fields)))
                for k in range(EACH) for i, client in enumerate(self.clients)]

    def result(self, i):
        return self.outputs[i].array(numpy.float32).reshape(EACH, N)

    def wait(self, submitted):
        for client, job in submitted:
            assert not client.wait(job).error.text


def behind_a_gate(gpuqd):
    """All jobs wait for one, so that they are there together when it ends. Return: the crowd."""
    crowd = Crowd(gpuqd)
    starter = gpuqd.connect()
    gate = GateJob(starter, starter.load(kernels.BASIC))
    submitted = crowd.submit(after=[gate.id])
    gate.open()
    crowd.wait(submitted)
    return crowd


def test_jobs_of_many_sessions_become_one_launch(start_gpuqd):
    gpuqd = start_gpuqd(coalesce_us=200000, express="no")
    crowd = behind_a_gate(gpuqd)
    for i, data in enumerate(crowd.data):
        numpy.testing.assert_array_equal(crowd.result(i), data[:, 0] + data[:, 1])
    # It tells them now and then: also when no more than some of the jobs have run.
    told = until(lambda: all_told(gpuqd), "the worker tells of all jobs")
    assert told.coalesced >= SESSIONS
    assert told.batches <= told.coalesced // 2


@pytest.mark.parametrize("settings", [{"coalesce": "no"}, {"in_place": "no"}, {"coalesce": "no", "in_place": "no"}, {}])
def test_results_are_the_same_bits_with_each_way_off(start_gpuqd, settings):
    crowd = behind_a_gate(start_gpuqd(**settings))
    for i, data in enumerate(crowd.data):
        assert crowd.result(i).tobytes() == (data[:, 0] + data[:, 1]).tobytes()


def test_switched_off_nothing_is_coalesced_or_in_place(start_gpuqd):
    gpuqd = start_gpuqd(coalesce="no", in_place="no", express="no")
    behind_a_gate(gpuqd)
    until(lambda: counters(gpuqd).staged_by_kernel == SESSIONS * EACH, "the worker tells its counters")
    assert counters(gpuqd).coalesced == counters(gpuqd).batches == counters(gpuqd).in_place == 0


def test_a_faulty_job_fails_alone_of_all_that_ran_with_it(start_gpuqd):
    gpuqd = start_gpuqd(coalesce_us=200000, express="no")
    crowd = Crowd(gpuqd, shifted=True)
    starter = gpuqd.connect()
    gate = GateJob(starter, starter.load(kernels.BASIC))
    submitted = crowd.submit(after=[gate.id])
    victim = crowd.clients[3]
    own = victim.arena(4 * N)
    bad = victim.submit(Job(after=[gate.id]).launch(
        crowd.modules[3], "shifted", [In(own), In(own), Out(own), u64(N), i64(1 << 44)], grid=2, block=256))
    gate.open()
    ended = victim.wait(bad)
    assert ended.error.code == kernels.pb.E_FAULT, ended
    crowd.wait(submitted)
    for i, data in enumerate(crowd.data):
        numpy.testing.assert_array_equal(crowd.result(i), data[:, 0] + data[:, 1])


def test_what_is_updated_is_right_after_many_rounds_together(gpuqd):
    """Each round adds to the same slices: order within a session, company between sessions."""
    clients = [gpuqd.connect() for _ in range(SESSIONS)]
    arenas = [client.array(numpy.full(N, i, "f4")) for i, client in enumerate(clients)]
    ones = [client.array(numpy.ones(N, "f4")) for client in clients]
    modules = [client.builtin() for client in clients]
    last = []
    for _ in range(20):
        last = [client.submit(Job().launch(module, "add_f32", [InOut(arena), In(one), InOut(arena), u64(N)],
                                           grid=2, block=256))
                for client, module, arena, one in zip(clients, modules, arenas, ones)]
    for client, job in zip(clients, last):
        assert not client.wait(job).error.text
    for i, arena in enumerate(arenas):
        numpy.testing.assert_array_equal(arena.array(numpy.float32), i + 20)


# The second is called as the service would call what runs many jobs of the first.
TAKEN = """.version 6.3
.target sm_60
.address_size 64
.visible .entry twice(.param .u64 x)
{
        .reg .b32 %r<2>;
        .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [x];
        ld.global.u32 %r1, [%rd1];
        shl.b32 %r1, %r1, 1;
        st.global.u32 [%rd1], %r1;
        ret;
}
.visible .entry twice$gpuq_batch(.param .u64 x)
{
        .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [x];
        st.global.u32 [%rd1], -1;
        ret;
}
"""


def test_a_users_kernel_is_no_twin_whatever_it_is_called(start_gpuqd):
    client = start_gpuqd(coalesce_us=1000).connect()
    module = client.load(TAKEN, format=pb.PTX)
    arenas = [client.array(numpy.full(1, i, "i4")) for i in range(20)]
    for job in client.submit(*[Job().launch(module, "twice", [InOut(arena)]) for arena in arenas]):
        assert not client.wait(job).error.text
    assert [int(arena.array(numpy.int32)[0]) for arena in arenas] == [2 * i for i in range(20)]
    client.run_well(Job().launch(module, "twice$gpuq_batch", [InOut(arenas[0])]))
    assert arenas[0].array(numpy.int32)[0] == -1
