# SPDX-License-Identifier: Apache-2.0
"""Jobs: order, dependencies, options, cancelling, waiting in every way, from every thread."""

import asyncio
import gc
import os
import pickle
import threading
import time

import numpy as np
import pytest

from harness.patience import until

ONE = (1, 1)


def number(value=0):
    return np.array([value], np.int32)


def held(gpuq, module, gate, value=1, out=None, **options):
    """A job that runs until the gate opens, and where its result goes."""
    out = number() if out is None else out
    return module["gated"].submit(ONE, gate.flag, gpuq.In(number(value)), gpuq.Out(out), **options), out


def test_operations_of_a_job_run_in_order(gpuq, module):
    a, b = gpuq.array(np.arange(8, dtype=np.int32)), gpuq.device_array(8, np.int32)
    c = np.zeros(8, np.int32)
    job = gpuq.job(label="chain").copy(b, a)
    for _ in range(5):
        job.launch(module["add_int"], (1, 8), gpuq.In(b), gpuq.InOut(b), 2, 8)
    job.copy(c, b).fill(a, 9)
    assert job.state == "building" and job.id == 0 and "chain" in repr(job)
    result = job.run()
    assert c.tolist() == list(range(10, 18)) and a.tolist() == [9] * 8
    assert job.state == "done" and job.result is result and result.state == "done" and result.id == job.id
    assert result.ran > 0 and result.waited >= 0 and "done on device 0" in repr(result) and "chain" in repr(job)


def test_jobs_of_a_session_run_in_order_where_their_arrays_meet(gpuq, module):
    x = gpuq.zeros(4, np.int32)
    jobs = [module["add_int"].submit((1, 4), gpuq.In(x), gpuq.InOut(x), 1, 4) for _ in range(50)]
    jobs[-1].wait()
    assert x.tolist() == [50] * 4


def test_a_job_is_submitted_once(gpuq, module, gate):
    job, _ = held(gpuq, module, gate)
    for action in (job.submit, job.run, lambda: job.fill(number(), 1)):
        with pytest.raises(gpuq.InvalidError, match="already submitted"):
            action()
    with pytest.raises(gpuq.InvalidError, match="submit"):
        gpuq.job().wait()
    with pytest.raises(gpuq.InvalidError, match="no operation"):
        gpuq.job().submit()


def test_many_jobs_in_one_message(gpuq, module):
    outs = [gpuq.zeros(1, np.int32) for _ in range(20)]
    jobs = gpuq.submit_many(
        gpuq.job().launch(module["add_int"], ONE, number(i), gpuq.Out(out), 1, 1) for i, out in enumerate(outs))
    for job in jobs:
        job.wait()
    assert [int(out[0]) for out in outs] == list(range(1, 21)) and gpuq.submit_many([]) == []


def test_dependencies_by_job_and_by_id(gpuq, module, gate):
    first, a = held(gpuq, module, gate, 2)
    second = gpuq.job(after=first).fill(number(), 1).submit()
    third = gpuq.job(after=[first, second.id]).fill(number(), 1).submit()
    with gpuq.connect() as other:
        last = other.job().after(third).fill(number(), 1).submit()
        assert not any(job.done() for job in (first, second, third, last))
        gate.open()
        last.wait(60)
    assert first.done() and second.done() and third.done() and a[0] == 6
    gpuq.job(after=first).fill(number(), 1).run()
    with pytest.raises(ValueError, match="not submitted"):
        gpuq.job(after=gpuq.job())
    with pytest.raises(TypeError):
        gpuq.job(after=1.5)


def test_ids_are_shown_and_taken_as_the_command_line_does(gpuq, module, gate):
    job, _ = held(gpuq, module, gate)
    shown = f"{gpuq.default_client().session}.{int(job.id) & 0xffffffff}"
    assert str(job.id) == f"{job.id}" == shown and repr(job.id) == repr(shown) and shown in repr(job)
    (entry,) = until(lambda: [entry for entry in gpuq.queue() if entry.id == job.id], "the job in the queue")
    assert str(entry.id) == shown and isinstance(job.id + 1, int) and pickle.loads(pickle.dumps(job.id)) == job.id
    after = gpuq.job(after=shown).fill(number(), 1).submit()
    with pytest.raises(gpuq.TimeoutError):
        gpuq.wait_id(shown, 0.001)
    assert gpuq.cancel(str(after.id)) == 1
    gate.open()
    result = gpuq.wait_id(shown, 60)
    assert result.state == "done" and str(result.id) == str(job.wait().id) == shown and shown in repr(result)
    with pytest.raises(gpuq.NotFoundError, match=r"job 999999\.1 is unknown"):
        gpuq.cancel("999999.1")
    with pytest.raises(gpuq.NotFoundError, match="2 of these 2 jobs are unknown"):
        gpuq.cancel("999999.1", "999999.2")
    with pytest.raises(TypeError, match='such as "12.3", not 12.3'):
        gpuq.wait_id(12.3)


def test_a_dependency_that_failed(gpuq, module):
    first = module["forever"].submit(ONE, gpuq.Out(number()))
    second = gpuq.job(after=first).fill(number(), 1).submit()
    first.cancel()
    with pytest.raises(gpuq.DependencyError):
        second.wait(60)
    assert second.result.state == "failed"


def test_options_are_what_the_daemon_knows(gpuq, module):
    gate = module["forever"].submit(ONE, gpuq.Out(number()), label="gate", timeout=60)
    job = gpuq.job(after=gate, priority=7, label="behind", device=0, repeatable=True, timed=True).fill(number(), 1).submit()
    entry = until(lambda: [entry for entry in gpuq.queue() if entry.label == "behind"], "the job in the queue")[0]
    assert (entry.priority, entry.id, entry.state) == (7, job.id, "waiting")
    gate.cancel()
    for options in ({"timeout": 0}, {"timeout": -1}):
        with pytest.raises(ValueError, match="seconds"):
            gpuq.job(**options)
    with pytest.raises(gpuq.InvalidError):
        gpuq.job(priority=1000)
    with pytest.raises(gpuq.InvalidError):
        gpuq.job(label="x" * 65)
    with pytest.raises(gpuq.Error):
        gpuq.job(device=99).fill(number(), 1).run()
    with pytest.raises(TypeError):
        gpuq.job(colour="red")


def test_a_timed_job_tells_the_gpus_time(gpuq, module):
    assert 0 < module["thrice"].run(ONE, gpuq.In(number(1)), gpuq.Out(number()), timed=True).gpu_time < 10


def test_a_jobs_timeout_ends_it(gpuq, module):
    with pytest.raises(gpuq.TimeoutError) as caught:
        module["forever"].run(ONE, gpuq.Out(number()), timeout=0.1)
    assert caught.value.name == "GPUQ_E_TIMEOUT" and isinstance(caught.value, TimeoutError)
    assert caught.value.job.state == "failed"


def test_a_wait_that_ends_first_leaves_the_job(gpuq, module, gate):
    job, out = held(gpuq, module, gate, 5)
    with pytest.raises(gpuq.TimeoutError, match="goes on") as caught:
        job.wait(0.001)
    assert caught.value.name == "GPUQ_E_AGAIN" and job.state == "pending" and job.result is None and not job.done()
    with pytest.raises(TimeoutError):
        job.wait(0)
    gate.open()
    job.wait(60)
    assert out[0] == 15 and job.wait() is job.result


def test_cancelling(gpuq, module):
    running, waiting = (module["forever"].submit(ONE, gpuq.Out(number())) for _ in range(2))
    by_id = module["forever"].submit(ONE, gpuq.Out(number()))
    waiting.cancel()
    running.cancel()
    assert gpuq.cancel(by_id) == 1
    for job in (waiting, running, by_id):
        with pytest.raises(gpuq.CancelledError):
            job.wait(60)
        assert job.state == "cancelled"
        job.cancel()
    with pytest.raises(gpuq.NotFoundError):
        gpuq.cancel("999.999")


def test_waiting_by_id(gpuq, module, gate):
    job, _ = held(gpuq, module, gate)
    with gpuq.connect() as other:
        with pytest.raises(gpuq.TimeoutError):
            other.wait_id(job.id, 0.001)
        gate.open()
        assert other.wait_id(job.id, 60).state == "done"
    failed = module["forever"].submit(ONE, gpuq.Out(number()), timeout=0.2)
    with pytest.raises(gpuq.TimeoutError):
        gpuq.wait_id(failed)


def test_a_fault_names_its_kernel_and_the_client_goes_on(gpuq, module, add):
    with pytest.raises(gpuq.KernelFault, match="wild"):
        module["wild"].run(ONE, gpuq.InOut(number()), np.uint64(1 << 40))
    module["add_int"].run(ONE, number(1), gpuq.Out(number()), 1, 1)


def test_what_kernels_print_comes_with_the_result(gpuq):
    kernel = gpuq.module('extern "C" __global__ void hello(int n) { printf("hello %d\\n", n); }')["hello"]
    assert kernel.run(ONE, 42).output == "hello 42\n"


def test_a_job_that_nobody_holds_still_runs(gpuq, module, gate):
    out = gpuq.zeros(1, np.int32)
    held(gpuq, module, gate, 4, out)
    gc.collect()
    gate.open()
    gpuq.job().copy(number(), out).run()
    assert out[0] == 12


def test_arrays_given_up_while_a_job_runs(gpuq, module, gate):
    job = gpuq.job().launch(module["gated"], ONE, gate.flag, gpuq.In(gpuq.array(number(3))), gpuq.Out(gpuq.zeros(1, np.int32))).submit()
    gc.collect()
    others = [gpuq.array(number(i)) for i in range(100)]
    gate.open()
    job.wait()
    assert [int(a[0]) for a in others] == list(range(100))


def test_closing_a_client_ends_its_jobs(gpuq, module):
    client = gpuq.connect()
    kernel = client.module('extern "C" __global__ void forever(volatile int *out) { while (!*out); }')["forever"]
    future = kernel.submit(ONE, gpuq.InOut(number())).future()
    plain = kernel.submit(ONE, gpuq.InOut(number()))
    client.close()
    client.close()
    with pytest.raises(gpuq.ClosedError):
        future.result(60)
    with pytest.raises(gpuq.ClosedError):
        plain.wait(60)
    assert "closed" in repr(client) and client.closed


# ---- async ----


def test_jobs_are_awaited(gpuq, module):
    async def both():
        jobs = [gpuq.job().launch(module["thrice"], ONE, gpuq.In(number(i)), gpuq.Out(outs[i])) for i in range(2)]
        return await asyncio.gather(*jobs)

    outs = [number(), number()]
    results = asyncio.run(both())
    assert [result.state for result in results] == ["done", "done"] and outs[1][0] == 3


def test_an_awaited_job_raises_what_made_it_fail(gpuq, module):
    async def wait():
        await gpuq.job(timeout=0.1).launch(module["forever"], ONE, gpuq.Out(number()))

    with pytest.raises(gpuq.TimeoutError):
        asyncio.run(wait())


def test_cancelling_a_task_cancels_its_job(gpuq, module):
    async def wait():
        job = gpuq.job().launch(module["forever"], ONE, gpuq.Out(number()))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(job, 0.2)
        return job

    job = asyncio.run(wait())
    with pytest.raises(gpuq.CancelledError):
        job.wait(60)


def test_a_job_that_has_ended_is_awaited_too(gpuq, module):
    async def wait():
        return await job

    job = gpuq.job().launch(module["thrice"], ONE, gpuq.In(number(1)), gpuq.Out(number()))
    assert asyncio.run(wait()) is job.result and asyncio.run(wait()) is job.result


# ---- threads ----


def in_threads(n, function):
    failures = []

    def run(i):
        try:
            function(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("ways", ["waits", "futures", "both"])
def test_threads_share_a_client(gpuq, module, ways):
    def work(i):
        for k in range(50):
            out = number()
            job = gpuq.job().launch(module["add_int"], ONE, number(i), gpuq.Out(out), k, 1)
            if ways == "futures" or ways == "both" and (i + k) % 2:
                job.future().result(60)
            else:
                job.run()
            assert out[0] == i + k

    in_threads(8, work)


def test_threads_wait_for_one_job(gpuq, module, gate):
    job, out = held(gpuq, module, gate, 2)
    in_threads(9, lambda i: job.wait(60) if i else gate.open())
    assert out[0] == 6


def test_a_thread_interrupts_nobody_elses_wait(gpuq, module, gate):
    job, out = held(gpuq, module, gate, 2)
    waits = (gate.open, job.wait, lambda: held(gpuq, module, gate)[0].wait())
    in_threads(3, lambda i: waits[i]())
    assert out[0] == 6


# ---- the daemon's state ----


def test_the_daemons_state(gpuq, module, gate):
    client = gpuq.default_client()
    assert client.devices >= 1 and client.session > 0 and client.path is None and "session" in repr(client)
    status = gpuq.status()
    assert status.state == "ready" and len(status.devices) == client.devices and status.uptime > 0
    assert status.devices[0].memory_total > 0 and status.users[0].sessions >= 1
    job, _ = held(gpuq, module, gate, label="seen")
    assert [entry.label for entry in client.queue(everybody=True)] == ["seen"]
    assert {limit.key: limit.used for limit in gpuq.status().limits}["jobs"] == 1
    assert gpuq.explain(job.id).label == "seen"
    gate.open()
    job.wait()
    told = gpuq.explain(job.id)
    assert (told.id, told.state, told.advice) == (job.id, "done", "nothing")
    assert told.n_median >= 1 and told.median.ran_us > 0 and told.times.ran_us > 0  # of this kernel, other tests' jobs too
    with pytest.raises(gpuq.NotFoundError):
        gpuq.explain("4000.7")


def test_a_trace_has_the_jobs_that_end_meanwhile(gpuq, module):
    def work():
        time.sleep(0.2)
        jobs.append(gpuq.job(label="seen").launch(module["add_int"], ONE, number(1), gpuq.Out(number()), 1, 1).submit())
        jobs[0].wait()

    jobs = []
    thread = threading.Thread(target=work)
    thread.start()
    told = gpuq.trace(1)
    thread.join()
    [traced] = [job for job in told.jobs if job.id == jobs[0].id]
    assert (traced.state, traced.label, traced.kernels, traced.device) == ("done", "seen", "add_int", 0)
    assert traced.submitted_ns <= traced.started_ns <= traced.ended_ns <= told.now_ns
    assert told.lost == 0 and traced.worker_pid > 0 and traced.stream >= 0


# ---- results ----


def test_a_result_tells_all_when_asked_and_keeps_it(gpuq, module):
    with gpuq.connect() as client:
        kernel = client.module('#include <stdio.h>\nextern "C" __global__ void say() { printf("said\\n"); }')["say"]
        results = [kernel.run((1, 1), timed=True) for _ in range(3)]
        assert (results[0].state, results[0].error, results[0].text, results[0].output) == ("done", 0, "", "said\n")
        assert results[0].ran >= 0 and results[0].device == 0 and results[0].id >> 32 == client.session
        assert "done on device 0" in repr(results[0])
        again = pickle.loads(pickle.dumps(results[1]))
        assert (again.id, again.output, again.ran) == (results[1].id, "said\n", results[1].ran)
    assert results[0].output == "said\n" and results[2].state == "done" and results[2].id == results[1].id + 1
    assert results[2].waited >= 0  # nobody is there to tell more


def test_a_childs_question_for_the_rest_of_a_parents_result(gpuq, module):
    """What the parent had asked for is there; the rest only the parent can hear."""
    out = np.zeros(1, np.int32)
    asked, other = (module["add_int"].run((1, 1), np.ones(1, np.int32), gpuq.Out(out), 1, 1) for _ in range(2))
    ran = asked.ran
    child = os.fork()
    if child == 0:
        try:
            assert (asked.ran, other.state, other.id) == (ran, "done", asked.id + 1)
            try:
                other.ran
            except gpuq.ForkedError:
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and other.ran >= 0
