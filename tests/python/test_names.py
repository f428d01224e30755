# SPDX-License-Identifier: Apache-2.0
"""What a kernel may be called, and instances of templates that are made because they are named."""

import pickle

import numpy as np
import pytest

TEMPLATES = r"""
namespace ns {
typedef float real;

template <class T, unsigned N>
__global__ void fill(T *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = N;
}

__global__ void add(const int *in, int *out, int k)
{
        out[threadIdx.x] = in[threadIdx.x] + k;
}
}

template <typename T>
__global__ void half(const T *in, T *out)
{
        out[threadIdx.x] = in[threadIdx.x] / 2;
}

template __global__ void half<double>(const double *, double *);

__global__ void twice(int *x)
{
        x[threadIdx.x] *= 2;
}

__global__ void twice(float *x)
{
        x[threadIdx.x] *= 2;
}
"""
N = 32


def filled(gpuq, kernel, dtype):
    out = np.zeros(N, dtype)
    kernel.run((1, N), gpuq.Out(out), N)
    assert (out == out[0]).all()
    return out[0]


def test_an_instance_is_made_because_it_is_named(gpuq):
    module = gpuq.module(TEMPLATES, names=["ns::fill<float, 256u>", "ns::fill<int,7>", "half<float>"])
    assert filled(gpuq, module["ns::fill<float, 256u>"], np.float32) == 256
    assert filled(gpuq, module["ns::fill<int,7>"], np.int32) == 7
    assert "half<float>" in module.kernels and "half<double>" in module.kernels


@pytest.mark.parametrize("name", ["ns::fill<float,256>", "ns::fill< float, 0x100u >", "::ns::fill<float, 256ul>",
                                  "_ZN2ns4fillIfLj256EEEvPT_i", "ns::fill", "fill"])
def test_arguments_of_templates_are_compared_by_meaning(gpuq, name):
    module = gpuq.module(TEMPLATES, names=["ns::fill<float, 256u>"])
    assert filled(gpuq, module[name], np.float32) == 256
    assert module[name] is module["ns::fill<float, 256u>"]


def test_a_name_may_use_what_the_source_declares(gpuq):
    module = gpuq.module(TEMPLATES + "constexpr int size = 3;\n", names=["ns::fill<ns::real, size * 2>"])
    assert filled(gpuq, module["ns::fill<ns::real, size * 2>"], np.float32) == 6
    assert filled(gpuq, module["ns::fill<float, 6>"], np.float32) == 6


def test_a_plain_name_is_enough_where_it_is_unique(gpuq):
    module = gpuq.module(TEMPLATES)
    for name in ("ns::add", "add", "_ZN2ns3addEPKiPii"):
        out = np.zeros(N, np.int32)
        module[name].run((1, N), gpuq.In(np.arange(N, dtype=np.int32)), gpuq.Out(out), 5)
        assert out[3] == 8
    out = np.zeros(N)
    module["half"].run((1, N), gpuq.In(np.ones(N)), gpuq.Out(out))
    assert out[0] == 0.5
    with pytest.raises(gpuq.NotFoundError, match='"twice" is that of several.*_Z5twicePf'):
        module["twice"]
    values = np.ones(N, np.float32)
    module["_Z5twicePf"].run((1, N), gpuq.InOut(values))
    assert values[0] == 2


def test_an_unknown_name_lists_those_there_are(gpuq):
    with pytest.raises(gpuq.NotFoundError, match=r'"hlaf<int>".*half.*did you mean "half<int>"'):
        gpuq.module(TEMPLATES, names=["hlaf<int>"])
    with pytest.raises(gpuq.NotFoundError, match='no kernel "ad"; it has: .*ns::add'):
        gpuq.module(TEMPLATES, names=["ad"])
    module = gpuq.module(TEMPLATES)
    with pytest.raises(gpuq.NotFoundError, match="half<float>.*must be named when the module is loaded"):
        module["half<float>"]
    with pytest.raises(gpuq.CompileError, match="none"):
        gpuq.module("template <class T> __global__ void f(T *t) { t->none(); }", names=["f<int>"])


def test_limits_on_names(gpuq):
    with pytest.raises(gpuq.InvalidError, match="513 names of kernels; the limit is 512"):
        gpuq.module(TEMPLATES, names=["ns::add"] * 513)
    with pytest.raises(gpuq.InvalidError, match="1 to 1024 printable bytes"):
        gpuq.module(TEMPLATES, names=["half<" + "x" * 1024 + ">"])
    with pytest.raises(gpuq.InvalidError, match="1 to 1024 printable bytes"):
        gpuq.module(TEMPLATES, names=[""])
    with pytest.raises(gpuq.InvalidError, match="1 to 1024 printable bytes"):
        gpuq.module(TEMPLATES, names=["half<int>\nhalf<float>"])


def test_cupys_name_expressions(gpuq):
    module = gpuq.RawModule(code=TEMPLATES, options=("-std=c++14",), name_expressions=["half<float>", "ns::fill<int, 9>"])
    out = np.zeros(N, np.float32)
    half = module.get_function("half<float>")
    half((1,), (N,), (gpuq.In(np.ones(N, np.float32)), gpuq.Out(out)))
    assert out[0] == 0.5
    again = pickle.loads(pickle.dumps(half))
    again((1,), (N,), (gpuq.In(np.full(N, 4, np.float32)), gpuq.Out(out)))
    assert out[0] == 2
    kernel = gpuq.RawKernel(TEMPLATES, "half<float>")
    kernel((1,), (N,), (gpuq.In(np.ones(N, np.float32)), gpuq.Out(out)))
    assert out[0] == 0.5


def test_cuda_cores_name_expressions(gpuq):
    code = gpuq.Program(TEMPLATES).compile("cubin", name_expressions=("ns::fill<short, 3>",))
    assert filled(gpuq, code.get_kernel("ns::fill<short, 3>"), np.int16) == 3
    again = pickle.loads(pickle.dumps(code))
    assert filled(gpuq, again.get_kernel("ns::fill<short,3>"), np.int16) == 3
