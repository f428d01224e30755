# SPDX-License-Identifier: Apache-2.0
"""Two devices: the one named, the one where the data is, the one with least to do; and memory of both."""

import numpy
import pytest

from harness import kernels, place
from harness.client import In, InOut, Job, Out, Refused, u64
from harness.direct import DirectClient
from harness.kernels import GateJob, copy_job
from harness.messages import pb
from harness.patience import until

pytestmark = pytest.mark.skipif(place.on_gpu() and place.n_gpus() != 2, reason="needs a machine with two GPUs")


@pytest.fixture
def gpuqd(lend_gpuqd):
    return lend_gpuqd(devices=None) if place.on_gpu() else lend_gpuqd(cpu_devices=2)


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def test_both_are_there(client):
    assert client.welcome.n_devices == 2
    devices = client.status().devices
    assert [device.index for device in devices] == [0, 1]
    assert devices[0].uuid != devices[1].uuid
    assert all(device.state == "ready" and device.memory_total for device in devices)


@pytest.mark.parametrize("device", [0, 1])
def test_a_job_runs_where_it_says(client, module, device):
    source, target = client.array(numpy.arange(8, dtype=numpy.int32)), client.arena(32)
    completion = client.run_well(copy_job(module, source, target, 8, device=device + 1))
    assert completion.device == device
    assert target.array(numpy.int32).tolist() == list(range(8))


@pytest.mark.parametrize("number", [3, 4096, 4097, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1])
def test_a_number_of_no_device(client, module, number):
    completion = client.run(Job(device=number).launch(module, "nothing"))
    assert completion.state == pb.FAILED and completion.error.code == pb.E_NOT_FOUND


def test_a_device_that_is_not_there(client, module):
    completion = client.run(Job(device=3).launch(module, "nothing"))
    assert completion.error.code in (pb.E_NOT_FOUND, pb.E_INVALID)
    with pytest.raises(Refused) as refused:
        client.device_arena(4096, 2)
    assert refused.value.code in (pb.E_NOT_FOUND, pb.E_INVALID)


@pytest.mark.parametrize("device", [0, 1])
def test_a_job_goes_where_its_device_buffers_are(client, module, device):
    arena = client.device_arena(400, device)
    assert arena.device == device
    for _ in range(3):
        completion = client.run_well(Job().launch(module, "add_one", [InOut(arena), u64(100)], 1, 128))
        assert completion.device == device
    host = client.arena(400)
    assert client.run_well(Job().copy(host, arena, 400)).device == device
    assert set(host.array(numpy.int32)) == {3}


def test_devices_that_a_user_may_use(start_gpuqd):
    config = "[gpuqd]\ndevices = 1\n[user 23456]\ndevices = 0,1\n[user 23457]\ndevices = 7\n"
    daemon = start_gpuqd(private=False, cpu_devices=2, devices=None, config=config)
    bob = daemon.connect(uid=23458)
    module = bob.load(kernels.BASIC)
    for _ in range(5):  # the device with least to do would be 0 now and then
        assert bob.run_well(Job().launch(module, "nothing")).device == 1
    refused = bob.run(Job(device=1).launch(module, "nothing")).error
    assert refused.code == pb.E_DENIED
    assert refused.text == "user 23458 may not use device 0: gpuqd.conf allows device 1 (key devices)"
    with pytest.raises(Refused) as caught:
        bob.device_arena(4096, 0)
    assert caught.value.code == pb.E_DENIED

    alice = daemon.connect(uid=23456)
    module = alice.load(kernels.BASIC)
    assert {alice.run_well(Job(device=n + 1).launch(module, "nothing")).device for n in (0, 1)} == {0, 1}

    with pytest.raises(Refused) as caught:
        daemon.connect(uid=23457).load(kernels.BASIC)
    assert caught.value.text.endswith("gpuqd.conf allows user 23457 device 7 only, which this machine does not have; "
                                      "ask its administrator")


def test_device_memory_of_a_session_is_together_and_sessions_are_divided(own_gpuqd):
    clients = [own_gpuqd.connect() for _ in range(6)]
    homes = [{client.device_arena(4096).device for _ in range(3)} for client in clients]
    assert all(len(home) == 1 for home in homes)
    assert sorted(home.pop() for home in homes) == [0, 0, 0, 1, 1, 1]


def test_device_memory_goes_where_there_is_some_already(own_gpuqd):
    first, second = own_gpuqd.connect(), own_gpuqd.connect()
    named = first.device_arena(4096, 1)
    second.open_arena(named.id)
    assert first.device_arena(4096).device == second.device_arena(4096).device == 1


def test_sessions_of_others_send_nobody_elsewhere(start_gpuqd):
    daemon = start_gpuqd(private=False, cpu_devices=2, devices=None)
    for _ in range(5):
        assert daemon.connect(uid=23456).device_arena(4096, 0).device == 0
    bob = daemon.connect(uid=23457)
    bob.run_well(Job(device=1).launch(bob.load(kernels.BASIC), "nothing"))
    assert bob.device_arena(4096).device == 0  # where the worker is


def test_the_place_of_a_session_that_has_gone_is_taken_again(own_gpuqd):
    first, second = own_gpuqd.connect(), own_gpuqd.connect()
    assert (first.device_arena(4096).device, second.device_arena(4096).device) == (0, 1)
    first.close()
    until(lambda: own_gpuqd.connect().device_arena(4096).device == 0, "the place to be free")


def test_a_session_moves_from_a_device_that_is_drained(own_gpuqd):
    client = own_gpuqd.connect()
    assert client.device_arena(4096).device == 0
    own_gpuqd.run("drain", 0)
    assert [client.device_arena(4096).device for _ in range(2)] == [1, 1]


# ---- jobs with memory of both devices ----

@pytest.fixture
def both(client, module):
    """An array of 1 to 1024 on device 0, zeros on device 1."""
    host = client.array(numpy.arange(1, 1025, dtype=numpy.int32))
    first, second = client.device_arena(4096, 0), client.device_arena(4096, 1)
    client.run_well(Job().copy(first, host, 4096))
    if client.run(Job().copy(second, first, 4096)).state != pb.DONE:
        pytest.skip("the devices cannot access each other's memory")
    client.run_well(Job().fill(second, 4096, 0))
    return first, second


def numbers(client, arena):
    host = client.arena(4096)
    client.run_well(Job().copy(host, arena, 4096))
    return host.array(numpy.int32)


def test_data_is_copied_from_device_to_device_on_the_one_it_goes_to(client, both):
    first, second = both
    assert client.run_well(Job().copy(second, first, 4096)).device == 1
    assert numbers(client, second).tolist() == list(range(1, 1025))
    client.run_well(Job().fill(first, 4096, 0))
    assert client.run_well(Job().copy(first, second, 4096)).device == 0
    assert numbers(client, first).tolist() == list(range(1, 1025))


def test_a_kernel_runs_where_it_writes_and_reads_the_other_device(client, module, both):
    first, second = both
    job = Job().launch(module, "copy", [In(first), Out(second), u64(1024)], 8, 128)
    assert client.run_well(job).device == 1
    assert numbers(client, second).tolist() == list(range(1, 1025))


def test_a_job_that_names_a_device_runs_there(client, module, both):
    first, second = both
    assert client.run_well(Job(device=1).copy(second, first, 4096)).device == 0
    assert numbers(client, second).tolist() == list(range(1, 1025))
    assert client.run_well(Job(device=1).launch(module, "add_one", [InOut(second), u64(1024)], 8, 128)).device == 0
    assert numbers(client, second).tolist() == list(range(2, 1026))


def test_what_both_devices_do_with_the_same_memory_keeps_its_order(client, module, both):
    first, second = both
    ids = client.submit(*[job for _ in range(20) for job in (
        Job(device=1).launch(module, "add_one", [InOut(first), u64(1024)], 8, 128),
        Job().copy(second, first, 4096),
        Job(device=2).launch(module, "add_one", [InOut(first), u64(1024)], 8, 128))])
    assert all(client.wait(job).state == pb.DONE for job in ids)
    assert numbers(client, first).tolist() == list(range(41, 1065))
    assert numbers(client, second).tolist() == list(range(40, 1064))


def test_memory_of_another_device_outlives_its_worker(client, module, both):
    first, second = both
    bad = client.run(Job(device=1).launch(module, "wild", [InOut(client.arena(4)), u64(kernels.FAR)]))
    assert bad.error.code == pb.E_FAULT and bad.device == 0
    assert client.run_well(Job().copy(second, first, 4096)).device == 1
    assert numbers(client, second).tolist() == list(range(1, 1025))


def test_the_least_loaded_device_is_chosen(gpuqd, client, module):
    for device in (1, 2):  # both warm: otherwise the start of a worker counts too
        client.run_well(Job(device=device).launch(module, "nothing"))
    gate = GateJob(client, module, device=1)
    until(lambda: client.queue()[gate.id].state == pb.RUNNING, "the gate to run")
    source, target = client.array(numpy.arange(8, dtype=numpy.int32)), client.arena(32)
    assert client.run_well(copy_job(module, source, target, 8)).device == 1
    gate.open()


def test_long_jobs_that_nobody_knows_to_be_long_are_divided(own_gpuqd):
    client = own_gpuqd.connect()
    module = client.load(kernels.BASIC)
    ids = [client.submit(Job().launch(module, "forever", [Out(client.arena(4))])) for _ in range(3)]
    until(lambda: all(client.queue()[job].state == pb.RUNNING for job in ids), "all of them to run")
    client.cancel(*ids)
    assert {client.wait(job).device for job in ids} == {0, 1}


# ---- jobs whose data are on a device that has much to do ----

def with_data_on_the_first(client):
    """A module, both workers with it, and an array of 0 to 1023 on device 0."""
    module = client.load(kernels.BASIC)
    for device in (1, 2):
        client.run_well(copy_job(module, client.arena(4), client.arena(4), 1, device=device))
    data = client.device_arena(4096, 0)
    client.run_well(Job().copy(data, client.array(numpy.arange(1024, dtype=numpy.int32)), 4096))
    return module, data


def where_it_is_copied(client, module, data, **fields):
    """The device on which a job copies the array to host memory."""
    target = client.arena(4096)
    completion = client.run_well(copy_job(module, data, target, 1024, **fields))
    assert target.array(numpy.int32).tolist() == list(range(1024))
    return completion.device


def hold(client, module, device):
    gate = GateJob(client, module, device=device + 1)
    gate.wait_for()
    return gate


def test_a_job_stays_with_its_data_while_little_waits_there(own_gpuqd):
    client = own_gpuqd.connect()
    module, data = with_data_on_the_first(client)
    assert {where_it_is_copied(client, module, data) for _ in range(10)} == {0}


def test_a_job_leaves_its_data_if_its_device_is_busy_for_long(own_gpuqd):
    client = own_gpuqd.connect()
    module, data = with_data_on_the_first(client)
    gate = hold(client, module, 0)
    assert where_it_is_copied(client, module, data) == 1
    assert where_it_is_copied(client, module, data, device=1) == 0  # which it names

    # The job writes to its data on the other device, where later jobs read it.
    assert client.run_well(Job().launch(module, "add_one", [InOut(data), u64(1024)], 8, 128)).device == 1
    gate.open()
    assert client.wait(gate.id).state == pb.DONE
    host = client.arena(4096)
    assert client.run_well(Job().copy(host, data, 4096)).device == 0
    assert host.array(numpy.int32).tolist() == list(range(1, 1025))


def test_a_job_stays_with_its_data_if_the_other_device_is_as_busy(own_gpuqd):
    client = own_gpuqd.connect()
    module, data = with_data_on_the_first(client)
    gates = [hold(client, module, device) for device in (1, 0)]
    assert where_it_is_copied(client, module, data) == 0
    for gate in gates:
        gate.open()


@pytest.mark.root
def test_a_job_leaves_its_data_if_another_user_holds_the_device(start_gpuqd):
    daemon = start_gpuqd(private=False, cpu_devices=2, devices=None)
    alice, bob = daemon.connect(uid=23456), daemon.connect(uid=23457)
    module, data = with_data_on_the_first(alice)
    bobs = bob.load(kernels.BASIC)
    gate = hold(bob, bobs, 0)
    queue = [bob.submit(Job(device=1, after=[gate.id]).launch(bobs, "nothing")) for _ in range(10)]
    assert where_it_is_copied(alice, module, data) == 1
    gate.open()
    assert all(bob.wait(job).state == pb.DONE for job in queue)


def test_jobs_in_order_on_both_devices_end_in_order(own_gpuqd):
    client = own_gpuqd.connect()
    module, data = with_data_on_the_first(client)
    gate = hold(client, module, 0)
    add = Job().launch(module, "add_one", [InOut(data), u64(1024)], 8, 128)
    add_there = Job(device=1).launch(module, "add_one", [InOut(data), u64(1024)], 8, 128)
    ids = client.submit(*[job for _ in range(20) for job in (add, add_there, add)])
    assert all(client.wait(job).state == pb.DONE for job in ids)
    gate.open()
    host = client.arena(4096)
    client.run_well(Job().copy(host, data, 4096))
    assert host.array(numpy.int32).tolist() == list(range(60, 1084))


def test_order_holds_across_devices(client, module):
    data = client.array(numpy.zeros(16, numpy.int32))
    ids = client.submit(*[Job(device=1 + i % 2).launch(module, "add_one", [InOut(data), u64(16)], 1, 16)
                          for i in range(20)])
    assert all(client.wait(job).state == pb.DONE for job in ids)
    assert set(data.array(numpy.int32)) == {20}


def test_a_dependency_across_devices(client, module):
    data, out = client.array(numpy.ones(16, numpy.int32)), client.arena(64)
    first = client.submit(Job(device=1).launch(module, "add_one", [InOut(data), u64(16)], 1, 16))
    client.run_well(Job(device=2, after=[first]).launch(module, "copy", [In(data), Out(out), u64(16)], 1, 16))
    assert set(out.array(numpy.int32)) == {2}


def test_a_fault_on_one_device_is_not_felt_on_the_other(client, module):
    kept = client.device_arena(4096, 1)
    client.run_well(Job().fill(kept, 4096, 0x11))
    bad = client.run(Job(device=1).launch(module, "wild", [InOut(client.arena(4)), u64(kernels.FAR)]))
    assert bad.error.code == pb.E_FAULT and bad.device == 0
    workers = {worker.device: worker for worker in client.status().workers}
    assert 1 in workers
    host = client.arena(4096)
    client.run_well(Job().copy(host, kept, 4096))
    assert host.map[:] == b"\x11" * 4096


def test_variables_of_each_device_are_one_instance(client):
    """A session has one instance of a module's variables; jobs on it keep to one device or are told."""
    from test_modules import VARIABLES
    module = client.load(VARIABLES)
    outs = [client.arena(4) for _ in range(6)]
    for out in outs:
        client.run_well(Job().launch(module, "count", [Out(out)]))
    assert [out.array(numpy.int32)[0] for out in outs] == [6, 7, 8, 9, 10, 11]


@pytest.fixture
def own_gpuqd(start_gpuqd):
    """What is drained is drained for all."""
    return start_gpuqd(devices=None) if place.on_gpu() else start_gpuqd(cpu_devices=2)


def test_work_goes_to_the_other_while_one_is_drained(own_gpuqd):
    client = own_gpuqd.connect()
    module = client.load(kernels.BASIC)
    kept, back = client.device_arena(32, 0), client.arena(32)
    client.run_well(Job().fill(kept, 32, 0x11))

    assert own_gpuqd.run("drain", "--reason", "a new fan", 0).stdout == "device 0 is drained\n"
    waiting = client.submit(Job().copy(back, kept, 32))
    until(lambda: "a new fan" in client.queue()[waiting].reason, "it to wait for the device its data is on")
    for _ in range(4):
        source, target = client.array(numpy.arange(8, dtype=numpy.int32)), client.arena(32)
        assert client.run_well(copy_job(module, source, target, 8)).device == 1
        assert target.array(numpy.int32).tolist() == list(range(8))

    assert own_gpuqd.run("resume", 0).stdout == "device 0 accepts jobs again\n"
    assert client.wait(waiting).state == pb.DONE and client.completions[waiting].device == 0
    assert back.map[:] == b"\x11" * 32


def test_a_ring_may_be_lent_where_its_user_never_had_a_job(gpuqd):
    """There is a worker, as there is memory; and prepared jobs of both devices."""
    client = DirectClient(gpuqd.socket)
    gpuqd.clients.append(client)
    supervisor = gpuqd.supervisor()
    client.device_arena(4096, device=1)
    source, target = client.arena(4096), client.arena(4096)
    here = client.prepare(Job(device=1, timed=True).copy(target, source, 4096))
    client.prepare(Job(device=2).copy(target, source, 4096))
    for _ in range(20):
        client.wait(client.fire(64, prepared=here))
    assert gpuqd.supervisor() == supervisor
    client.try_end()
    client.run_well(Job(device=2).copy(target, source, 4096))


def test_rings_of_two_sessions_are_lent_to_both_devices(own_gpuqd):
    """Their data is in host memory, which both devices can work on."""
    clients = [DirectClient(own_gpuqd.socket) for _ in range(2)]
    own_gpuqd.clients.extend(clients)
    here = clients[0]
    source, target = here.arena(4096), here.arena(4096)
    for device in (1, 2):  # a worker on each
        here.run_well(Job(device=device).copy(target, source, 4096))
    for client in clients:
        source, target = client.arena(4096), client.arena(4096)
        client.increment = client.prepare(Job().copy(target, source, 4096))
        client.until_lent()
    witness = own_gpuqd.connect()

    def where():
        return {worker.device for worker in witness.status().workers if worker.counters.direct}

    until(lambda: where() == {0, 1}, "a worker of each device to take jobs by itself")
