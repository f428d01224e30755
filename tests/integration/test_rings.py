# SPDX-License-Identifier: Apache-2.0
"""Messages through shared memory: the same answers as by the socket, whoever reads, sleeps, dies or lies."""

import os
import random
import signal

import numpy
import pytest

from harness import place, processes
from harness.client import HEADER, Closed, In, Job, Out, Refused, u64
from harness.messages import pb
from harness.patience import until
from harness.ring import DATA, HEAD, SLEEPING, TAIL, WAITING, RingClient

N = 100


@pytest.fixture
def polling(lend_gpuqd):
    return lend_gpuqd(poll_us=200)


def sum_job(client, module):
    values = client.array(numpy.arange(N, dtype=numpy.float64))
    out = client.arena(8)
    return Job().launch(module, "sum_f64", [In(values), Out(out), u64(N)], 1, 64), out


def run_sum(client, module):
    job, out = sum_job(client, module)
    client.run_well(job)
    assert out.array(numpy.float64)[0] == N * (N - 1) / 2


@pytest.fixture
def bystander(polling):
    """Somebody whose session must go on, whatever the test does beside it: by a ring, too."""
    client = RingClient(polling.socket)
    polling.clients.append(client)
    module = client.builtin()
    yield client
    run_sum(client, module)


def n_rings(daemon):
    """That the supervisor has mapped."""
    with open(f"/proc/{daemon.supervisor()}/maps", encoding="ascii") as maps:
        return sum("gpuq-session" in line for line in maps)


def test_everything_goes_by_the_ring(polling):
    client = RingClient(polling.socket)
    module = client.builtin()
    for _ in range(20):
        run_sum(client, module)
    assert client.status().state == "ready"
    with pytest.raises(Refused):
        client.open_arena(1 << 40)


def test_messages_larger_than_the_ring(polling):
    client = RingClient(polling.socket)
    values = client.array(numpy.arange(N, dtype=numpy.float64))
    out = client.arena(8)
    module = client.builtin()
    jobs = [Job().launch(module, "sum_f64", [In(values), Out(out), u64(N)], 1, 64) for _ in range(2000)]
    for job in jobs:
        job.message.label = "x" * 64
    for job_id in client.submit(*jobs):
        assert client.wait(job_id).state == pb.DONE


def test_a_client_of_the_library_has_a_ring_once_it_has_run_some_jobs(polling):
    result = polling.run_program(place.test_program("gpuq-test-client"), "many", timeout=2 * place.PATIENCE_S)
    assert result.returncode == 0, result.stdout + result.stderr
    until(lambda: n_rings(polling) == 0, "rings that go")


@pytest.mark.parametrize("settings", [{"poll_us": 0}, {"poll_us": 200, "rings": "no"}])
def test_no_rings(start_gpuqd, settings):
    daemon = start_gpuqd(**settings)
    client = daemon.connect()
    assert not client.welcome.rings
    with pytest.raises(Refused):
        client.call(ring_open=pb.RingOpen())
    run_sum(client, client.builtin())


def test_a_second_ring_is_refused(polling):
    client = RingClient(polling.socket)
    with pytest.raises(Refused):
        client.call(ring_open=pb.RingOpen())
    assert client.status().state == "ready"


@pytest.mark.parametrize("n_begins", [1, 2])
def test_a_ring_begun_out_of_turn(polling, bystander, n_begins):
    client = polling.connect()
    if n_begins == 2:
        client = RingClient(polling.socket)
    client.tell(ring_begin=pb.RingBegin())
    assert client.assert_closed()[-1].error.code == pb.E_PROTOCOL


def scribble(client, draw):
    """What no client of ours writes: indices, lengths, and bytes that are no frame."""
    kind = draw.randrange(5)
    if kind == 0:
        client.put(client.ours, HEAD, draw.choice([1, 3, 1 << 31, client.capacity + 8, draw.getrandbits(32) | 1]))
    elif kind == 1:
        head = client.get(client.ours, HEAD)
        client.put(client.ours, DATA + head % client.capacity, draw.choice([0xfffffffe, client.capacity, 1 << 31]))
        client.put(client.ours, HEAD, head + 64)
    elif kind == 2:
        client.put(client.theirs, TAIL, draw.choice([1, 1 << 31, client.get(client.theirs, HEAD) + 8]))
        client.tell(status_get=pb.StatusGet())
    elif kind == 3:
        client.send_bytes(draw.randbytes(200))
    else:
        client.socket.sendall(HEADER.pack(2, 0, b"\0\0\0") + b"\x08\x01")
    client.ring_bell()


@pytest.mark.parametrize("seed", range(20))
def test_rubbish_ends_that_session_alone(polling, bystander, seed):
    draw = random.Random(seed)
    client = RingClient(polling.socket)
    scribble(client, draw)
    replies = client.assert_closed()
    assert replies[-1].error.code == pb.E_PROTOCOL, replies


def test_rubbish_without_end_disturbs_nobody(polling, bystander):
    """All words of the shared memory change while the daemon works with it."""
    draw = random.Random(1)
    module = bystander.builtin()
    for _ in range(20):
        client = RingClient(polling.socket)
        for _ in range(200):
            ring = draw.choice([client.theirs, client.ours])
            client.put(ring, draw.choice([HEAD, TAIL, SLEEPING, WAITING, DATA + 4 * draw.randrange(64)]),
                       draw.choice([0, 1, 8, 64, client.capacity, draw.getrandbits(32)]))
            if draw.random() < 0.1:
                client.ring_bell()
        run_sum(bystander, module)
        client.close()
    until(lambda: n_rings(polling) == 1, "rings that go")


def test_one_that_does_not_read(polling, bystander):
    """Its answers fill the ring, then its requests wait; when it reads, all of them come."""
    client = RingClient(polling.socket)
    serials = []
    while len(serials) < 20000 and client.room() > 1024:
        serials.append(client.tell(status_get=pb.StatusGet()))
        if len(serials) % 1000 == 0:
            run_sum(bystander, bystander.builtin())
    run_sum(bystander, bystander.builtin())
    for serial in serials:
        reply, _fds = client.receive()
        assert reply.serial == serial


@pytest.mark.skipif(place.SANITIZED, reason="a sanitizer's own memory")
def test_the_supervisor_with_a_hundred_rings_fits_in_20_mib(polling):
    clients = [RingClient(polling.socket) for _ in range(100)]
    for client in clients:
        nobodys = pb.Cancel(ids=range(1 << 62, (1 << 62) + 500))  # as long as the reply, which says so
        sent = received = 0
        while min(sent, received) < client.capacity:
            reply = client.call(cancel=nobodys)
            assert len(reply.cancelled.unknown) == 500
            received += len(reply.SerializeToString())
            sent += len(nobodys.SerializeToString())
    assert processes.resident_bytes(polling.supervisor()) <= 20 << 20


def test_one_that_is_killed(polling, bystander):
    before = n_rings(polling)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        client = RingClient(polling.socket)
        module = client.builtin()
        job, _out = sum_job(client, module)
        os.write(write_end, b"x")
        while True:
            client.submit(job)
    os.read(read_end, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read_end)
    os.close(write_end)
    until(lambda: n_rings(polling) == before, "a ring that goes")
    until(lambda: sum(user.sessions for user in bystander.status().users) == 1, "a session that goes")


def test_a_hundred_sessions(polling):
    clients = [RingClient(polling.socket) for _ in range(100)]
    modules = [client.builtin() for client in clients]
    jobs = [sum_job(client, module) for client, module in zip(clients, modules)]
    ids = [client.submit(job) for client, (job, _out) in zip(clients, jobs)]
    for client, job_id, (_job, out) in zip(clients, ids, jobs):
        assert client.wait(job_id).state == pb.DONE
        assert out.array(numpy.float64)[0] == N * (N - 1) / 2
    for client in clients:
        client.close()
    until(lambda: n_rings(polling) == 0, "rings that go")


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_idle_rings_keep_nobody_awake(polling):
    clients = [RingClient(polling.socket) for _ in range(100)]
    supervisor = polling.supervisor()
    asleep = lambda: all(client.get(client.ours, SLEEPING) for client in clients)
    until(asleep, "rings at rest")
    with open(f"/proc/{supervisor}/stat", encoding="ascii") as stat:
        until(lambda: stat.seek(0) == 0 and stat.read().rsplit(")", 1)[1].split()[0] == "S", "a supervisor that sleeps")
    before = cpu_ticks(supervisor)
    for _ in range(3):
        assert clients[0].status().state == "ready"
    until(asleep, "rings at rest")
    assert cpu_ticks(supervisor) - before < 50


def test_rings_beyond_what_a_user_may_have(polling):
    clients, n_refused = [], 0
    for _ in range(520):
        try:
            clients.append(RingClient(polling.socket))
        except Refused as refused:
            assert refused.code == pb.E_QUOTA
            n_refused += 1
            break
        except Closed:
            pytest.fail("a session ended")
    assert n_refused == 1 and len(clients) == 512
    clients.pop().close()
    until(lambda: n_rings(polling) == 511, "a ring that goes")
    clients.append(RingClient(polling.socket))
    for client in clients:
        client.close()
