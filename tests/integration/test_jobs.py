# SPDX-License-Identifier: Apache-2.0
"""Jobs: operations, order, dependencies, priorities, cancel, wait, and how they are told."""

import time

import numpy
import pytest

from harness import kernels, processes
from harness.client import In, InOut, Job, Out, OutWhole, Refused, Use, i32, u64
from harness.kernels import Gate, GateJob, assert_failed, copy_job, gate_job, note_job
from harness.messages import pb
from harness.patience import until

N = 1000


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def numbers(n=N):
    return numpy.arange(n, dtype=numpy.int32)


def zeros(client, n):
    return client.arena(4 * n)


def noted(arena):
    log = arena.array(numpy.int32)
    return list(log[1:1 + log[0]])


# ---- one job ----

def test_copy_fill_and_launch_in_one_job(client, module):
    source, target = client.array(numbers()), zeros(client, N)
    use = target.slice()
    job = Job().fill(use, 4 * N, 0x01010101, 4)
    job.copy(use, source, 2 * N)
    job.launch(module, "add_one", [InOut(target), u64(N)], grid=8, block=128)
    client.run_well(job)

    wanted = numpy.full(N, 0x01010101, numpy.int32)
    wanted[:N // 2] = numbers(N // 2)
    numpy.testing.assert_array_equal(target.array(numpy.int32), wanted + 1)


def test_a_job_of_a_thousand_operations(client, module):
    data = client.array(numbers())
    job = Job()
    for _ in range(1000):
        job.launch(module, "add_one", [InOut(data), u64(N)], grid=8, block=128)
    client.run_well(job)
    numpy.testing.assert_array_equal(data.array(numpy.int32), numbers() + 1000)


def test_operations_run_in_their_order(client, module):
    log = zeros(client, 300)
    job = Job()
    for mark in range(200):
        job.launch(module, "note", [InOut(log), i32(mark)])
    client.run_well(job)
    assert noted(log) == list(range(200))


def test_copies_within_and_between_places(client):
    data = numbers()
    host, device = client.array(data), client.device_arena(4 * N)
    client.run_well(Job().copy(device, host, 4 * N))
    client.run_well(Job().copy(device.slice(0, 400), device.slice(400, 400), 400))
    back = zeros(client, N)
    client.run_well(Job().copy(back, device, 4 * N))
    wanted = data.copy()
    wanted[:100] = data[100:200]
    numpy.testing.assert_array_equal(back.array(numpy.int32), wanted)


@pytest.mark.parametrize("width, value", [(1, 0xab), (2, 0xabcd), (4, 0xabcdef01)])
def test_fill_widths(client, width, value):
    arena = client.arena(64)
    client.run_well(Job().fill(arena, 32, value, width, offset=16))
    wanted = bytes(16) + value.to_bytes(width, "little") * (32 // width) + bytes(16)
    assert arena.map[:] == wanted


def test_every_kind_of_scalar(client, module):
    from harness.client import Scalar, f32, f64, i64
    out = client.arena(48)
    args = [Scalar(b"\xfe", pb.I8), Scalar(b"\xfd\xff", pb.I16), i32(-4), i64(-5), f32(1.5), f64(2.25), Out(out)]
    client.run_well(Job().launch(module, "scalars", args))
    assert list(out.array(numpy.float64)) == [-2, -3, -4, -5, 1.5, 2.25]


def test_slices_with_odd_offsets(client, module):
    source, target = client.array(numbers()), zeros(client, N)
    client.run_well(copy_job(module, source.slice(12, 40), target.slice(400, 40), 10))
    wanted = numpy.zeros(N, numpy.int32)
    wanted[100:110] = numbers()[3:13]
    # What is outside the slice is not touched; what is inside starts as zeros.
    numpy.testing.assert_array_equal(target.array(numpy.int32), wanted)


def test_what_is_written_whole_is_not_cleared_in_the_clients_own_memory(client, module):
    source, device, host, back = client.array(numbers()), client.device_arena(4 * N), client.arena(4 * N), client.arena(4 * N)
    for target in device, host:
        client.run_well(Job().fill(target, 4 * N, 9, width=4))
        client.run_well(Job().launch(module, "copy", [In(source), OutWhole(target), u64(N // 2)], grid=8, block=128))
        client.run_well(Job().copy(back, target, 4 * N))
        found = back.array(numpy.int32)
        numpy.testing.assert_array_equal(found[:N // 2], numbers()[:N // 2])
        # This kernel writes half of it only: as it was, or zeros where the host's memory was not worked on itself.
        assert set(found[N // 2:]) in ([{9}] if target is device else [{9}, {0}])


def test_a_direction_that_there_is_not(client, module):
    use = Use(client.array(numbers()).slice(), 4)
    assert_failed(client.run(Job().launch(module, "copy", [use, use, u64(N)])), pb.E_INVALID, "direction 4")


def test_an_input_is_not_changed_by_a_kernel_that_writes_to_it(client, module):
    data = client.array(numbers())
    client.run_well(Job().launch(module, "add_one", [In(data), u64(N)], grid=8, block=128))
    numpy.testing.assert_array_equal(data.array(numpy.int32), numbers())


def test_times_and_device_are_told(client, module):
    completion = client.run_well(copy_job(module, client.array(numbers()), zeros(client, N), N, timed=True))
    assert completion.device == 0 and completion.ran_us > 0 and completion.gpu_ns > 0


def test_many_jobs_in_one_message(client, module):
    source, target = client.array(numbers()), client.arena(4 * N)
    ids = client.submit(*[copy_job(module, source.slice(4 * i, 4), target.slice(4 * i, 4), 1)
                          for i in range(500)])
    assert all(client.wait(job_id).state == pb.DONE for job_id in ids)
    numpy.testing.assert_array_equal(target.array(numpy.int32)[:500], numbers(500))


# ---- order within a session ----

def test_overlapping_writers_run_in_submission_order(client, module):
    log = zeros(client, 200)
    ids = client.submit(*[note_job(module, log, mark) for mark in range(100)])
    assert all(client.wait(job_id).state == pb.DONE for job_id in ids)
    assert noted(log) == list(range(100))


def test_the_same_in_device_memory(client, module):
    log = client.device_arena(800)
    ids = client.submit(*[note_job(module, log, mark) for mark in range(100)])
    assert all(client.wait(job_id).state == pb.DONE for job_id in ids)
    back = zeros(client, 200)
    client.run_well(Job().copy(back, log, 800))
    assert noted(back) == list(range(100))


def test_priority_does_not_break_the_order(client, module):
    log = zeros(client, 100)
    ids = client.submit(*[note_job(module, log, mark, priority=mark) for mark in range(50)])
    assert all(client.wait(job_id).state == pb.DONE for job_id in ids)
    assert noted(log) == list(range(50))


def test_random_jobs_give_what_serial_execution_gives(client, module):
    """Copies and increments of random slices, all submitted at once."""
    random = numpy.random.default_rng(5)
    arena = client.array(numpy.arange(256, dtype=numpy.int32))
    model = arena.array(numpy.int32).copy()
    jobs = []
    for _ in range(300):
        a, b, n = (int(x) for x in (*random.integers(0, 200, 2), random.integers(1, 56)))
        if random.integers(2) or abs(a - b) < n:
            jobs.append(Job().launch(module, "add_one", [InOut(arena.slice(4 * a, 4 * n)), u64(n)], 1, 64))
            model[a:a + n] += 1
        else:
            jobs.append(copy_job(module, arena.slice(4 * a, 4 * n), arena.slice(4 * b, 4 * n), n))
            model[b:b + n] = model[a:a + n]
    for job_id in client.submit(*jobs):
        assert client.wait(job_id).state == pb.DONE
    numpy.testing.assert_array_equal(arena.array(numpy.int32), model)


def test_jobs_without_overlap_run_together(gpuqd, client, module):
    """The first never ends by itself: the second ends it."""
    gate = GateJob(client, module)
    other = client.run_well(copy_job(module, client.array(numbers()), zeros(client, N), N))
    assert other.state == pb.DONE
    gate.open()
    assert client.wait(gate.id).state == pb.DONE


def test_what_is_freed_beside_a_long_job_holds_up_no_other(client, module):
    """CUDA frees host memory and modules when nothing runs. The worker waits for that, but its jobs do not."""
    source, target, freed = client.array(numbers()), zeros(client, N), client.array(numbers())
    unloaded = client.load(kernels.BASIC + "__global__ void another() {}", name="unloaded.cu")
    client.run_well(copy_job(unloaded, freed, target, N))
    held = GateJob(client, module)
    held.wait_for()
    freed.close()
    client.tell(module_unload=pb.ModuleUnload(module=unloaded.module))
    for _ in range(3):
        target.array(numpy.int32)[:] = 0
        client.run_well(copy_job(module, source, target, N))
        assert target.array(numpy.int32).tolist() == numbers().tolist()
    assert client.queue()[held.id].state == pb.RUNNING
    held.open()
    assert client.wait(held.id).state == pb.DONE
    client.run_well(copy_job(client.load(kernels.BASIC, name="next.cu"), source, target, N))


def test_a_cancelled_job_lets_nobody_overtake(gpuqd, client, module):
    log = client.device_arena(64)
    gate = Gate(client)
    job = gate_job(module, gate)
    job.launch(module, "note", [InOut(log), i32(1)])
    # The second waits where it is cancelled at once, by its dependency too; the third is behind it by order alone.
    second = note_job(module, log, 2, after=[client.session << 32 | client.tag + 1])
    first, second, third = client.submit(job, second, note_job(module, log, 3))
    other = gpuqd.connect()
    until(lambda: other.queue()[first].state == pb.RUNNING, "the first job to run")
    client.cancel(second)
    assert client.wait(second).state == pb.CANCELLED
    assert {first, third} == set(other.queue())
    gate.open()
    assert client.wait(first).state == client.wait(third).state == pb.DONE
    back = client.arena(64)
    client.run_well(Job().copy(back, log, 64))
    assert noted(back) == [1, 3]


def test_a_refused_job_lets_nobody_overtake(gpuqd, client, module):
    """Its worker refuses it while one before it is in flight: what comes after it stays behind that one."""
    source, target, gate = client.array(numbers()), zeros(client, N), Gate(client)
    first = gate_job(module, gate)
    first.buffer(InOut(target))
    reader = Job().launch(module, "copy", [In(source), InOut(target), u64(N)], grid=8, block=128)
    refused = Job().launch(module, "add_one", [InOut(source), u64(N)], block=1 << 20)
    ids = client.submit(first, reader, refused, Job().fill(source, 4 * N, 7))
    other = gpuqd.connect()
    until(lambda: other.queue()[ids[1]].state == pb.RUNNING, "the reader to be in flight")
    later = other.load(kernels.BASIC)
    for _ in range(10):
        other.run_well(Job().launch(later, "nothing"))
    assert set(other.queue()) == set(ids)
    gate.open()
    assert [client.wait(job_id).state for job_id in ids] == [pb.DONE, pb.DONE, pb.FAILED, pb.DONE]
    numpy.testing.assert_array_equal(target.array(numpy.int32), numbers())


# ---- dependencies ----

def test_dependencies_between_sessions(gpuqd, client, module):
    other = gpuqd.connect()
    log = zeros(client, 10)
    shared = other.open_arena(log.id)
    their_module = other.load(kernels.BASIC)
    gate = GateJob(client, module)

    # Two sockets have no order between them: the daemon must have seen the gate first.
    until(lambda: gate.id in other.queue(), "the gate")
    second = other.submit(note_job(their_module, shared, 2, after=[gate.id]))
    until(lambda: second in client.queue(), "the second job")
    third = client.submit(note_job(module, log, 3, after=[second]))
    queue = until(lambda: {second, third} <= set(client.queue()) and client.queue(), "both jobs")
    assert queue[second].state == queue[third].state == pb.WAITING
    assert queue[second].reason and queue[third].reason
    gate.open()
    assert client.wait(third).state == pb.DONE and other.wait(second).state == pb.DONE
    assert noted(log) == [2, 3]


def test_the_queue_tells_why_a_module_is_not_loaded_yet(lend_gpuqd):
    client = lend_gpuqd(express="no").connect()  # the module would be loaded there
    gate = GateJob(client, client.load(kernels.BASIC))
    gate.wait_for(1)
    source = b'extern "C" __global__ void other() {}'
    load = client.tell(module_load=pb.ModuleLoad(format=pb.SOURCE, image=client.image(source).id, length=len(source), name="other.cu"))

    def reasons():
        return [entry.reason for entry in client.call(queue_get=pb.QueueGet()).queue.modules]

    until(lambda: reasons() == ["it is loaded once the running jobs have ended"], "the reason")
    assert client.queue()[gate.id].reason == ""  # it runs
    client.cancel(gate.id)  # what opens the gate would wait, too
    assert client.wait(gate.id).state == pb.CANCELLED
    client.answer(load)


def test_a_dependency_that_is_done_already_does_not_hold(client, module):
    first = client.submit(Job().launch(module, "nothing"))
    client.wait(first)
    client.run_well(Job(after=[first]).launch(module, "nothing"))


def test_a_cancelled_dependency_ends_those_behind_it(gpuqd, client, module):
    gate = GateJob(client, module)
    second = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    third = client.submit(Job(after=[second]).launch(module, "nothing"))
    client.cancel(second)
    assert_failed(client.wait(second), pb.E_CANCELLED)
    assert_failed(client.wait(third), pb.E_DEPENDENCY)
    gate.open()


def test_the_end_of_a_session_ends_those_behind_its_jobs(gpuqd, client, module):
    gate = GateJob(client, module)
    other = gpuqd.connect()
    until(lambda: gate.id in other.queue(), "the gate")
    theirs = other.submit(Job(after=[gate.id]).launch(other.load(kernels.BASIC), "nothing"))
    until(lambda: theirs in client.queue(), "their job")
    mine = client.submit(Job(after=[theirs]).launch(module, "nothing"))
    until(lambda: mine in client.queue(), "the job to wait")
    other.close()
    assert_failed(client.wait(mine), pb.E_DEPENDENCY)
    gate.open()


# ---- priorities ----

def test_higher_priority_goes_first(start_gpuqd):
    daemon = start_gpuqd(inflight_jobs=1, express="no")
    client = daemon.connect()
    module = client.load(kernels.BASIC)
    log = client.device_arena(400)
    client.run_well(Job().launch(module, "nothing"))
    others = [(other, other.load(kernels.BASIC), other.open_arena(log.id)) for other in (daemon.connect() for _ in range(5))]
    ids = {}
    with processes.stopped(*daemon.workers()):  # with one job in flight nobody could open a gate
        blocker = client.submit(Job().launch(module, "nothing"))
        until(lambda: client.queue()[blocker].state == pb.RUNNING, "it to be in the worker")
        for mark, (other, their_module, their_log) in enumerate(others):
            ids[mark] = other.submit(note_job(their_module, their_log, mark, priority=10 * mark))
        until(lambda: {blocker, *ids.values()} == set(client.queue()), "all to be there")
    for mark, (other, _module, _log) in enumerate(others):
        assert other.wait(ids[mark]).state == pb.DONE
    client.wait(blocker)
    back = client.arena(400)
    client.run_well(Job().copy(back, log, 400))
    assert noted(back) == [4, 3, 2, 1, 0]


# ---- cancel, wait, timeout ----

def test_cancel_a_waiting_job(gpuqd, client, module):
    gate = GateJob(client, module)
    waiting = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    cancelled = client.cancel(waiting, 987654321, gate.id + 1000)
    assert list(cancelled.ids) == [waiting] and len(cancelled.unknown) == 2 and not cancelled.denied
    assert_failed(client.wait(waiting), pb.E_CANCELLED)
    gate.open()
    assert client.wait(gate.id).state == pb.DONE


def test_cancel_a_running_job(client, module):
    endless = client.submit(Job().launch(module, "forever", [Out(client.arena(4))]))
    until(lambda: client.queue()[endless].state == pb.RUNNING, "it to run")
    client.cancel(endless)
    assert_failed(client.wait(endless), pb.E_CANCELLED)
    client.run_well(Job().launch(module, "nothing"))


def test_cancelling_a_job_behind_another_costs_nobody_else(gpuqd, client, module):
    """Neither of the others may run twice: once, the worker was stopped for the cancelled one, and both were lost."""
    gate, log = GateJob(client, module), client.device_arena(40)
    # In one message: were the first one known to be long, the others would not be sent behind it.
    first, second, third = client.submit(gate_job(module, gate).launch(module, "note", [InOut(log), i32(1)]),
                                         note_job(module, log, 2), note_job(module, log, 3))
    until(lambda: all(client.queue()[job].state == pb.RUNNING for job in (first, second, third)), "all to be in flight")
    client.cancel(second)
    time.sleep(0.3)  # what must not happen has no event: it took 50 ms
    gate.open()  # its job must get past four that were thought to be short
    assert client.wait(first).state == pb.DONE
    assert client.wait(second).state in (pb.DONE, pb.CANCELLED)
    assert client.wait(third).state == pb.DONE


def test_cancel_all_of_this_user(gpuqd, client, module):
    other = gpuqd.connect()
    their_module = other.load(kernels.BASIC)
    endless = client.submit(Job().launch(module, "forever", [Out(client.arena(4))]))
    until(lambda: endless in other.queue(), "it to be known")
    waiting = [other.submit(Job(after=[endless]).launch(their_module, "nothing")) for _ in range(3)]
    until(lambda: len(client.queue()) == 4, "four jobs")
    cancelled = gpuqd.connect().cancel(all=True)
    assert set(cancelled.ids) == {endless, *waiting}
    assert client.wait(endless).state == pb.CANCELLED
    assert all(other.wait(job).state in (pb.CANCELLED, pb.FAILED) for job in waiting)
    until(lambda: not client.queue(), "an empty queue")


def test_cancel_an_ended_job(client, module):
    job = client.submit(Job().launch(module, "nothing"))
    client.wait(job)
    cancelled = client.cancel(job)
    assert not cancelled.ids and list(cancelled.unknown) == [job]


def test_the_status_counts_how_jobs_ended(client, module):
    def ended():
        (user,) = client.status().users
        return numpy.array([user.done, user.failed, user.cancelled])

    before = ended()
    for _ in range(3):
        client.run_well(Job().launch(module, "nothing"))
    assert_failed(client.run(Job().launch(module, "no_such_kernel")), pb.E_NOT_FOUND)
    gate = GateJob(client, module)
    waiting = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    client.cancel(waiting)
    assert client.wait(waiting).state == pb.CANCELLED
    gate.open()
    assert client.wait(gate.id).state == pb.DONE
    assert (ended() - before).tolist() == [5, 1, 1]  # the gate is opened by a job too


def test_timeout_counts_from_the_start(client, module):
    endless = client.submit(Job(timeout_ms=500).launch(module, "forever", [Out(client.arena(4))]))
    completion = client.wait(endless)
    assert_failed(completion, pb.E_TIMEOUT, "forever")
    assert completion.ran_us >= 400_000
    client.run_well(Job().launch(module, "nothing"))


def test_a_default_timeout(start_gpuqd):
    client = start_gpuqd(job_timeout_s=1).connect()
    module = client.load(kernels.BASIC)
    assert_failed(client.run(Job().launch(module, "forever", [Out(client.arena(4))])), pb.E_TIMEOUT)


def test_waiting_for_a_job_of_another_process(gpuqd, client, module):
    other = gpuqd.connect()
    gate = GateJob(client, module)
    until(lambda: gate.id in other.queue(), "the gate")
    serial = other.tell(wait=pb.Wait(id=gate.id))
    gate.open()
    reply, _fds = other.answer(serial)
    assert [c.id for c in reply.completions.completions] == [gate.id]
    assert reply.completions.completions[0].state == pb.DONE
    # ... also when it has ended already.
    reply, _fds = other.answer(other.tell(wait=pb.Wait(id=gate.id)))
    assert reply.completions.completions[0].state == pb.DONE


def test_waiting_for_an_unknown_job(client):
    with pytest.raises(Refused) as refused:
        client.call(wait=pb.Wait(id=4242 << 32 | 1))
    assert refused.value.code == pb.E_NOT_FOUND


# ---- the queue ----

def test_the_queue_says_what_runs_and_why_others_wait(gpuqd, client, module):
    gate = GateJob(client, module, label="the gate", priority=3)
    waiting = client.submit(Job(after=[gate.id], label="behind").launch(module, "add_one", [
        InOut(client.arena(4)), u64(1)]))
    until(lambda: client.queue()[gate.id].state == pb.RUNNING, "the gate to run")
    entry, behind = client.queue()[gate.id], client.queue()[waiting]
    assert entry.label == "the gate" and entry.kernel == "gate" and entry.priority == 3
    assert entry.device == 1 and entry.uid == client.welcome.uid and entry.user
    assert behind.state == pb.WAITING and behind.kernel == "add_one" and behind.label == "behind"
    assert behind.reason
    status = client.status()
    assert (status.running, status.queued) == (1, 1)
    gate.open()
    client.wait(waiting)
    until(lambda: not client.queue(), "an empty queue")


def test_a_client_that_leaves_takes_its_jobs_along(gpuqd, client):
    leaver = gpuqd.connect()
    module = leaver.load(kernels.BASIC)
    endless = leaver.submit(Job().launch(module, "forever", [Out(leaver.arena(4))]))
    waiting = leaver.submit(Job(after=[endless]).launch(module, "nothing"))
    until(lambda: {endless, waiting} <= set(client.queue()), "both jobs")
    leaver.close()
    until(lambda: not client.queue(), "an empty queue")
    until(lambda: client.status().users[0].arena_bytes == 0, "its memory to come back")
    assert client.status().users[0].sessions == 1
