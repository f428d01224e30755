# SPDX-License-Identifier: Apache-2.0
"""Modules and kernels: where they come from, typed scalars, variables."""

import ctypes
import gc
import pickle

import numpy as np
import pytest

from conftest import SOURCE
from gpuq import _native as native
from gpuq import image, signature
from gpuq.argument import Packer
from harness import place
from harness.patience import until

SCALARS = r"""
struct Pair { float x; int y; };

extern "C" __global__ void scalars(bool t, char c, short s, int i, unsigned u, long long l, unsigned long long w, float f,
                                   double d, Pair p, double *out)
{
        double values[] = {(double)t, (double)c, (double)s, (double)i, (double)u, (double)l, (double)w, f, d, p.x, (double)p.y};
        for (int k = 0; k < 11; k++)
                out[k] = values[k];
}

extern "C" __global__ void real(float f, double d, double *out)
{
        out[0] = f;
        out[1] = d;
}
"""
PAIR = np.dtype([("x", np.float32), ("y", np.int32)])
LIKE = (True, -3, -300, -70000, 4000000000, -(1 << 40), 1 << 63, 0.5, 0.1)


class Pair(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_int)]


@pytest.fixture
def scalars(gpuq):
    return gpuq.module(SCALARS)["scalars"]


def given(*values):
    return np.array([float(value) for value in values])


def test_python_scalars_take_the_type_that_the_source_has(gpuq, scalars):
    out = np.zeros(11)
    scalars.run((1, 1), *LIKE, np.array((1.5, 2), PAIR)[()], gpuq.Out(out))
    np.testing.assert_array_equal(out, given(*LIKE, 1.5, 2))


def test_numpy_and_ctypes_scalars_are_taken_as_they_are(gpuq, scalars):
    out = np.zeros(11)
    types = (np.bool_, np.int8, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)
    scalars.run((1, 1), *(kind(value) for kind, value in zip(types, LIKE)), Pair(1.5, 2), gpuq.Out(out))
    np.testing.assert_array_equal(out, given(*LIKE, 1.5, 2))
    types = (ctypes.c_bool, ctypes.c_int8, ctypes.c_int16, ctypes.c_int, ctypes.c_uint, ctypes.c_longlong, ctypes.c_ulonglong,
             ctypes.c_float, ctypes.c_double)
    out[:] = 0
    scalars.run((1, 1), *(kind(value) for kind, value in zip(types, LIKE)), Pair(1.5, 2), gpuq.Out(out))
    np.testing.assert_array_equal(out, given(*LIKE, 1.5, 2))


@pytest.mark.parametrize("at, value, error", [
    (1, 128, OverflowError), (3, 1 << 31, OverflowError), (4, -1, OverflowError), (6, 1 << 64, OverflowError),
    (3, 1.5, TypeError), (3, np.int64(1), TypeError), (3, np.float32(1), TypeError), (7, np.float64(1), TypeError),
    (7, 1e300, OverflowError), (9, np.zeros(1, PAIR.newbyteorder(">"))[0], TypeError), (8, np.float32(1), TypeError), (8, "1", TypeError), (3, None, TypeError), (9, b"1", TypeError), (9, 3, TypeError),
    (3, np.zeros(1, np.int32), TypeError), (10, 3, TypeError)])
def test_a_scalar_that_does_not_fit_is_told(gpuq, scalars, at, value, error):
    args = [*LIKE, Pair(1.5, 2), gpuq.Out(np.zeros(11))]
    args[at] = value
    with pytest.raises(error, match=rf"scalars: argument {at + 1} "):
        scalars.run((1, 1), *args)


@pytest.mark.parametrize("text, scalar, null", [
    ("float *x", TypeError, None), ("size_t n", None, TypeError), ("Handle h", None, None)])
def test_source_parts_pointers_from_words_where_the_image_does_not(text, scalar, null):
    """As PTX has it: `.param .u64` for either. A type that source leaves open may be both."""
    known = signature.of_source(f"__global__ void k({text})")["k"][0]
    packer = Packer("k", 0, native.WORD64, 8, True, known)
    for value, error in ((3, scalar), (None, null)):
        if error:
            with pytest.raises(error, match="argument 1"):
                packer.scalar(value, [])
        else:
            assert packer.scalar(value, [])
    assert packer.takes_buffer == (text != "size_t n")


def test_none_is_the_null_pointer(gpuq):
    y = np.zeros(3, np.float32)
    kernel = gpuq.module(r"""extern "C" __global__ void or_ones(const float *x, float *y, int n)
                         { for (int i = 0; i < n; i++) y[i] = x ? x[i] : 1; }""")["or_ones"]
    kernel.run((1, 1), None, gpuq.Out(y), 3)
    assert y.tolist() == [1, 1, 1]
    y[:] = 0
    kernel.run((1, 1), ctypes.c_void_p(None), gpuq.Out(y), 3)
    assert y.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="argument 1.* must be an array, not a pointer of this process"):
        kernel.run((1, 1), ctypes.c_void_p(4096), gpuq.Out(y), 3)
    kernel.run((1, 1), np.array([4, 5, 6], np.float32), gpuq.Out(y), 3)
    assert y.tolist() == [4, 5, 6]
    with pytest.raises(gpuq.InvalidError, match="argument 1 needs 12 bytes .* has 0"):
        gpuq.builtin()["sum_f32"].run((1, 1), None, gpuq.Out(y[:1]), 3)


def test_a_whole_number_is_a_float_where_one_is_wanted(gpuq):
    out = np.zeros(2)
    gpuq.module(SCALARS)["real"].run((1, 1), 3, 1 << 40, gpuq.Out(out))
    assert out.tolist() == [3, 1 << 40]
    with pytest.raises(TypeError):
        gpuq.module(SCALARS)["real"].run((1, 1), (1 << 40) + 1, 1, gpuq.Out(out))


# ---- where they come from ----


def test_source_tells_names_parameters_and_errors(gpuq, module, add):
    assert "add" in module.kernels and module["add"].name == "add"
    assert add.parameters == ("const float *a", "const float *b", "float *c", "int n")
    assert repr(add) == "<gpuq.Kernel add(const float *a, const float *b, float *c, int n)>" and "add" in repr(module)
    with pytest.raises(gpuq.NotFoundError, match='did you mean "scale_f32"'):
        gpuq.builtin()["scal_f32"]
    with pytest.raises(gpuq.NotFoundError, match="it has: .*add"):
        module.get_kernel("no_such_kernel")
    with pytest.raises(gpuq.CompileError, match="nonsense"):
        gpuq.module('extern "C" __global__ void k() { nonsense; }')
    with pytest.raises(ValueError, match="code_type"):
        gpuq.module("", "fortran")


def test_options_reach_the_compiler(gpuq):
    source = 'extern "C" __global__ void k(int *out) { out[0] = VALUE; }'
    out = np.zeros(1, np.int32)
    gpuq.module(source, options=["-DVALUE=42"])["k"].run((1, 1), gpuq.Out(out))
    assert out[0] == 42


def test_kernels_without_extern_c_are_found_by_their_plain_name(gpuq):
    out = np.zeros(1, np.int32)
    gpuq.module("__global__ void plain(int *out, int n) { out[0] = n; }")["plain"].run((1, 1), gpuq.Out(out), 5)
    assert out[0] == 5


def test_the_builtins_say_what_they_are(gpuq):
    kernel = gpuq.builtin()["sum_f64"]
    assert gpuq.builtin() is gpuq.builtin() and "sum of x[i]" in kernel.doc and kernel.parameters == ("in:x:f64:n", "out:s:f64:1", "u64:n")
    x, s = np.arange(1000.0), np.zeros(1)
    kernel.run((1, 256), x, gpuq.Out(s), x.size)
    assert s[0] == x.sum()


@pytest.mark.cpu
def test_ptx_that_the_cpu_driver_cannot_run_is_told_with_its_line(gpuq):
    with pytest.raises(gpuq.Error, match="line 4: the CPU driver cannot run tcgen05.fence"):
        gpuq.module(".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { tcgen05.fence; ret; }")


@pytest.mark.parametrize("load", ["from_cubin", "from_fatbin"])
def test_an_image_that_is_none_is_told(gpuq, tmp_path, load):
    (tmp_path / "image").write_bytes(b"\x7fELF" + bytes(60))
    for image in (b"\x7fELF" + bytes(60), tmp_path / "image"):
        with pytest.raises(gpuq.ImageError):
            getattr(gpuq.ObjectCode, load)(image)


def test_ptx_runs(gpuq):
    ptx = """.version 6.0
.target sm_50
.address_size 64
.visible .entry set(.param .u64 out, .param .u32 value)
{
        .reg .u64 %rd<3>;
        .reg .u32 %r<2>;
        ld.param.u64 %rd1, [out];
        ld.param.u32 %r1, [value];
        cvta.to.global.u64 %rd2, %rd1;
        st.global.u32 [%rd2], %r1;
        ret;
}
"""
    out = np.zeros(1, np.uint32)
    gpuq.module(ptx)["set"].run((1, 1), gpuq.Out(out), 17)
    assert out[0] == 17
    with pytest.raises(TypeError):
        gpuq.module(ptx)["set"].run((1, 1), gpuq.Out(out), 1.5)


def test_modules_and_kernels_pickle_as_their_code(gpuq, module, add):
    again = pickle.loads(pickle.dumps(add))
    c = np.zeros(3, np.float32)
    again.run((1, 4), np.ones(3, np.float32), np.ones(3, np.float32), gpuq.Out(c), 3)
    assert c.tolist() == [2, 2, 2]
    assert pickle.loads(pickle.dumps(gpuq.builtin()["sum_f32"])).module is gpuq.builtin()


# ---- variables ----


def test_variables_are_read_and_written(gpuq):
    module = gpuq.module("""
        __constant__ float factor;
        __device__ int counts[4];
        extern "C" __global__ void scale(const float *x, float *y, int n) {
                for (int i = 0; i < n; i++) y[i] = factor * x[i];
                counts[1] += n;
        }""")
    assert module.has_variables
    module.get_global("factor").set(np.float32(2.5))
    module.get_global("counts").set([1, 2, 3, 4], dtype=np.int32)
    y = np.zeros(3, np.float32)
    module["scale"].run((1, 1), np.arange(3, dtype=np.float32), gpuq.Out(y), 3)
    assert y.tolist() == [0, 2.5, 5] and module.get_global("factor").get() == np.float32(2.5)
    assert module.get_global("counts").get(4, np.int32).tolist() == [1, 5, 3, 4]
    assert module.get_global("counts").get((), np.int32, offset=8) == 3
    with pytest.raises(TypeError, match="dtype="):
        module.get_global("factor").set(2.5)
    with pytest.raises(gpuq.Error, match="no_such"):
        module.get_global("no_such").get()


# ---- what source says ----


def test_signatures_are_read_from_source():
    read = signature.of_source("""
        // __global__ void commented(int *x)
        /* __global__ void commented_too(int *x) */
        extern "C" __global__ void __launch_bounds__(256, 2) k(const float *__restrict__ a, unsigned long long int n,
                double b[], T *t, Thing thing, float const *c, const char *const *names, std::pair<int, int> p = {1, 2});
        template <class T> __global__ void templated(T *x, size_t n) {}
        __global__ void none(void) {}
        __global__ void twice(int *x) {}
        __global__ void twice(float *x) {}
    """)
    assert sorted(read) == ["k", "none", "templated"] and read["none"] == []
    a, n, b, t, thing, c, names, p = read["k"]
    assert (a.dtype, a.pointer, a.writes) == (np.float32, True, False)
    assert (n.dtype, n.pointer) == (np.uint64, False)
    assert (b.dtype, b.pointer, b.writes) == (np.float64, True, True)
    assert (t.dtype, t.pointer, thing.dtype, p.dtype) == (None, True, None, None)
    assert c.writes is False and names.dtype is None
    assert read["templated"][1].dtype == np.uint64


@pytest.mark.parametrize("text, dtype", [
    ("unsigned", np.uint32), ("unsigned int", np.uint32), ("long", np.int64), ("long long int", np.int64), ("short int", np.int16),
    ("unsigned char", np.uint8), ("signed char", np.int8), ("signed int", np.int32), ("uint16_t", np.uint16), ("half", np.float16),
    ("int unsigned long", np.uint64), ("whatever", None)])
def test_scalar_types_are_known(text, dtype):
    read = signature.of_source(f"__global__ void k({text} *x)")["k"][0]
    assert read.dtype == dtype and read.writes


def test_the_library_is_the_one_under_test(gpuq):
    gpuq.connect()
    from gpuq import _native
    assert _native.path == str(place.STAGE / "lib" / "libgpuq.so.0")


# ---- the same code again ----

COUNTED = '__device__ int count;\nextern "C" __global__ void step(int *out) { out[0] = ++count; }'


def n_modules(gpuq):
    return gpuq.status().users[0].modules


def test_the_same_code_again_is_loaded_once(gpuq, module):
    n = n_modules(gpuq)
    again = gpuq.module(SOURCE)
    kernel = gpuq.RawKernel(SOURCE, "twice").kernel
    assert again is not module and again["add"].parameters == module["add"].parameters and n_modules(gpuq) == n
    x = gpuq.array(np.arange(3, dtype=np.float32))
    del module, again
    gc.collect()
    kernel.run((1, 4), gpuq.InOut(x), 3)
    gpuq.module(SOURCE)["twice"].run((1, 4), gpuq.InOut(x), 3)
    assert x.tolist() == [0, 4, 8] and n_modules(gpuq) == n
    gpuq.module(SOURCE, options=["-DOTHER=1"])
    gpuq.module(SOURCE, name="another.cu")
    assert n_modules(gpuq) == n + 2


def test_code_with_variables_is_loaded_each_time(gpuq):
    """Each module has variables of its own."""
    first, second = gpuq.module(COUNTED), gpuq.module(COUNTED)
    out = np.zeros(1, np.int32)
    for module, count in ((first, 1), (first, 2), (second, 1)):
        module["step"].run((1, 1), gpuq.Out(out))
        assert out[0] == count


def test_few_modules_are_kept_and_none_of_a_closed_client(gpuq, monkeypatch):
    monkeypatch.setattr(image, "KEPT_N", 3)  # each is compiled
    with gpuq.connect() as client:
        for i in range(image.KEPT_N + 2):
            client.module(f'extern "C" __global__ void k(int *out) {{ out[0] = {i}; }}')
        gc.collect()
        until(lambda: n_modules(gpuq) == image.KEPT_N, "the others to go")  # told by another connection
    until(lambda: n_modules(gpuq) == 0, "the modules to go")


def test_kept_modules_go_before_a_quota_is_told(gpuq, start_gpuqd):
    with gpuq.connect(start_gpuqd(modules=3).socket) as client:
        sources = [f'extern "C" __global__ void k(int *out) {{ out[0] = {i}; }}' for i in range(4)]
        used = client.module(sources[0])
        for source in sources[1:]:
            client.module(source)
        held = [used, client.module(sources[1]), client.module(sources[2])]
        with pytest.raises(gpuq.QuotaError, match="modules"):
            client.module(sources[3])
        out = np.zeros(1, np.int32)
        held[2]["k"].run((1, 1), gpuq.Out(out))
        assert out[0] == 2
