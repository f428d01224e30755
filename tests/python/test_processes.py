# SPDX-License-Identifier: Apache-2.0
"""Processes: fork, spawn and forkserver, arrays sent between them by reference."""

import multiprocessing
import os
import pickle
from multiprocessing import forkserver

import numpy as np
import pytest

from conftest import SOURCE

N = 256
CONFIG = (1, N)
START_METHODS = ["fork", "spawn", "forkserver"]


@pytest.fixture(params=START_METHODS)
def context(request, gpuq):
    yield multiprocessing.get_context(request.param)
    forkserver._forkserver._stop()  # the next test's is to know that test's daemon


def add_in_child(pair):
    import gpuq
    c = np.empty(N, np.float32)
    gpuq.builtin()["add_f32"].run(CONFIG, gpuq.In(pair[0]), gpuq.In(pair[1]), gpuq.Out(c), N)
    return os.getpid(), gpuq.default_client().session, c


def test_children_have_a_connection_of_their_own(gpuq, context):
    pair = np.ones((2, N), np.float32)
    mine = add_in_child(pair)
    with context.Pool(3) as pool:
        told = pool.map(add_in_child, [pair] * 12, chunksize=1)
    assert all((c == 2).all() for _, _, c in told)
    sessions = {pid: session for pid, session, _ in [*told, mine]}
    assert len(set(sessions.values())) == len(sessions) > 1
    assert add_in_child(pair)[1] == mine[1]


def double_in_place(array):
    import gpuq
    gpuq.module(SOURCE)["twice"].run(CONFIG, gpuq.InOut(array), array.size)
    return array


def test_arrays_are_sent_by_reference_and_back(gpuq, context):
    a = gpuq.array(np.arange(N, dtype=np.float32))
    with context.Pool(2) as pool:
        back = pool.apply(double_in_place, (a,))
        np.testing.assert_array_equal(a, 2 * np.arange(N))
        np.testing.assert_array_equal(back, a)
        back[0] = 17
        assert a[0] == 17 and isinstance(back, gpuq.Array)
        pool.apply(double_in_place, (a[10:20],))
    np.testing.assert_array_equal(a[9:21], [18, *range(40, 80, 4), 40])


def make(i):
    import gpuq
    return gpuq.array(np.full(N, i, np.int32))


def test_arrays_made_in_children_outlive_their_makers_interest(gpuq, context):
    with context.Pool(2) as pool:
        arrays = pool.map(make, range(40), chunksize=1)
        assert [int(a[0]) for a in arrays] == list(range(40)) and all(isinstance(a, gpuq.Array) for a in arrays)
    assert [int(a.sum()) for a in arrays] == [N * i for i in range(40)]


def produce(queue):
    import gpuq
    for i in range(5):
        queue.put(gpuq.array(np.full(N, i, np.int32)))


def test_a_producer_that_ends_waits_until_its_arrays_are_received(gpuq, context):
    queue = context.Queue()
    process = context.Process(target=produce, args=(queue,))
    process.start()
    arrays = [queue.get(timeout=60) for _ in range(5)]
    process.join()
    assert process.exitcode == 0 and [int(a[0]) for a in arrays] == list(range(5))


def test_device_arrays_are_sent_by_reference(gpuq, context):
    a = gpuq.to_device(np.arange(N, dtype=np.float32))
    with context.Pool(1) as pool:
        back = pool.apply(double_in_place, (a,))
    np.testing.assert_array_equal(a.get(), 2 * np.arange(N))
    np.testing.assert_array_equal(back[3:5].get(), [6, 8])


def use_globals(i):
    import gpuq
    shared, kernel, config = GLOBALS
    kernel.run(config, gpuq.In(shared[i]), gpuq.Out(shared[i + 4]), 100, N)


GLOBALS = None


def test_what_was_made_before_fork_works_in_the_child(gpuq, module):
    """Module, kernel and arrays of the default client, as globals, without a word about any of it."""
    global GLOBALS
    shared = gpuq.zeros((8, N), np.int32)
    shared[:4] = np.arange(4)[:, None]
    GLOBALS = shared, module["add_int"], gpuq.LaunchConfig(1, N)
    use_globals(0)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(use_globals, range(1, 4), chunksize=1)
    np.testing.assert_array_equal(shared[4:, 0], [100, 101, 102, 103])
    use_globals(0)


def test_a_child_leaves_the_parents_jobs_alone(gpuq, module):
    out = np.zeros(1, np.int32)
    job = module["thrice"].submit((1, 1), gpuq.In(np.ones(1, np.int32)), gpuq.Out(out))
    future = module["thrice"].submit((1, 1), gpuq.In(np.ones(1, np.int32)), gpuq.Out(out)).future()
    process = multiprocessing.get_context("fork").Process(target=wait_for, args=(job,))
    process.start()
    process.join()
    assert process.exitcode == 0
    job.wait(60)
    future.result(60)


def wait_for(job):
    import gpuq
    try:
        job.wait()
    except gpuq.ForkedError as error:
        assert "parent" in str(error) and gpuq.wait_id(job.id).state == "done"
    else:
        raise AssertionError("the parent's job was waited for")


def test_a_pickle_whose_sender_closed_is_told(gpuq):
    client = gpuq.connect()
    text = pickle.dumps(client.array(np.arange(4)))
    client.close()
    with pytest.raises(gpuq.ReceiveError, match="sent this array"):
        pickle.loads(text)


def test_pickles_are_held_until_they_are_received(gpuq):
    text = pickle.dumps(gpuq.array(np.arange(4)))
    for i in range(20):
        gpuq.array(np.full(4, 99))
    first = pickle.loads(text)
    assert first.tolist() == [0, 1, 2, 3]
    outbox = gpuq.default_client()._outbox_
    outbox.sweep()
    assert not outbox.sent
    second = pickle.loads(text)
    second[0] = 5
    assert first[0] == 5


def test_values_are_pickled_by_numpys_own_way(gpuq):
    a = gpuq.array(np.arange(6).reshape(2, 3))
    for values in (a.copy(), a.T, a[:, 1:], a + 0):
        back = pickle.loads(pickle.dumps(values))
        assert type(back) is np.ndarray
        np.testing.assert_array_equal(back, values)
