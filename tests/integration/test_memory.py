# SPDX-License-Identifier: Apache-2.0
"""Arenas: whose they are, how long they live, what is in them."""

import os

import numpy
import pytest

from harness import kernels, place
from harness.client import In, InOut, Job, Out, Refused, u64
from harness.kernels import GateJob, copy_job
from harness.messages import pb
from harness.patience import until


def user(client):
    return next(user for user in client.status().users if user.uid == client.welcome.uid)


def read_back(client, arena, n_bytes):
    host = client.arena(n_bytes)
    client.run_well(Job().copy(host, arena, n_bytes))
    return host.map[:]


def test_new_memory_is_zero(client):
    for size in (1, 4096, 1 << 20):
        assert client.arena(size).map[:] == bytes(size)
        assert read_back(client, client.device_arena(size), size) == bytes(size)


def test_device_memory_is_zero_again_for_its_next_owner(client):
    for _ in range(3):
        arena = client.device_arena(1 << 20)
        assert read_back(client, arena, 1 << 20) == bytes(1 << 20)
        client.run_well(Job().fill(arena, 1 << 20, 0xff))
        arena.close()


def test_a_host_arena_is_as_large_as_asked_and_sealed(client):
    import fcntl
    arena = client.arena(5000)
    assert os.fstat(arena.fd).st_size >= 5000
    assert fcntl.fcntl(arena.fd, 1034) & 6 == 6  # F_GET_SEALS: shrink and grow


def test_device_memory_is_kept_between_jobs(client):
    arena = client.device_arena(4000)
    module = client.load(kernels.BASIC)
    for _ in range(5):
        client.run_well(Job().launch(module, "add_one", [InOut(arena), u64(1000)], 8, 128))
    assert numpy.frombuffer(read_back(client, arena, 4000), numpy.int32).tolist() == [5] * 1000


def test_an_arena_opened_by_another_process_outlives_its_maker(gpuqd):
    maker, keeper = gpuqd.connect(), gpuqd.connect()
    host = maker.array(numpy.arange(10, dtype=numpy.int32))
    device = maker.device_arena(40)
    maker.run_well(Job().copy(device, host, 40))
    theirs = keeper.open_arena(host.id), keeper.open_arena(device.id)
    maker.close()
    until(lambda: user(keeper).sessions == 1, "the maker to be gone")
    assert theirs[0].array(numpy.int32).tolist() == list(range(10))
    assert numpy.frombuffer(read_back(keeper, theirs[1], 40), numpy.int32).tolist() == list(range(10))
    assert theirs[1].size >= 40


def test_an_arena_that_nobody_has_open_is_gone(gpuqd):
    maker, other = gpuqd.connect(), gpuqd.connect()
    arena = maker.arena(4096)
    arena.close()
    maker.status()
    with pytest.raises(Refused) as refused:
        other.open_arena(arena.id)
    assert refused.value.code == pb.E_NOT_FOUND


def test_a_job_keeps_what_it_uses(gpuqd, client):
    """Closed while its job waits: the job still finds it."""
    module = client.load(kernels.BASIC)
    gate = GateJob(client, module)
    source, target = client.array(numpy.arange(10, dtype=numpy.int32)), client.device_arena(40)
    job = client.submit(copy_job(module, source, target, 10, after=[gate.id]))
    keeper = gpuqd.connect()
    kept = keeper.open_arena(target.id)
    source.close()
    target.close()
    gate.open()
    assert client.wait(job).state == pb.DONE
    assert numpy.frombuffer(read_back(keeper, kept, 40), numpy.int32).tolist() == list(range(10))


def test_charges_come_back(gpuqd, client):
    arenas = [client.arena(1 << 20) for _ in range(3)] + [client.device_arena(1 << 20)]
    assert user(client).arena_bytes >= 3 << 20 and user(client).device_bytes >= 1 << 20
    for arena in arenas:
        arena.close()
    until(lambda: user(client).arena_bytes == 0 and user(client).device_bytes == 0, "no charge to be left")


def test_closing_twice_or_what_is_not_open_harms_nobody(client):
    arena = client.arena(4096)
    arena.close()
    arena.close()
    client.tell(arena_close=pb.ArenaClose(arena=31337))
    assert client.status().state == "ready" and user(client).arena_bytes == 0


def test_thousands_of_arenas(client):
    arenas = [client.arena(4096) for _ in range(300)]
    for arena in arenas:
        arena.let_go()
    for arena in arenas:
        arena.close()
    until(lambda: user(client).arena_bytes == 0, "no charge to be left")


def test_a_large_buffer(client):
    n = 1 << 26
    source, target = client.arena(4 * n), client.arena(4 * n)
    values = source.array(numpy.int32)
    values[0], values[-1], values[n // 2] = 1, 2, 3
    module = client.load(kernels.BASIC)
    client.run_well(copy_job(module, source, target, n))
    result = target.array(numpy.int32)
    assert (result[0], result[-1], result[n // 2]) == (1, 2, 3)


@pytest.mark.gpu
def test_a_buffer_of_4_gib(client):
    n_bytes = 4 << 30
    host, device = client.arena(n_bytes), client.device_arena(n_bytes)
    values = host.array(numpy.uint64)
    values[0], values[-1] = 0x1234, 0x5678
    client.run_well(Job().copy(device, host, n_bytes))
    client.run_well(Job().fill(device, 8, 9, 4, offset=n_bytes - 8))
    module = client.load(kernels.BASIC)
    client.run_well(Job().launch(module, "add_one", [InOut(device), u64(n_bytes // 4)], n_bytes // 4 // 256, 256))
    client.run_well(Job().copy(host, device, n_bytes))
    assert values[0] == 0x1_0000_1235 and values[-1] == 0xa_0000_000a


def test_memory_beyond_the_machine_is_refused(start_gpuqd):
    client = start_gpuqd(device_bytes=1 << 50, arena_bytes=1 << 50).connect()
    with pytest.raises(Refused) as refused:
        client.device_arena(1 << 45)
    assert refused.value.code in (pb.E_MEMORY, pb.E_QUOTA)
    module = client.load(kernels.BASIC)
    client.run_well(copy_job(module, client.array(numpy.arange(4, dtype=numpy.int32)), client.arena(16), 4))
    assert place.DEVICE


def test_the_client_sees_results_in_the_memory_it_has_mapped(client):
    module = client.load(kernels.BASIC)
    source, target = client.arena(4096), client.arena(4096)
    for step in range(20):
        source.array(numpy.int32)[:] = step
        client.run_well(Job().launch(module, "copy", [In(source), Out(target), u64(1024)], 8, 128))
        assert (target.array(numpy.int32) == step).all()
