# SPDX-License-Identifier: Apache-2.0
"""Arrays: in the daemon's memory, numpy's own, buffers, tensors, and those that stay on the device."""

import array as arrays
import copy
import gc

import numpy as np
import pytest

from harness import place

N = 1000
CONFIG = (4, 256)


def check_add(gpuq, add, a, b, c):
    add.run(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.Out(c), N)
    np.testing.assert_array_equal(np.asarray(c), np.asarray(a) + np.asarray(b))


@pytest.fixture
def values():
    return np.random.default_rng(3).random((2, N), np.float32)


def test_a_new_array_is_zeros_and_numpy_throughout(gpuq):
    a = gpuq.zeros((3, 5), np.int16)
    assert a.shape == (3, 5) and a.dtype == np.int16 and not a.any() and a.flags.writeable
    a[1] = 7
    assert a.sum() == 35 and isinstance(a.sum(), np.int64) and type(a + 1) is np.ndarray
    assert gpuq.empty(7).dtype == np.float64 and gpuq.empty((0, 4)).size == 0
    assert gpuq.array([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert gpuq.array(np.arange(3), np.float32).dtype == np.float32
    assert gpuq.array(np.arange(6).reshape(2, 3).T).flags.c_contiguous


def test_arrays_are_used_where_they_are(gpuq, add, values):
    from gpuq import memory
    a, b, c = gpuq.array(values[0]), gpuq.array(values[1]), gpuq.empty(N, np.float32)
    assert memory.of(a) is not None and memory.of(np.asarray(a)[3:]) is memory.of(a)
    check_add(gpuq, add, a, b, c)


def test_parts_of_an_array_are_used_where_they_are(gpuq, add, values):
    both, c = gpuq.array(values), gpuq.zeros((3, N), np.float32)
    job = gpuq.job().launch(add, CONFIG, gpuq.In(both[0]), gpuq.In(both[1]), gpuq.Out(c[1]), N)
    assert not job._staged
    job.run()
    np.testing.assert_array_equal(c[1], values[0] + values[1])
    assert not c[0].any() and not c[2].any()


def test_plain_arrays_are_copied_in_and_back(gpuq, add, values):
    c = np.full(N, -1, np.float32)
    check_add(gpuq, add, values[0], values[1], c)


@pytest.mark.parametrize("make", [
    lambda v: bytearray(v.tobytes()), lambda v: memoryview(v.tobytes()), lambda v: arrays.array("f", v.tolist())])
def test_buffers_are_taken(gpuq, add, values, make):
    a, c = make(values[0]), arrays.array("f", bytes(4 * N))
    if not isinstance(a, arrays.array):
        a = np.frombuffer(a, np.float32)
    add.run(CONFIG, gpuq.In(a), gpuq.In(values[1]), gpuq.Out(c), N)
    np.testing.assert_array_equal(np.asarray(c), values[0] + values[1])


class Tensor:
    """Speaks DLPack, as a CPU tensor of another library does, and nothing else."""

    def __init__(self, values, device=(1, 0)):
        self._values, self._device = values, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, **options):
        return self._values.__dlpack__()


def test_dlpack_cpu_tensors_are_taken_both_ways(gpuq, add, values):
    c = np.zeros(N, np.float32)
    add.run(CONFIG, gpuq.In(Tensor(values[0])), gpuq.In(Tensor(values[1])), gpuq.Out(Tensor(c)), N)
    np.testing.assert_array_equal(c, values[0] + values[1])
    np.testing.assert_array_equal(gpuq.array(Tensor(c)), c)


def test_torch_cpu_tensors_are_taken_both_ways(gpuq, add, values):
    torch = pytest.importorskip("torch")
    c = torch.zeros(N)
    add.run(CONFIG, gpuq.In(torch.from_numpy(values[0])), gpuq.In(values[1]), gpuq.Out(c), N)
    np.testing.assert_array_equal(c.numpy(), values[0] + values[1])


def test_a_tensor_of_a_gpu_is_refused_with_what_to_do(gpuq, add, values):
    with pytest.raises(TypeError, match=r"t\.cpu\(\)"):
        add.run(CONFIG, gpuq.In(Tensor(values[0], (2, 0))), gpuq.In(values[1]), gpuq.Out(values[0]), N)


def test_the_same_plain_array_in_and_out_is_one_copy(gpuq, module, values):
    x = values[0].copy()
    job = gpuq.job()
    for _ in range(3):
        job.launch(module["twice"], CONFIG, gpuq.InOut(x), N)
    job.run()
    np.testing.assert_array_equal(x, 8 * values[0])


def test_overlapping_plain_arrays_of_which_one_is_written_are_refused(gpuq, add, values):
    x = np.zeros(N + 1, np.float32)
    with pytest.raises(ValueError, match=r"overlaps.*gpuq\.array"):
        add.run(CONFIG, gpuq.In(x[:-1]), gpuq.In(values[0]), gpuq.Out(x[1:]), N)


def test_a_failed_job_leaves_plain_arrays_as_they_were(gpuq, module):
    out = np.array([5], np.int32)
    with pytest.raises(gpuq.KernelFault):
        module["wild"].run((1, 1), gpuq.InOut(out), np.uint64(1 << 40))
    assert out[0] == 5


def test_memory_outlives_what_it_was_made_by(gpuq, add, values):
    client = gpuq.connect()
    a = client.array(values[0])
    part = a[10:20]
    del a
    client.close()
    gc.collect()
    np.testing.assert_array_equal(part, values[0][10:20])
    assert "client closed" in repr(part)


def test_copies_are_ordinary_values(gpuq):
    a = gpuq.array(np.arange(5))
    for b in (a.copy(), copy.copy(a), copy.deepcopy(a)):
        b[0] = 9
        assert a[0] == 0
    assert "not in gpuqd's memory" in repr(a.copy()) and "40 bytes in gpuqd's memory" in repr(a)


def test_others_see_an_array_by_every_interface_of_the_host(gpuq):
    """And by none of the GPU's: its pointer would be another process's."""
    a = gpuq.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert memoryview(a).shape == (2, 3) and a.__array_interface__["data"][0] == memoryview(a).obj.ctypes.data
    assert a.__dlpack_device__() == (1, 0)
    other = np.from_dlpack(a)
    a[1, 2] = 50
    assert other[1, 2] == 50 and np.asarray(memoryview(a))[1, 2] == 50
    assert not hasattr(a, "__cuda_array_interface__") and not hasattr(gpuq.to_device(a), "__cuda_array_interface__")


# ---- on the device ----


def test_device_arrays_stay_between_jobs(gpuq, add, values):
    a, b, c = gpuq.to_device(values[0]), gpuq.to_device(values[1]), gpuq.device_array(N, np.float32)
    assert not c.get().any()
    for _ in range(3):
        add.run(CONFIG, a, b, gpuq.Out(c), N)
    np.testing.assert_array_equal(c.get(), values[0] + values[1])
    assert "on device 0" in repr(c) and c.device == 0 and c.nbytes == 4 * N and len(c) == N
    np.testing.assert_array_equal(np.asarray(c), values[0] + values[1])


def test_parts_of_device_arrays(gpuq, add, values):
    both = gpuq.to_device(values)
    c = gpuq.device_array((2, N), np.float32)
    add.run(CONFIG, both[0], both[-1], gpuq.Out(c[1]), N)
    np.testing.assert_array_equal(c.get()[1], values[0] + values[1])
    np.testing.assert_array_equal(both[1:].get(), values[1:])
    np.testing.assert_array_equal(both.reshape(-1)[5:9].get(), values.reshape(-1)[5:9])
    assert both.view(np.int32).get().dtype == np.int32
    with pytest.raises(IndexError):
        both[2]
    with pytest.raises(IndexError, match="step 1"):
        both[::2]


def test_device_arrays_are_set_copied_and_filled(gpuq):
    a = gpuq.device_array((4, 3), np.int32)
    a.set(np.arange(12).reshape(4, 3))
    b = a.copy()
    a.fill(7)
    assert (a.get() == 7).all() and b.get().tolist() == np.arange(12).reshape(4, 3).tolist()
    a[1:3].set(b[0:2])
    assert a.get()[1:3].tolist() == b.get()[0:2].tolist()
    out = np.zeros((4, 3))
    assert b.get(out) is out and out[3, 2] == 11
    wide = gpuq.device_array(5, np.float64).fill(2.5)
    assert wide.get().tolist() == [2.5] * 5
    with pytest.raises(ValueError):
        a.set(np.zeros(5))
    with pytest.raises(ValueError):
        a.set(gpuq.device_array(12, np.int32))


# ---- memory that is used again ----


def device_arenas(gpuq):
    return gpuq.status().devices[0].memory_arenas


def test_device_memory_serves_the_next_array_of_its_size(gpuq, module):
    a = gpuq.to_device(np.full(1 << 20, 7, np.int32))
    held = a._memory.handle
    n_bytes = device_arenas(gpuq)
    del a
    b = gpuq.device_array(1 << 20, np.int32)
    assert b._memory.handle == held and device_arenas(gpuq) == n_bytes
    assert not b.get().any()
    c = gpuq.to_device(np.full(1 << 20, 9, np.int32))
    del b
    d = gpuq.to_device(np.arange(1 << 20, dtype=np.int32))
    assert d._memory.handle == held and (d.get() == np.arange(1 << 20)).all() and (c.get() == 9).all()


def test_device_memory_of_a_job_that_runs_is_cleared_behind_it(gpuq, module, gate):
    a = gpuq.device_array(4, np.int32)
    job = gpuq.job().launch(module["gated"], (1, 1), gate.flag, gpuq.In(np.array([5], np.int32)), gpuq.Out(a)).submit()
    held = a._memory.handle
    job._outputs = []
    del a
    gc.collect()
    b = gpuq.device_array(4, np.int32)
    assert b._memory.handle == held and not job.done()
    gate.open()
    assert not b.get().any()
    job.wait()


def test_device_memory_that_others_know_is_nobody_elses(gpuq):
    a = gpuq.to_device(np.full(100, 7, np.int32))
    held = a._memory.handle
    a._memory.name()
    del a
    b = gpuq.device_array(100, np.int32)
    assert b._memory.handle != held or not b.get().any()
    assert not gpuq.default_client()._spares._kept


def test_kept_device_memory_is_little_and_goes_before_a_quota_is_told(gpuq, start_gpuqd):
    from gpuq import spare
    client = gpuq.connect(start_gpuqd(device_bytes="24M").socket)
    for i in range(40):
        client.device_array(1000 + i, np.uint8)
    assert len(client._spares._kept) == spare.MAX_N
    client.device_array(8 << 20, np.uint8)
    client.device_array(9 << 20, np.uint8)
    assert sum(entry[0] for entry in client._spares._kept) > 16 << 20
    big = client.device_array(20 << 20, np.uint8)
    assert big.nbytes == 20 << 20 and not client._spares._kept
    del big
    assert not client._spares._kept
    client.close()


def test_kept_device_memory_goes_with_time(gpuq, monkeypatch):
    from gpuq import spare
    client = gpuq.default_client()
    gpuq.device_array(100)
    assert len(client._spares._kept) == 1
    monkeypatch.setattr(spare, "MAX_S", -1)
    gpuq.device_array(200)
    assert not client._spares._kept


def test_an_array_of_the_daemons_memory_goes_to_the_device_without_a_copy(gpuq):
    a = gpuq.array(np.arange(10, dtype=np.int32))
    device = gpuq.to_device(a)
    assert device._source(a, gpuq.default_client()) is a and device.get().tolist() == list(range(10))
    device.set(a[::-1])
    assert device.get().tolist() == list(range(9, -1, -1))


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_device_array_is_a_copy(gpuq, how):
    a = gpuq.to_device(np.arange(8, dtype=np.int32))
    b = how({"a": a[2:4]})["a"] if how is copy.deepcopy else how(a[2:4])
    b.fill(9)
    assert a.get().tolist() == list(range(8)) and b.get().tolist() == [9, 9]


@pytest.mark.skipif(place.on_gpu() and place.n_gpus() != 2, reason="needs a machine with two GPUs")
def test_an_array_is_copied_to_another_device(start_gpuqd, gpuq):
    daemon = start_gpuqd(devices=None) if place.on_gpu() else start_gpuqd(cpu_devices=2)
    with gpuq.connect(daemon.socket) as client:
        a = client.to_device(np.arange(1000.0), device=0)
        b = a.copy(device=1)
        assert (a.device, b.device, a.copy().device) == (0, 1, 0)
        np.testing.assert_array_equal(b.get(), np.arange(1000.0))
        a.fill(0)
        np.testing.assert_array_equal(a.set(b).get(), np.arange(1000.0))
