# SPDX-License-Identifier: Apache-2.0
"""Header files that a source includes: given as texts, or read by this process from the folders of -I options."""

import io
import os
import pathlib
import pickle
import re

import numpy as np
import pytest

HEADERS = {
    "util/sum.h": '#pragma once\n#include "factor.h"\n__device__ int sum(int a, int b) { return FACTOR * (a + b); }\n',
    "util/factor.h": "#pragma once\n#define FACTOR 10\n",
}
SOURCE = r"""
#include "util/sum.h"
#include <util/factor.h>

extern "C" __global__ void add(const int *in, int *out)
{
        out[0] = sum(in[0], 2) + FACTOR;
}
"""
STANDARD = ("stdint.h", "stddef.h", "stdio.h", "stdlib.h", "string.h", "math.h", "limits.h", "float.h", "assert.h", "time.h",
            "sys/types.h", "cstdint", "cstddef", "cstdio", "cstdlib", "cstring", "cmath", "climits", "cfloat", "cassert",
            "ctime", "type_traits", "utility", "initializer_list", "algorithm", "limits", "memory.h", "stdbool.h", "inttypes.h",
            "cinttypes", "cstdbool", "functional", "numeric", "cuda.h")


def result(gpuq, module):
    out = np.zeros(1, np.int32)
    module["add"].run((1, 1), gpuq.In(np.array([1], np.int32)), gpuq.Out(out))
    return out[0]


@pytest.fixture
def folder(tmp_path):
    """The headers below inc/."""
    for name, text in HEADERS.items():
        path = tmp_path / "inc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "inc"


def test_headers_are_given_as_texts(gpuq):
    module = gpuq.module(SOURCE, headers=HEADERS)
    assert result(gpuq, module) == 40
    assert result(gpuq, gpuq.module(SOURCE, headers={**HEADERS, "util/factor.h": "#define FACTOR 1\n"})) == 4
    assert result(gpuq, pickle.loads(pickle.dumps(module))) == 40
    with pytest.raises(gpuq.CompileError, match="sum.h"):
        gpuq.module(SOURCE)


@pytest.mark.parametrize("form", [["-I{}"], ["-I", "{}"], ["--include-path={}"], ["-include-path", "{}"]])
def test_headers_are_read_from_folders(gpuq, folder, form):
    options = [part.format(folder) for part in form]
    assert result(gpuq, gpuq.module(SOURCE, options=options)) == 40


def test_changed_files_are_read_again(gpuq, folder):
    assert result(gpuq, gpuq.module(SOURCE, options=[f"-I{folder}"])) == 40
    (folder / "util" / "factor.h").write_text("#define FACTOR 100\n")
    assert result(gpuq, gpuq.module(SOURCE, options=[f"-I{folder}"])) == 400


def test_folders_are_searched_in_their_order(gpuq, folder, tmp_path):
    first = tmp_path / "first"
    (first / "util").mkdir(parents=True)
    (first / "util" / "sum.h").write_text("__device__ int sum(int a, int b) { return a; }\n")
    assert result(gpuq, gpuq.module(SOURCE, options=[f"-I{first}", f"-I{folder}"])) == 11
    assert result(gpuq, gpuq.module(SOURCE, options=[f"-I{folder}", f"-I{first}"])) == 40


def test_a_quoted_name_is_first_looked_for_beside_its_file(gpuq, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "factor.h").write_text("#error wrong\n")
    (other / "up.h").write_text('#include "../inc/util/factor.h"\n')
    source = '#include "up.h"\n' + SOURCE
    assert result(gpuq, gpuq.module(source, options=[f"-I{other}", f"-I{folder}"])) == 40


def test_a_relative_folder_is_one_of_this_process(gpuq, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert result(gpuq, gpuq.module(SOURCE, options=["-Iinc"])) == 40


def test_an_error_names_the_file_as_the_user_knows_it(gpuq, folder):
    (folder / "util" / "factor.h").write_text("\nwrong;\n#define FACTOR 1\n")
    with pytest.raises(gpuq.CompileError) as raised:
        gpuq.module(SOURCE, options=[f"-I{folder}"])
    text = str(raised.value)
    assert f"{folder}/util/factor.h" in text and "compile-" not in text
    with pytest.raises(gpuq.CompileError, match=r"(?m)(^|from )util/factor\.h[:(]2"):
        gpuq.module(SOURCE, headers={**HEADERS, "util/factor.h": "\nwrong;\n"})


def test_the_daemon_reads_no_file_of_a_client(gpuq, tmp_path):
    secret = tmp_path / "secret.h"
    secret.write_text("#define N 1\n")
    for name in ("/etc/passwd", "../secret.h", "a/../../b.h", "a//b.h", "", "a/."):
        with pytest.raises(gpuq.InvalidError):
            gpuq.module("__global__ void k() {}", headers={name: "x"})
    with pytest.raises(gpuq.InvalidError, match="folder of another header"):
        gpuq.module("__global__ void k() {}", headers={"a": "", "a/b": ""})
    with pytest.raises(gpuq.InvalidError, match="needs a folder"):
        gpuq.module("__global__ void k() {}", options=["-I"])


def test_a_folder_of_the_toolkit_is_left_out(gpuq, tmp_path):
    (tmp_path / "cuda_runtime.h").write_text("#error not this one\n")
    gpuq.module("#include <cuda_runtime.h>\n__global__ void k() {}\n", options=[f"-I{tmp_path}"])


def test_pycudas_and_cupys_folders(gpuq, folder):
    source = '#include "util/factor.h"\n__global__ void add(const int *in, int *out) { out[0] = FACTOR * in[0]; }\n'
    out = np.zeros(1, np.int32)
    gpuq.SourceModule(source, include_dirs=[str(folder)]).get_function("add")(
        gpuq.In(np.ones(1, np.int32)), gpuq.Out(out), block=(1, 1, 1))
    assert out[0] == 10
    assert result(gpuq, gpuq.RawModule(code=SOURCE, options=("-I", str(folder))).module) == 40
    options = gpuq.ProgramOptions(include_path=folder, max_register_count=32, lineinfo=True)
    assert result(gpuq, gpuq.Program(SOURCE, options=options).compile()) == 40


@pytest.mark.parametrize("option", ["-maxrregcount=32", "--maxrregcount=64", "-lineinfo", "--generate-line-info", "-G"])
def test_options_that_mean_nothing_to_the_cpu_do_no_harm(gpuq, option):
    assert result(gpuq, gpuq.module(SOURCE, options=[option], headers=HEADERS)) == 40


@pytest.mark.parametrize("options", [["-maxrregcount", "32"], ["--maxrregcount", "32"], ["--std", "c++17"], ["-D", "UNUSED=1"],
                                     ["--define-macro=UNUSED"], ["--fmad=false"], ["-fmad", "false"], ["-ftz=true"],
                                     ["--prec-div=false", "--prec-sqrt=false"], ["--use_fast_math", "--prec-div=true"]])
def test_options_are_spelled_as_for_nvcc_and_nvrtc(gpuq, options):
    assert result(gpuq, gpuq.module(SOURCE, options=options, headers=HEADERS)) == 40


def test_a_macro_is_its_own_word(gpuq):
    source = 'extern "C" __global__ void add(const int *in, int *out) { out[0] = N * in[0]; }'
    assert result(gpuq, gpuq.module(source, options=["-D", "N=7"])) == 7
    assert result(gpuq, gpuq.module(source, options=["-D", "N=7", "--undefine-macro", "N", "-DN=9"])) == 9


@pytest.mark.parametrize("fast", [[], ["--use_fast_math"]])
def test_a_product_and_a_sum_round_once_or_twice(gpuq, fast):
    source = 'extern "C" __global__ void mad(const float *in, float *out) { out[0] = in[0] * in[0] + in[1]; }'
    x = np.float32(1 + 2**-12)
    values = np.array([x, -(x * x)], np.float32)
    for option, wanted in (("--fmad=true", 2.0**-24), ("--fmad=false", 0.0)):
        out = np.full(1, -1, np.float32)
        gpuq.module(source, options=[*fast, option])["mad"].run((1, 1), gpuq.In(values), gpuq.Out(out))
        assert out[0] == wanted, option


def test_denormal_numbers_are_flushed_if_asked(gpuq):
    source = 'extern "C" __global__ void half(const float *in, float *out) { out[0] = in[0] * 0.5f; }'
    for option, wanted in (("-ftz=true", 0.0), ("-ftz=false", 2.0**-127)):
        out = np.full(1, -1, np.float32)
        gpuq.module(source, options=[option])["half"].run((1, 1), gpuq.In(np.array([2.0**-126], np.float32)), gpuq.Out(out))
        assert out[0] == wanted, option


def test_a_folder_that_does_not_exist_is_told(gpuq, folder, tmp_path):
    module = gpuq.module(SOURCE, options=[f"-I{tmp_path}/ink", f"-I{folder}"])
    assert result(gpuq, module) == 40
    assert f"the include folder {tmp_path}/ink does not exist" in module.log
    with pytest.raises(gpuq.CompileError, match="(?s)sum.h.*the include folder .*/ink does not exist"):
        gpuq.module(SOURCE, options=[f"-I{tmp_path}/ink"])
    (tmp_path / "file").write_text("")
    assert "file is not a folder" in gpuq.module(SOURCE, options=[f"-I{tmp_path}/file", f"-I{folder}"]).log


def test_other_options_are_still_refused(gpuq):
    for option in ("-maxrregcount=0", "-maxrregcount=256", "-maxrregcount=x", "-Xptxas", "-include"):
        with pytest.raises(gpuq.InvalidError, match="not allowed"):
            gpuq.module("__global__ void k() {}", options=[option])
    with pytest.raises(gpuq.InvalidError, match="did you mean -maxrregcount=N"):
        gpuq.module("__global__ void k() {}", options=["-maxregcount=32"])


@pytest.mark.parametrize("arguments, words", [
    ({"headers": {3: "x"}}, "the name of a header must be str, not int: 3"),
    ({"headers": {"a.h": b"x"}}, "the text of the header 'a.h' must be str, not bytes"),
    ({"headers": {"a.h": pathlib.Path("a.h")}}, "pass path.read_text()"),
    ({"headers": ["a.h"]}, "headers must be a dict of {name: text}, not ['a.h']"),
    ({"headers": 3}, "headers must be a dict of {name: text}, not 3"),
    ({"options": [b"-G"]}, "options must be str, not bytes: b'-G'"),
    ({"options": 3}, "options must be a sequence of str, not int"),
    ({"names": [3]}, "names must be str, not int: 3"),
])
def test_what_is_no_text_is_named(gpuq, arguments, words):
    with pytest.raises(TypeError) as raised:
        gpuq.module("__global__ void k() {}", **arguments)
    assert words in str(raised.value)


def test_a_folder_may_be_a_path(gpuq, folder):
    assert result(gpuq, gpuq.module(SOURCE, options=["-I", folder])) == 40


@pytest.mark.parametrize("name", STANDARD)
def test_standard_headers_do_no_harm(gpuq, name):
    gpuq.module(f"#include <{name}>\n__global__ void k(unsigned n, float *x) {{ uint m = n; x[0] = m; }}\n")


def test_standard_headers_together(gpuq):
    source = "".join(f"#include <{name}>\n" for name in STANDARD) + r"""
template <typename T> struct Wider { typedef typename std::conditional<sizeof(T) == 4, double, T>::type type; };
template <typename T>
__global__ void add(const T *in, T *out)
{
        static_assert(std::is_integral<T>::value && !std::is_floating_point<T>::value, "an integer");
        static_assert(std::is_same<typename std::remove_const<const T>::type, T>::value, "the same");
        static_assert(std::is_same<typename Wider<float>::type, double>::value, "double");
        static_assert(std::is_signed<T>::value && std::is_unsigned<uint>::value, "signs");
        static_assert(std::is_pointer<T *>::value && std::is_arithmetic<T>::value, "kinds");
        static_assert(std::numeric_limits<T>::max() > 0 && std::numeric_limits<float>::digits == 24, "limits");
        static_assert(std::is_convertible<int, double>::value && !std::is_convertible<int *, int>::value, "conversions");
        auto both = std::make_pair((uint8_t)4, 3);
        std::swap(both.second, both.second);
        uint8_t byte = std::min(both.first, (uint8_t)3);
        size_t n = sizeof(T);
        for (int i : {1, 2})
                n += std::numeric_limits<float>::infinity() > 1e38f ? i - i : std::move(i);
        out[0] = in[0] + byte + (T)n + (T)fabsf(-1.0f) + (T)std::sqrt(16.0f);
}
"""
    assert result(gpuq, gpuq.module(source, names=["add<int>"])) == 1 + 3 + 4 + 1 + 4


@pytest.mark.parametrize("option", ["--device-int128", "-device-int128"])
def test_integers_of_128_bits(gpuq, option):
    source = r"""
extern "C" __global__ void f(const long long *x, long long *r)
{
        __int128 product = (__int128)x[0] * x[1];
        r[0] = (long long)(product >> 64);
        r[1] = (long long)product;
#ifdef __clang__ /* whose version 14 cannot divide them */
        r[2] = x[0];
#else
        r[2] = (long long)(product / x[1]);
#endif
}
"""
    x, r = np.array([2**62 + 12345, -2**61 - 77], np.int64), np.zeros(3, np.int64)
    gpuq.module(source, options=[option])["f"].run((1, 1), gpuq.In(x), gpuq.Out(r))
    product = int(x[0]) * int(x[1])
    assert r.tolist() == [product >> 64, (product + 2**63) % 2**64 - 2**63, x[0]]


def test_what_kernels_use_of_further_headers(gpuq):
    source = r"""
#include <cuda.h>
#include <functional>
#include <inttypes.h>
#include <math.h>
#include <numeric>
#include <stdbool.h>
#include <stdio.h>
template <class F> __device__ int fold(F f, const int *values, int n)
{
        return std::accumulate(values, values + n, 1, f);
}
extern "C" __global__ void add(const int *in, int *out)
{
        int values[4];
        CUdeviceptr address = (CUdeviceptr)out;
        bool is_large = INFINITY > 1e38f && !(NAN == NAN) && HUGE_VAL > 1e300 && M_PI > 3.14;
        std::iota(values, values + 4, in[0]);
        if (in[0] < 0)
                printf("%" PRId64 " %" PRIu32, (int64_t)address, (uint32_t)in[0]);
        out[0] = fold(std::plus<int>(), values, 4) + fold(std::multiplies<int>(), values, 4)
               + std::inner_product(values, values + 4, values, 0) + 1000 * (is_large && std::less<int>()(1, 2));
}
"""
    assert result(gpuq, gpuq.module(source)) == 11 + 24 + 30 + 1000


def with_thrust(gpuq, source):
    """A module of source that includes thrust/complex.h, or the test is skipped."""
    try:
        return gpuq.module(source)
    except gpuq.CompileError as error:
        if re.search(r"""(cannot open source file "|')thrust/complex\.h["']""", str(error)):
            pytest.skip("NVRTC or the headers of the CUDA Toolkit are missing here")
        raise


@pytest.mark.parametrize("dtype, real", [(np.complex64, "float"), (np.complex128, "double")])
def test_thrusts_complex_numbers(gpuq, dtype, real):
    source = r"""
#include <thrust/complex.h>
#include <complex>
#include <math.h>
using C = thrust::complex<REAL>;
extern "C" __global__ void turn(const C *in, C *out, std::complex<REAL> *sums)
{
        C z = in[threadIdx.x], w = C(REAL(0.5), -2);
        out[4 * threadIdx.x] = z * w + z / w - conj(z) + REAL(3);
        out[4 * threadIdx.x + 1] = exp(z) + sqrt(z) + thrust::log(z) + pow(z, w);
        out[4 * threadIdx.x + 2] = sin(z) + thrust::cosh(z) + atan(z) + thrust::polar(abs(z), arg(z));
        out[4 * threadIdx.x + 3] = isfinite(z.real()) && norm(z) < INFINITY ? C(z.imag(), norm(z)) : C(NAN, 0);
        sums[threadIdx.x] = std::complex<REAL>(z.real(), z.imag()) + std::complex<REAL>(1, 1);
}
""".replace("REAL", real)
    module = with_thrust(gpuq, source)
    assert "warning" not in module.log
    z = np.array([1 + 2j, -0.5 + 0.25j, 0.75 - 1.5j, 2 + 0j], dtype)
    out, sums, w = np.zeros((4, 4), dtype), np.zeros(4, dtype), 0.5 - 2j
    module["turn"].run((1, 4), gpuq.In(z), gpuq.Out(out), gpuq.Out(sums))
    wanted = np.stack([z * w + z / w - z.conj() + 3, np.exp(z) + np.sqrt(z) + np.log(z) + z**w,
                       np.sin(z) + np.cosh(z) + np.arctan(z) + z, z.imag + 1j * np.abs(z)**2], axis=1)
    np.testing.assert_allclose(out, wanted, rtol=1e-5 if real == "float" else 1e-13)
    np.testing.assert_allclose(sums, z + (1 + 1j), rtol=1e-6)
