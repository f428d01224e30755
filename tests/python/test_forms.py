# SPDX-License-Identifier: Apache-2.0
"""Launches in the words of other packages, and what the Numba and Triton adapters pass, on kernels of the same parameters."""

import enum
import io
import pickle
import subprocess
import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import SOURCE, python_with
from gpuq import numba_adapter, numba_parameter, triton_adapter
from gpuq.numba_adapter import NumbaKernel
from gpuq.numba_parameter import ArrayOf, Complex, Pointer, Record, Scalar, Tuple

N = 64
PLAIN = """
__global__ void add(const float *a, const float *b, float *c)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        c[i] = a[i] + b[i];
}
__device__ int seen;
"""


@pytest.fixture
def abc():
    return np.arange(N, dtype=np.float32), np.ones(N, np.float32), np.zeros(N, np.float32)


# ---- cuda.core ----


def test_cuda_cores_names(gpuq, abc):
    a, b, c = abc
    options = gpuq.ProgramOptions(std="c++17", define_macro=[("ONE", 1), "TWO=2"], use_fast_math=True, name="mine.cu")
    assert options.as_options() == ["-std=c++17", "-DONE=1", "-DTWO=2", "--use_fast_math"]
    code = gpuq.Program(SOURCE, code_type="c++", options=options).compile("cubin", name_expressions=("add",))
    kernel = code.get_kernel("add")
    config = gpuq.LaunchConfig(grid=2, block=32)
    job = gpuq.launch(None, config, kernel, a, b, gpuq.Out(c), N)
    job.wait()
    assert c[5] == 6 and isinstance(code, gpuq.ObjectCode) and "mine.cu" in repr(code)
    with gpuq.connect() as client:
        c[:] = 0
        job = gpuq.launch(client, config, kernel, a, b, gpuq.Out(c), N, label="elsewhere")
        job.wait()
        assert c[5] == 6 and job.client is client


def test_a_launch_configuration_is_a_value(gpuq):
    config = gpuq.LaunchConfig((2, 3), 64, shmem_size=16)
    assert config.grid == (2, 3, 1) and config.block == (64, 1, 1) and config.cluster is None
    assert config == gpuq.LaunchConfig((2, 3, 1), (64,), None, 16) == pickle.loads(pickle.dumps(config))
    assert len({config, gpuq.LaunchConfig((2, 3), 64, shmem_size=16)}) == 1 and "shmem_size=16" in repr(config)
    with pytest.raises(AttributeError):
        config.grid = (1, 1, 1)


# ---- CuPy ----


def test_cupys_call_form(gpuq, abc):
    a, b, c = abc
    kernel = gpuq.RawKernel(SOURCE, "add")
    assert kernel((1,), (N,), (gpuq.In(a), gpuq.In(b), gpuq.Out(c), N), shared_mem=128).state == "done"
    assert c[5] == 6
    x, y, z = gpuq.array(a), gpuq.to_device(b), gpuq.zeros(N, np.float32)
    module = gpuq.RawModule(code=SOURCE, options=("-std=c++17",))
    module.get_function("add")((2,), (N // 2,), (x, y, z, np.int32(N)))
    assert z[5] == 6
    log = io.StringIO()
    module.compile(log)
    again = pickle.loads(pickle.dumps(kernel))
    again((1,), (N,), (x, y, z, N))
    with pytest.raises(TypeError, match="gpuq.In"):
        kernel((1,), (N,), (a, b, c, N))
    with pytest.raises(gpuq.NotFoundError):
        module.get_function("none")
    with pytest.raises(TypeError):
        gpuq.RawModule()


def test_cupys_module_from_a_file(gpuq, abc, tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    gpuq.RawModule(path=str(path)).get_function("add")((1,), (N,), (*abc[:2], gpuq.Out(abc[2]), N))
    assert abc[2][5] == 6


# ---- PyCUDA ----


class In:
    """As pycuda.driver.In looks from outside."""

    def __init__(self, array):
        self.array = array


class Out(In):
    pass


def test_pycudas_call_form(gpuq, abc):
    a, b, c = abc
    module = gpuq.SourceModule(PLAIN)
    add = module.get_function("add")
    add(In(a), gpuq.In(b), Out(c), block=(32, 1, 1), grid=(2, 1))
    assert c[5] == 6
    assert add(gpuq.array(a), gpuq.to_device(b), gpuq.zeros(N, np.float32), block=(N, 1, 1), time_kernel=True) > 0
    module.get_global("seen").set(np.int32(4))
    assert module.get_global("seen").get((), np.int32) == 4
    job = add.submit(In(a), In(b), Out(c), block=(N, 1, 1), label="later")
    assert job.wait().state == "done"
    with gpuq.Executor() as executor:
        assert executor.submit(add, (1, N), gpuq.In(a), gpuq.In(b), gpuq.Out(c)).result() is c
    with pytest.raises(gpuq.CompileError, match=r"kernel\.cu[:(]3"):  # clang's and NVRTC's way
        gpuq.SourceModule("\n__global__ void k()\n{ wrong; }\n")


# ---- Numba's ABI ----

NUMBA = """
typedef unsigned long long u64;
extern "C" __global__ void scale(u64, u64, long long n, long long size, float *r, long long n0, long long stride,
                                 float factor,
                                 u64, u64, long long m, long long wide, const double *x, long long rows, long long columns,
                                 long long row, long long column, char flag)
{
        for (int i = 0; i < rows; i++)
                for (int j = 0; j < columns; j++)
                        r[i * columns + j] = flag ? factor * *(const double *)((const char *)x + i * row + j * column) : 0;
        r[n - 1] += n0 * size * stride * wide * 1000000 + m;
}
"""
SPECS = [ArrayOf("r: array(float32, 1d, C)", "float32", 1), Scalar("factor: float32", "float32"),
         ArrayOf("x: array(float64, 2d, C)", "float64", 2, readonly=True), Scalar("flag: bool", "bool")]


def test_arrays_are_passed_as_numba_does(gpuq):
    kernel = NumbaKernel(gpuq.module(NUMBA), "scale", "scale", "", SPECS)
    x, r = np.arange(6.0).reshape(2, 3), np.zeros(7, np.float32)
    kernel.run((1, 1), gpuq.Out(r), 2.0, x, True)
    assert r[:6].tolist() == [0, 2, 4, 6, 8, 10] and r[6] == np.float32(7 * 4 * 4 * 8 * 1000000 + 6)
    d = gpuq.to_device(x)
    pickle.loads(pickle.dumps(kernel)).run((1, 1), gpuq.Out(r), np.float32(3), d, np.bool_(True))
    assert r[1] == 3 and "factor: float32" in repr(kernel)
    with pytest.raises(ValueError, match="2 axes"):
        kernel.run((1, 1), gpuq.Out(r), 2.0, r.astype(float), True)
    with pytest.raises(TypeError, match="float64"):
        kernel.run((1, 1), gpuq.Out(r), 2.0, x.astype(np.float32), True)
    with pytest.raises(TypeError, match="takes 4 arguments"):
        kernel.run((1, 1), gpuq.Out(r))
    with pytest.raises(TypeError, match="18 parameters.*8"):
        NumbaKernel(gpuq.module(NUMBA), "scale", "scale", "", SPECS[:2])


@pytest.mark.parametrize("layout", "FA")
def test_numbas_fortran_layout(gpuq, layout):
    """Strides follow the array; the source of test_arrays_are_passed_as_numba_does uses them."""
    kernel = NumbaKernel(gpuq.module(NUMBA), "scale", "scale", "", [*SPECS[:2], ArrayOf("x: float64[::1, :]", "float64", 2, True, layout),
                                                                    SPECS[3]])
    x, r = np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros(7, np.float32)
    for fortran in (x, gpuq.In(x), gpuq.In(gpuq.array(x.T).T)):
        pickle.loads(pickle.dumps(kernel)).run((1, 1), gpuq.Out(r), 2.0, fortran, True)
        assert r[:6].tolist() == [0, 2, 4, 6, 8, 10]
    prepared = kernel.prepare((1, 1), gpuq.Out(r), 2.0, x, True)
    prepared.run(x=np.asfortranarray(x + 1))
    assert r[:6].tolist() == [2, 4, 6, 8, 10, 12]
    with pytest.raises(ValueError, match="Fortran layout: pass numpy.asfortranarray"):
        prepared.run(x=np.ascontiguousarray(x))
    if layout == "F":
        with pytest.raises(ValueError, match="x: float64.*Fortran layout: pass numpy.asfortranarray"):
            kernel.run((1, 1), gpuq.Out(r), 2.0, np.ascontiguousarray(x), True)
        with pytest.raises(TypeError, match=r"DeviceArray is row-major.*float64\[:, ::1\]"):
            kernel.run((1, 1), gpuq.Out(r), 2.0, gpuq.to_device(x), True)
    else:
        kernel.run((1, 1), gpuq.Out(r), 2.0, np.ascontiguousarray(x), True)
        assert r[1] == 2
        with pytest.raises(ValueError, match="Fortran layout|not C-contiguous"):
            kernel.run((1, 1), gpuq.Out(r), 2.0, np.arange(24.0).reshape(4, 6)[::2, ::2], True)
    assert numba_parameter.spec_of(SimpleNamespace(layout="F", ndim=1, dtype="float32", mutable=True), "x").layout == "C"


PARTS = """
struct Point { float x; long long y; };
extern "C" __global__ void parts(double real, double imag, unsigned short half, int first, float second_real, float second_imag,
                                 long long when, unsigned char color, Point *point, double *address, double *out)
{
        out[0] = real, out[1] = imag, out[2] = half, out[3] = first, out[4] = second_real, out[5] = second_imag;
        out[6] = when, out[7] = color, out[8] = point->x, out[9] = point->y, out[10] = address[1];
        point->y += 1;
}
"""
POINT = np.dtype([("x", np.float32), ("y", np.int64)], align=True)
PARTS_SPECS = [Complex("z: complex128", "complex128"), Scalar("h: float16", "float16"),
               Tuple("t: Tuple(int32, complex64)", [Scalar("t[0]: int32", "int32"), Complex("t[1]: complex64", "complex64")]),
               Scalar("when: datetime64[s]", "datetime64[s]"), Scalar("color: uint8", "uint8"), Record("point: Record", POINT),
               Pointer("address: float64*", "float64"), Pointer("out: float64*", "float64")]


class Color(enum.IntEnum):
    RED = 7


@pytest.fixture
def parts(gpuq):
    return pickle.loads(pickle.dumps(NumbaKernel(gpuq.module(PARTS), "parts", "parts", "", PARTS_SPECS)))


def test_values_that_numba_passes_in_parts(gpuq, parts):
    point, out = np.array([(1.5, 1 << 40)], POINT), np.zeros(11)
    address = gpuq.to_device(np.array([1.0, 99]))
    given = [1 - 2j, 0.5, (3, 4 + 5j), np.datetime64(100, "s"), Color.RED, gpuq.InOut(point), gpuq.In(address), gpuq.Out(out)]
    wanted = [1, -2, np.float16(0.5).view(np.uint16), 3, 4, 5, 100, 7, 1.5, 1 << 40, 99]
    parts.run((1, 1), *given)
    np.testing.assert_array_equal(out, wanted)
    assert point[0]["y"] == (1 << 40) + 1 and parts.parameters[2] == "t: Tuple(int32, complex64)"
    given[0], given[1], given[4], given[5] = np.complex128(1 - 2j), np.float16(0.5), 7, gpuq.In(point.reshape(()))
    parts.submit((1, 1), *given[:6], address.address, given[7], uses=address).wait()
    np.testing.assert_array_equal(out, [*wanted[:9], (1 << 40) + 1, 99])
    assert point[0]["y"] == (1 << 40) + 1
    parts.run((1, 1), *given[:5], gpuq.InOut(point[0]), *given[6:])
    assert point[0]["y"] == (1 << 40) + 2
    prepared = parts.prepare((1, 1), *given)
    prepared.run(z=2j, h=1.0, **{"t[1]": 6j, "t[0]": -1}, point=np.array([(2, 3)], POINT))
    np.testing.assert_array_equal(out, [0, 2, np.float16(1).view(np.uint16), -1, 0, 6, 100, 7, 2, 3, 99])


@pytest.mark.parametrize("at, value, error, match", [
    (0, np.complex64(1), TypeError, "numpy.complex128"), (0, "1", TypeError, "z: complex128"), (1, np.float32(1), TypeError, "h: float16"),
    (2, 3, TypeError, "a tuple of 2 elements, not a int"), (2, (1, 2, 3), TypeError, "not 3 elements"),
    (2, (1.5, 2), TypeError, r"argument 3 \(`t\[0\]: int32`"), (3, np.datetime64(1, "ms"), TypeError, r"datetime64\[s\]"),
    (3, 100, TypeError, r"numpy.datetime64\(x, 's'\)"), (4, 256, OverflowError, "color"),
    (5, np.array([(1, 2)], POINT)[0], TypeError, "wrap the record"), (5, np.array([(1, 2)], POINT), TypeError, "wrap the array"),
    (6, None, TypeError, None), (6, -1, OverflowError, "address.*-1 is no address"), (6, 1 << 63, OverflowError, "is no address")])
def test_values_that_numba_would_not_pass_so(gpuq, parts, at, value, error, match):
    args = [1j, 0.5, (3, 4j), np.datetime64(100, "s"), 7, gpuq.InOut(np.zeros(1, POINT)), gpuq.In(np.ones(2)), gpuq.Out(np.zeros(11))]
    args[at] = value
    if match is None:  # the null pointer; nothing is wrong until the kernel follows it
        parts._pack(gpuq.job(), args, [])
        return
    with pytest.raises(error, match=match):
        parts.run((1, 1), *args)
    with pytest.raises(ValueError, match="must be one record"):
        parts.run((1, 1), 1j, 0.5, (3, 4j), np.datetime64(1, "s"), 7, gpuq.InOut(np.zeros(2, POINT)), *args[6:])


def test_what_numba_would_link_is_refused():
    ptx = ".extern .func (.param .b32 r) vprintf(.param .b64 a);\n.extern .func  (.param .f32 r) mul_f32\n(\n\t.param .f32 a\n)\n;\n"
    with pytest.raises(TypeError, match="k calls mul_f32, which.*device=True"):
        numba_adapter._check_linked("k", ptx)
    numba_adapter._check_linked("k", ptx.splitlines()[0])


def test_a_grid_is_synchronized(gpuq):
    """By the functions that Numba's cuda.cg calls. The launch is a cooperative one."""
    ptx = """.version 6.0
.target sm_70
.address_size 64
.extern .func  (.param .b32 func_retval0) cudaCGSynchronize
(
        .param .b64 a,
        .param .b32 b
)
;
.extern .func  (.param .b64 func_retval0) cudaCGGetIntrinsicHandle ( .param .b32 a ) ;
.visible .entry rounds(.param .u64 n, .param .u64 x)
{
        .reg .pred %p<3>;
        .reg .b32 %r<8>;
        .reg .b64 %rd<12>;
        ld.param.u64 %rd1, [n];
        ld.param.u64 %rd2, [x];
        cvt.u32.u64 %r4, %rd1;
        mov.u32 %r1, %ctaid.x;
        mov.u32 %r2, %nctaid.x;
        { .param .b32 p; .param .b64 q;
        st.param.b32 [p], 1;
        call.uni (q), cudaCGGetIntrinsicHandle, (p);
        ld.param.b64 %rd3, [q]; }
        mul.wide.u32 %rd4, %r1, 4;
        add.u64 %rd4, %rd2, %rd4;
        add.u32 %r3, %r1, 1;
        rem.u32 %r3, %r3, %r2;
        mul.wide.u32 %rd5, %r3, 4;
        add.u64 %rd5, %rd2, %rd5;
        mov.u32 %r5, %tid.x;
        setp.ne.u32 %p1, %r5, 0;
next:
        ld.volatile.global.u32 %r6, [%rd5];
        { .param .b64 p; .param .b32 q; .param .b32 r;
        st.param.b64 [p], %rd3;
        st.param.b32 [q], 0;
        call.uni (r), cudaCGSynchronize, (p, q);
        ld.param.b32 %r7, [r]; }
        add.u32 %r6, %r6, 1;
        @!%p1 st.volatile.global.u32 [%rd4], %r6;
        { .param .b64 p; .param .b32 q; .param .b32 r;
        st.param.b64 [p], %rd3;
        st.param.b32 [q], 0;
        call.uni (r), cudaCGSynchronize, (p, q);
        ld.param.b32 %r7, [r]; }
        sub.u32 %r4, %r4, 1;
        setp.ne.u32 %p2, %r4, 0;
        @%p2 bra next;
        ret;
}
"""
    text, found = numba_adapter._define_grid(ptx)
    assert found and ".extern" not in text and numba_adapter._define_grid(text)[1] is False
    kernel = NumbaKernel(gpuq.module(text), "rounds", "rounds", "", [Scalar("n: int64", "int64"), Pointer("x: int32*", "int32")], True)
    x = np.array([0, 0, 0, 100], np.int32)  # each round, each block takes its neighbour's number and adds 1
    for config in ((4, 64), gpuq.LaunchConfig(4, 64, cooperative_launch=True)):
        again = x.copy()
        pickle.loads(pickle.dumps(kernel)).run(config, 10, gpuq.InOut(again))
        np.testing.assert_array_equal(again, np.roll(x, -10) + 10)


@pytest.mark.usefixtures("environment")
def test_numba_never_asks_for_a_cuda_context():
    """Neither without cc= nor for device functions. In a process without a driver, to ask is an error."""
    ended = subprocess.run([python_with("numba_cuda", "numba"), "-c", DEVICE_FUNCTION], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr


DEVICE_FUNCTION = """
import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks for it, numpy 2.5 has removed it
    np.row_stack = np.vstack

from numba import cuda
from numba.cuda.cudadrv import devices
from gpuq.numba_adapter import compile_ptx

def fail(*args):
    raise AssertionError("asked for a context")

devices.get_context = devices._runtime.get_or_create_context = fail

@cuda.jit(device=True)
def twice(x):
    return 2 * x

def kernel(r):
    i = cuda.grid(1)
    r[i] = twice(r[i])

for cc in (None, (8, 0)):
    assert ".entry" in compile_ptx(kernel, "void(float32[::1])", cc)[0]
"""


def stand_in_for_numba(monkeypatch):
    """Numba's modules, as far as the adapter uses them: compile() asks the current device, as for a device function."""
    def asks():
        raise AssertionError("asked for a context")

    def module(name, **members):
        made = types.ModuleType(name)
        made.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    dispatcher = module("numba.cuda.dispatcher", get_current_device=asks)
    compiler = module("numba.cuda.compiler", get_current_device=asks)

    def compile(function, arguments, cc=None, **options):
        assert cc and dispatcher.get_current_device().compute_capability == cc
        return f"// for {cc}", None

    config = SimpleNamespace(CUDA_DEFAULT_PTX_CC=(7, 5))
    cuda = module("numba.cuda", compile=compile, dispatcher=dispatcher, compiler=compiler, config=config, __path__=[])
    module("numba.cuda.cudadrv")  # so that numba's own import hooks find everything loaded
    module("numba.cuda.core", __path__=[])
    module("numba.cuda.core.sigutils", normalize_signature=lambda signature: (signature, None))
    module("numba", cuda=cuda, config=config, __path__=[])
    return dispatcher, asks


@pytest.mark.parametrize("cc", [None, (9, 0)])
def test_a_compute_capability_is_always_given_to_numba(monkeypatch, cc):
    dispatcher, asks = stand_in_for_numba(monkeypatch)
    assert numba_adapter.compile_ptx(lambda: None, (), cc)[0] == f"// for {cc or (7, 5)}"
    assert dispatcher.get_current_device is asks


# ---- Triton's metadata ----

TRITON = """
extern "C" __global__ void kernel(const float *x, float *y, int n, unsigned long long scratch, unsigned long long profile)
{
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
                y[i] = 2 * x[i] + (scratch != 0) + (profile != 0) + blockDim.x;
}
"""


def compiled(signature, **metadata):
    fields = {"name": "kernel", "num_warps": 2, "num_ctas": 1, "cluster_dims": (1, 1, 1), "shared": 256, **metadata}
    return SimpleNamespace(metadata=SimpleNamespace(**fields), name="kernel", src=SimpleNamespace(
        signature=signature, constants={"BLOCK": 64} if "BLOCK" in signature else {}, attrs={},
        fn=SimpleNamespace(arg_names=["x", "y", "n", "BLOCK"])))


@pytest.mark.parametrize("signature", [
    {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {0: "*fp32", 1: "*fp32", 2: "i32"}])
def test_a_launch_is_filled_in_as_triton_does(gpuq, signature):
    given = compiled(signature)
    parameters = triton_adapter._parameters(given)
    assert [(each.name, each.kind) for each in parameters[:3]] == [("x", "*fp32"), ("y", "*fp32"), ("n", "i32")]
    assert [(each.kind, each.value) for each in parameters[3:]] in ([], [(None, 64)])
    kernel = triton_adapter.TritonKernel(gpuq.module(TRITON), "kernel", parameters, triton_adapter._launch(given.metadata))
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    kernel.run(1, gpuq.In(x), gpuq.Out(y), N)
    np.testing.assert_array_equal(y, 2 * x + 64)
    kernel.run((2, 1), *(gpuq.In(x), gpuq.Out(y), N, 64)[:len(parameters)])
    np.testing.assert_array_equal(y, 2 * x + 64)
    with gpuq.Executor() as executor:
        assert executor.submit(pickle.loads(pickle.dumps(kernel)), 2, gpuq.In(x), gpuq.Out(y), N).result() is y
    with pytest.raises(TypeError, match="float32"):
        kernel.run(1, gpuq.In(x.astype(float)), gpuq.Out(y), N)


def test_scratch_memory_and_clusters_come_from_the_metadata(gpuq):
    launch = triton_adapter._launch({"num_warps": 4, "shared": 0, "num_ctas": 2, "global_scratch_size": 128})
    config = launch.config((3, 2))
    assert (config.grid, config.block, config.cluster) == ((6, 2, 1), (128, 1, 1), (2, 1, 1)) and launch.scratch == (128, 0)


def test_a_constant_of_the_signature_takes_no_parameter():
    given = compiled({"x": "*fp32", "n": "i32"})
    given.src.constants = {(2,): 1, "BLOCK": 64}
    given.src.fn.arg_names = ["x", "y", "n"]
    assert [(each.name, each.kind, each.value) for each in triton_adapter._parameters(given)] == [("x", "*fp32", None), ("n", None, 1)]


DESCRIBED = """
extern "C" __global__ void kernel(float *x, long long rows, long long columns, long long pitch, long long one, FLAGS int m, int n,
                                  long long pitch_again, long long one_again, float *sums, int k, unsigned long long scratch)
{
        if (rows != m || columns != n || pitch != pitch_again || one != 1 || one_again != 1)
                return;
        for (int row = threadIdx.x; row < m; row += blockDim.x) {
                sums[row] = k;
                for (int i = 0; i < n; i++)
                        sums[row] += x[row * pitch + i];
        }
}
"""


def described(gpuq, flags="signed char nan, signed char tf32,"):
    given = compiled({"x": "tensordesc<fp32[16,32]>", "y": ("*fp32", "i32", "constexpr")})
    given.src.constants = {(1, 2): 5}
    given.src.attrs = {(1, 1): [["tt.divisibility", 16]]}
    given.src.fn.arg_names = ["x", "y"]
    return triton_adapter.TritonKernel(gpuq.module(DESCRIBED.replace("FLAGS", flags)), "kernel", triton_adapter._parameters(given),
                                       triton_adapter._launch(given.metadata))


@pytest.mark.parametrize("flags", ["", "signed char nan,", "signed char nan, signed char tf32,"])
def test_a_descriptor_of_the_host_is_an_array_and_a_tuple_is_a_tuple(gpuq, flags):
    """Triton's versions have no, one or two flags in a descriptor."""
    kernel = pickle.loads(pickle.dumps(described(gpuq, flags)))
    x, sums = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(3, np.float32)
    kernel.run(1, gpuq.In(x), (gpuq.Out(sums), 16, 5))
    assert sums.tolist() == [22, 38, 54]
    kernel.run(1, gpuq.to_device(x), [gpuq.Out(sums), 0, 5])
    assert sums.tolist() == [6, 22, 38]
    part = SimpleNamespace(base=x, shape=[3, 2], strides=[4, 1], block_shape=[16, 32], padding="nan", round_f32_to_tf32=False)
    kernel.run(1, gpuq.In(part), (gpuq.Out(sums), 0, 5))
    assert sums.tolist() == [1, 9, 17]


def test_a_prepared_descriptor_keeps_its_shape(gpuq):
    x, sums = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(3, np.float32)
    prepared = described(gpuq).prepare(1, gpuq.In(x), (gpuq.Out(sums), 0, 5))
    prepared.run(**{"x": x + 1, "y[1]": 32})
    assert sums.tolist() == [42, 58, 74]
    with pytest.raises(ValueError, match=r"shape \(3, 4\), not \(4, 3\)"):
        prepared.run(x=x.T.copy())


def test_wrong_tuples_and_descriptors_are_refused_in_words(gpuq):
    kernel = described(gpuq)
    x, y = np.zeros((3, 4), np.float32), gpuq.Out(np.zeros(3, np.float32))
    for given, error, words in [
            ((gpuq.In(x), (y, 0)), TypeError, r"argument 2 \(`y`\) must be a tuple of 3 elements, not 2 elements"),
            ((gpuq.In(x), y), TypeError, r"argument 2 \(`y`\) must be a tuple of 3 elements, not a Out"),
            ((gpuq.In(x), (y, 0, 6)), ValueError, r"`y\[2\]`\) is compiled in as 5"),
            ((gpuq.In(x), (y, 8, 5)), ValueError, r"`y\[1\]: i32`.*divisible by 16.*8"),
            ((gpuq.In(x[0]), (y, 0, 5)), ValueError, r"`x: tensordesc<fp32>`\) must have 2 axes, not the shape \(4,\)"),
            ((gpuq.In(x[:, :2]), (y, 0, 5)), ValueError, "not C-contiguous"),
            ((x, (y, 0, 5)), TypeError, "wrap the array"),
            ((gpuq.In(x.astype(int)), (y, 0, 5)), TypeError, "float32"),
            ((gpuq.In(x),), TypeError, r"takes 2 arguments \(x: tensordesc<fp32>, y: \(y\[0\]: \*fp32, y\[1\]: i32, y\[2\]: None\)\), not 1"),
            ((gpuq.In(SimpleNamespace(base=x, shape=[3, 2], strides=[4, 2], block_shape=[4, 4])), (y, 0, 5)), ValueError, "last axis")]:
        with pytest.raises(error, match=words):
            kernel.run(1, *given)
    with pytest.raises(TypeError, match="does not know how this version of Triton passes"):
        described(gpuq, "int nan,")


def test_descriptors_that_the_driver_makes_are_refused():
    given = compiled({"x": "tensordesc<fp16[64,64]>", "n": "i32"}, tensordesc_meta=[{"swizzle": 3}])
    given.src.fn.arg_names = ["x", "n"]
    with pytest.raises(TypeError, match=r'parameter x: tensordesc<fp16\[64,64\]>.*TMA: compile.*"cuda", 80.*tl.make_tensor_descriptor\(pointer'):
        triton_adapter._parameters(given)
    given = compiled({"x": "nvTmaDesc"})
    with pytest.raises(TypeError, match="parameter x: nvTmaDesc"):
        triton_adapter._parameters(given)


SHORT = """
extern "C" __global__ void kernel(unsigned short half, unsigned short brain, float *out, unsigned long long a, unsigned long long b)
{
        out[0] = half, out[1] = brain;
}
"""


@pytest.mark.parametrize("value, half, brain", [
    (1.5, 0x3E00, 0x3FC0), (-2, 0xC000, 0xC000), (1 + 2 ** -8, 0x3C04, 0x3F80), (1 + 3 * 2 ** -8, 0x3C0C, 0x3F81), (float("inf"), 0x7C00, 0x7F80)])
def test_short_floats_of_triton(gpuq, value, half, brain):
    given = compiled({"half": "fp16", "brain": "bf16", "out": "*fp32"})
    given.src.fn.arg_names = ["half", "brain", "out"]
    kernel = triton_adapter.TritonKernel(gpuq.module(SHORT), "kernel", triton_adapter._parameters(given), triton_adapter._launch(given.metadata))
    out = np.zeros(2, np.float32)
    kernel.run(1, value, value, gpuq.Out(out))
    assert out.tolist() == [half, brain]
    kernel.prepare(1, value, 0.0, gpuq.Out(out)).run(brain=value)
    assert out.tolist() == [half, brain]


def param(name, is_constexpr=False):
    return SimpleNamespace(name=name, is_constexpr=is_constexpr)


ASSUMING = """
extern "C" __global__ void kernel(const float *x, float *y, int n, SCRATCH scratch, unsigned long long profile)
{
        for (int i = threadIdx.x; i < n; i += blockDim.x)
                y[i] = 2 * x[i];
        if (scratch)
                *(unsigned long long *)scratch = 7;
}
"""


def assuming(gpuq, attrs, **metadata):
    """A kernel that was compiled for stride 1, BLOCK 64, and x and n divisible by 16."""
    given = compiled({"x": "*fp32", "y": "*fp32", "stride": "constexpr", "n": "i32", "BLOCK": "constexpr"}, **metadata)
    given.src.constants = {(2,): 1, (4,): 64}
    given.src.attrs = attrs
    given.src.fn = SimpleNamespace(arg_names=["x", "y", "stride", "n", "BLOCK"],
                                   params=[*map(param, ["x", "y", "stride", "n"]), param("BLOCK", True)])
    scratch = "unsigned long long *" if "global_scratch_size" in metadata else "unsigned long long"
    return triton_adapter.TritonKernel(gpuq.module(ASSUMING.replace("SCRATCH", scratch)), "kernel", triton_adapter._parameters(given),
                                       triton_adapter._launch(given.metadata))


@pytest.mark.parametrize("attrs", [
    {(0,): [["tt.divisibility", 16]], (3,): [["tt.divisibility", 16]], (1,): []},
    SimpleNamespace(divisible_by_16={0, 3}),
    SimpleNamespace(arg_properties={"tt.divisibility": [0, 3], "tt.equal_to": [2]}),
])
def test_triton_kernels_refuse_what_they_were_not_compiled_for(gpuq, attrs):
    kernel = pickle.loads(pickle.dumps(assuming(gpuq, attrs)))
    x, y = gpuq.array(np.arange(4 * N, dtype=np.float32)), gpuq.zeros(4 * N, np.float32)
    for args in ((N,), (1, N), (np.int32(1), np.int32(N), 64)):
        y[:] = 0
        kernel.run(1, gpuq.In(x), gpuq.Out(y), *args)
        assert y[N - 1] == 2 * x[N - 1]
    kernel.run(1, gpuq.In(x[4:]), gpuq.Out(y[1:]), N)  # of y nothing was assumed
    with pytest.raises(ValueError, match="`n: i32`.*divisible by 16.*63"):
        kernel.run(1, gpuq.In(x), gpuq.Out(y), 63)
    with pytest.raises(ValueError, match="`n: i32`"):
        kernel.run(1, gpuq.In(x), gpuq.Out(y), np.int32(63))
    with pytest.raises(ValueError, match="`stride`.*compiled in as 1.*2"):
        kernel.run(1, gpuq.In(x), gpuq.Out(y), 2, N)
    with pytest.raises(ValueError, match="`BLOCK`.*compiled in as 64.*128"):
        kernel.run(1, gpuq.In(x), gpuq.Out(y), 1, N, 128)
    for a in (x, gpuq.to_device(x)):
        with pytest.raises(ValueError, match=r"`x: \*fp32`.*4 bytes into"):
            kernel.run(1, gpuq.In(a[1:]), gpuq.Out(y), N)
    prepared = kernel.prepare(1, gpuq.In(x), gpuq.Out(y), N)
    prepared.run(n=16)
    for wrong in ({"n": 15}, {"x": x[1:]}):
        with pytest.raises(ValueError, match="divisible by 16"):
            prepared.run(**wrong)


@pytest.mark.parametrize("way", ["unsubmitted", "prepared"])
def test_scratch_memory_is_nobody_elses_while_a_job_names_it(gpuq, way):
    kernel = assuming(gpuq, {}, global_scratch_size=4096)
    x = np.ones(N, np.float32)
    job = gpuq.job().launch(kernel, 1, gpuq.In(x), gpuq.Out(np.zeros(N, np.float32)), N)
    run = job.prepare().run if way == "prepared" else job.run
    del job
    other = gpuq.device_array(4096, np.uint8)
    run()
    assert not other.get().any()
