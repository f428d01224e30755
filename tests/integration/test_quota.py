# SPDX-License-Identifier: Apache-2.0
"""Limits of a user: over one, that request fails and nothing else does."""

import os
import selectors

import numpy
import pytest

from harness import kernels, place, processes
from harness.client import HEADER, Job, Refused
from harness.kernels import GateJob, copy_job
from harness.messages import pb
from harness.patience import until


def assert_works(client):
    module = client.builtin()
    assert client.run(Job().launch(module, "sum_f64")).error.code == pb.E_INVALID


def refused(call, *args, **kwargs):
    with pytest.raises(Refused) as caught:
        call(*args, **kwargs)
    assert caught.value.code == pb.E_QUOTA, caught.value
    assert caught.value.text
    return caught.value.text


def test_sessions(start_gpuqd):
    daemon = start_gpuqd(sessions=3)
    first = daemon.connect()
    until(lambda: sum(user.sessions for user in first.status().users) == 1, "the start-up's session to be gone")
    others = [daemon.connect() for _ in range(2)]
    refused(daemon.connect)
    assert_works(first)
    others[0].close()
    until(lambda: first.status().users[0].sessions == 2, "one session to end")
    assert_works(daemon.connect())


def test_jobs(start_gpuqd):
    daemon = start_gpuqd(jobs=5)
    client = daemon.connect()
    module = client.load(kernels.BASIC)
    gate = GateJob(client, module)
    waiting = [client.submit(Job(after=[gate.id]).launch(module, "nothing")) for _ in range(4)]
    over = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    assert client.wait(over).error.code == pb.E_QUOTA
    client.cancel(waiting.pop())
    gate.open()
    assert all(client.wait(job).state == pb.DONE for job in waiting)
    client.run_well(Job().launch(module, "nothing"))


def test_jobs_count_for_all_sessions_of_a_user_together(start_gpuqd):
    daemon = start_gpuqd(jobs=4)
    client, other = daemon.connect(), daemon.connect()
    module, theirs = client.load(kernels.BASIC), other.load(kernels.BASIC)
    gate = GateJob(client, module)
    mine = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    until(lambda: mine in other.queue(), "both of the first session")
    others = other.submit(*[Job(after=[gate.id]).launch(theirs, "nothing") for _ in range(3)])
    assert other.wait(others[2]).error.code == pb.E_QUOTA
    client.cancel(mine)
    gate.open()
    assert other.wait(others[0]).state == other.wait(others[1]).state == pb.DONE


def test_arena_bytes(start_gpuqd):
    client = start_gpuqd(arena_bytes=1 << 20).connect()
    first = client.arena(1 << 19)
    second = client.arena(1 << 19)
    refused(client.arena, 4096)
    refused(client.arena, 4096, pb.IMAGE)
    assert_works(client)
    first.close()
    client.arena(1 << 18)
    assert second.map[:1] == b"\0"


@pytest.mark.root
def test_arena_bytes_of_all_users_are_divided(start_gpuqd):
    """One user gets seven sixteenths at most, the next one half of that: nobody takes the last of it."""
    service = start_gpuqd(private=False, arenas_bytes=64 << 20, arena_bytes=1 << 30)
    alice, bob = service.connect(uid=12345), service.connect(uid=12346)
    alice.arena(28 << 20)
    assert "too few bytes of host memory are left" in refused(alice.arena, 1 << 20)
    bob.arena(14 << 20)
    refused(bob.arena, 1 << 20)
    late = service.connect(uid=12347)
    late.arena(128 << 10)
    assert_works(alice)


def test_a_private_daemon_divides_no_arena_bytes(start_gpuqd):
    client = start_gpuqd(arenas_bytes=1 << 20, arena_bytes=1 << 30).connect()
    client.arena(8 << 20)


def test_device_bytes(start_gpuqd):
    client = start_gpuqd(device_bytes=8 << 20).connect()
    arena = client.device_arena(6 << 20)
    refused(client.device_arena, 6 << 20)
    client.run_well(Job().fill(arena, 16, 1))
    arena.close()
    until(lambda: client.status().users[0].device_bytes == 0, "the charge to come back")
    client.device_arena(6 << 20)


def test_modules(start_gpuqd):
    client = start_gpuqd(modules=2).connect()
    modules = [client.load(kernels.BASIC) for _ in range(2)]
    refused(client.load, kernels.BASIC)
    client.run_well(Job().launch(modules[0], "nothing"))
    client.tell(module_unload=pb.ModuleUnload(module=modules[0].module))
    until(lambda: client.status().users[0].modules < 2, "the charge to come back")
    client.load(kernels.BASIC)


def test_gpu_seconds(start_gpuqd):
    daemon = start_gpuqd(gpu_seconds=1)
    client = daemon.connect()
    module = client.load(kernels.BASIC)
    job = Job(timeout_ms=2500).launch(module, "forever", [kernels.Out(client.arena(4))])
    assert client.run(job).error.code == pb.E_TIMEOUT
    completion = client.run(Job().launch(module, "nothing"))
    assert completion.state == pb.FAILED and completion.error.code == pb.E_QUOTA


def test_jobs_that_wait_are_held_over_gpu_seconds(start_gpuqd):
    """What was accepted is not refused later: it says why it waits, and goes on when there is room."""
    daemon = start_gpuqd(gpu_seconds=1, gpu_window_s=86400, inflight_jobs=1, express="no")
    client = daemon.connect()
    module = client.load(kernels.BASIC)
    long, waiting = client.submit(Job(timeout_ms=2500).launch(module, "forever", [kernels.Out(client.arena(4))]),
                                  Job().launch(module, "nothing"))
    assert client.wait(long).error.code == pb.E_TIMEOUT
    until(lambda: "over the limit gpu_seconds" in client.queue()[waiting].reason, "another worker, and it to be held")
    (user,) = client.status().users
    assert 2 < user.window_seconds and 2 < user.usage_seconds
    daemon.write_config(gpu_seconds=1000)
    daemon.reload()
    assert client.wait(waiting).state == pb.DONE


def test_a_users_section_overrides_the_common_limits(start_gpuqd):
    import pwd
    name = pwd.getpwuid(os.geteuid()).pw_name
    daemon = start_gpuqd(modules=1, config=f"[user {name}]\nmodules = 3\n")
    client = daemon.connect()
    for _ in range(3):
        client.load(kernels.BASIC)
    refused(client.load, kernels.BASIC)


def test_a_new_limit_counts_after_a_reload(start_gpuqd):
    daemon = start_gpuqd(modules=1)
    client = daemon.connect()
    first = client.load(kernels.BASIC)
    refused(client.load, kernels.BASIC)
    daemon.write_config(modules=5)
    daemon.reload()

    def loads():
        try:
            return client.load(kernels.BASIC)
        except Refused:
            return None

    until(loads, "the new limit to count")
    source = client.array(numpy.arange(4, dtype=numpy.int32))
    client.run_well(copy_job(first, source, client.arena(16), 4))


def assert_ended(client):
    """With E_QUOTA as the last word."""
    reply = client.receive()[0]
    assert reply.serial == 0 and reply.error.code == pb.E_QUOTA and "64 MiB" in reply.error.text
    assert client.assert_closed() == []


def test_memory_of_half_sent_messages(start_gpuqd):
    """Each connection may hold a frame of 4 MiB but for its last byte; all of a user's together, 64 MiB."""
    daemon = start_gpuqd()
    bystander = daemon.connect()
    before = processes.resident_bytes(daemon.supervisor())
    frame = HEADER.pack(4 << 20, 0, b"\0\0\0") + bytes((4 << 20) - 1)
    held = []
    for _ in range(60):
        client = daemon.connect()
        held.append(client)
        try:
            client.send_bytes(frame)
        except (BrokenPipeError, ConnectionResetError):  # which of them, the moment decides
            pass
    with selectors.DefaultSelector() as talking:  # those that are not ended say nothing
        for client in held:
            talking.register(client.socket, selectors.EVENT_READ, client)
        for _ in range(60 - 16):
            key, _event = talking.select(place.PATIENCE_S)[0]
            talking.unregister(key.fileobj)
            assert_ended(key.data)
    if not place.SANITIZED:  # a sanitizer keeps freed memory
        assert processes.resident_bytes(daemon.supervisor()) - before < 96 << 20
    assert "unfinished messages" in daemon.log()
    assert_works(bystander)
