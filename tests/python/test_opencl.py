# SPDX-License-Identifier: Apache-2.0
"""Kernels in OpenCL C, on the CPU driver and on a GPU."""

import numpy as np
import pytest

from harness import place

needs_opencl = pytest.mark.skipif(place.no_opencl() is not None, reason=str(place.no_opencl()))

SOURCE = """
__kernel void axpy(__global float *r, float a, __global const float *x, int n)
{
        int i = get_global_id(0);
        if (i < n)
                r[i] += a * x[i];
}

__kernel void sums(__global const int *x, __global int *of_groups, __local int *parts, __local int *unused)
{
        int i = get_local_id(0);
        parts[i] = x[get_global_id(0)];
        unused[i] = 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int step = get_local_size(0) / 2; step > 0; step /= 2) {
                if (i < step)
                        parts[i] += parts[i + step];
                barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (i == 0)
                of_groups[get_group_id(0)] = parts[0];
}

__kernel void transpose(__global const float *in, __global float *out, __local float *tile, int width, int height)
{
        __local int fixed[4];
        int x = get_local_id(0), y = get_local_id(1), n = get_local_size(0);
        if (x < 4)
                fixed[x] = x;
        tile[y * (n + 1) + x] = in[get_global_id(1) * width + get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        out[(get_group_id(0) * n + y) * height + get_group_id(1) * n + x] = tile[x * (n + 1) + y] + fixed[0];
}

__kernel void mathematics(__global const float *x, __global float4 *out)
{
        int i = get_global_id(0);
        float value = x[i];
        out[i] = (float4)(native_exp(native_log(native_sqrt(value))), pow(value, 1.5f), mad(value, 2.0f, 1.0f), clamp(value, 0.25f, 0.75f));
}

__kernel void count(__global const uchar *x, volatile __global int *bins)
{
        atomic_inc(&bins[x[get_global_id(0)]]);
}

__constant int table[4] = {10, 20, 30, 40};

__kernel void places(__global int *out)
{
        int at = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
        out[at] = at * 100 + table[get_local_id(0)] + get_num_groups(1);
}
"""




@pytest.fixture
def kernels(gpuq):
    return gpuq.module(SOURCE, "opencl", name="kernels.cl")


@needs_opencl
def test_a_vector_is_added(gpuq, kernels):
    r, x = (np.random.rand(1000).astype(np.float32) for _ in range(2))
    wanted = r + np.float32(2) * x
    kernels["axpy"].run((4, 256), gpuq.InOut(r), 2.0, gpuq.In(x), 1000)
    np.testing.assert_allclose(r, wanted, rtol=1e-6)


@needs_opencl
def test_local_memory_has_the_size_that_the_host_asks_for(gpuq, kernels):
    x, sums = np.random.randint(0, 100, 512).astype(np.int32), np.zeros(4, np.int32)
    kernels["sums"].run((4, 128), gpuq.In(x), gpuq.Out(sums), gpuq.Local(4 * 128), gpuq.Local(512))
    np.testing.assert_array_equal(sums, x.reshape(4, 128).sum(1))


@needs_opencl
def test_local_memory_lies_behind_what_else_is_shared(gpuq, kernels):
    """Behind the kernel's own arrays, and behind what the launch asks for itself."""
    x, out = np.random.rand(32, 48).astype(np.float32), np.zeros((48, 32), np.float32)
    config = gpuq.LaunchConfig((3, 2), (16, 16), shmem_size=100)
    kernels["transpose"].run(config, gpuq.In(x), gpuq.Out(out), gpuq.Local(4 * 16 * 17), 48, 32)
    np.testing.assert_array_equal(out, x.T)


FLAG = """
__kernel void flag(__global const int *in, __global int *out)
{
        __local int is_set;
        if (get_local_id(0) == get_local_size(0) - 1) {
                is_set = in[get_group_id(0)] > 3;
                out[get_global_size(0)] = 1;
        }
        %s;
        if (is_set)
                out[get_global_id(0)] = 2;
}
"""


@needs_opencl
def test_local_memory_is_not_read_before_the_barrier(gpuq):
    """Clang had all but the one thread that writes it read it before."""
    x, out = np.array([5, 1] * 4, np.int32), np.zeros(8 * 64 + 1, np.int32)
    for barrier in ("barrier(CLK_LOCAL_MEM_FENCE)", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"):
        gpuq.module(FLAG % barrier, "opencl")["flag"].run((8, 64), gpuq.In(x), gpuq.Out(out))
        np.testing.assert_array_equal(out[:-1], np.repeat([2, 0] * 4, 64))


@needs_opencl
def test_built_in_functions_and_vectors(gpuq, kernels):
    x, out = np.random.rand(64).astype(np.float32), np.zeros((64, 4), np.float32)
    kernels["mathematics"].run((1, 64), gpuq.In(x), gpuq.Out(out))
    np.testing.assert_allclose(out, np.stack([np.sqrt(x), x ** 1.5, 2 * x + 1, np.clip(x, .25, .75)], 1), rtol=1e-5)


@needs_opencl
def test_atomics(gpuq, kernels):
    x, bins = np.random.randint(0, 8, 1024).astype(np.uint8), np.zeros(8, np.int32)
    kernels["count"].run((4, 256), gpuq.In(x), gpuq.InOut(bins))
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=8))


@needs_opencl
def test_work_items_are_threads(gpuq, kernels):
    out = np.zeros(2 * 6 * 8, np.int32)
    kernels["places"].run(((2, 3, 2), (4, 2, 1)), gpuq.Out(out))
    at = np.arange(2 * 6 * 8)
    np.testing.assert_array_equal(out, at * 100 + 10 * (at % 4 + 1) + 3)


@needs_opencl
@pytest.mark.parametrize("grid, block, axes", [(1, 1, 1), (4, 8, 1), ((1, 3), 1, 2), (2, (4, 2), 2), (1, (1, 1, 2), 3),
                                               ((2, 2, 2), 4, 3)])
def test_the_axes_of_a_launch_and_its_offset(gpuq, grid, block, axes):
    source = """__kernel void f(__global uint *r)
{
        size_t sum = 0;
        for (uint axis = 0; axis < get_work_dim(); axis++)
                sum += get_global_offset(axis);
        r[0] = get_work_dim();
        r[1] = sum + get_global_offset(7);
}"""
    r = np.full(2, 9, np.uint32)
    gpuq.module(source, "opencl")["f"].run((grid, block), gpuq.Out(r))
    assert r.tolist() == [axes, 0]


@needs_opencl
def test_constants_are_no_variables(kernels):
    """No host can write them, so jobs need not wait for each other because of them."""
    assert not kernels.has_variables


@needs_opencl
def test_a_constant_argument(gpuq):
    source = "__constant int own[2] = {7, 8}; __kernel void f(__constant int *c, __global int *r) {"\
             " __constant int *from = get_global_id(0) < 4 ? c : own; r[get_global_id(0)] = from[get_global_id(0) % 2]; }"
    c, r = np.array([3, 4], np.int32), np.zeros(8, np.int32)
    gpuq.module(source, "opencl")["f"].run((1, 8), gpuq.In(c), gpuq.Out(r))
    assert r.tolist() == [3, 4, 3, 4, 7, 8, 7, 8]


@pytest.mark.cpu  # CUDA refuses such a kernel
def test_a_pointer_to_shared_memory_in_ptx_is_an_integer(gpuq):
    source = """.version 6.3
.target sm_60
.address_size 64
.visible .entry f(.param .u64 .ptr .shared .align 4 at, .param .u64 .ptr .global .align 8 out)
{
        .reg .b64 %at, %out;
        ld.param.u64 %at, [at];
        ld.param.u64 %out, [out];
        st.global.u64 [%out], %at;
        ret;
}
"""
    out = np.zeros(1, np.uint64)
    kernel = gpuq.module(source, "ptx")["f"]
    kernel.run((1, 1), 5, gpuq.Out(out))
    assert out[0] == 5
    with pytest.raises(TypeError, match="argument 1.*cannot be a Local"):
        kernel.run((1, 1), gpuq.Local(64), gpuq.Out(out))


@needs_opencl
def test_macros_and_standards_of_opencl(gpuq):
    source = "__kernel void f(__global int *r) { r[0] = N + __OPENCL_C_VERSION__; }"
    r = np.zeros(1, np.int32)
    gpuq.module(source, "opencl", options=["-DN=5", "-cl-std=CL1.2", "-cl-mad-enable"])["f"].run((1, 1), gpuq.Out(r))
    assert r[0] == 125


@needs_opencl
def test_wrong_arguments_are_named(gpuq, kernels):
    x, sums = np.zeros(512, np.int32), np.zeros(4, np.int32)
    with pytest.raises(TypeError, match=r"argument 3 .*must be local memory, not a .*gpuq.Local"):
        kernels["sums"].run((4, 128), gpuq.In(x), gpuq.Out(sums), np.float32(1), gpuq.Local(512))
    with pytest.raises(TypeError, match=r"argument 2 .*must be an array, not a Local.4."):
        kernels["sums"].run((4, 128), gpuq.In(x), gpuq.Local(4), gpuq.Local(512), gpuq.Local(512))
    with pytest.raises(TypeError, match="argument 4 asks for 4294967295 bytes of local memory"):
        kernels["sums"].run((4, 128), gpuq.In(x), gpuq.Out(sums), gpuq.Local(512), gpuq.Local(2 ** 32 - 1))
    with pytest.raises(ValueError, match="number of bytes"):
        gpuq.Local(-1)
    prepared = kernels["sums"].prepare((4, 128), gpuq.In(x), gpuq.Out(sums), gpuq.Local(512), gpuq.Local(512))
    prepared.run()
    with pytest.raises(ValueError, match="local memory, whose size a prepared job keeps"):
        prepared.run(arg2=gpuq.Local(64))


@needs_opencl
def test_a_checked_job_tells_the_line_of_the_source(gpuq, kernels):
    r, x = np.zeros(100, np.float32), np.ones(100, np.float32)
    with pytest.raises(gpuq.KernelFault, match=r"kernel axpy: .* element 100 of argument .*, at kernels.cl:\d+ \("):
        kernels["axpy"].run((4, 64), gpuq.InOut(r), 2.0, gpuq.In(x), 101, check=True)


@needs_opencl
def test_errors_have_the_name_and_line_of_the_source(gpuq):
    with pytest.raises(gpuq.CompileError, match=r"wrong.cl:2:.*undeclared"):
        gpuq.module("__kernel void f(__global int *r) {\n r[0] = nothing; }", "opencl", name="wrong.cl")
    with pytest.raises(ValueError, match="cl-strange.*not allowed.*-cl-std"):
        gpuq.module(SOURCE, "opencl", options=["-cl-strange"])
