# SPDX-License-Identifier: Apache-2.0
"""Executor: the contract of concurrent.futures, with kernels and with functions."""

import asyncio
import concurrent.futures
import os
import threading

import numpy as np
import pytest

from harness.patience import until

N = 64
CONFIG = (1, N)


@pytest.fixture
def executor(gpuq):
    with gpuq.Executor(max_workers=2) as executor:
        yield executor


@pytest.fixture
def threads(gpuq):
    with gpuq.Executor(max_workers=2, processes=False) as executor:
        yield executor


def number(value=0):
    return np.array([value], np.int32)


def forever(gpuq, executor, module, **options):
    return executor.submit(module["forever"], (1, 1), gpuq.Out(number()), **options)


def add_one(gpuq, executor, module, i):
    return executor.submit(module["add_int"], CONFIG, number(i), gpuq.Out(number()), 1, 1)


# ---- kernels ----


def test_a_kernels_future_gives_what_out_named(gpuq, executor, module):
    out, x = np.zeros(N, np.int32), gpuq.zeros(N, np.float32)
    future = executor.submit(module["add_int"], CONFIG, np.arange(N, dtype=np.int32), gpuq.Out(out), 5, N)
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(60) is out and out[3] == 8 and future.done() and future.exception() is None
    assert executor.submit(module["twice"], CONFIG, gpuq.InOut(x), N).result() is x
    both = gpuq.job().fill(out, 1)
    assert executor.submit(both).result().state == "done"
    kernel = gpuq.module('extern "C" __global__ void two(int *a, int *b) { *a = 1; *b = 2; }')["two"]
    a, b = executor.submit(kernel, (1, 1), gpuq.Out(number()), gpuq.Out(number())).result()
    assert (a[0], b[0]) == (1, 2)
    assert "0 jobs pending" in repr(executor)


def test_a_failure_is_the_futures_exception(gpuq, executor, module):
    future = forever(gpuq, executor, module, timeout=0.1)
    assert isinstance(future.exception(60), gpuq.TimeoutError)
    with pytest.raises(gpuq.TimeoutError):
        future.result()
    with pytest.raises(TypeError, match="argument"):
        executor.submit(module["add_int"], CONFIG, number(), gpuq.Out(number()), 1.5, 1)
    with pytest.raises(TypeError, match="LaunchConfig"):
        executor.submit(module["add_int"])


def test_cancelling_reaches_the_daemon(gpuq, executor, module):
    future = forever(gpuq, executor, module)
    assert future.cancel() and future.cancelled() and future.cancel()
    done, _ = concurrent.futures.wait([future], 60)
    assert done == {future} and future.job.state == "cancelled"
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    assert not add_one(gpuq, executor, module, 1).result() is None
    ended = add_one(gpuq, executor, module, 1)
    ended.result()
    assert not ended.cancel() and not ended.cancelled()


def test_a_job_cancelled_by_others_raises_cancelled_error(gpuq, executor, module):
    future = forever(gpuq, executor, module)
    gpuq.cancel(future.job.id)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(60)


def test_done_callbacks_run_once_with_the_future(gpuq, executor, module):
    told = []
    future = add_one(gpuq, executor, module, 1)
    future.add_done_callback(told.append)
    future.add_done_callback(lambda _: 1 / 0)
    future.result(60)
    future.add_done_callback(told.append)
    executor.shutdown()
    assert told == [future, future]


def test_a_done_callback_may_use_the_client(gpuq, executor, module):
    out, done = number(), threading.Event()

    def next_one(future):
        module["add_int"].run((1, 1), future.result(), gpuq.Out(out), 10, 1)
        done.set()

    add_one(gpuq, executor, module, 1).add_done_callback(next_one)
    assert done.wait(60) and out[0] == 12


def test_wait_and_as_completed(gpuq, executor, module):
    futures = [add_one(gpuq, executor, module, i) for i in range(20)]
    assert concurrent.futures.wait(futures, 60).not_done == set()
    assert sorted(int(f.result()[0]) for f in concurrent.futures.as_completed(futures)) == list(range(1, 21))
    blocked = forever(gpuq, executor, module)
    done, not_done = concurrent.futures.wait([blocked, futures[0]], 60, concurrent.futures.FIRST_COMPLETED)
    assert done == {futures[0]} and not_done == {blocked}
    with pytest.raises(concurrent.futures.TimeoutError):
        blocked.result(0.05)
    blocked.cancel()


def test_map_is_in_order_and_lazy_in_its_results(gpuq, executor, module):
    outs = [number() for _ in range(30)]
    results = executor.map(module["add_int"], gpuq.LaunchConfig(1, 1), map(number, range(30)), map(gpuq.Out, outs), 3, 1)
    assert [int(out[0]) for out in results] == list(range(3, 33))
    configs = [(1, 1)] * 2
    assert len(list(executor.map(module["add_int"], configs, [number(1)] * 2, [gpuq.Out(number()) for _ in range(2)], 3, 1))) == 2
    with pytest.raises(TypeError, match="iterable"):
        executor.map(module["add_int"], gpuq.LaunchConfig(), 1, 2)


def test_map_has_a_timeout_and_cancels_the_rest(gpuq, executor, module):
    results = executor.map(module["forever"], gpuq.LaunchConfig(), [gpuq.Out(number()) for _ in range(3)])
    results = executor.map(module["forever"], gpuq.LaunchConfig(), [gpuq.Out(number()) for _ in range(3)], timeout=0.1)
    with pytest.raises(concurrent.futures.TimeoutError):
        next(results)
    gpuq.cancel()


@pytest.mark.parametrize("as_object", [False, True])
def test_progress_is_told_for_each_ended_job(gpuq, executor, module, as_object):
    class Bar:
        n = 0

        def update(self, n):
            self.n += n

    bar = Bar()
    progress = bar if as_object else bar.update
    list(executor.map(module["twice"], gpuq.LaunchConfig(), [gpuq.InOut(np.ones(1, np.float32)) for _ in range(10)], 1,
                      progress=progress))
    list(executor.map(pow, range(5), range(5), progress=progress))
    executor.shutdown()
    assert bar.n == 15


def test_futures_are_awaited_through_asyncio(gpuq, executor, module):
    async def wait():
        return await asyncio.wrap_future(add_one(gpuq, executor, module, 4))

    assert asyncio.run(wait())[0] == 5


def test_an_executor_of_another_client(gpuq, module):
    with gpuq.connect() as client, gpuq.Executor(client=client) as executor:
        future = add_one(gpuq, executor, module, 4)
        assert future.result()[0] == 5 and future.job.client is client and future.job.id >> 32 == client.session


# ---- shutdown ----


def test_submitting_after_shutdown_is_a_runtime_error(gpuq, module):
    executor = gpuq.Executor()
    executor.shutdown()
    executor.shutdown()
    for call in (lambda: add_one(gpuq, executor, module, 1), lambda: executor.submit(pow, 2, 5), lambda: executor.map(pow, [1], [2])):
        with pytest.raises(RuntimeError, match="after shutdown"):
            call()
    assert "shut down" in repr(executor)


def test_shutdown_waits_for_what_is_submitted(gpuq, module):
    with gpuq.Executor() as executor:
        futures = [add_one(gpuq, executor, module, i) for i in range(50)]
    assert all(future.done() for future in futures)


def test_shutdown_without_wait_returns_at_once(gpuq, module):
    executor = gpuq.Executor()
    future = forever(gpuq, executor, module)
    executor.shutdown(wait=False)
    assert not future.done()
    future.cancel()


def test_shutdown_cancels_futures_in_the_daemon(gpuq, module):
    executor = gpuq.Executor()
    futures = [forever(gpuq, executor, module) for _ in range(5)]
    executor.shutdown(cancel_futures=True)
    assert all(future.cancelled() for future in futures)
    assert {future.job.state for future in futures} == {"cancelled"} and gpuq.queue() == []


def test_many_futures_from_many_threads(gpuq, executor, module):
    def submit(i):
        results[i] = [int(add_one(gpuq, executor, module, k).result(60)[0]) for k in range(25)]

    results = {}
    workers = [threading.Thread(target=submit, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(results[i] == list(range(1, 26)) for i in range(8))


def dispatchers():
    return [thread for thread in threading.enumerate() if thread.name == "gpuq-dispatcher"]


def test_who_asks_for_a_result_waits_without_another_thread(gpuq, executor, module):
    before = dispatchers()
    futures = [add_one(gpuq, executor, module, i) for i in range(8)]
    assert [int(future.result(60)[0]) for future in futures] == list(range(1, 9))
    assert [int(out[0]) for out in executor.map(module["add_int"], gpuq.LaunchConfig(*CONFIG), map(number, range(200)),
                                                [gpuq.Out(number()) for _ in range(200)], 1, 1)][-1] == 200
    held = forever(gpuq, executor, module)
    with pytest.raises(concurrent.futures.TimeoutError):
        held.result(0.01)
    assert not held.done() and held.cancel() and held.cancelled()
    future = add_one(gpuq, executor, module, 3)
    future.job.wait(60)
    assert future.done() and not future.cancel() and future.result()[0] == 4
    assert before == [] and len(dispatchers()) <= 1  # the map's two hundred piled up


def test_a_done_callback_has_the_thread_that_it_needs(gpuq, executor, module):
    future, called = add_one(gpuq, executor, module, 1), threading.Event()
    future.add_done_callback(lambda _: called.set())
    assert called.wait(60) and len(dispatchers()) == 1
    first, second = (add_one(gpuq, executor, module, i) for i in range(2))
    assert concurrent.futures.wait([first, second], 60).not_done == set()


def test_jobs_that_nobody_asks_for_do_not_pile_up(gpuq, executor, module):
    for i in range(300):
        add_one(gpuq, executor, module, i)
    until(lambda: len(executor._pending) <= 64, "those beyond a few to be seen to")
    executor.shutdown()
    assert "300 ended" in repr(executor)


def test_threads_ask_one_future(gpuq, executor, module, gate):
    results = []
    future = executor.submit(module["gated"], (1, 1), gate.flag, gpuq.In(number(2)), gpuq.Out(number()))
    workers = [threading.Thread(target=lambda: results.append(int(future.result(60)[0]))) for _ in range(8)]
    for worker in workers:
        worker.start()
    gate.open()
    for worker in workers:
        worker.join()
    assert results == [6] * 8


def test_a_future_whose_client_is_closed_fails(gpuq, module):
    client = gpuq.connect()
    kernel = client.module('extern "C" __global__ void forever(volatile int *out) { while (!*out); }')["forever"]
    future = kernel.submit((1, 1), gpuq.InOut(number())).future()
    client.close()
    assert isinstance(future.exception(60), gpuq.ClosedError) and future.done()


# ---- functions, as any executor ----


def fail():
    raise LookupError("on purpose")


def own_pid(_=None):
    return os.getpid()


def initialise(value):
    os.environ["GPUQ_TEST_INITIALISED"] = value


def initialised():
    return os.environ.get("GPUQ_TEST_INITIALISED")


def test_functions_run_in_processes(executor):
    assert executor.submit(pow, 2, exp=5).result(60) == 32
    assert executor.submit(own_pid).result(60) != os.getpid()
    with pytest.raises(LookupError, match="on purpose"):
        executor.submit(fail).result(60)
    assert list(executor.map(pow, [2, 3, 4], [1, 2, 3])) == [2, 9, 64]
    assert list(executor.map(abs, range(-5, 0), chunksize=2)) == [5, 4, 3, 2, 1]


def test_functions_run_in_threads(threads):
    assert threads.submit(own_pid).result(60) == os.getpid()
    with pytest.raises(LookupError):
        threads.submit(fail).result(60)
    with pytest.raises(ZeroDivisionError):
        list(threads.map(divmod, [1, 1, 1], [2, 0, 5]))


def test_map_of_functions_has_a_timeout(threads):
    ended = threading.Event()
    with pytest.raises(concurrent.futures.TimeoutError):
        list(threads.map(ended.wait, [0, 60], timeout=0.05))
    ended.set()


def test_initializers_and_arguments_are_checked(gpuq):
    with gpuq.Executor(1, initializer=initialise, initargs=("yes",)) as executor:
        assert executor.submit(initialised).result(60) == "yes"
    for wrong, error in (({"max_workers": 0}, ValueError), ({"max_workers": -1}, ValueError), ({"initializer": 3}, TypeError)):
        with pytest.raises(error):
            gpuq.Executor(**wrong)


def test_functions_use_the_gpu_in_their_processes(gpuq, executor):
    assert executor.submit(sum_in_child, 100).result(60) == sum(range(100))


def sum_in_child(n):
    import gpuq
    s = np.zeros(1)
    gpuq.builtin()["sum_f64"].run((1, 64), np.arange(n, dtype=float), gpuq.Out(s), n)
    return s[0]
