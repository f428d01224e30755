# SPDX-License-Identifier: Apache-2.0
"""Checked jobs: the first access outside of the job's arrays ends the job, and its text says where it was."""

import re
import threading

import numpy as np
import pytest

N = 16384  # elements; 4 bytes each, so that the array ends where the next one may begin

SOURCE = r"""
__device__ int counter;
__device__ int filled[4] = {1, 2, 3, 4};
__constant__ int fixed[4] = {5, 6, 7, 8};

extern "C" __global__ void add(const float *a, const float *b, float *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = a[0] + b[0];
}
extern "C" __global__ void load(const float *a, float *out, int at)
{
        out[threadIdx.x] = a[at];
}
extern "C" __global__ void store(float *out, int at)
{
        out[at] = 1;
}
extern "C" __global__ void vector(const float4 *a, float4 *out, int at)
{
        out[0] = a[at];
}
extern "C" __global__ void unaligned(char *out, int at)
{
        *(short *)(out + at) = 1;
}
extern "C" __global__ void atomic(unsigned *bins, int at)
{
        atomicAdd(&bins[at], 1u);
}
extern "C" __global__ void fixed_shared(int *out, int at)
{
        __shared__ int tile[100];
        tile[threadIdx.x] = threadIdx.x;
        __syncthreads();
        out[threadIdx.x] = tile[at];
}
extern "C" __global__ void dynamic_shared(int *out, int at)
{
        extern __shared__ int tile[];
        tile[at] = 1;
        __syncthreads();
        out[0] = tile[0];
}
extern "C" __global__ void indirect(int **table, int *out)
{
        out[0] = *table[0];
}
extern "C" __global__ void barriers(int *out, int n)
{
        __shared__ int sum;
        if (threadIdx.x == 0)
                sum = 0;
        __syncthreads();
        if (threadIdx.x % 2)
                out[n + threadIdx.x] = 1;
        __syncthreads();
        atomicAdd(&sum, 1);
        __syncthreads();
        if (threadIdx.x == 0)
                out[0] = sum;
}
extern "C" __global__ void spin(volatile int *flag, int *out, int n)
{
        if (threadIdx.x == 0) {
                out[n] = 1;
                *flag = 1;
        } else {
                while (*flag == 0)
                        ;
        }
}
extern "C" __global__ void variables(int *out, int at)
{
        out[0] = atomicAdd(&counter, 1) + filled[at] + fixed[at];
        filled[at] = 9;
}
extern "C" __global__ void local(const int *a, int *out, int n)
{
        int own[16];
        for (int i = 0; i < 16; i++)
                own[(i * n) % 16] = a[i];
        int *p = n > 3 ? own : out;
        out[0] = p[n % 16];
}
struct Options { int values[20]; };
extern "C" __global__ void structure(Options options, int *out, int at)
{
        out[0] = options.values[at];
}
extern "C" __global__ void slow(int *out, int n)
{
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += out[i % 16] + i;
        out[0] = sum;
}
"""
ONE = (1, 1)


def line_of(words: str) -> int:
    return SOURCE[:SOURCE.index(words)].count("\n") + 1


@pytest.fixture
def checked(gpuq):
    return gpuq.module(SOURCE, name="kernels.cu")


def fails(gpuq, kernel, config, *args) -> str:
    """The text of the failure, without the instruction and its address, which depend on the compiler and the memory."""
    with pytest.raises(gpuq.KernelFault) as raised:
        kernel.run(config, *args, check=True)
    text = str(raised.value)
    address = "" if "the block's shared memory" in text else "; address 0x[0-9a-f]+"
    assert re.fullmatch(rf".* \((ld|st|atom|red)\.[a-z0-9.:_]+ [^();]*{address}\)", text), text
    return text[:text.rindex(" (")]


def zeros(gpuq, n=N, dtype=np.float32):
    return gpuq.zeros(n, dtype)


# ---- what is found -------------------------------------------------------------------


def test_a_store_behind_the_end_tells_argument_index_thread_and_line(gpuq, checked):
    a, out = np.ones(10000, np.float32), np.zeros(10000, np.float32)
    assert fails(gpuq, checked["add"], (40, 256), gpuq.In(a), gpuq.In(a), gpuq.Out(out), 10001) == (
        "kernel add: a store of 4 bytes at element 10000 of argument 3 (out), which has 10000 elements, by thread (16,0,0) "
        f"of block (39,0,0), at kernels.cu:{line_of('out[i] = a[0]')}")


def test_a_load_behind_the_end(gpuq, checked):
    a, out = zeros(gpuq), zeros(gpuq)
    assert fails(gpuq, checked["load"], ONE, gpuq.In(a), gpuq.Out(out), N + 5) == (
        f"kernel load: a load of 4 bytes at element {N + 5} of argument 1 (in), which has {N} elements, by thread (0,0,0) "
        f"of block (0,0,0), at kernels.cu:{line_of('= a[at];')}")


def test_a_negative_index(gpuq, checked):
    assert f"a store of 4 bytes at element -1 of argument 1 (inout), which has {N} elements" in fails(
        gpuq, checked["store"], ONE, gpuq.InOut(zeros(gpuq)), -1)


def test_a_vector_is_one_access(gpuq, checked):
    a, out = zeros(gpuq, 40), zeros(gpuq, 4)
    assert "a load of 16 bytes at element 10 of argument 1 (in), which has 10 elements" in fails(
        gpuq, checked["vector"], ONE, gpuq.In(a), gpuq.Out(out), 10)


def test_an_access_that_ends_behind_the_end_is_told_in_bytes(gpuq, checked):
    out = zeros(gpuq, 9, np.uint8)
    assert "a store of 2 bytes at byte 8 of argument 1 (out), which has 9 bytes" in fails(
        gpuq, checked["unaligned"], ONE, gpuq.Out(out), 8)


def test_an_atomic_operation(gpuq, checked):
    assert "an atomic operation of 4 bytes at element 64 of argument 1 (inout), which has 64 elements" in fails(
        gpuq, checked["atomic"], ONE, gpuq.InOut(zeros(gpuq, 64, np.uint32)), 64)


def test_a_store_to_an_input(gpuq, checked):
    assert "a store of 4 bytes at element 3 of argument 1 (in), which has 16 elements and is only read, by" in fails(
        gpuq, checked["store"], ONE, gpuq.In(zeros(gpuq, 16)), 3)


@pytest.mark.parametrize("at, byte", [(100, 400), (101, 404), (-1, -4)])
def test_fixed_shared_memory(gpuq, checked, at, byte):
    text = fails(gpuq, checked["fixed_shared"], (1, 100), gpuq.Out(zeros(gpuq, 100, np.int32)), at)
    assert f"a load of 4 bytes at byte {byte} of the block's shared memory, which has 400 bytes" in text


def test_dynamic_shared_memory(gpuq, checked):
    kernel, out = checked["dynamic_shared"], zeros(gpuq, 1, np.int32)
    config = gpuq.LaunchConfig(1, 1, shmem_size=64)
    kernel.run(config, gpuq.Out(out), 15, check=True)
    assert "a store of 4 bytes at byte 64 of the block's shared memory, which has 64 bytes" in fails(
        gpuq, kernel, config, gpuq.Out(out), 16)


def test_a_pointer_from_memory(gpuq, checked):
    table = np.array([0x1230], np.uint64)
    assert "a load of 4 bytes at an address that is in no buffer of the job, by" in fails(
        gpuq, checked["indirect"], ONE, gpuq.In(table), gpuq.Out(zeros(gpuq, 1, np.int32)))


def test_the_address_is_told(gpuq, checked):
    table = np.array([0x1230], np.uint64)
    with pytest.raises(gpuq.KernelFault, match=r"; address 0x1230\)$"):
        checked["indirect"].run(ONE, gpuq.In(table), gpuq.Out(zeros(gpuq, 1, np.int32)), check=True)
    array = gpuq.to_device(np.zeros(N, np.float32))
    with pytest.raises(gpuq.KernelFault, match=rf"element {N + 5} of argument 1 .*; address 0x{array.address + 4 * (N + 5):x}\)$"):
        checked["load"].run(ONE, gpuq.In(array), gpuq.Out(zeros(gpuq)), N + 5, check=True)


def test_the_operation_is_told_where_there_are_several(gpuq, checked):
    out = gpuq.InOut(zeros(gpuq, 16))
    job = gpuq.job(check=True).launch(checked["store"], ONE, out, 1).launch(checked["store"], ONE, out, 16)
    with pytest.raises(gpuq.KernelFault, match="operation 2: kernel store: a store of 4 bytes at element 16 of argument 1 "):
        job.run()


# ---- nobody waits for a thread that has ended ---------------------------------------------


def test_threads_at_a_barrier_go_on(gpuq, checked):
    text = fails(gpuq, checked["barriers"], (4, 128), gpuq.InOut(zeros(gpuq, 256, np.int32)), 256)
    assert "a store of 4 bytes at element" in text and "of argument 1 (inout), which has 256 elements" in text


def test_threads_that_poll_memory_end(gpuq, checked):
    flag, out = zeros(gpuq, 1, np.int32), zeros(gpuq, 1, np.int32)
    assert "of argument 2 (inout), which has 1 element," in fails(
        gpuq, checked["spin"], (1, 64), gpuq.InOut(flag), gpuq.InOut(out), 1)


# ---- what is allowed ----------------------------------------------------------------------


def test_a_correct_kernel_gives_the_same(gpuq, checked):
    a, b, out = np.full(1, 2, np.float32), np.full(1, 3, np.float32), zeros(gpuq)
    checked["add"].run((64, 256), gpuq.In(a), gpuq.In(b), gpuq.Out(out), N, check=True)
    assert (out == 5).all()


def test_variables_of_the_module_may_be_accessed(gpuq, checked):
    out = zeros(gpuq, 1, np.int32)
    for expected in (0 + 3 + 7, 1 + 9 + 7):
        checked["variables"].run(ONE, gpuq.Out(out), 2, check=True)
        assert out[0] == expected
    checked["variables"].run(ONE, gpuq.Out(out), 2)
    assert out[0] == 0 + 3 + 7  # of the module that is not checked


def test_local_memory_may_be_accessed(gpuq, checked):
    a, out = np.arange(16, dtype=np.int32), zeros(gpuq, 8, np.int32)
    checked["local"].run(ONE, gpuq.In(a), gpuq.Out(out), 5, check=True)
    expected = np.zeros(16, np.int32)
    expected[[(i * 5) % 16 for i in range(16)]] = a
    assert out[0] == expected[5]


def test_arguments_by_value_may_be_accessed(gpuq, checked):
    out = zeros(gpuq, 1, np.int32)
    options = np.zeros(1, np.dtype([("values", np.int32, 20)]))
    options["values"][0] = np.arange(20)
    checked["structure"].run(ONE, options[0], gpuq.Out(out), 7, check=True)
    assert out[0] == 7


def test_neighbours_in_host_memory_are_found(gpuq, checked):
    """Parts of one array, which lie side by side, are apart while a checked job runs."""
    whole = zeros(gpuq, 2 * N)
    text = fails(gpuq, checked["load"], ONE, gpuq.In(whole[:N]), gpuq.InOut(whole[N:]), N)
    assert f"a load of 4 bytes at element {N} of argument 1 (in), which has {N} elements" in text


def test_neighbours_in_device_memory_are_not(gpuq, checked):
    whole = gpuq.device_array(2 * N, np.float32)
    checked["load"].run(ONE, gpuq.In(whole[:N]), gpuq.InOut(whole[N:]), N, check=True)
    assert f"a store of 4 bytes at element {N} of argument 1 (inout)" in fails(
        gpuq, checked["store"], ONE, gpuq.InOut(whole[:N]), N)


# ---- jobs -----------------------------------------------------------------------------------


def test_a_job_after_it_is_as_ever(gpuq, checked):
    out = zeros(gpuq, 16)
    for _ in range(2):
        fails(gpuq, checked["store"], ONE, gpuq.InOut(out), 16)
        checked["store"].run(ONE, gpuq.InOut(out), 2, check=True)
        checked["store"].run(ONE, gpuq.InOut(out), 3)
        assert list(out[:4]) == [0, 0, 1, 1]
        out[:] = 0


def test_many_at_once_are_kept_apart(gpuq, checked):
    outs = [zeros(gpuq, 16 + i) for i in range(20)]
    jobs = [checked["store"].submit(ONE, gpuq.InOut(out), 15 + i % 2 * (i + 1), check=True) for i, out in enumerate(outs)]
    for i, job in enumerate(jobs):
        if i % 2 == 0:
            job.wait()
            continue
        with pytest.raises(gpuq.KernelFault, match=f"element {16 + i} of argument 1 .inout., which has {16 + i} elements"):
            job.wait()


def test_jobs_of_others_go_on_meanwhile(gpuq, checked):
    """In the same worker, beside it and after it."""
    with gpuq.connect() as other:
        kernel = other.module(SOURCE)["slow"]
        outs = [other.array(np.ones(16, np.int32)) for _ in range(8)]
        jobs = [kernel.submit(ONE, gpuq.InOut(out), 20000000) for out in outs]
        for _ in range(5):
            fails(gpuq, checked["store"], ONE, gpuq.InOut(zeros(gpuq, 16)), 16)
        for job in jobs:
            job.wait()
        assert len({int(out[0]) for out in outs}) == 1


def test_a_prepared_job(gpuq, checked):
    out = zeros(gpuq, 16)
    prepared = checked["store"].prepare(ONE, gpuq.InOut(out), 3, check=True)
    prepared.run()
    assert out[3] == 1
    with pytest.raises(gpuq.KernelFault, match="element 16 of argument 1 .inout., which has 16 elements"):
        prepared.run(at=16)


def test_two_threads_load_the_checked_module_once(gpuq, checked):
    errors = []

    def run():
        try:
            checked["store"].run(ONE, gpuq.InOut(zeros(gpuq, 16)), 1, check=True)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# ---- what cannot be checked -----------------------------------------------------------------


def test_a_kernel_that_allocates_is_refused(gpuq):
    module = gpuq.module(r"""
extern "C" __global__ void allocate(int *out) { int *p = (int *)malloc(4); *p = 1; out[0] = *p; free(p); }
""")
    with pytest.raises(gpuq.CompileError, match=r"cannot run checked: in its PTX, a kernel calls malloc\(\)"):
        module["allocate"].run(ONE, gpuq.Out(np.zeros(1, np.int32)), check=True)
