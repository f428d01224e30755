# SPDX-License-Identifier: Apache-2.0
"""Scans of all types against numpy's: odd lengths, the same bits each time, in jobs of several operations and prepared ones."""

import numpy as np
import pytest

INTEGERS, REALS = ["int32", "uint32", "int64", "uint64"], ["float32", "float64"]
ONE_PART, TILE = 16384, 4096
SIZES = [1, 31, 257, TILE, TILE + 1, ONE_PART, ONE_PART + 1, 100_000]


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def values(rng, n, dtype):
    """All bits of integers, so that sums wrap around."""
    if dtype in REALS:
        return rng.uniform(-1, 1, n).astype(dtype)
    return rng.integers(0, 256, n * np.dtype(dtype).itemsize, np.uint8).view(dtype)


def is_same(got, wanted):
    return got.dtype == wanted.dtype and got.tobytes() == wanted.tobytes()


# ---- scan ----


def prefix_sums(x, exclusive=False):
    sums = np.cumsum(x, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
    return np.concatenate([np.zeros(1, sums.dtype), sums[:-1]]) if exclusive else sums


def are_sums(got, x, exclusive=False):
    wanted = prefix_sums(x, exclusive)
    if x.dtype.kind != "f":
        return is_same(got, wanted)
    return got.dtype == x.dtype and np.allclose(got, wanted, rtol=np.finfo(x.dtype).eps, atol=1e-13 * len(x))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS + REALS)
def test_scans_are_numpys_cumsum(gpuq, rng, dtype, exclusive):
    for n in SIZES:
        x = values(rng, n, dtype)
        got = gpuq.scan(x, exclusive=exclusive)
        assert are_sums(got, x, exclusive), n
        on_device = gpuq.to_device(x)
        assert is_same(gpuq.scan(on_device, exclusive=exclusive).get(), np.asarray(got)), n
        assert is_same(on_device.get(), x)


@pytest.mark.parametrize("dtype", ["uint32", "float64"])
def test_scans_of_more_than_a_tile_for_each_block(gpuq, rng, dtype):
    x = values(rng, 1024 * TILE + 5, dtype)
    assert are_sums(gpuq.scan(gpuq.to_device(x)).get(), x)


def test_scans_have_the_same_bits_each_time(gpuq, rng):
    for n in (1000, 100_000):
        x = gpuq.to_device(rng.standard_normal(n).astype(np.float32))
        first = gpuq.scan(x).get()
        assert all(is_same(gpuq.scan(x).get(), first) for _ in range(3))


def test_the_bits_of_a_scan_do_not_depend_on_the_geometry(gpuq, rng):
    x, n, parts = gpuq.to_device(rng.standard_normal(30_000)), 30_000, 8
    wanted = gpuq.scan(x).get()
    sum_up, scan = (gpuq.builtin().get_kernel(name) for name in ("scan_parts_f64", "scan_f64"))
    for grid, block in ((8, 256), (3, 33), (1, 1), (20, 1024)):
        sums, y = gpuq.device_array(parts, np.uint64), gpuq.device_array(n, np.float64)
        job = gpuq.job().launch(sum_up, (grid, block), gpuq.In(x), gpuq.Out(sums), n, parts)
        job.launch(scan, (grid, block), gpuq.In(x), gpuq.In(sums), gpuq.Out(y), n, parts, 0).run()
        assert is_same(y.get(), wanted), (grid, block)


@pytest.mark.parametrize("n", [100, 50_000])
def test_a_scan_may_be_in_place(gpuq, rng, n):
    x = values(rng, n, "int64")
    on_device, shared = gpuq.to_device(x), gpuq.array(x)
    assert gpuq.scan(on_device, on_device) is on_device
    assert is_same(on_device.get(), prefix_sums(x))
    gpuq.scan(shared, shared)
    assert is_same(np.asarray(shared), prefix_sums(x))
    plain = x.copy()
    gpuq.scan(plain, plain)
    assert is_same(plain, prefix_sums(x))


def test_scans_of_infinities_and_nan(gpuq):
    x = np.array([1, np.inf, 2, -np.inf, 3], np.float32)
    assert np.array_equal(gpuq.scan(x), [1, np.inf, np.inf, np.nan, np.nan], equal_nan=True)


def test_scans_keep_the_shape_and_are_of_the_order_of_memory(gpuq, rng):
    x = values(rng, 60, "int32").reshape(3, 4, 5)
    got = gpuq.scan(x)
    assert got.shape == x.shape and is_same(got.ravel(), prefix_sums(x.ravel()))


def test_a_scan_is_in_the_order_of_its_job(gpuq, rng):
    x = values(rng, 40_000, "uint64")
    a, b, c, d = (gpuq.device_array(x.size, x.dtype) for _ in range(4))
    gpuq.job().copy(a, x).scan(a, b).scan(b, c, exclusive=True).copy(d, c).run()
    assert is_same(d.get(), prefix_sums(prefix_sums(x), True))


def test_what_does_not_fit_a_scan_is_refused_by_name(gpuq):
    x = np.zeros(8, np.float32)
    for problem, call in (("out has dtype float32", lambda: gpuq.scan(x, np.zeros(9, np.float32))),
                          ("out has dtype float64", lambda: gpuq.scan(x, np.zeros(8)))):
        with pytest.raises(ValueError, match=problem):
            call()
    for wrong in (x.astype(np.float16), x.astype(np.complex64), x.astype(">f4"), [1, 2]):
        with pytest.raises(TypeError, match="x"):
            gpuq.job().scan(wrong, x)
    with pytest.raises(ValueError, match="no elements"):
        gpuq.scan(x[:0])
    shared = gpuq.zeros(12, np.float32)
    with pytest.raises(gpuq.InvalidError, match="overlap"):
        gpuq.scan(shared[:8], shared[4:])


@pytest.mark.parametrize("change, problem", [
    ({"n": 0}, "n is 0; it must be at least 1"),
    ({"n": 17}, "17 elements of 4 bytes do not fit in from, whose buffer has 64 bytes"),
    ({"n": 2**62}, "do not fit in from"),
    ({"type": 0}, "type 0 is none of f32"),
    ({"type": 99}, "type 99 is none of f32"),
    ({"to": None}, "to is NULL"),
])
def test_the_library_refuses_what_is_no_scan(gpuq, change, problem):
    from ctypes import byref

    from gpuq import _native as native
    job, arrays = gpuq.job(), [gpuq.zeros(16, np.float32) for _ in range(2)]
    scan = native.Scan(2, False, 16, *(a._whole.handle_for(job._client) for a in arrays))
    for name, value in change.items():
        setattr(scan, "from_" if name == "from" else name, value)
    assert native.job_scan(job._handle, byref(scan)) == -3
    assert problem in native.text()
    job.scan(*arrays).run()  # the job itself is as it was


# ---- prepared, checked, and charged ----


def test_prepared_scans_with_other_arrays_and_scalars_behind_them(gpuq, rng):
    """A scan of many numbers is two launches: what is set behind it must not be shifted."""
    x, y = (gpuq.to_device(values(rng, 30_000, "float32")) for _ in range(2))
    sums, out, other = (gpuq.device_array(30_000, np.float32) for _ in range(3))
    scale = gpuq.builtin().get_kernel("scale_f32")
    prepared = gpuq.job().scan(x, sums).launch(scale, (8, 64), np.float32(2), gpuq.In(sums), gpuq.Out(out), 30_000).prepare()
    prepared.run()
    assert np.array_equal(out.get(), 2 * gpuq.scan(x).get())
    prepared.run(a=np.float32(3), y=other, **{"0.x": y})
    assert np.array_equal(other.get(), np.float32(3) * gpuq.scan(y).get())
    jobs = [prepared.fire() for _ in range(8)]  # which share the workspace
    for job in jobs:
        job.wait()
    assert np.array_equal(out.get(), 2 * gpuq.scan(x).get())


def test_checked_scans_have_the_same_bits(gpuq, rng):
    x = values(rng, 20_000, "float64")
    assert is_same(np.asarray(gpuq.scan(x, check=True)), np.asarray(gpuq.scan(x)))
