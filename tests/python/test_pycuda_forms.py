# SPDX-License-Identifier: Apache-2.0
"""PyCUDA's SourceModule and functions: prepared invocations, structs by value, headers, texture references."""

import numpy as np
import pytest

N = 32

SOURCE = """
#include <pycuda-complex.hpp>

struct Operation { int n, unused; float *data; };

__global__ void scale(float *x, float factor, int n)
{
        extern __shared__ float own[];
        if (blockIdx.x)
                own[256] = 1;
        else if (threadIdx.x < n)
                x[threadIdx.x] *= factor;
}

__global__ void twice(Operation *all)
{
        Operation *our = all + blockIdx.x;
        for (int i = threadIdx.x; i < our->n; i += blockDim.x)
                our->data[i] *= 2;
}

__global__ void fill(float3 *to, float3 value) { to[threadIdx.x] = value; }

__global__ void turn(pycuda::complex<float> *z, pycuda::complex<float> by, double times, short more)
{
        z[threadIdx.x] = z[threadIdx.x] * by * float(times) + float(more);
}
"""


@pytest.fixture
def module(gpuq):
    return gpuq.SourceModule(SOURCE)


@pytest.fixture
def scale(module):
    return module.get_function("scale")


@pytest.mark.parametrize("types", ["Pfi", ["P", np.float32, np.dtype("i4")], [np.uintp, "f", "i"], [np.intp, np.float32, np.int32]])
def test_prepared_calls(gpuq, scale, types):
    x = gpuq.array(np.ones(N, np.float32))
    assert scale.prepare(types) is scale
    scale.prepared_call((1, 1), (N, 1, 1), x, 3, 8)
    assert x[7] == 3 and x[8] == 1
    seconds = scale.prepared_timed_call((1, 1), (N, 1, 1), x, np.float32(2), np.int32(8))
    assert seconds() > 0 and x[7] == 6
    job = scale.prepared_async_call((1, 1), (N, 1, 1), None, gpuq.InOut(x), 0.5, N, label="later")
    assert job.wait().state == "done" and x[N - 1] == 0.5
    d = gpuq.to_device(x)
    scale.prepared_call((2, 1), (N, 1, 1), d, 4.0, N, shared_size=2048)
    assert d.get()[N - 1] == 2
    scale.prepare(types, shared=2048).prepared_call((2,), (N,), d, 1.0, 0)
    assert scale.num_regs > 0 and scale.max_threads_per_block >= N


def test_prepared_calls_of_other_types(gpuq, module):
    z = gpuq.array(np.arange(N, dtype=np.complex64))
    turn = module.get_function("turn").prepare("PFdh")
    turn.prepared_call((1, 1), (N, 1, 1), z, 2j, 2, 1)
    np.testing.assert_array_equal(z, 4j * np.arange(N) + 1)
    with pytest.raises(TypeError, match="argument 2 .*prepared as 'F'"):
        turn.prepared_call((1, 1), (N, 1, 1), z, 10 ** 400, 2, 1)
    fill = module.get_function("fill").prepare(["P", np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4")])])
    to = gpuq.zeros((N, 3), np.float32)
    fill.prepared_call((1, 1), (N, 1, 1), to, np.array([1, 2, 3], np.float32))
    assert to[N - 1].tolist() == [1, 2, 3]


def test_structs_with_pointers_and_structs_by_value(gpuq, module):
    arrays = [gpuq.to_device(np.array(values, np.float32)) for values in ([1, 2, 3], [0, 4])]
    table = np.array([(len(a), 0, a.address) for a in arrays], [("n", "i4"), ("unused", "i4"), ("data", "u8")])
    twice = module.get_function("twice")
    twice(gpuq.to_device(table), block=(N, 1, 1), grid=(2, 1), uses=arrays)
    twice.prepare("P").prepared_call((1, 1), (N, 1, 1), gpuq.to_device(table[1:]), uses=arrays)
    assert [a.get().tolist() for a in arrays] == [[2, 4, 6], [0, 16]]
    to = np.zeros((4, 3), np.float32)
    module.get_function("fill")(gpuq.Out(to), np.array([1, 2, 3], np.float32), block=(4, 1, 1))
    assert to.tolist() == [[1, 2, 3]] * 4
    with pytest.raises(TypeError, match="argument 2 .*must have 12 bytes.*has 8"):
        module.get_function("fill")(gpuq.Out(to), np.zeros(2, np.float32), block=(4, 1, 1))


def test_structs_of_another_byte_order_are_refused(gpuq, module):
    fill, to = module.get_function("fill"), gpuq.zeros((1, 3), np.float32)
    big = np.array([1, 2, 3], ">f4")
    with pytest.raises(TypeError, match="argument 2 .*has the wrong byte order"):
        fill(to, big, block=(1, 1, 1))
    with pytest.raises(TypeError, match="argument 2 .*has the wrong byte order"):
        fill.prepare("P12s").prepared_call((1, 1), (1, 1, 1), to, big)


class InOut:
    """As pycuda.driver.InOut looks from outside."""

    def __init__(self, array):
        self.array = array


def test_arrays_in_fortrans_layout_are_passed_as_they_are_in_memory(gpuq, scale):
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    scale(InOut(x), np.float32(2), np.int32(12), block=(N, 1, 1))
    np.testing.assert_array_equal(x, 2 * np.arange(12).reshape(3, 4))


def test_what_cannot_be_an_address_is_told(gpuq):
    put = gpuq.SourceModule("typedef unsigned long long Handle; __global__ void put(Handle to) {}").get_function("put").prepare("P")
    for value in (-1, np.int64(-1), 1 << 64):
        with pytest.raises(OverflowError, match="argument 1 .*out of range"):
            put.prepared_call((1, 1), (1, 1, 1), value)


@pytest.mark.parametrize("types, match", [
    ("Pf", r"given 2 types.*takes 3 arguments \(float \*x, float factor, int n\)"), ("Pdi", r"argument 2 \(`float factor`\) cannot be 'd', of 8 bytes"),
    ("Pii", "argument 2.*'i'"), ("ffi", "argument 1.*'f'"), ("PfP", "argument 3.*'P'"), ("PfZ", "'Z' is none of struct's"),
    ("P-f", "no string of struct's")])
def test_types_that_do_not_match_are_told(scale, types, match):
    with pytest.raises(TypeError, match=match):
        scale.prepare(types)


def test_arguments_that_do_not_match_are_told(gpuq, scale):
    x = gpuq.array(np.ones(N, np.float32))
    with pytest.raises(RuntimeError, match="call prepare"):
        scale.prepared_call((1, 1), (N, 1, 1), x, 1.0, 1)
    scale.prepare("Pfi")
    for args, match in (((x, 1.0, 1.5), "argument 3 .*prepared as 'i' and cannot be 1.5"), ((x, 1.0, 1 << 31), "argument 3 "),
                        ((x, "1", 1), "argument 2 "), ((x, 1.0), "prepared for 3 arguments, not 2"),
                        ((1234, 1.0, 1), "must be an array, not an address"), ((np.ones(N, np.float32), 1.0, 1), "wrap the array")):
        with pytest.raises(TypeError, match=match):
            scale.prepared_call((1, 1), (N, 1, 1), *args)
    with pytest.raises(TypeError, match="second argument must be the block"):
        scale.prepared_call((1, 1), x, 1.0, 1)


def test_what_a_kernel_prints_is_seen(gpuq, capsys):
    says = gpuq.SourceModule('__global__ void says(int n) { printf("%d of %d\\n", threadIdx.x, n); }').get_function("says")
    says(np.int32(5), block=(1, 1, 1))
    assert capsys.readouterr().out == "0 of 5\n"
    says.prepare("i").prepared_call((1, 1), (1, 1, 1), 6)
    assert says.prepared_timed_call((1, 1), (1, 1, 1), 7)() >= 0
    assert capsys.readouterr().out == "0 of 6\n0 of 7\n"


# ---- headers ----


@pytest.mark.parametrize("folder", [str, lambda path: path, lambda path: [str(path)]])
def test_include_dirs(gpuq, tmp_path, folder):
    (tmp_path / "factor.h").write_text("#define FACTOR 3\n")
    module = gpuq.SourceModule('#include "factor.h"\n__global__ void k(int *x) { *x *= FACTOR; }', include_dirs=folder(tmp_path))
    x = gpuq.array(np.array([5], np.int32))
    module.get_function("k")(x, block=(1, 1, 1))
    assert x[0] == 15
    gpuq.SourceModule("__global__ void k() {}", include_dirs=None)
    with pytest.raises(gpuq.CompileError, match="factor.h"):
        gpuq.SourceModule('#include "factor.h"\n__global__ void k() {}')


# ---- texture references ----


def test_texture_references_are_refused(gpuq, module, scale):
    with pytest.raises(NotImplementedError, match="get_texref.*CUDA 12.*cudaTextureObject_t.*gpuq.Texture"):
        module.get_texref("image")
    with pytest.raises(NotImplementedError, match="surfaces"):
        module.get_surfref("image")
    with pytest.raises(NotImplementedError, match="texrefs.*gpuq.Texture"):
        scale(gpuq.zeros(1, np.float32), np.float32(1), np.int32(1), block=(1, 1, 1), texrefs=[object()])
    with pytest.raises(NotImplementedError, match="gpuq.Texture"):
        scale.prepare("Pfi", texrefs=[object()])
    with pytest.raises(NotImplementedError, match="gpuq.Texture"):
        gpuq.SourceModule("texture<float, 2> image;\n__global__ void k(float *x) { *x = tex2D(image, 0.f, 0.f); }")
    with pytest.raises(gpuq.CompileError):
        gpuq.SourceModule("// texture<float, 2>\n__global__ void k() { wrong; }")


VARIABLES = """
__device__ float table[5];
__constant__ int factor;

__global__ void use(float *out) { out[threadIdx.x] = factor * table[threadIdx.x]; }
"""


@pytest.mark.parametrize("no_extern_c", [False, True])
def test_a_variable_is_a_pair_of_itself_and_its_size(gpuq, no_extern_c):
    module = gpuq.SourceModule(VARIABLES if not no_extern_c else VARIABLES.replace("__global__", 'extern "C" __global__'), no_extern_c=no_extern_c)
    table, nbytes = module.get_global("table")
    assert nbytes == 20 and module.get_global("factor")[1] == 4 and len(module.get_global("factor")) == 2
    table.set(np.arange(5, dtype=np.float32))
    module.get_global("factor")[0].set(np.int32(3))
    out = np.zeros(5, np.float32)
    module.get_function("use")(gpuq.Out(out), block=(5, 1, 1))
    assert out.tolist() == [0, 3, 6, 9, 12]
    assert module.get_global("table").get(5).tolist() == [0, 1, 2, 3, 4] and table.nbytes == 20
    with pytest.raises(gpuq.NotFoundError, match="no variable nowhere; it has: .*table"):
        module.get_global("nowhere")


@pytest.mark.parametrize("more", ["", "__device__ int n; __global__ void count() { ++n; }"])
def test_a_constant_that_no_kernel_may_write_is_a_variable_too(gpuq, more):
    module = gpuq.SourceModule(more + """
        extern __constant__ const int four[2];
        __constant__ const int four[2] = {4, 5};
        __global__ void use(int i, int *out) { *out = four[i]; }""")
    out = np.zeros(1, np.int32)
    module.get_function("use")(np.int32(1), gpuq.Out(out), block=(1, 1, 1))
    assert out[0] == 5
    assert module.get_global("four").get(2, np.int32).tolist() == [4, 5]
    with pytest.raises(gpuq.NotFoundError, match="no variable nowhere"):
        module.get_global("nowhere")
