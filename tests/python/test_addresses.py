# SPDX-License-Identifier: Apache-2.0
"""Addresses of device memory: kept in arrays of pointers and structs, and the same in every worker."""

import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

from harness.patience import until

N = 1000

SOURCE = r"""
extern "C" __global__ void add_rows(const float *const *rows, int n_rows, float *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = 0;
        if (i >= n)
                return;
        for (int k = 0; k < n_rows; k++)
                sum += rows[k][i];
        out[i] = sum;
}

struct Vector { float *data; long long n; };

extern "C" __global__ void scale(const Vector *vectors, float factor)
{
        Vector v = vectors[blockIdx.y];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < v.n)
                v.data[i] *= factor;
}
"""
LAUNCH = ((N + 127) // 128, 128)
ROW = np.arange(N, dtype=np.float32)


@pytest.fixture
def kernels(gpuq):
    return gpuq.module(SOURCE)


@pytest.fixture
def rows(gpuq):
    return [gpuq.to_device(ROW * factor) for factor in (1, 10, 100)]


def table(gpuq, arrays):
    return gpuq.to_device(np.array([array.address for array in arrays], np.uint64))


def sum_of_rows(gpuq, kernels, rows, **options):
    out = gpuq.device_array(N, np.float32)
    kernels["add_rows"].run(LAUNCH, gpuq.In(table(gpuq, rows)), len(rows), gpuq.Out(out), N,
                            uses=[gpuq.In(row) for row in rows], **options)
    return out.get()


def test_an_array_of_pointers(gpuq, kernels, rows):
    np.testing.assert_array_equal(sum_of_rows(gpuq, kernels, rows), ROW * 111)


def test_structs_with_pointers_and_uses_that_are_written(gpuq, kernels, rows):
    vectors = np.zeros(3, [("data", np.uint64), ("n", np.int64)])
    vectors["data"] = [row.address for row in rows]
    vectors["n"] = N
    kernels["scale"].run((((N + 127) // 128, 3), 128), gpuq.In(gpuq.to_device(vectors.view(np.uint8))), 2.0, uses=rows)
    for row, factor in zip(rows, (2, 20, 200)):
        np.testing.assert_array_equal(row.get(), ROW * factor)


def test_addresses_differ_and_slices_are_at_their_offset(gpuq):
    a, b = gpuq.device_array(N, np.float32), gpuq.device_array((3, N), np.float64)
    assert abs(a.address - b.address) >= min(a.nbytes, b.nbytes)
    assert b[2:].address == b.address + 2 * N * 8


def test_a_job_by_address_comes_after_what_wrote_the_array(gpuq, kernels, rows, module, gate):
    module["gated"].submit((1, 1), gate.flag, gpuq.In(np.int32([5])), gpuq.InOut(rows[0].view(np.int32)[:1]))
    out = gpuq.device_array(N, np.float32)
    later = kernels["add_rows"].submit(LAUNCH, gpuq.In(table(gpuq, rows)), 3, gpuq.Out(out), N, uses=[gpuq.In(row) for row in rows])
    gate.open()
    later.wait()
    assert out.get()[0] == np.int32([15]).view(np.float32)[0]


def test_another_process_sees_the_same_address(gpuq, rows):
    program = "import sys, pickle; print(pickle.load(sys.stdin.buffer).address)"
    answer = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(rows[1]), capture_output=True, check=True)
    assert int(answer.stdout) == rows[1].address


def test_the_next_worker_has_it_at_the_same_address(gpuq, gpuqd, kernels, rows):
    pointers = table(gpuq, rows)
    (worker,) = gpuqd.workers()
    os.kill(worker, signal.SIGKILL)
    until(lambda: f"worker {worker} ended" in gpuqd.log(), "gpuqd to know of it")
    out = gpuq.device_array(N, np.float32)
    kernels["add_rows"].run(LAUNCH, gpuq.In(pointers), 3, gpuq.Out(out), N, uses=rows)
    np.testing.assert_array_equal(out.get(), ROW * 111)
    assert gpuqd.workers() != [worker]


def test_so_has_the_next_supervisor(gpuq, gpuqd, kernels, rows):
    pointers, addresses = table(gpuq, rows), [row.address for row in rows]
    os.kill(gpuqd.supervisor(), signal.SIGKILL)
    out = gpuq.device_array(1 << 20, np.float32)  # must not be put where one of those is
    kernels["add_rows"].run(LAUNCH, gpuq.In(pointers), 3, gpuq.Out(out[:N]), N, uses=rows)
    np.testing.assert_array_equal(out[:N].get(), ROW * 111)
    assert [row.address for row in rows] == addresses
    assert not any(out.address <= address < out.address + out.nbytes for address in addresses)


def test_a_freed_address_comes_back_late(gpuq):
    """So that a stale pointer faults."""
    def address_of_a_large_one():
        with gpuq.connect() as other:
            return other.device_array(16 << 20, np.uint8).address
    assert len({address_of_a_large_one() for _ in range(8)}) == 8


def test_a_prepared_job_keeps_what_it_uses(gpuq, kernels, rows):
    out = gpuq.device_array(N, np.float32)
    prepared = kernels["add_rows"].prepare(LAUNCH, gpuq.In(table(gpuq, rows)), 3, gpuq.Out(out), N, uses=[gpuq.In(row) for row in rows])
    del rows[:]
    for _ in range(3):
        again = gpuq.device_array(N, np.float32)  # not in the memory that the prepared job uses
        again.fill(7)
        prepared.fire().wait()
        np.testing.assert_array_equal(out.get(), ROW * 111)


def test_a_checked_job_may_follow_pointers_to_what_it_names(gpuq, kernels, rows):
    np.testing.assert_array_equal(sum_of_rows(gpuq, kernels, rows, check=True), ROW * 111)
    out = gpuq.device_array(N, np.float32)
    with pytest.raises(gpuq.KernelFault, match="add_rows"):
        kernels["add_rows"].run(LAUNCH, gpuq.In(table(gpuq, rows)), 3, gpuq.Out(out), N, uses=[gpuq.In(row) for row in rows[:2]],
                                check=True)


def test_only_device_memory_has_an_address(gpuq, kernels):
    with pytest.raises(TypeError, match="use: expected a DeviceArray, not Array: only device memory"):
        gpuq.job().use(gpuq.array(ROW))
    assert not hasattr(gpuq.array(ROW), "address")
