# SPDX-License-Identifier: Apache-2.0
"""Prepared jobs: fired as they are, with other arrays and scalars, by name and by pair, and what out of range."""

import gc
import os

import numpy as np
import pytest

N = 100
CONFIG = (1, 128)
ONE = (1, 1)


@pytest.fixture
def abc(gpuq):
    return [gpuq.array(np.full(N, value, np.float32)) for value in (1, 2, 0)]


@pytest.fixture
def prepared(gpuq, add, abc):
    a, b, c = abc
    return add.prepare(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.Out(c), N)


def test_it_is_fired_as_it_was_prepared(prepared, abc):
    a, _, c = abc
    for value in range(3):
        a[:] = value
        job = prepared()
        assert job.wait() is job.result and job.state == "done" and job.id == job.result.id > 0
        assert (c == value + 2).all()
    assert prepared.names == ("a", "b", "c", "n") and repr(prepared) == "<gpuq.Prepared: a, b, c, n>"
    assert prepared.run().state == "done"


def test_arrays_and_scalars_are_other_ones_in_one_job_alone(gpuq, prepared, abc):
    c, d = gpuq.array(np.full(N, 9, np.float32)), gpuq.to_device(np.full(N, 5, np.float32))
    prepared.run(b=d, c=c, n=7)
    assert (c[:7] == 6).all() and not c[7:].any() and not abc[2].any()
    prepared.run(b=gpuq.In(d[:]), n=np.int32(8))
    assert (abc[2][:8] == 6).all() and not abc[2][8:].any()
    prepared.run()
    assert (abc[2] == 3).all()


def test_an_output_that_is_written_whole(gpuq, add, abc):
    a, b, _ = abc
    c, d = np.full(N, 9, np.float32), gpuq.to_device(np.full(N, 9, np.float32))
    add.run(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.Out(c, whole=True), N)
    assert (c == 3).all()
    prepared = add.prepare(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.Out(d, whole=True), N)
    prepared.run(n=N // 2)
    assert (d.get()[:N // 2] == 3).all() and (d.get()[N // 2:] == 9).all()  # it was not, after all
    prepared.run(c=gpuq.Out(abc[2]))
    assert (abc[2] == 3).all()
    assert repr(gpuq.Out(c, whole=True)).startswith("Out(")


def test_plain_arrays_are_copied_for_each_job(gpuq, prepared, add, abc):
    c = np.full(N, -1, np.float32)
    prepared.run(a=np.full(N, 8, np.float32), c=c)
    assert (c == 10).all() and not abc[2].any()

    a, c = np.zeros(N, np.float32), np.zeros(N, np.float32)
    of_plain = add.prepare(CONFIG, gpuq.In(a), gpuq.In(abc[1]), gpuq.Out(c), N)
    jobs = []
    for value in range(20):
        a[:] = value
        jobs.append((of_plain.fire(c=gpuq.zeros(N, np.float32)), value))
    for job, value in jobs:
        job.wait()
        assert (job._outputs[0] == value + 2).all()
    of_plain.run()
    assert (c == 21).all()


def test_parts_of_arrays_are_taken(gpuq, add):
    rows = gpuq.array(np.arange(4 * N, dtype=np.float32).reshape(4, N))
    prepared = add.prepare(CONFIG, gpuq.In(rows[0]), gpuq.In(rows[1]), gpuq.Out(rows[2]), N)
    gc.collect()
    prepared.run(a=rows[1], c=rows[3])
    np.testing.assert_array_equal(rows[3], 2 * rows[1])
    prepared.run((rows[1], rows[0]))
    np.testing.assert_array_equal(rows[2], 2 * rows[0])


def test_a_job_of_several_operations(gpuq, module):
    x = gpuq.array(np.arange(8, dtype=np.int32))
    y, z = gpuq.device_array(8, np.int32), np.zeros(8, np.int32)
    job = gpuq.job(label="chain").copy(y, x)
    for _ in range(3):
        job.launch(module["add_int"], (1, 8), gpuq.In(y), gpuq.InOut(y), 1, 8)
    prepared = job.copy(z, y).prepare()
    assert "chain" in repr(prepared)
    prepared.run()
    assert z.tolist() == list(range(3, 11))
    prepared.run(k=5)
    assert z.tolist() == list(range(15, 23))
    prepared.run(**{"2.k": 100})
    assert z.tolist() == list(range(102, 110))
    prepared.run((x, np.zeros(8, np.int32)))
    assert z.tolist() == [3] * 8
    prepared.run(**{"0.from_": np.ones(8, np.int32)})
    assert z.tolist() == [4] * 8
    with pytest.raises(ValueError, match=r"ambiguous.*\"0\.to\""):
        prepared.fire(to=z)
    with pytest.raises(ValueError, match="32 bytes, not 16"):
        prepared.fire((x, np.zeros(4, np.int32)))
    job.run()
    assert z.tolist() == list(range(3, 11))


def test_they_run_in_order_with_all_others(gpuq, module):
    x = gpuq.zeros(4, np.int32)
    prepared = module["add_int"].prepare((1, 4), gpuq.In(x), gpuq.InOut(x), 1, 4)
    jobs = []
    for i in range(50):
        jobs.append(prepared(k=10) if i % 2 else module["add_int"].submit((1, 4), gpuq.In(x), gpuq.InOut(x), 1, 4))
    jobs[-1].wait()
    assert x.tolist() == [275] * 4
    after = gpuq.job(after=prepared()).fill(x, 1).submit()
    after.wait()
    assert x.tolist() == [1] * 4


def test_a_fired_job_is_one_like_any_other(gpuq, module, gate):
    out = gpuq.zeros(1, np.int32)
    prepared = module["forever"].prepare(ONE, gpuq.Out(out), label="endless")
    job = prepared()
    assert job.state == "pending" and "endless" in repr(job)
    job.cancel()
    with pytest.raises(gpuq.CancelledError):
        job.wait(60)
    gated = module["gated"].prepare(ONE, gate.flag, gpuq.In(np.array([4], np.int32)), gpuq.Out(out))
    job = gated()
    with pytest.raises(gpuq.TimeoutError):
        job.wait(0)
    with pytest.raises(gpuq.InvalidError, match="already submitted"):
        job.submit()
    future = job.future()
    gate.open()
    assert future.result(60).state == "done" and out[0] == 12
    with gpuq.Executor() as executor:
        assert executor.submit(gated, **{"in": np.array([5], np.int32)}).result(60) is out and out[0] == 15


def test_a_fault_of_one_leaves_the_next(gpuq, module):
    data = gpuq.zeros(4, np.int32)
    prepared = module["wild"].prepare(ONE, gpuq.InOut(data), 1)
    with pytest.raises(gpuq.KernelFault):
        prepared.run(index=1 << 40)
    prepared.run(index=2)
    assert data.tolist() == [0, 0, 1, 0]


def test_what_was_given_up_stays_while_it_is_used(gpuq, module, gate):
    out = gpuq.zeros(1, np.int32)
    prepared = module["gated"].prepare(ONE, gate.flag, gpuq.In(gpuq.array(np.array([3], np.int32))), gpuq.Out(out))
    job = prepared()
    del prepared
    gc.collect()
    others = [gpuq.array(np.array([i], np.int32)) for i in range(100)]
    gate.open()
    job.wait()
    assert out[0] == 9 and [int(a[0]) for a in others] == list(range(100))


def test_what_does_not_fit_is_told(gpuq, prepared, abc):
    a = abc[0]
    for new, error, text in (
            ({"d": a}, TypeError, "no argument 'd'; it has: a, b, c, n"),
            ({"a": gpuq.Out(a)}, TypeError, "prepared as In.*Out"),
            ({"a": a.astype(np.float64)}, TypeError, "float32.*float64"),
            ({"a": np.zeros(2 * N, np.float32)[::2]}, ValueError, "ascontiguousarray"),
            ({"a": 5}, TypeError, "argument 1"),
            ({"n": 1.5}, TypeError, "integer"),
            ({"n": a}, TypeError, "argument 4"),
            ({"n": 1 << 40}, OverflowError, "out of range")):
        with pytest.raises(error, match=text):
            prepared.fire(**new)
    with pytest.raises(ValueError, match="does not use the array"):
        prepared.fire((gpuq.zeros(N, np.float32), a))
    with pytest.raises(ValueError, match="two different arrays"):
        prepared.fire((a, abc[1]), a=abc[2])
    with pytest.raises(gpuq.InvalidError, match="no operation"):
        gpuq.job().prepare()
    with pytest.raises(gpuq.Error):
        gpuq.job(after=prepared()).fill(a, 1).prepare()
    prepared.run()
    assert (abc[2] == 3).all()


def test_parameters_without_names_are_numbered(gpuq):
    kernel = gpuq.module('extern "C" __global__ void put(int *, int) {}\n'
                         'extern "C" __global__ void set(int *x, int v) { *x = v; }')["set"]
    for packer in kernel._packers:
        packer.name = f"arg{packer.index}"  # as of PTX, which has no names
    x, y = gpuq.zeros(1, np.int32), gpuq.zeros(1, np.int32)
    prepared = kernel.prepare(ONE, gpuq.Out(x), 1)
    prepared.run(arg0=y, arg1=7)
    assert prepared.names == ("arg0", "arg1") and y[0] == 7 and x[0] == 0


def test_one_of_the_parents_or_of_a_closed_client_says_what_to_do(gpuq, module):
    x = gpuq.zeros(4, np.int32)
    prepared = module["add_int"].prepare((1, 4), gpuq.In(x), gpuq.InOut(x), 1, 4)
    child = os.fork()
    if child == 0:
        try:
            prepared.fire()
        except gpuq.ForkedError as error:
            os._exit(0 if "prepare it again" in str(error) else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    prepared.run()
    assert x.tolist() == [1] * 4
    with gpuq.connect() as client:
        y = client.zeros(4, np.int32)
        theirs = client.job().fill(y, 3).prepare()
        theirs.run()
    with pytest.raises(gpuq.ClosedError):
        theirs.fire()
    assert y.tolist() == [3] * 4
