# SPDX-License-Identifier: Apache-2.0
"""Modules: their kernels, variables, output, shared memory, cooperative launches."""

import numpy
import pytest

from harness import kernels, place
from harness.client import In, InOut, Job, Out, Refused, i32, u64
from harness.kernels import assert_failed
from harness.messages import pb

VARIABLES = r"""
__device__ int counter = 5;
__device__ double table[4] = {1, 2, 3, 4};
__constant__ int factor = 3;

extern "C" __global__ void count(int *out)
{
        counter += 1;
        out[0] = counter;
}

extern "C" __global__ void use(double *out)
{
        for (int i = 0; i < 4; i++)
                out[i] = factor * table[i];
}
"""

SHARED = r"""
extern "C" __global__ void reverse(const int *in, int *out)
{
        __shared__ int fixed[256];
        fixed[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = fixed[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void reverse_dynamic(const int *in, int *out)
{
        extern __shared__ int dynamic[];
        dynamic[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void warp_sum(int *out)
{
        int value = threadIdx.x;
        for (int step = 16; step > 0; step /= 2)
                value += __shfl_down_sync(0xffffffffu, value, step);
        if (threadIdx.x % 32 == 0)
                out[threadIdx.x / 32] = value;
}

extern "C" __global__ void histogram(const int *in, int *bins, unsigned long long n)
{
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        if (i < n)
                atomicAdd(&bins[in[i]], 1);
}

// Right only if all blocks are resident at once: each waits for all the others.
extern "C" __global__ void meet(unsigned int *arrived, int *out)
{
        if (threadIdx.x == 0) {
                atomicAdd(arrived, 1u);
                while (atomicAdd(arrived, 0u) < gridDim.x)
                        ;
                out[blockIdx.x] = 1;
        }
}
"""

OUTPUT = r"""
#include <cassert>
#include <cstdio>

extern "C" __global__ void hello(int n)
{
        printf("hello %d from %s, %.2f\n", n, "a kernel", 1.5);
}

extern "C" __global__ void check(int n)
{
        assert(n < 10 && "must be small");
}

extern "C" __global__ void nothing()
{
}
"""

TEMPLATE = r"""
template <class T> __device__ T twice(T x) { return x + x; }
extern "C" __global__ void run(int *out) { out[0] = twice(VALUE); }
"""


# ---- what a module says ----

def test_kernels_and_parameters_are_listed(client):
    module = client.load(kernels.BASIC)
    found = {kernel.name: kernel for kernel in module.kernels}
    assert {"copy", "add_one", "nothing", "scalars", "forever"} <= set(found)
    assert [p.size for p in found["scalars"].parameters] == [1, 2, 4, 8, 4, 8, 8]
    assert [p.size for p in found["copy"].parameters] == [8, 8, 8]
    assert not module.has_variables and found["nothing"].max_block >= 256


def test_options_reach_the_compiler(client):
    for value in (21, 4):
        module = client.load(TEMPLATE, options=[f"-DVALUE={value}"])
        out = client.arena(4)
        client.run_well(Job().launch(module, "run", [Out(out)]))
        assert out.array(numpy.int32)[0] == 2 * value


def test_the_same_source_again_comes_from_the_cache(client):
    source = kernels.BASIC + "// once more\n"
    for _ in range(3):
        client.run_well(Job().launch(client.load(source), "nothing"))


def test_an_unloaded_module_still_serves_submitted_jobs_and_then_is_gone(client):
    module = client.load(kernels.BASIC)
    data = client.array(numpy.zeros(4, numpy.int32))
    job = client.submit(Job().launch(module, "add_one", [InOut(data), u64(4)], 1, 4))
    client.tell(module_unload=pb.ModuleUnload(module=module.module))
    assert client.wait(job).state == pb.DONE
    assert_failed(client.run(Job().launch(module, "nothing")), pb.E_NOT_FOUND)


def test_warnings_come_with_the_module(client):
    module = client.load('extern "C" __global__ void k(int *out) {\n#warning "look here"\n out[0] = 1; }\n')
    assert "look here" in module.log


def test_one_modules_kernels_are_not_anothers(client):
    first, second = client.load(kernels.BASIC), client.load(SHARED)
    assert_failed(client.run(Job().launch(second, "add_one")), pb.E_NOT_FOUND, "reverse")
    client.run_well(Job().launch(first, "nothing"))


def test_kernels_of_two_modules_in_one_job(client):
    first, second = client.load(kernels.BASIC), client.load(SHARED)
    values = numpy.arange(64, dtype=numpy.int32)
    data, out = client.array(values), client.arena(256)
    job = Job().launch(first, "add_one", [InOut(data), u64(64)], 1, 64)
    job.launch(second, "reverse", [InOut(data), Out(out)], 1, 64)
    client.run_well(job)
    numpy.testing.assert_array_equal(out.array(numpy.int32), (values + 1)[::-1])


# ---- what kernels can do ----

@pytest.mark.parametrize("kernel, shared", [("reverse", 0), ("reverse_dynamic", 1024)])
def test_shared_memory(client, kernel, shared):
    values = numpy.arange(256, dtype=numpy.int32)
    out = client.arena(1024)
    client.run_well(Job().launch(client.load(SHARED), kernel, [In(client.array(values)), Out(out)], 1, 256,
                                 shared=shared))
    numpy.testing.assert_array_equal(out.array(numpy.int32), values[::-1])


def test_much_dynamic_shared_memory(client):
    """More than the 48 KiB that a launch gets without asking the driver for more."""
    values = numpy.arange(64, dtype=numpy.int32)
    out = client.arena(256)
    client.run_well(Job().launch(client.load(SHARED), "reverse_dynamic", [In(client.array(values)), Out(out)],
                                 1, 64, shared=90 << 10))
    numpy.testing.assert_array_equal(out.array(numpy.int32), values[::-1])


def test_warp_shuffles(client):
    out = client.arena(16)
    client.run_well(Job().launch(client.load(SHARED), "warp_sum", [Out(out)], 1, 128))
    assert list(out.array(numpy.int32)) == [sum(range(w * 32, w * 32 + 32)) for w in range(4)]


def test_atomics(client):
    values = numpy.random.default_rng(3).integers(0, 10, 100_000).astype(numpy.int32)
    bins = client.arena(40)
    client.run_well(Job().launch(client.load(SHARED), "histogram",
                                 [In(client.array(values)), Out(bins), u64(values.size)], 400, 256))
    numpy.testing.assert_array_equal(bins.array(numpy.int32), numpy.bincount(values, minlength=10))


def test_a_cooperative_launch_has_all_blocks_at_once(client):
    blocks = 4
    arrived, out = client.device_arena(4), client.arena(4 * blocks)
    client.run_well(Job(timeout_ms=30000).launch(client.load(SHARED), "meet", [InOut(arrived), Out(out)],
                                                 blocks, 32, cooperative=True))
    assert list(out.array(numpy.int32)) == [1] * blocks


# ---- output ----

def test_printf_comes_with_the_job(client):
    module = client.load(OUTPUT)
    assert client.run_well(Job().launch(module, "hello", [i32(42)])).output == "hello 42 from a kernel, 1.50\n"
    assert client.run_well(Job().launch(module, "nothing")).output == ""


def test_printf_of_each_job_is_its_own(client):
    module = client.load(OUTPUT)
    ids = client.submit(*[Job().launch(module, "hello", [i32(n)]) for n in range(10)])
    for n, job in enumerate(ids):
        assert client.wait(job).output == f"hello {n} from a kernel, 1.50\n"


def test_a_failed_assertion_is_told(client):
    module = client.load(OUTPUT)
    client.run_well(Job().launch(module, "check", [i32(3)]))
    completion = client.run(Job().launch(module, "check", [i32(30)]))
    assert_failed(completion, pb.E_FAULT, "check")
    assert "must be small" in completion.error.text and "must be small" in completion.output
    client.run_well(Job().launch(module, "check", [i32(3)]))


# ---- variables ----

def read_counter(client, module):
    out = client.arena(4)
    client.run_well(Job().copy(out, (module.module, "counter"), 4))
    return out.array(numpy.int32)[0]


def count(client, module):
    out = client.arena(4)
    client.run_well(Job().launch(module, "count", [Out(out)]))
    return out.array(numpy.int32)[0]


def test_variables_keep_their_values_between_jobs(client):
    module = client.load(VARIABLES)
    assert module.has_variables
    assert [count(client, module) for _ in range(3)] == [6, 7, 8]
    assert read_counter(client, module) == 8


def test_variables_are_listed_with_their_sizes(client):
    listed = {variable.name: variable.size for variable in client.load(VARIABLES).variables}
    assert listed == {"counter": 4, "table": 32, "factor": 4}
    assert not client.load(kernels.BASIC).variables


def test_variables_can_be_written(client):
    module = client.load(VARIABLES)
    value = client.array(numpy.array([100], numpy.int32))
    client.run_well(Job().copy((module.module, "counter"), value, 4))
    assert count(client, module) == 101

    table = client.array(numpy.array([7.0, 8.0]))
    client.run_well(Job().copy((module.module, "table"), table, 16, to_offset=8))
    client.run_well(Job().copy((module.module, "factor"), client.array(numpy.array([10], numpy.int32)), 4))
    out = client.arena(32)
    client.run_well(Job().launch(module, "use", [Out(out)]))
    assert list(out.array(numpy.float64)) == [10, 70, 80, 40]


def test_each_session_has_its_own_variables(gpuqd):
    clients = [gpuqd.connect() for _ in range(3)]
    modules = [client.load(VARIABLES) for client in clients]
    for _ in range(2):
        for client, module in zip(clients, modules):
            count(client, module)
    assert [read_counter(client, module) for client, module in zip(clients, modules)] == [7, 7, 7]


def test_a_variable_with_a_name_like_the_compilers_own_is_each_sessions_own(gpuqd):
    source = """
        __device__ int __ticket;
        namespace cuda { __device__ int ticket = 5; }
        extern "C" __global__ void take(int *out)
        {
                out[0] = atomicAdd(&__ticket, 1) + atomicAdd(&cuda::ticket, 1);
        }
    """
    clients = gpuqd.connect(), gpuqd.connect()
    modules = [client.load(source) for client in clients]
    assert all(module.has_variables for module in modules)
    seen = []
    for _ in range(2):
        for client, module in zip(clients, modules):
            out = client.arena(4096)
            client.run_well(Job().launch(module, "take", [Out(out)]))
            seen.append(int(out.array(numpy.int32, 1)[0]))
    assert seen == [5, 5, 7, 7]


def test_launches_that_share_variables_run_in_order(client):
    module = client.load(VARIABLES)
    outs = [client.arena(4) for _ in range(50)]
    ids = client.submit(*[Job().launch(module, "count", [Out(out)]) for out in outs])
    assert all(client.wait(job).state == pb.DONE for job in ids)
    assert [out.array(numpy.int32)[0] for out in outs] == list(range(6, 56))


@pytest.mark.parametrize("offset, length", [(0, 5), (4, 1), (1 << 62, 4)])
def test_a_variable_is_not_read_beyond_its_end(client, offset, length):
    module = client.load(VARIABLES)
    job = Job().copy(client.arena(64), (module.module, "counter"), length, source_offset=offset)
    assert_failed(client.run(job), pb.E_INVALID, "counter")


def test_an_unknown_variable(client):
    module = client.load(VARIABLES)
    assert_failed(client.run(Job().copy(client.arena(4), (module.module, "nowhere"), 4)), pb.E_NOT_FOUND, "nowhere")


def test_variables_that_died_with_their_worker_are_said_to_be_lost_once(gpuqd, client):
    module, basic = client.load(VARIABLES), client.load(kernels.BASIC)
    count(client, module)
    assert_failed(client.run(Job().launch(basic, "wild", [InOut(client.arena(4)), u64(kernels.FAR)])), pb.E_FAULT)
    assert_failed(client.run(Job().launch(module, "count", [Out(client.arena(4))])), pb.E_VARIABLES_LOST)
    assert count(client, module) == 6


# ---- source that was written for nvcc ----


HOST = r"""
struct Pair
{
        int a, b;
        __host__ Pair() : a(0), b(0) {}
        __host__ __device__ Pair(int a, int b) : a(a), b(b) {}
};

int doubled(int x) { return 2 * x; }
__host__ Pair swapped(Pair pair) { return Pair(pair.b, pair.a); }

extern "C" __global__ void add(int *out, int a, int b)
{
        Pair pair(a, b);
        out[0] = pair.a + pair.b;
}
"""


def test_functions_of_the_host_in_the_source_do_no_harm(client):
    out = client.arena(4)
    client.run_well(Job().launch(client.load(HOST), "add", [Out(out), i32(3), i32(4)]))
    assert out.array(numpy.int32, 1)[0] == 7


STANDARD = r"""
template <class T, std::size_t N> __global__ void k(T *x)
{
        register T a = N, b = 2, *none = std::nullptr_t();
        std::swap(a, b);
        std::uint32_t c = std::min(std::numeric_limits<T>::max(), INT_MAX - INT_MAX + 5) + (int)std::sqrt(4.0f);
        x[0] = std::is_same<T, int>::value + 10 * a + 100 * b + 1000 * c + !!none;
}
template __global__ void k<int, 3>(int *);
"""


def test_names_of_the_standard_library_need_no_include(client):
    out = client.arena(4)
    client.run_well(Job().launch(client.load(STANDARD), "k<int, 3>", [Out(out)]))
    assert out.array(numpy.int32, 1)[0] == 7321


OF_HOST = ["a function of the host that cannot be the device's", "an error beside a function of the host",
           "a variable of the host"]


@pytest.mark.parametrize("source, names", [
    ("#include <stdio.h>\n__host__ void f() { fopen(\"x\", \"r\"); }\n__global__ void k() {}", ["fopen"]),
    ("__host__ int f() { return 1; }\n__global__ void k() { nowhere(); }", ["nowhere"]),
    ("int here = 5;\n__host__ int f() { return 1; }\n__global__ void k(int *x) { *x = here; }", ["here"]),
], ids=OF_HOST)
def test_what_cannot_be_compiled_beside_code_of_the_host_is_named(client, source, names):
    with pytest.raises(Refused) as refused:
        client.load(source)
    assert refused.value.code == pb.E_COMPILE
    assert all(name in refused.value.text for name in names), refused.value.text
    if "JIT mode" in refused.value.text:  # NVRTC's words
        assert "#ifndef __CUDACC_RTC__" in refused.value.text, refused.value.text


def test_what_to_use_instead_of_texture_references_is_said(client):
    source = "texture<float, 1, cudaReadModeElementType> t;\n__global__ void k(float *x) { *x = tex1Dfetch(t, 1); }"
    with pytest.raises(Refused, match="cudaTextureObject_t"):
        client.load(source)


def test_the_compiler_is_looked_for_in_the_folders_of_the_setting(start_gpuqd, tmp_path):
    stand_in = place.BUILD / "tests" / "unit" / "compiler" / "libnvrtc.so.14"
    if not stand_in.exists():
        pytest.skip("the unit tests are not built here")
    (tmp_path / "libnvrtc.so.14").symlink_to(stand_in)
    client = start_gpuqd(libraries=f"/nonexistent:{tmp_path}").connect()
    assert [kernel.name for kernel in client.load("__global__ void k() {}").kernels] == ["of_a_stand_in"]
    client = start_gpuqd(libraries="none").connect()
    assert "of_a_stand_in" not in [kernel.name for kernel in client.load("__global__ void k() {}").kernels]
