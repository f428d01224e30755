# SPDX-License-Identifier: Apache-2.0
"""Scans and sorts of all types against numpy's: odd lengths, the same bits each time, in jobs of several operations and prepared ones."""

import numpy as np
import pytest

INTEGERS, REALS = ["int32", "uint32", "int64", "uint64"], ["float32", "float64"]
ONE_PART, TILE = 16384, 4096
# Blocks of 256 threads sort by warps; the CPU driver makes one thread of (256,), but not of (32, 8).
GEOMETRIES = (8, 256), (5, (32, 8)), (3, 33), (1, 1), (20, 1024)
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
    for grid, block in GEOMETRIES:
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
        with pytest.raises(TypeError, match="x"):
            gpuq.scan(wrong)
    with pytest.raises(ValueError, match="no elements"):
        gpuq.scan(x[:0])
    shared = gpuq.zeros(12, np.float32)
    with pytest.raises(gpuq.InvalidError, match="the buffers of from and to overlap"):
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


# ---- sort ----


def keys_of(rng, n, dtype, kind="any"):
    """Random bits; few different keys; or keys of one digit that many share."""
    if kind == "few":
        return rng.integers(0, 7, n).astype(dtype) - (3 if dtype not in ("uint32", "uint64") else np.dtype(dtype).type(0))
    if kind == "ordered":
        return np.arange(n).astype(dtype)
    bits = values(rng, n, f"uint{8 * np.dtype(dtype).itemsize}")
    x = bits.view(dtype)
    return np.where(np.isnan(x), np.dtype(dtype).type(1), x) if dtype in REALS else x


def stable_order(keys, descending):
    """Of what numpy takes as equal, the first comes first also in descending order."""
    if not descending:
        return np.argsort(keys, kind="stable")
    return len(keys) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS + REALS)
def test_sorted_keys_are_numpys(gpuq, rng, dtype, descending):
    for n in SIZES:
        keys = keys_of(rng, n, dtype)
        wanted = keys[stable_order(keys, descending)]
        assert is_same(np.asarray(gpuq.sort(keys, descending=descending)), wanted), n
        on_device = gpuq.to_device(keys)
        assert is_same(gpuq.sort(on_device, descending=descending).get(), wanted), n
        assert is_same(on_device.get(), keys)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["few", "ordered", "any"])
@pytest.mark.parametrize("dtype, value", [("int32", "uint32"), ("float64", "int32"), ("uint64", "int64"), ("float32", "float64")])
def test_values_move_with_their_keys_and_equal_keys_stay_in_order(gpuq, rng, dtype, value, kind, descending):
    for n in (1, 257, TILE + 1, 50_000):
        keys, moved = keys_of(rng, n, dtype, kind), np.arange(n).astype(value)
        order = stable_order(keys, descending)
        for a, b in ((keys, moved), (gpuq.to_device(keys), gpuq.to_device(moved))):
            got = gpuq.sort(a, b, descending=descending)
            got_keys, got_values = (x.get() if hasattr(x, "get") else np.asarray(x) for x in got)
            assert is_same(got_keys, keys[order]) and is_same(got_values, moved[order]), n


def test_values_of_several_words(gpuq, rng):
    keys, moved = keys_of(rng, 5000, "uint32"), rng.integers(0, 256, (5000, 12), np.uint8).view("V12")[:, 0]
    assert is_same(np.asarray(gpuq.sort(keys, moved)[1]), moved[np.argsort(keys, kind="stable")])


@pytest.mark.parametrize("dtype", REALS)
def test_nan_is_the_largest_and_minus_zero_is_zero(gpuq, dtype):
    """Bits stay as they are, and equal ones keep their order."""
    x = np.array([0.0, np.nan, -np.inf, -0.0, 1, -1, np.inf, 0.0, -np.nan, 5e-324 if dtype == "float64" else 1e-45], dtype)
    index = np.arange(len(x), dtype=np.uint32)
    for descending, wanted in ((False, [2, 5, 0, 3, 7, 9, 4, 6, 1, 8]), (True, [1, 8, 6, 4, 9, 0, 3, 7, 5, 2])):
        keys, order = gpuq.sort(x, index, descending=descending)
        assert list(order) == wanted and is_same(np.asarray(keys), x[wanted])


def test_sorts_of_more_than_a_tile_for_each_block(gpuq, rng):
    x = keys_of(rng, 1024 * TILE + 5, "uint32") >> 16
    assert is_same(gpuq.sort(gpuq.to_device(x)).get(), np.sort(x))


@pytest.mark.parametrize("n", [100, 50_000])
def test_a_sort_may_be_in_place(gpuq, rng, n):
    keys, index = keys_of(rng, n, "int64"), np.arange(n, dtype=np.uint32)
    order = np.argsort(keys, kind="stable")
    for make in (gpuq.to_device, gpuq.array, np.copy):
        a, b = make(keys), make(index)
        assert gpuq.sort(a, b, a, b) == (a, b) if make is gpuq.to_device else gpuq.sort(a, b, a, b)
        assert is_same(np.asarray(a.get() if make is gpuq.to_device else a), keys[order])
        assert is_same(np.asarray(b.get() if make is gpuq.to_device else b), index[order])


SIGNED, FLOAT, DESCENDING = 1, 2, 4  # of kernels/sort.cuh


def digits(keys, shift, order):
    """Of the codes by which keys are compared."""
    bits = keys.view(f"u{keys.itemsize}")
    sign, infinity = np.array([-0.0, np.inf], f"f{keys.itemsize}").view(bits.dtype)
    magnitude = bits & ~sign
    if order & FLOAT:
        bits = np.where(magnitude == 0, sign, np.where(bits & sign, ~bits, bits | sign))
        bits[magnitude > infinity] = ~bits.dtype.type(0)
    elif order & SIGNED:
        bits = bits ^ sign
    return (~bits if order & DESCENDING else bits) >> bits.dtype.type(shift) & bits.dtype.type(255)


@pytest.mark.parametrize("parts", [8, 2])
@pytest.mark.parametrize("dtype, shift, order", [("uint32", 8, 0), ("int32", 24, SIGNED), ("float32", 24, FLOAT | DESCENDING),
                                                 ("uint64", 40, DESCENDING), ("float64", 56, FLOAT)])
def test_the_order_does_not_depend_on_the_geometry(gpuq, rng, dtype, shift, order, parts):
    keys = keys_of(rng, 30_000, dtype)
    bits, index = keys.view(f"u{keys.itemsize}"), np.arange(keys.size, dtype=np.uint32)
    on_device, moved = gpuq.to_device(bits), gpuq.to_device(index)
    kind = f"u{8 * keys.itemsize}"
    count, offsets, move = (gpuq.builtin().get_kernel(name) for name in (f"sort_count_{kind}", "sort_offsets_u64", f"sort_move_{kind}"))
    wanted = np.argsort(digits(keys, shift, order), kind="stable")
    for grid, block in GEOMETRIES:
        counts, out = gpuq.device_array((256, parts + 1), np.uint64), gpuq.device_array(keys.size, bits.dtype)
        index_out = gpuq.device_array(keys.size, np.uint32)
        job = gpuq.job().launch(count, (grid, block), gpuq.In(on_device), gpuq.Out(counts), keys.size, parts + 1, shift, order)
        job.launch(offsets, (grid, block), gpuq.InOut(counts), parts + 1)
        job.launch(move, (grid, block), gpuq.In(on_device), gpuq.In(moved), gpuq.In(counts), gpuq.Out(out), gpuq.Out(index_out),
                   keys.size, 1, parts + 1, shift, order).run()
        assert is_same(index_out.get(), index[wanted]) and is_same(out.get(), bits[wanted]), (grid, block)


@pytest.mark.parametrize("block", [64, (32, 8)])
def test_counts_of_other_keys_write_over_no_neighbour(gpuq, rng, block):
    """Kernels of gpuq are trusted, so what a user hands to them may be wrong."""
    n = 1000
    keys, memory = gpuq.to_device(keys_of(rng, n, "uint32")), gpuq.to_device(np.full(3 * n, 7, np.uint32))
    counts = gpuq.to_device(np.full((256, 2), 2**40, np.uint64))
    move = gpuq.builtin().get_kernel("sort_move_u32")
    move.run((4, block), gpuq.In(keys), gpuq.In(keys), gpuq.In(counts), gpuq.InOut(memory[n:2 * n]), gpuq.InOut(memory[n:2 * n]), n, 0, 2, 0, 0)
    assert (memory.get() == 7).all()


def test_a_sort_is_in_the_order_of_its_job(gpuq, rng):
    x = keys_of(rng, 40_000, "uint32") % 1000
    a, b, c, d = (gpuq.device_array(x.size, x.dtype) for _ in range(4))
    gpuq.job().copy(a, x).sort(a, b, descending=True).scan(b, c).copy(d, c).run()
    assert is_same(d.get(), prefix_sums(np.sort(x)[::-1]))


def test_prepared_sorts_with_other_arrays(gpuq, rng):
    x, y = (gpuq.to_device(keys_of(rng, 9000, "float32")) for _ in range(2))
    out, other, twice = (gpuq.device_array(9000, np.float32) for _ in range(3))
    scale = gpuq.builtin().get_kernel("scale_f32")
    prepared = gpuq.job().sort(x, out).launch(scale, (8, 64), np.float32(0.5), gpuq.In(out), gpuq.Out(twice), 9000).prepare()
    prepared.run()
    assert is_same(out.get(), np.sort(x.get())) and is_same(twice.get(), np.float32(0.5) * np.sort(x.get()))
    prepared.run(keys=y, out=other, a=np.float32(-1))
    assert is_same(other.get(), np.sort(y.get())) and is_same(twice.get(), -np.sort(y.get()))
    jobs = [prepared.fire() for _ in range(8)]  # which share the workspace
    for job in jobs:
        job.wait()
    assert is_same(out.get(), np.sort(x.get()))


def test_checked_sorts_have_the_same_bits(gpuq, rng):
    x = keys_of(rng, 9000, "int32")
    assert is_same(np.asarray(gpuq.sort(x, check=True)), np.sort(x))


def test_the_workspace_of_a_sort_is_charged_and_given_back(start_gpuqd, monkeypatch):
    """With memory for the keys and the result, but none between them, the sort is refused; what it took is free again."""
    import gpuq
    gpuqd = start_gpuqd(device_bytes=10 << 20)
    monkeypatch.setenv("GPUQ_SOCKET", str(gpuqd.socket))
    with gpuq.connect() as client:
        x, out = (client.device_array(1 << 20, np.uint32) for _ in range(2))
        with pytest.raises(gpuq.QuotaError, match="sort: no memory for its workspace of 4194304 bytes: over the limit device_bytes"):
            client.sort(x, out=out)
        for _ in range(3):
            client.sort(x[:1000], None, out[:1000])


def test_what_does_not_fit_a_sort_is_refused_by_name(gpuq):
    x, y = np.zeros(8, np.float32), np.zeros(8, np.int32)
    for problem, call in (("out has dtype float32 and shape", lambda: gpuq.sort(x, out=np.zeros(9, np.float32))),
                          ("out has dtype int32", lambda: gpuq.sort(x, out=y)),
                          ("values has shape", lambda: gpuq.sort(x, y[:7])),
                          ("values_out has dtype float32", lambda: gpuq.sort(x, y, values_out=x)),
                          ("no elements", lambda: gpuq.sort(x[:0]))):
        with pytest.raises(ValueError, match=problem):
            call()
    for problem, call in (("keys", lambda: gpuq.sort(x.astype(np.int16))), ("keys must be a numpy array", lambda: gpuq.sort([2, 1])),
                          ("elements of values have 2 bytes", lambda: gpuq.sort(x, y.astype(np.int16))),
                          ("values must be a numpy array", lambda: gpuq.sort(x, [1] * 8)),
                          ("values_out", lambda: gpuq.job().sort(x, x, y))):
        with pytest.raises(TypeError, match=problem):
            call()
    shared = gpuq.zeros(24, np.uint32)
    for arguments in ((shared[:8], None, shared[4:12]), (shared[:8], shared[8:16], shared[16:], shared[16:]),
                      (shared[:8], shared[:8], shared[16:], shared[8:16])):
        with pytest.raises(gpuq.InvalidError, match="the buffers of (keys|to|values) and (to|values|values_to) overlap"):
            gpuq.sort(*arguments)


@pytest.mark.parametrize("change, problem", [
    ({"n": 0}, "n is 0; it must be at least 1"),
    ({"n": 17}, "17 elements of 4 bytes do not fit in keys, whose buffer has 64 bytes"),
    ({"type": 1}, "type 1 is none of f32"),
    ({"to": None}, "to is NULL"),
    ({"value_bytes": 4}, "values is NULL"),
    ({"values": 1}, "there are values, but value_bytes is 0"),
    ({"value_bytes": 3}, "a value has 3 bytes; it must be a multiple of 4"),
])
def test_the_library_refuses_what_is_no_sort(gpuq, change, problem):
    from ctypes import byref

    from gpuq import _native as native
    job, arrays = gpuq.job(), [gpuq.zeros(16, np.float32) for _ in range(2)]
    sort = native.Sort(2, False, 16, *(a._whole.handle_for(job._client) for a in arrays))
    for name, value in change.items():
        setattr(sort, name, value)
    assert native.job_sort(job._handle, byref(sort)) == -3
    assert problem in native.text()
    job.sort(*arrays).run()  # the job itself is as it was
