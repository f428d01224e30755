# SPDX-License-Identifier: Apache-2.0
"""CuPy's RawKernel and RawModule: structs by value, complex numbers, attributes."""

import pickle

import numpy as np
import pytest

N = 32

STRUCTS = r"""
struct Inner { float v[2]; };
struct Outer { int4 a; char b; Inner inner; double c; };

extern "C" __global__ void of_struct(const Outer s, double *out)
{
        out[threadIdx.x] = threadIdx.x * (s.a.x + s.a.w + s.b + s.inner.v[1] + s.c);
}

template <typename T> struct Matrix { T value[2][2]; };

template <typename T> __global__ void add(const Matrix<T> *a, const Matrix<T> b, Matrix<T> *out)
{
        for (int i = 0; i < 4; i++)
                out[threadIdx.x].value[i / 2][i % 2] = a[threadIdx.x].value[i / 2][i % 2] + b.value[i / 2][i % 2];
}

extern "C" __global__ void of_scalars(float f, long long n, double3 v, double *out)
{
        out[0] = f, out[1] = n, out[2] = v.x + v.y * v.z;
}
"""
INNER = np.dtype([("v", np.float32, 2)])
OUTER = np.dtype({"names": ["a", "b", "inner", "c"], "formats": [(np.int32, 4), np.int8, INNER, np.float64],
                  "offsets": [0, 16, 20, 32], "itemsize": 48})


def outer(shape):
    one = np.zeros(shape, OUTER)
    one["a"], one["b"], one["inner"]["v"], one["c"] = (1, 2, 3, 4), 5, (6, 7), 0.5
    return one


def test_structs_are_arrays_of_one_item(gpuq):
    module = gpuq.RawModule(code=STRUCTS, name_expressions=("add<double>",))
    kernel, out = module.get_function("of_struct"), gpuq.zeros(N)
    for struct in (outer(1), outer(()), outer((1, 1)), outer(1)[0]):
        out[:] = 0
        kernel((1,), (N,), (struct, out))
        np.testing.assert_array_equal(out, np.arange(N) * 17.5)
    a, b, sums = gpuq.array(np.arange(4.0 * N).reshape(N, 2, 2)), np.arange(4.0), gpuq.zeros((N, 2, 2))
    module.get_function("add<double>")((1,), (N,), (a, b.view([("value", np.float64, (2, 2))]), sums))
    np.testing.assert_array_equal(sums, a + b.reshape(2, 2))


def test_structs_of_another_byte_order_are_refused(gpuq):
    kernel = gpuq.RawKernel(STRUCTS, "of_struct")
    with pytest.raises(TypeError, match="argument 1 .*has the wrong byte order"):
        kernel((1,), (N,), (outer(1).astype(OUTER.newbyteorder(">")), gpuq.zeros(N)))


def test_scalars_may_be_arrays_of_one_item(gpuq):
    kernel, out = gpuq.RawKernel(STRUCTS, "of_scalars"), gpuq.zeros(3)
    vector = np.array([1.0, 2, 3]).view([("x", "f8"), ("y", "f8"), ("z", "f8")])
    kernel((1,), (1,), (np.full(1, 1.5, np.float32), np.array(7), vector, out))
    assert out.tolist() == [1.5, 7, 7]
    with pytest.raises(TypeError, match="argument 2 .*cannot be a int32"):
        kernel((1,), (1,), (np.float32(1), np.zeros(1, np.int32), vector, out))
    with pytest.raises(TypeError, match="argument 3 .*double3 v.*cannot be a float64"):
        kernel((1,), (1,), (np.float32(1), 7, np.zeros(1), out))
    with pytest.raises(TypeError, match="argument 4.*wrap the array"):
        kernel((1,), (1,), (np.float32(1), 7, vector, np.zeros(1)))
    with pytest.raises(TypeError, match="argument 1.*must be a scalar, not ndarray of float32"):
        kernel((1,), (1,), (np.zeros(2, np.float32), 7, vector, out))
    with pytest.raises(TypeError, match="takes 4 arguments"):
        kernel((1,), (1,), (1.0, 7, vector, out, np.zeros(1)))


@pytest.mark.parametrize("wrap", ["bare", "In", "InOut"])
def test_arrays_in_fortrans_layout_are_passed_as_they_are_in_memory(gpuq, wrap):
    source = r"""extern "C" __global__ void copy(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }"""
    x, y = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)), np.zeros((3, 4), np.float32, order="F")
    given = gpuq.array(x.T).T if wrap == "bare" else getattr(gpuq, wrap)(x)
    kernel = gpuq.RawKernel(source, "copy")
    for to in (gpuq.Out(y), gpuq.Out(y, whole=True), gpuq.InOut(y)):
        y[:] = 0
        kernel((1,), (12,), (given, to))
        np.testing.assert_array_equal(y, x)
    with pytest.raises(ValueError, match="not C-contiguous"):
        kernel((1,), (12,), (gpuq.In(np.zeros((6, 8), np.float32)[::2, ::2]), gpuq.Out(y)))


# ---- complex numbers ----

COMPLEX = r"""
#include <cupy/complex.cuh>

extern "C" __global__ void axpy(const complex<float> *x, const complex<float> *y, complex<float> *z, float a, complex<float> b)
{
        z[threadIdx.x] = a * x[threadIdx.x] + b * y[threadIdx.x] - 1;
}

extern "C" __global__ void functions(const complex<double> *x, complex<double> *y, int n)
{
        complex<double> z = x[threadIdx.x], one(1), w = z;
        w += one, w *= 2, w /= z, w -= 1.0;
        complex<double> all[] = {exp(z), log(z), sqrt(z), sin(z), cos(z), tan(z), sinh(z), cosh(z), tanh(z), pow(z, z), conj(z), log10(z),
                                 abs(z), arg(z), norm(z), z / (z + 2), 2 / z, -z, pow(z, 2.0), thrust::polar(2.0, z.imag()), w,
                                 complex<double>(complex<float>(z.real(), imag(z))), asin(z), acos(z), atan(z), asinh(z), acosh(z), atanh(z)};
        for (int i = 0; i < 28; i++)
                y[i * n + threadIdx.x] = z == one ? one : all[i];
}
"""


def test_cupys_complex_numbers(gpuq):
    dice = np.random.default_rng(1)
    x, y = (gpuq.array((dice.random(N) + 1j * dice.random(N)).astype(np.complex64)) for _ in range(2))
    z = gpuq.zeros(N, np.complex64)
    axpy = gpuq.RawKernel(COMPLEX, "axpy")
    for b in (2 - 1j, np.complex64(2 - 1j), np.full(1, 2 - 1j, np.complex64)):
        z[:] = 0
        axpy((1,), (N,), (x, y, z, 2.0, b))
        np.testing.assert_allclose(z, 2 * x + (2 - 1j) * y - 1, rtol=1e-5)
    with pytest.raises(TypeError, match="8 bytes.*has 16"):
        axpy((1,), (N,), (x, y, z, 2.0, np.complex128(1)))
    with pytest.raises(TypeError, match="argument 4.*cannot be a Python complex"):
        axpy((1,), (N,), (x, y, z, 2j, 1j))
    pickle.loads(pickle.dumps(axpy))((1,), (N,), (x, y, z, 1.0, 0j))
    np.testing.assert_allclose(z, x - 1, rtol=1e-5)


def test_functions_of_complex_numbers(gpuq):
    dice = np.random.default_rng(2)
    z = gpuq.array(np.concatenate([dice.standard_normal(28) + 1j * dice.standard_normal(28), [2j, -2 - 1j, -1 + 0.5j, 3 + 0.1j]]))
    got = gpuq.zeros((28, N), complex)
    gpuq.RawKernel(COMPLEX, "functions")((1,), (N,), (z, got, N))
    w = (z + 1) * 2 / z - 1
    wanted = [np.exp(z), np.log(z), np.sqrt(z), np.sin(z), np.cos(z), np.tan(z), np.sinh(z), np.cosh(z), np.tanh(z), z ** z, z.conj(),
              np.log10(z), abs(z), np.angle(z), abs(z) ** 2, z / (z + 2), 2 / z, -z, z ** 2, 2 * np.exp(1j * z.imag), w,
              z.astype(np.complex64), np.arcsin(z), np.arccos(z), np.arctan(z), np.arcsinh(z), np.arccosh(z), np.arctanh(z)]
    for i, each in enumerate(wanted):
        np.testing.assert_allclose(got[i], each, rtol=1e-10, atol=1e-12, err_msg=str(i))


CU_COMPLEX = r"""
#include <cuComplex.h>

#define ALL(a, b, c) {cuCadd(a, b), cuCsub(a, b), cuCmul(a, b), cuCdiv(a, b), cuConj(a), cuCfma(a, b, c)}

extern "C" {
__global__ void of_double(const cuDoubleComplex *a, const cuDoubleComplex *b, cuDoubleComplex c, cuDoubleComplex *out, int n)
{
        cuDoubleComplex all[] = ALL(a[threadIdx.x], b[threadIdx.x], c);
        for (int i = 0; i < 6; i++)
                out[i * n + threadIdx.x] = all[i];
        out[6 * n + threadIdx.x] = make_cuDoubleComplex(cuCabs(a[threadIdx.x]), cuCreal(c) - 3. * cuCimag(c));
}
#ifdef FLOATS
__global__ void of_float(const cuComplex *a, const cuComplex *b, cuComplex c, cuComplex *out, int n)
{
        cuComplex all[] = ALL(a[threadIdx.x], b[threadIdx.x], c);
        for (int i = 0; i < 6; i++)
                out[i * n + threadIdx.x] = all[i];
        out[6 * n + threadIdx.x] = make_cuFloatComplex(cuCabs(a[threadIdx.x]), cuCreal(c) - 3. * cuCimag(c));
}
#endif
__global__ void of_f(const cuFloatComplex *a, const cuFloatComplex *b, cuFloatComplex c, cuFloatComplex *out, int n)
{
        cuFloatComplex x = a[threadIdx.x], y = b[threadIdx.x];
        cuFloatComplex all[] = {cuCaddf(x, y), cuCsubf(x, y), cuCmulf(x, y), cuCdivf(x, y), cuConjf(x), cuCfmaf(x, y, c)};
        for (int i = 0; i < 6; i++)
                out[i * n + threadIdx.x] = cuComplexDoubleToFloat(cuComplexFloatToDouble(all[i]));
        out[6 * n + threadIdx.x] = make_cuComplex(cuCabsf(x), cuCrealf(c) - 3.f * cuCimagf(c));
}
}
"""


@pytest.mark.parametrize("name, dtype, tolerance", [("of_double", np.complex128, 1e-12), ("of_float", np.complex64, 1e-5),
                                                    ("of_f", np.complex64, 1e-5)])
def test_functions_of_the_toolkits_complex_numbers(gpuq, name, dtype, tolerance):
    """In CuPy those for double take floats, too, if they are translated."""
    dice, c = np.random.default_rng(3), 1.5 - 2j
    a, b = (gpuq.array((dice.standard_normal(N) + 1j * dice.standard_normal(N)).astype(dtype)) for _ in range(2))
    options = {"options": ("-DFLOATS",), "translate_cucomplex": True} if name == "of_float" else {}
    out = gpuq.zeros((7, N), dtype)
    pickle.loads(pickle.dumps(gpuq.RawKernel(CU_COMPLEX, name, **options)))((1,), (N,), (a, b, c, out, N))
    for got, wanted in zip(out, [a + b, a - b, a * b, a / b, a.conj(), a * b + c, abs(a) + 7.5j]):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def test_a_division_and_an_absolute_value_do_not_overflow(gpuq):
    a, b = gpuq.array(np.full(N, 3e200 + 4e200j)), gpuq.array(np.full(N, 1e200 - 1e200j))
    out = gpuq.zeros((7, N), complex)
    gpuq.RawKernel(CU_COMPLEX, "of_double")((1,), (N,), (a, b, 0j, out, N))
    np.testing.assert_allclose(out[3], -0.5 + 3.5j, rtol=1e-12)
    np.testing.assert_allclose(out[6].real, 5e200, rtol=1e-12)


# ---- attributes, and what is refused ----

SHARED = r"""extern "C" __global__ void reversed(float *x)
{
        extern __shared__ float own[];
        own[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = own[blockDim.x - 1 - threadIdx.x];
}
"""


def test_attributes_that_can_be_set(gpuq):
    kernel = gpuq.RawKernel(SHARED, "reversed")
    assert {"cache_mode_ca", "max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout", "num_regs",
            "max_threads_per_block"} <= set(kernel.attributes)
    assert kernel.max_dynamic_shared_size_bytes <= 48 << 10
    kernel.max_dynamic_shared_size_bytes = 50_000
    kernel.preferred_shared_memory_carveout = 50
    assert kernel.attributes["max_dynamic_shared_size_bytes"] == 50_000
    x = gpuq.array(np.arange(N, dtype=np.float32))
    kernel((1,), (N,), (x,), shared_mem=50_000)
    assert x[0] == N - 1
    with pytest.raises(TypeError):
        kernel.max_dynamic_shared_size_bytes = "50000"


def test_a_cooperative_kernel(gpuq):
    source = r"""
        #include <cooperative_groups.h>
        extern "C" __global__ void sum(int *part, int *total)
        {
                part[blockIdx.x] = blockIdx.x;
                cooperative_groups::this_grid().sync();
                if (blockIdx.x == 0)
                        for (int i = 0; i < gridDim.x; i++)
                                *total += part[i];
        }"""
    kernel, total = gpuq.RawKernel(source, "sum", enable_cooperative_groups=True), gpuq.zeros(1, np.int32)
    kernel((4,), (1,), (gpuq.device_array(4, np.int32), total))
    assert total[0] == 6


def test_name_expressions_need_source(gpuq, tmp_path):
    with pytest.raises(ValueError, match="need source"):
        gpuq.RawModule(path=str(tmp_path / "k.ptx"), name_expressions=["f<int>"])
