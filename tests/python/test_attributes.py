# SPDX-License-Identifier: Apache-2.0
"""What a device tells of a kernel: attributes, and how many blocks it runs at once."""

import numpy as np
import pytest

SOURCE = r"""
extern "C" __global__ void plain(float *x)
{
        x[threadIdx.x] *= 2;
}

extern "C" __global__ void shared(float *x)
{
        __shared__ float tile[512];
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""
NAMES = {"max_threads_per_block", "num_regs", "shared_size_bytes", "const_size_bytes", "local_size_bytes", "ptx_version",
         "binary_version"}


@pytest.fixture
def module(gpuq):
    return gpuq.module(SOURCE)


def on_gpu(gpuq):
    return "CPU" not in gpuq.status().devices[0].name


def test_attributes_are_told_with_the_kernel(gpuq, module):
    attributes = module["plain"].attributes
    assert set(attributes) == NAMES
    assert attributes["max_threads_per_block"] == module["plain"].max_block == 1024
    assert 0 < attributes["num_regs"] <= 255
    assert attributes["local_size_bytes"] == 0
    assert attributes["binary_version"] >= 50
    if on_gpu(gpuq):
        assert module["shared"].attributes["shared_size_bytes"] == 2048


def test_cupys_and_pycudas_properties(gpuq):
    raw = gpuq.RawKernel(SOURCE, "plain")
    assert raw.num_regs == raw.attributes["num_regs"] > 0
    function = gpuq.SourceModule("__global__ void plain(float *x) { x[threadIdx.x] *= 2; }\n").get_function("plain")
    for name in NAMES:
        assert getattr(raw, name) == raw.attributes[name]
        assert isinstance(getattr(function, name), int)


def test_occupancy_falls_with_the_block_and_its_shared_memory(module):
    plain = module["plain"]
    small, large = plain.occupancy(32), plain.occupancy(1024)
    assert small > large >= 1
    assert plain.occupancy((32, 32)) == large
    assert 1 <= plain.occupancy(32, 32 << 10) < small


def test_occupancy_is_asked_again_in_another_session(gpuq, module):
    with gpuq.connect() as other:
        assert other.module(SOURCE)["plain"].occupancy(256) == module["plain"].occupancy(256)
    assert module["plain"].occupancy(256, device=0) >= 1


def test_a_block_that_cannot_be_is_refused(gpuq, module):
    with pytest.raises(gpuq.InvalidError, match="limit is 1024"):
        module["plain"].occupancy(2048)
    with pytest.raises(ValueError, match="block: each length must be 1 or more"):
        module["plain"].occupancy(0)
    with pytest.raises(gpuq.InvalidError, match="limit is 1024"):
        module["plain"].occupancy((1 << 31, 2))
    with pytest.raises(gpuq.InvalidError, match="shared memory"):
        module["plain"].occupancy(32, 1 << 30)


@pytest.mark.parametrize("block, more, error", [
    ("x", {}, TypeError), (None, {}, TypeError), (1.5, {}, TypeError), (1 << 32, {}, ValueError), (32, {"shmem_size": 1.5}, TypeError),
    (32, {"shmem_size": 1 << 40}, ValueError), (32, {"device": "0"}, TypeError), (32, {"device": -3}, ValueError)])
def test_what_is_no_block_is_refused_at_once(module, block, more, error):
    with pytest.raises(error):
        module["plain"].occupancy(block, **more)


def test_built_in_kernels_have_them_too(gpuq):
    add = gpuq.builtin().get_kernel("add_f32")
    assert add.attributes["num_regs"] > 0 and add.occupancy(256) >= 1


def test_occupancy_does_not_disturb_the_kernels_jobs(gpuq, module):
    x = np.ones(32, np.float32)
    for _ in range(3):
        module["plain"].occupancy(32)
        module["plain"].run((1, 32), gpuq.InOut(x))
    assert (x == 8).all()
