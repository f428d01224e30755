# SPDX-License-Identifier: Apache-2.0
"""Library operations against numpy's: matrix products, by a library of the machine and by gpuqd's own kernels; Fourier transforms.

$GPUQ_TEST_LIBRARIES: a folder with libraries that the loader does not find by itself.
"""

import os

import numpy as np
import pytest

from harness.patience import until

LIBRARIES = os.environ.get("GPUQ_TEST_LIBRARIES", "")
TOLERANCES = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}
DTYPES = list(TOLERANCES)


@pytest.fixture(params=["library", "kernels"])
def gpuqd(request, lend_gpuqd):
    return lend_gpuqd(libraries=LIBRARIES if request.param == "library" else "none")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def numbers(rng, shape, dtype):
    return rng.uniform(-1, 1, shape).astype(dtype)


def is_close(got, wanted, scale=1):
    return np.allclose(got, wanted, rtol=0, atol=TOLERANCES[str(got.dtype)] * scale)


def product(a, b):
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (3, 5, 7), (64, 64, 64), (33, 130, 65)])
def test_products_of_all_types_are_numpys(gpuq, rng, dtype, m, n, k):
    a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
    for c in (gpuq.matmul(a, b), gpuq.matmul(gpuq.array(a), gpuq.to_device(b)).get()):
        assert c.shape == (m, n) and c.dtype == dtype and is_close(c, product(a, b), k)


def bfloat16(values):
    """The upper half of a float32, rounded to the nearest, and what it stands for."""
    bits = values.astype(np.float32).view(np.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return bits.astype(np.uint16), (bits << 16).view(np.float32)


def test_products_of_bfloat16(gpuq, rng, monkeypatch):
    from gpuq import linalg
    monkeypatch.setitem(linalg._TYPES, "uint16", linalg._TYPES["bfloat16"])
    a, wide_a = bfloat16(rng.uniform(-1, 1, (33, 20)))
    b, wide_b = bfloat16(rng.uniform(-1, 1, (20, 17)))
    c = gpuq.matmul(a, b)
    got = (np.asarray(c).astype(np.uint32) << 16).view(np.float32)
    assert np.allclose(got, wide_a @ wide_b, rtol=0, atol=0.05)


def test_a_float16_that_is_special_stays_so(gpuq):
    values = np.array([0, -0.0, 1, 6e-8, 6e-5, 65504, np.inf, -np.inf, np.nan], np.float16)
    assert np.array_equal(gpuq.matmul(values[:, None], np.ones((1, 1), np.float16))[:, 0], values, equal_nan=True)
    assert gpuq.matmul(np.full((1, 2), 60000, np.float16), np.ones((2, 1), np.float16))[0, 0] == np.inf


@pytest.mark.parametrize("dtype", DTYPES)
def test_transposed_views_need_no_copy(gpuq, rng, dtype):
    a, b = gpuq.array(numbers(rng, (20, 30), dtype)), gpuq.array(numbers(rng, (40, 20), dtype))
    assert is_close(gpuq.matmul(a.T, b.T), product(a.T, b.T), 20)
    assert is_close(gpuq.matmul(b, a), product(b, a), 20)
    plain = np.asarray(a)
    assert is_close(gpuq.matmul(plain.T, b.T), product(a.T, b.T), 20)


@pytest.mark.parametrize("dtype", DTYPES)
def test_alpha_and_beta(gpuq, rng, dtype):
    a, b, c = (numbers(rng, (16, 16), dtype) for _ in range(3))
    out = c.copy()
    assert gpuq.matmul(a, b, out, alpha=0.5, beta=-2) is out
    assert is_close(out, (0.5 * product(a, b) - 2 * c).astype(dtype), 16)


def test_without_beta_the_result_is_not_read(gpuq, rng):
    a, b = numbers(rng, (8, 8), np.float32), numbers(rng, (8, 8), np.float32)
    assert is_close(gpuq.matmul(a, b, np.full((8, 8), np.nan, np.float32)), product(a, b), 8)


def test_beta_needs_a_result_that_is_there(gpuq):
    a = np.ones((8, 8), np.float32)
    for beta in (1, np.float64(-0.5), np.nan):
        for operand in (a, gpuq.to_device(a)):
            with pytest.raises(ValueError, match="there is no out: give `out`"):
                gpuq.matmul(operand, operand, beta=beta)
    with pytest.raises(TypeError, match="out must be a numpy array or a DeviceArray, not NoneType"):
        gpuq.job().matmul(a, a, None, beta=1)
    assert (gpuq.matmul(a, a, beta=0.0) == 8).all()


def test_leading_dimensions_are_those_of_views(gpuq, rng):
    a, b = gpuq.array(numbers(rng, (12, 50), np.float32)), gpuq.array(numbers(rng, (40, 60), np.float32))
    c = gpuq.zeros((12, 30), np.float32)
    gpuq.matmul(a[:, 5:25], b[10:30, 3:13], c[:, 7:17])
    assert is_close(c[:, 7:17], product(a[:, 5:25], b[10:30, 3:13]), 20)
    assert not c[:, :7].any() and not c[:, 17:].any()
    d = gpuq.zeros((20, 10), np.float32)
    gpuq.matmul(a[:10, 5:25].T, b[:10, :10], d)
    assert is_close(d, product(a[:10, 5:25].T, b[:10, :10]), 10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches(gpuq, rng, dtype):
    a, b = numbers(rng, (3, 2, 6, 4), dtype), numbers(rng, (3, 2, 4, 5), dtype)
    assert is_close(gpuq.matmul(a, b), product(a, b), 4)
    assert is_close(gpuq.matmul(a, b[0, 0]), product(a, b[0, 0]), 4)
    assert is_close(gpuq.matmul(gpuq.to_device(a[0, 0]), gpuq.to_device(b)).get(), product(a[0, 0], b), 4)
    shared = gpuq.array(a)
    assert is_close(gpuq.matmul(shared.swapaxes(-1, -2), shared), product(a.swapaxes(-1, -2), a), 6)


def test_tf32_is_near_and_for_float32_alone(gpuq, rng):
    a, b = numbers(rng, (64, 64), np.float32), numbers(rng, (64, 64), np.float32)
    assert np.allclose(gpuq.matmul(a, b, tf32=True), product(a, b), atol=0.05)
    with pytest.raises(gpuq.InvalidError, match="tf32 is for f32, not for f64"):
        gpuq.matmul(a.astype(np.float64), b.astype(np.float64), tf32=True)


def test_results_have_the_same_bits_each_time(gpuq, rng):
    a, b = (gpuq.to_device(numbers(rng, (200, 300), np.float32)), gpuq.to_device(numbers(rng, (300, 100), np.float32)))
    first = gpuq.matmul(a, b).get()
    jobs = [(out, gpuq.job().matmul(a, b, out).submit()) for out in (gpuq.device_array((200, 100), np.float32) for _ in range(5))]
    for out, job in jobs:
        job.wait()
        assert np.array_equal(out.get(), first)


def test_operations_of_a_job_and_later_jobs_see_the_result(gpuq, rng):
    add = gpuq.builtin().get_kernel("add_f32")
    config = gpuq.LaunchConfig(1, 64)
    a, b = (gpuq.to_device(numbers(rng, (32, 32), np.float32)) for _ in range(2))
    c, d, e = (gpuq.device_array((32, 32), np.float32) for _ in range(3))
    job = gpuq.job().copy(d, a).matmul(d, b, c).launch(add, config, gpuq.In(c), gpuq.In(a), gpuq.Out(d), 1024).matmul(d, b, e)
    job.submit()
    later = gpuq.zeros((32, 32), np.float32)
    add.submit(config, gpuq.In(e), gpuq.In(a), gpuq.Out(later), 1024).wait()
    x, y = a.get(), b.get()
    wanted = product(product(x, y) + x, y)
    assert is_close(e.get(), wanted, 1024) and is_close(later, wanted + x, 1024)


def test_products_in_graphs_are_patched(gpuq, rng):
    """The second step makes it a graph; other arrays, factors and shapes patch it, or make another one."""
    for round, (m, n, k) in enumerate([(16, 8, 4)] * 6 + [(5, 6, 7), (16, 8, 4)]):
        a, b = (gpuq.to_device(numbers(rng, shape, np.float32)) for shape in ((m, k), (k, n)))
        c, d = gpuq.device_array((m, n), np.float32), gpuq.device_array((m, n), np.float32)
        gpuq.job().matmul(a, b, c, alpha=round + 1).copy(d, c).run()
        assert is_close(d.get(), (round + 1) * product(a.get(), b.get()), 8 * (round + 1))
    until(lambda: gpuq.status().workers[0].counters.graph_hits >= 4, "the worker to tell that it patched graphs")


def test_prepared_jobs_with_other_arrays(gpuq, rng):
    a, b, d = (gpuq.array(numbers(rng, (16, 16), np.float32)) for _ in range(3))
    out, other = gpuq.zeros((16, 16), np.float32), gpuq.zeros((16, 16), np.float32)
    prepared = gpuq.job().matmul(a, b, out).prepare()
    prepared.run()
    prepared.run(b=d, out=other)
    assert is_close(out, product(a, b), 16) and is_close(other, product(a, d), 16)


def test_checked_jobs_and_jobs_of_a_client(gpuq, module, rng):
    a, b = (gpuq.to_device(numbers(rng, (8, 8), np.float32)) for _ in range(2))
    c = gpuq.device_array((8, 8), np.float32)
    gpuq.job(check=True).launch(module["twice"], (1, 64), gpuq.InOut(a), 64).matmul(a, b, c).run()
    assert is_close(c.get(), product(a.get(), b.get()), 16)
    with gpuq.connect() as other:
        assert is_close(other.matmul(a.get(), b.get(), timed=True), product(a.get(), b.get()), 16)


def test_the_queue_names_the_operation(gpuq, module, gate):
    a, out = np.ones((4, 4)), np.zeros(1, np.int32)
    held = module["gated"].submit((1, 1), gate.flag, gpuq.In(np.zeros(1, np.int32)), gpuq.Out(out))
    c = np.empty_like(a)
    job = gpuq.job(after=held).matmul(a, a, c).submit()
    assert [entry.kernel for entry in gpuq.queue() if entry.id == job.id] == ["gemm_f64"]
    gate.open()
    job.wait()
    assert (c == 4).all()


def test_what_does_not_fit_is_refused_by_name(gpuq):
    a = np.zeros((4, 4), np.float32)
    for problem, call in (
            ("shapes", lambda: gpuq.matmul(a, np.zeros((5, 4), np.float32))),
            ("-> ", lambda: gpuq.matmul(a, a, np.zeros((4, 5), np.float32))),
            ("batch", lambda: gpuq.matmul(np.zeros((2, 4, 4), np.float32), np.zeros((3, 4, 4), np.float32))),
            ("rows must be contiguous", lambda: gpuq.matmul(a, a, np.zeros((4, 8), np.float32)[:, ::2])),
            ("two axes", lambda: gpuq.matmul(a, np.zeros(4, np.float32)))):
        with pytest.raises(ValueError, match=problem):
            call()
    with pytest.raises(TypeError, match="b has dtype float64"):
        gpuq.matmul(a, a.astype(np.float64))
    with pytest.raises(TypeError, match="int32"):
        gpuq.matmul(a.astype(np.int32), a.astype(np.int32))
    shared = gpuq.zeros((8, 4), np.float32)
    with pytest.raises(ValueError, match="no elements"):
        gpuq.matmul(np.zeros((4, 0), np.float32), np.zeros((0, 4), np.float32))
    with pytest.raises(gpuq.InvalidError, match="c overlaps a"):
        gpuq.matmul(shared[:4], a, shared[:4])
    for left, right, out, name in ((shared[:4], a, shared[1:5], "a"), (a, shared[:4], shared[3:7], "b")):
        with pytest.raises(gpuq.InvalidError, match=f"gemm: the buffers of c and {name} overlap; they must be apart$"):
            gpuq.matmul(left, right, out)
    gpuq.matmul(shared[:4], a, shared[4:])


def test_columns_of_one_array_are_apart(gpuq, rng):
    whole = gpuq.array(numbers(rng, (8, 12), np.float32))
    b = numbers(rng, (4, 4), np.float32)
    wanted = whole[:, :4] @ b
    gpuq.matmul(whole[:, :4], b, whole[:, 4:8])
    assert is_close(whole[:, 4:8], wanted, 4)
    for columns in (slice(3, 7), slice(1, 5)):
        with pytest.raises(gpuq.InvalidError, match="the buffers of c and a overlap"):
            gpuq.matmul(whole[:, :4], b, whole[:, columns])
    with pytest.raises(gpuq.InvalidError, match="the buffers of c and a overlap"):
        gpuq.matmul(whole[:7, 8:], b, whole[1:, 6:10])


def test_an_operation_that_is_refused_leaves_nothing_in_its_job(gpuq):
    x, y = gpuq.zeros(16, np.complex64), gpuq.zeros(16, np.complex64)
    job = gpuq.job()
    with pytest.raises(gpuq.InvalidError, match="overlap"):
        job.copy(x[:8], x[4:12])
    prepared = job.copy(y[:8], x[:8]).prepare()
    prepared.run((x[:8], y[8:]))
    with pytest.raises(gpuq.InvalidError, match="copy: the buffers of to and from overlap"):
        prepared.run((x[:8], y[4:12]))


def test_a_prepared_job_keeps_what_must_be_apart(gpuq):
    a, b, out = (gpuq.zeros((4, 4), np.float32) for _ in range(3))
    z, transformed = (gpuq.zeros(16, np.complex64) for _ in range(2))
    x, moved, y = (gpuq.zeros(8, np.float32) for _ in range(3))
    prepared = gpuq.job().matmul(a, b, out).fft(z, transformed).sort(x, y).copy(moved, y).prepare()
    for pair, names in (((out, a), "gemm: the buffers of c and a"), ((out, b), "gemm: the buffers of c and b"),
                        ((transformed, z), "fft: the buffers of to and from"), ((moved, y), "copy: the buffers of to and from")):
        with pytest.raises(gpuq.InvalidError, match=f"{names} overlap; they must be apart$"):
            prepared.run(pair)
    x[:] = np.arange(8)[::-1]
    gpuq.job().sort(x, y).copy(moved, y).prepare().run((y, x))  # a sort may be in place
    assert x.tolist() == moved.tolist() == list(range(8))


@pytest.mark.parametrize("change, problem", [
    ({"m": 5}, "a needs 80 bytes at offset 0, but its buffer has 64"),
    ({"n": 5}, "ld of b is 4; it must be at least its 5 columns"),
    ({"k": 0}, "k is 0; it must be from 1 to 2147483647"),
    ({"k": 2**40}, "k is 1099511627776; it must be from 1 to 2147483647"),
    ({"batch": 2}, "stride 0 of c lets the matrices of the batch overlap"),
    ({"type": 9}, "type 9 is none of f16"),
    ({"compute": 7}, "unknown compute mode 7"),
    ({"a.offset": 2}, "offset 2 of a is not a multiple of its elements' 4 bytes"),
    ({"c.offset": 4}, "c needs 64 bytes at offset 4, but its buffer has 64"),
    ({"c.transposed": True}, "c cannot be transposed"),
    ({"b.ld": 2**62}, "ld of b is 4611686018427387904"),
    ({"b.stride": 2**62, "batch": 3, "c.stride": 16}, "b needs 18446744073709551615 bytes"),
    ({"a.buffer": None}, "NULL"),
])
def test_the_library_refuses_what_is_outside_of_buffers(gpuq, change, problem):
    from ctypes import byref

    from gpuq import _native as native
    job = gpuq.job()
    arrays = [gpuq.zeros((4, 4), np.float32) for _ in range(3)]
    gemm = native.Gemm(2, 0, 4, 4, 4, 1, 1, 0, *(native.Matrix(a._whole.handle_for(job._client), 0, 4, 0, False) for a in arrays))
    for path, value in change.items():
        *parents, name = path.split(".")
        target = gemm
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, name, value)
    assert native.job_gemm(job._handle, byref(gemm)) == -3
    assert problem in native.text()
    job.matmul(*arrays).run()  # the job itself is as it was


# ---- Fourier transforms ----


@pytest.fixture
def transforms(gpuq, request):
    """Skips what needs a library where there is none."""
    if "kernels" in request.node.callspec.id.split("-")[0]:
        pytest.skip("gpuqd has no kernels for it")
    try:
        gpuq.fft(np.zeros(2, np.complex64))
    except gpuq.NotFoundError as problem:
        pytest.skip(str(problem))
    return gpuq


SHAPES = [((8,), 1), ((3, 100), 1), ((2, 7, 13), 1), ((16, 12), 2), ((4, 9, 10), 2), ((4, 6, 5), 3), ((2, 8, 4, 6), 3), ((1,), 1), ((4099,), 1)]
PRECISIONS = {"complex64": 1e-5, "complex128": 1e-14, "float32": 1e-5, "float64": 1e-14}


def is_transform(got, wanted, dtype):
    return got.shape == wanted.shape and np.allclose(got, wanted, rtol=0, atol=PRECISIONS[dtype] * max(1, np.abs(wanted).max()))


def complex_numbers(rng, shape, dtype):
    return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape, ndim", SHAPES)
def test_transforms_of_complex_numbers_are_numpys(transforms, rng, dtype, shape, ndim):
    a, axes = complex_numbers(rng, shape, dtype), tuple(range(-ndim, 0))
    there = transforms.fft(a, ndim=ndim)
    assert there.dtype == dtype and is_transform(there, np.fft.fftn(a, axes=axes), dtype)
    assert is_transform(transforms.ifft(there, ndim=ndim), a, dtype)
    on_device = transforms.to_device(a)
    back = transforms.ifft(transforms.fft(on_device, ndim=ndim), ndim=ndim)
    assert is_transform(back.get(), a, dtype) and np.array_equal(on_device.get(), a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, ndim", SHAPES)
def test_transforms_of_real_numbers_have_half_an_axis(transforms, rng, dtype, shape, ndim):
    a, axes = rng.uniform(-1, 1, shape).astype(dtype), tuple(range(-ndim, 0))
    there = transforms.to_device(a)
    half = transforms.fft(there, ndim=ndim)
    values = half.get()
    assert is_transform(values, np.fft.rfftn(a, axes=axes), dtype)
    assert is_transform(transforms.ifft(half, ndim=ndim, n=shape[-1]).get(), a, dtype)
    assert np.array_equal(half.get(), values), "the transform back changed what it read"
    assert is_transform(transforms.ifft(values, ndim=ndim, n=shape[-1]), a, dtype)


def test_transforms_are_in_the_order_of_their_job(transforms, rng):
    a = transforms.to_device(complex_numbers(rng, (4, 32), np.complex64))
    b, c, d = (transforms.device_array((4, 32), np.complex64) for _ in range(3))
    transforms.job().copy(b, a).fft(b, c).fft(c, d, inverse=True, scale=1 / 32).copy(b, d).run()
    assert is_transform(b.get(), a.get(), "complex64")
    first = d.get()
    for _ in range(3):
        transforms.job().fft(a, c).fft(c, d, inverse=True, scale=1 / 32).run()
        assert np.array_equal(d.get(), first), "other bits the next time"


def test_many_shapes_of_transforms(transforms, rng):
    jobs = []
    for n in range(1, 200):
        a, out = transforms.array(complex_numbers(rng, n, np.complex64)), transforms.empty(n, np.complex64)
        jobs.append((a, out, transforms.job().fft(a, out).submit()))
    for a, out, job in jobs:
        job.wait()
        assert is_transform(out, np.fft.fft(a), "complex64")


def test_a_transform_that_does_not_fit_is_refused_by_name(gpuq):
    a, real = np.zeros((4, 8), np.complex64), np.zeros((4, 8), np.float32)
    for problem, call in (
            ("shapes", lambda: gpuq.fft(a, np.zeros((4, 7), np.complex64))),
            ("shapes", lambda: gpuq.fft(real, np.zeros((4, 8), np.complex64))),
            ("ndim=4", lambda: gpuq.fft(a, ndim=4)),
            ("ndim=3", lambda: gpuq.fft(a, ndim=3)),
            ("no elements", lambda: gpuq.fft(np.zeros((0, 4), np.complex64))),
            ("inverse", lambda: gpuq.job().fft(real, np.zeros((4, 5), np.complex64), inverse=True))):
        with pytest.raises(ValueError, match=problem):
            call()
    for other in (np.zeros((4, 8), np.complex128), real):
        with pytest.raises(TypeError, match="no transform"):
            gpuq.fft(other if other is real else a, real if other is real else other)
    with pytest.raises(TypeError, match="int32"):
        gpuq.fft(np.zeros(4, np.int32))
    shared = gpuq.zeros(16, np.complex64)
    with pytest.raises(gpuq.InvalidError, match="to overlaps from"):
        gpuq.fft(shared, shared)
    with pytest.raises(gpuq.InvalidError, match="fft: the buffers of to and from overlap; they must be apart$"):
        gpuq.fft(shared[:8], shared[7:15])


@pytest.mark.parametrize("call", ["fft", "ifft", "matmul", "scan", "sort"])
@pytest.mark.parametrize("value", [None, [1.0, 2.0]])
def test_what_is_no_array_is_refused_by_name(gpuq, call, value):
    more = [np.ones((1, 2))] if call == "matmul" else []
    with pytest.raises(TypeError, match=f"must be a numpy array or a DeviceArray, not {type(value).__name__}"):
        getattr(gpuq, call)(value, *more)


def test_a_transform_of_one_number_is_refused_by_name(gpuq):
    for call in (gpuq.fft, gpuq.ifft):
        with pytest.raises(ValueError, match="a must have at least one axis"):
            call(np.zeros((), np.float32))
    with pytest.raises(TypeError, match="float16"):
        gpuq.ifft(np.zeros(4, np.float16), n=6)


@pytest.mark.parametrize("gpuqd", ["kernels"], indirect=True)
def test_without_a_library_a_transform_fails(gpuq):
    with pytest.raises(gpuq.NotFoundError, match="FFTW 3 with the CPU driver; see libraries in gpuqd.conf"):
        gpuq.fft(np.zeros(4, np.complex64))
