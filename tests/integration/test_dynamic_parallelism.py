# SPDX-License-Identifier: Apache-2.0
"""Kernels that launch kernels, by CUDA's device runtime: they run on a GPU, and are refused elsewhere in words that say so."""

import numpy
import pytest

from harness import kernels
from harness.client import In, InOut, Job, Out, Refused, i32, u64
from harness.kernels import assert_failed
from harness.messages import pb

LAUNCHES = r"""
extern "C" __global__ void child(int *data, int first)
{
        data[first + threadIdx.x] += 2;
}
extern "C" __global__ void parent(int *data, int n_blocks)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n_blocks)
                child<<<1, 64>>>(data, 64 * i);
}

// Its children are not done when it returns.
extern "C" __global__ void late_child(int *data)
{
        for (int i = 0; i < 20000; i++)
                __nanosleep(1000);
        data[threadIdx.x] = 7;
}
extern "C" __global__ void late(int *data)
{
        late_child<<<1, 32>>>(data);
}

extern "C" __global__ void sort(int *x, int low, int high, int depth)
{
        if (depth == 0) {
                for (int i = low + 1; i < high; i++)
                        for (int k = i; k > low && x[k - 1] > x[k]; k--) {
                                int y = x[k];
                                x[k] = x[k - 1];
                                x[k - 1] = y;
                        }
                return;
        }
        int pivot = x[low + (high - low) / 2], l = low, r = high - 1;
        while (l <= r) {
                while (x[l] < pivot)
                        l++;
                while (x[r] > pivot)
                        r--;
                if (l <= r) {
                        int y = x[l];
                        x[l++] = x[r];
                        x[r--] = y;
                }
        }
        if (low < r)
                sort<<<1, 1>>>(x, low, r + 1, depth - 1);
        if (l < high - 1)
                sort<<<1, 1>>>(x, l, high, depth - 1);
}

extern "C" __global__ void wild_child(int *data)
{
        ((int *)0x10)[threadIdx.x] = 1;
}
extern "C" __global__ void wild(int *data)
{
        wild_child<<<1, 32>>>(data);
}

extern "C" __global__ void allocate(int *out)
{
        void *memory = nullptr;
        out[0] = cudaMalloc(&memory, 100) == cudaSuccess && memory;
        cudaFree(memory);
}
"""

PTX = r"""
.version 8.0
.target sm_75
.address_size 64

.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 function, .param .align 4 .b8 grid[12],
        .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);

.visible .entry child(.param .u64 data)
{
        .reg .b64 %rd<4>;
        .reg .b32 %r<2>;
        ld.param.u64 %rd1, [data];
        cvta.to.global.u64 %rd1, %rd1;
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd3, %rd1, %rd2;
        st.global.u32 [%rd3], %r1;
        ret;
}
.visible .entry parent(.param .u64 data)
{
        .reg .b64 %rd<4>;
        .reg .b32 %r<3>;
        .reg .pred %p1;
        ld.param.u64 %rd1, [data];
        mov.u64 %rd2, child;
        mov.u32 %r1, 1;
        mov.u32 %r2, 32;
        {
        .param .b64 function;
        .param .align 4 .b8 grid[12];
        .param .align 4 .b8 block[12];
        .param .b32 shared;
        .param .b64 buffer;
        st.param.b64 [function], %rd2;
        st.param.b32 [grid], %r1;
        st.param.b32 [grid+4], %r1;
        st.param.b32 [grid+8], %r1;
        st.param.b32 [block], %r2;
        st.param.b32 [block+4], %r1;
        st.param.b32 [block+8], %r1;
        st.param.b32 [shared], 0;
        call.uni (buffer), __cudaCDP2GetParameterBufferV2, (function, grid, block, shared);
        ld.param.b64 %rd3, [buffer];
        }
        setp.eq.s64 %p1, %rd3, 0;
        @%p1 bra END;
        st.u64 [%rd3], %rd1;
        {
        .param .b64 buffer;
        .param .b64 stream;
        .param .b32 error;
        st.param.b64 [buffer], %rd3;
        st.param.b64 [stream], 0;
        call.uni (error), __cudaCDP2LaunchDeviceV2, (buffer, stream);
        }
END:
        ret;
}
"""

WHAT = "a kernel launches kernels (dynamic parallelism)"


def load(client, source=LAUNCHES):
    try:
        return client.load(source)
    except Refused as refused:
        if "libcudadevrt.a" in refused.text or "compiled by clang" in refused.text:
            pytest.skip(f"the CUDA Toolkit is not all there: {refused.text}")
        raise


def refusal(client, *args, **kwargs):
    with pytest.raises(Refused) as refused:
        client.load(*args, **kwargs)
    assert refused.value.code == pb.E_COMPILE
    return refused.value.text


# ---- refused ----

@pytest.mark.cpu
def test_the_cpu_driver_refuses_them_and_says_where_they_run(client):
    assert refusal(client, PTX) == f"test.cu: {WHAT}, which works on GPUs, but not on the CPU driver"
    text = refusal(client, LAUNCHES)
    assert WHAT in text or "kernels that launch kernels need a GPU and NVRTC" in text


@pytest.mark.cpu
def test_other_functions_of_the_device_runtime_are_named(client):
    ptx = PTX.replace("LaunchDeviceV2", "StreamDestroy").replace("GetParameterBufferV2", "Malloc")
    assert "a kernel calls cudaMalloc() of the CUDA device runtime" in refusal(client, ptx)


@pytest.mark.cpu
def test_a_module_that_was_refused_leaves_the_client_able_to_work(client):
    refusal(client, PTX)
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))


def test_a_checked_job_launches_none(client):
    assert WHAT in refusal(client, PTX, options=["--check"])


@pytest.mark.root
def test_with_a_fence_no_kernel_launches_others(lend_gpuqd):
    """A child would reach all memory: only kernels that jobs launch get the fence."""
    client = lend_gpuqd(private=False, isolation="shared", fence="yes").connect(uid=12345)
    assert WHAT in refusal(client, PTX)


# ---- on a GPU ----

@pytest.mark.gpu
def test_children_work_on_the_buffers_of_the_job(client):
    module = load(client)
    for n_blocks in 1, 3, 100:
        for make in client.arena, client.device_arena:
            data, out = make(256 * n_blocks), client.arena(256 * n_blocks)
            job = Job().copy(data, client.array(numpy.arange(64 * n_blocks, dtype=numpy.int32)), 256 * n_blocks)
            job.launch(module, "parent", [InOut(data), i32(n_blocks)], (n_blocks + 31) // 32, 32)
            client.run_well(job.copy(out, data, 256 * n_blocks))
            assert (out.array(numpy.int32) == numpy.arange(64 * n_blocks) + 2).all()


@pytest.mark.gpu
def test_many_jobs_at_once(client):
    module = load(client)
    arenas = [client.arena(4096) for _ in range(50)]
    ids = client.submit(*[Job().launch(module, "parent", [InOut(arena), i32(16)], 1, 32) for arena in arenas])
    assert [client.wait(job).state for job in ids] == [pb.DONE] * 50
    assert all((arena.array(numpy.int32) == 2).all() for arena in arenas)


@pytest.mark.gpu
def test_children_are_jobs_of_their_own_too(client):
    """The child has a twin, and so may be batched; the parent has none."""
    module = load(client)
    arenas = [client.arena(256) for _ in range(50)]
    ids = client.submit(*[Job().launch(module, "child", [InOut(arena), i32(0)], 1, 64) for arena in arenas])
    assert [client.wait(job).state for job in ids] == [pb.DONE] * 50
    assert all((arena.array(numpy.int32) == 2).all() for arena in arenas)


@pytest.mark.gpu
def test_a_job_ends_when_its_children_have_ended(client):
    module, basic = load(client), client.load(kernels.BASIC)
    data, out = client.arena(128), client.arena(128)
    late = Job().launch(module, "late", [InOut(data)])
    after = Job().launch(basic, "copy", [In(data), Out(out), u64(32)], 1, 32)
    ids = client.submit(late, after)
    assert [client.wait(job).state for job in ids] == [pb.DONE] * 2
    assert (data.array(numpy.int32) == 7).all() and (out.array(numpy.int32) == 7).all()

    together = Job().launch(module, "late", [InOut(data)])
    together.launch(basic, "add_one", [InOut(data), u64(32)], 1, 32)
    client.run_well(together)
    assert (data.array(numpy.int32) == 8).all()


@pytest.mark.gpu
def test_they_run_after_kernels_that_launch_none(client):
    """A graph whose node is patched from kernel to kernel cannot take one that launches others."""
    module, basic = load(client), client.load(kernels.BASIC)
    data = client.device_arena(4096)
    client.run_well(Job().fill(data, 4096))
    for _ in range(10):
        client.run_well(Job().launch(basic, "nothing"))
        client.run_well(Job().launch(basic, "add_one", [InOut(data), u64(1024)], 16, 64))
        client.run_well(Job().launch(module, "parent", [InOut(data), i32(16)], 1, 32))
    out = client.arena(4096)
    client.run_well(Job().copy(out, data, 4096))
    assert (out.array(numpy.int32) == 30).all()


@pytest.mark.gpu
def test_recursion(client):
    values = numpy.random.default_rng(5).integers(-1000, 1000, 2000).astype(numpy.int32)
    data = client.array(values)
    client.run_well(Job().launch(load(client), "sort", [InOut(data), i32(0), i32(values.size), i32(3)]))
    assert (data.array(numpy.int32) == numpy.sort(values)).all()


@pytest.mark.gpu
def test_a_fault_in_a_child_fails_the_job(client):
    module, data = load(client), client.arena(256)
    assert_failed(client.run(Job().launch(module, "wild", [InOut(data)])), pb.E_FAULT)
    client.run_well(Job().launch(module, "parent", [InOut(data), i32(1)]))
    assert (data.array(numpy.int32) == 2).all()


@pytest.mark.gpu
def test_only_the_users_kernels_are_listed(client):
    names = {kernel.name for kernel in load(client).kernels}
    assert names == {"child", "parent", "late_child", "late", "sort", "wild_child", "wild", "allocate"}


@pytest.mark.gpu
def test_other_functions_of_the_device_runtime(client):
    out = client.arena(4)
    client.run_well(Job().launch(load(client), "allocate", [Out(out)]))
    assert out.array(numpy.int32)[0] == 1


@pytest.mark.gpu
def test_ptx_of_a_client(client):
    data = client.arena(128)
    client.run_well(Job().launch(load(client, PTX), "parent", [InOut(data)]))
    assert data.array(numpy.int32).tolist() == list(range(32))
