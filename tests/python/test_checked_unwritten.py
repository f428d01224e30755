# SPDX-License-Identifier: Apache-2.0
"""Checked jobs: a read of memory that nobody wrote, in an array that the job only writes, ends the job and says where."""

import numpy as np
import pytest

N = 1000

SOURCE = r"""
#define WIDTH(n, T) \
        extern "C" __global__ void put##n(void *out, int at, T value) { ((T *)out)[at] = value; } \
        extern "C" __global__ void get##n(void *a, int at, void *to) { *(T *)to = ((T *)a)[at]; }
WIDTH(1, char)
WIDTH(2, short)
WIDTH(4, int)
WIDTH(8, long long)
extern "C" __global__ void put16(void *out, int at, int value) { ((int4 *)out)[at] = make_int4(1, 2, 3, value); }
extern "C" __global__ void get16(void *a, int at, void *to) { *(int4 *)to = ((int4 *)a)[at]; }

extern "C" __global__ void read(const int *in, int *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = out[i] + in[i];
}
extern "C" __global__ void double_it(float *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = out[i] + out[i];
}
extern "C" __global__ void write_then_read(int *out, int *sum)
{
        int i = threadIdx.x;
        out[i] = i;
        out[i] = out[i] + 1;
        __syncthreads();
        sum[i] = out[blockDim.x - 1 - i];
}
extern "C" __global__ void without_the_last(int *out, int *sum)
{
        int i = threadIdx.x;
        if (i + 1 < blockDim.x)
                out[i] = i;
        __syncthreads();
        sum[i] = out[blockDim.x - 1 - i];
}
extern "C" __global__ void flag(int *out, volatile int *flags, int *sum)
{
        if (blockIdx.x == 0) {
                out[0] = 7;
                __threadfence();
                flags[0] = 1;
        } else {
                while (flags[0] == 0)
                        ;
                __threadfence();
                sum[0] = out[0];
        }
}
extern "C" __global__ void iota(int *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = i;
}
extern "C" __global__ void add(int *bins, int at) { atomicAdd(&bins[at], 1); }
extern "C" __global__ void swap(int *out, int at, int *to)
{
        atomicExch(&out[at], 3);
        *to = out[at];
}
extern "C" __global__ void compare(int *out, int at, int *to) { *to = atomicCAS(&out[at], 0, 1); }
__device__ __noinline__ int through(const int *p) { return *p; }
extern "C" __global__ void generic(int *out, int *to)
{
        __shared__ int own;
        own = 1;
        out[0] = 5;
        *to = through(threadIdx.x ? &own : &out[0]) + through(&out[1]);
}
extern "C" __global__ void by_address(int **table, int *to, int is_written)
{
        if (is_written)
                table[0][3] = 1;
        *to = table[0][3];
}
"""
ONE = (1, 1)


def line_of(words: str) -> int:
    return SOURCE[:SOURCE.index(words)].count("\n") + 1


@pytest.fixture
def checked(gpuq):
    return gpuq.module(SOURCE, name="kernels.cu")


def ints(gpuq, n=N):
    return gpuq.array(np.full(n, 9, np.int32))


def fails(gpuq, run, *args) -> str:
    with pytest.raises(gpuq.KernelFault) as raised:
        run(*args)
    return str(raised.value)


# ---- what is found -------------------------------------------------------------------


def test_a_read_of_an_output_tells_argument_index_thread_and_line(gpuq, checked):
    text = fails(gpuq, lambda: checked["read"].run(ONE, gpuq.In(ints(gpuq)), gpuq.Out(ints(gpuq)), N, check=True))
    assert text.startswith(f"kernel read: a load of 4 bytes that nobody wrote, at element 0 of argument 2 (out), which has {N} "
                           "elements, by thread (0,0,0) of block (0,0,0), at kernels.cu:"
                           f"{line_of('out[i] = out[i] + in[i]')} (ld.global"), text


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("is_device", [False, True])
def test_arrays_of_host_and_device(gpuq, checked, is_device, whole):
    out = gpuq.device_array(N, np.int32) if is_device else ints(gpuq)
    text = fails(gpuq, lambda: checked["read"].run((1, 64), gpuq.In(ints(gpuq)), gpuq.Out(out, whole=whole), N, check=True))
    assert f"of argument 2 (out), which has {N} elements" in text and "that nobody wrote" in text


@pytest.mark.parametrize("is_device", [False, True])
def test_large_arrays(gpuq, checked, is_device):
    """Their shadow is not memory that a worker keeps for small jobs."""
    n = 1 << 20
    for left_out in (0, 1):
        out = gpuq.device_array(n, np.int32) if is_device else gpuq.empty(n, np.int32)
        job = gpuq.job(check=True).launch(checked["iota"], (n // 256, 256), gpuq.Out(out, whole=True), n - left_out)
        job.launch(checked["get4"], ONE, gpuq.Out(out), n - 1, gpuq.Out(ints(gpuq, 1)))
        if left_out:
            assert f"that nobody wrote, at element {n - 1} of argument 1 (out)" in fails(gpuq, job.run)
        else:
            job.run()


def test_what_one_thread_left_out_is_found_by_the_others(gpuq, checked):
    text = fails(gpuq, lambda: checked["without_the_last"].run((1, 64), gpuq.Out(ints(gpuq, 64)), gpuq.Out(ints(gpuq, 64)), check=True))
    assert ("a load of 4 bytes that nobody wrote, at element 63 of argument 1 (out), which has 64 elements, by thread (0,0,0) of "
            "block (0,0,0)") in text


def test_a_generic_address(gpuq, checked):
    text = fails(gpuq, lambda: checked["generic"].run(ONE, gpuq.Out(ints(gpuq, 2)), gpuq.Out(ints(gpuq, 1)), check=True))
    assert "a load of 4 bytes that nobody wrote, at element 1 of argument 1 (out), which has 2 elements" in text


WIDTHS = (1, 2, 4, 8, 16)


def put_and_get(gpuq, checked, put, get, at, read_at):
    out = gpuq.Out(gpuq.array(np.zeros(256, np.uint8)))
    job = gpuq.job(check=True).launch(checked[f"put{put}"], ONE, out, at, 5)
    job.launch(checked[f"get{get}"], ONE, out, read_at, gpuq.Out(gpuq.array(np.zeros(16, np.uint8)))).run()


@pytest.mark.parametrize("put", WIDTHS)
@pytest.mark.parametrize("get", WIDTHS)
def test_every_width_that_was_written_is_read(gpuq, checked, put, get):
    """The read ends where the write ended, if it is not wider."""
    at = 48 // put + 16 // put - 1
    read_at = 64 // get - 1
    if get <= put:
        put_and_get(gpuq, checked, put, get, at, read_at)
    else:
        text = fails(gpuq, lambda: put_and_get(gpuq, checked, put, get, at, read_at))
        assert f"a load of {get} byte" in text and f"that nobody wrote, at element {read_at} of argument 1 (out)" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_neighbours_of_what_was_written_are_not_written(gpuq, checked, width):
    for read_at in (2, 4):
        text = fails(gpuq, lambda: put_and_get(gpuq, checked, width, width, 3, read_at))
        assert f"at element {read_at} of argument 1 (out)" in text
    put_and_get(gpuq, checked, width, width, 3, 3)


def test_an_array_that_the_kernel_reaches_by_its_address(gpuq, checked):
    out = gpuq.device_array(16, np.int32)
    table, to = gpuq.array(np.array([out.address], np.uint64)), ints(gpuq, 1)

    def run(is_written):
        checked["by_address"].run(ONE, gpuq.In(table), gpuq.Out(to), is_written, check=True, uses=[gpuq.Out(out)])

    run(1)
    text = fails(gpuq, run, 0)
    assert "a load of 4 bytes that nobody wrote, at element 3 of buffer 1 (out), which has 16 elements" in text


def test_a_prepared_job_begins_anew_each_time(gpuq, checked):
    out = gpuq.Out(ints(gpuq, 64))
    job = gpuq.job(check=True).launch(checked["iota"], (1, 64), out, 64)
    prepared = job.launch(checked["read"], (1, 64), gpuq.In(ints(gpuq, 64)), out, 64).prepare()
    for _ in range(3):
        prepared.run()
    read = checked["read"].prepare((1, 64), gpuq.In(ints(gpuq, 64)), gpuq.Out(ints(gpuq, 64)), 64, check=True)
    for _ in range(3):
        assert "that nobody wrote" in fails(gpuq, read.run)


# ---- what is written --------------------------------------------------------------------


def test_a_kernel_reads_what_it_wrote(gpuq, checked):
    total = ints(gpuq, 64)
    checked["write_then_read"].run((1, 64), gpuq.Out(ints(gpuq, 64)), gpuq.Out(total), check=True)
    assert list(total) == list(range(64, 0, -1))


def test_a_kernel_reads_what_another_block_wrote(gpuq, checked):
    total, flags = ints(gpuq, 1), gpuq.array(np.zeros(1, np.int32))
    checked["flag"].run((2, 1), gpuq.Out(ints(gpuq, 1)), gpuq.InOut(flags), gpuq.Out(total), check=True)
    assert total[0] == 7


def test_inputs_and_updated_arrays_count_as_written(gpuq, checked):
    out = ints(gpuq)
    checked["read"].run((4, 256), gpuq.In(ints(gpuq)), gpuq.InOut(out), N, check=True)
    assert (out == 18).all()


@pytest.mark.parametrize("kernel", ["add", "compare", "swap"])
def test_an_atomic_operation_writes(gpuq, checked, kernel):
    """Also one that reads: histograms begin with the zeros of Out."""
    out, to = ints(gpuq, 16), [] if kernel == "add" else [gpuq.Out(ints(gpuq, 1))]
    checked[kernel].run(ONE, gpuq.Out(out), 5, *to, check=True)
    assert out[5] == (3 if kernel == "swap" else 1) and out.sum() == out[5]


@pytest.mark.parametrize("is_device", [False, True])
@pytest.mark.parametrize("before", ["fill", "copy", "launch", "scan"])
def test_what_earlier_operations_of_the_job_wrote_counts(gpuq, checked, before, is_device):
    n = 1024
    out = gpuq.device_array(n, np.int32) if is_device else ints(gpuq, n)
    ones, job = gpuq.array(np.ones(n, np.int32)), gpuq.job(check=True)
    if before == "fill":
        job.fill(out, 1)
    elif before == "copy":
        job.copy(out, ones)
    elif before == "launch":
        job.launch(checked["iota"], (4, 256), gpuq.Out(out), n)
    else:
        job.scan(ones, out)
    job.launch(checked["read"], (4, 256), gpuq.In(ones), gpuq.Out(out), n).run()


def test_matrix_products_count(gpuq, checked):
    """Of a library, or of gpuq's own kernel, which is not checked."""
    out = gpuq.array(np.zeros((32, 32), np.float32))
    job = gpuq.job(check=True).matmul(np.eye(32, dtype=np.float32), np.ones((32, 32), np.float32), out)
    job.launch(checked["double_it"], (4, 256), gpuq.Out(out), out.size).run()
    assert (out == 2).all()


def test_fourier_transforms_count(gpuq, checked):
    out = gpuq.device_array(64, np.complex64)
    job = gpuq.job(check=True).fft(np.ones(64, np.complex64), out)
    job.launch(checked["get8"], ONE, gpuq.Out(out), 63, gpuq.Out(ints(gpuq, 2)))
    try:
        job.run()
    except gpuq.Error as error:
        if "no library" not in str(error):
            raise
        pytest.skip(str(error))


def test_only_what_an_earlier_launch_wrote_counts(gpuq, checked):
    out = gpuq.Out(ints(gpuq, 64))
    job = gpuq.job(check=True).launch(checked["iota"], (1, 64), out, 63)
    job.launch(checked["read"], (1, 64), gpuq.In(ints(gpuq, 64)), out, 64)
    text = fails(gpuq, job.run)
    assert ("operation 2: kernel read: a load of 4 bytes that nobody wrote, at element 63 of argument 2 (out), which has 64 elements, "
            "by thread (63,0,0)") in text


def test_a_fill_of_a_part_ends_within_eight_bytes(gpuq, checked):
    out = gpuq.device_array(64, np.int32)
    for read_at in (0, 20, 40):
        job = gpuq.job(check=True).launch(checked["put4"], ONE, gpuq.Out(out), 63, 1).fill(out[10:21], 1)
        job.launch(checked["get4"], ONE, gpuq.Out(out), read_at, gpuq.Out(ints(gpuq, 1)))
        if read_at == 20:
            job.run()
        else:
            assert f"that nobody wrote, at element {read_at} of argument 1 (out)" in fails(gpuq, job.run)


def test_arrays_that_overlap_share_what_was_written(gpuq, checked):
    whole = gpuq.device_array(64, np.int32)
    first, second = gpuq.Out(whole[:40]), gpuq.Out(whole[20:])

    def job(read_at):
        job = gpuq.job(check=True).launch(checked["put4"], ONE, second, 5, 1)
        return job.launch(checked["get4"], ONE, first, read_at, gpuq.Out(ints(gpuq, 1)))

    job(25).run()
    assert "that nobody wrote, at element 24 of argument 1 (out)" in fails(gpuq, job(24).run)


def test_what_another_argument_holds_counts_where_they_overlap(gpuq, checked):
    """Half of what is read was written by the job, and the other half is of the InOut array."""
    whole, to = gpuq.device_array(64, np.int32), gpuq.Out(ints(gpuq, 4))

    def job(read_at):
        job = gpuq.job(check=True).launch(checked["put8"], ONE, gpuq.Out(whole[:32]), 8, 1)
        job.launch(checked["iota"], ONE, gpuq.InOut(whole[18:40]), 0)
        return job.launch(checked["get16"], ONE, gpuq.Out(whole[:32]), read_at, to)

    job(4).run()
    assert "that nobody wrote, at element 3 of argument 1 (out), which has 8 elements" in fails(gpuq, job(3).run)


def test_a_job_that_is_not_checked_may_read_its_outputs(gpuq, checked):
    out = ints(gpuq)
    checked["read"].run((4, 256), gpuq.In(ints(gpuq)), gpuq.Out(out), N)
    assert (out == 9).all()


# ---- gpuq's own kernels ------------------------------------------------------------------


def test_the_library_operations_read_nothing_that_nobody_wrote(gpuq):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1000, 100_000).astype(np.int32)
    assert (gpuq.scan(x, check=True) == np.cumsum(x, dtype=np.int32)).all()
    assert (gpuq.sort(x, check=True) == np.sort(x)).all()
    assert (gpuq.random(1000, seed=3, check=True) == gpuq.random(1000, seed=3)).all()
