# SPDX-License-Identifier: Apache-2.0
"""Clients that break the protocol lose their connection, with a reason, and disturb nobody."""

import contextlib
import os
import platform
import random
import socket
import struct

import numpy
import pytest

from harness.client import HEADER, JOBS_BYTES, JOBS_MAX, Client, Closed, In, Job, Out, Refused, u64
from harness.messages import pb
from harness.patience import until


@pytest.fixture(autouse=True)
def bystander(gpuqd):
    """Somebody whose session must go on, whatever the test does beside it."""
    client = gpuqd.connect()
    module = client.builtin()
    yield client
    values = client.array(numpy.arange(100, dtype=numpy.float64))
    out = client.arena(8)
    client.run_well(Job().launch(module, "sum_f64", [In(values), Out(out), u64(100)], 1, 64))
    assert out.array(numpy.float64)[0] == 4950


def assert_ends(client, code):
    """The connection ends, and the last word says why."""
    replies = client.assert_closed()
    assert replies and replies[-1].error.code == code and replies[-1].error.text
    return replies[-1].error.text


def hello_frame(**fields):
    return pb.Request(serial=1, hello=pb.Hello(**fields)).SerializeToString()


@pytest.mark.parametrize("low, high", [(0, 0), (1000, 2000), (2, 1)])
def test_wrong_version(gpuqd, low, high):
    client = gpuqd.connect(hello=False)
    client.send_frame(hello_frame(version_min=low, version_max=high))
    text = assert_ends(client, pb.E_VERSION)
    assert any(digit in text for digit in "0123456789")


def test_a_range_of_versions_gives_the_newest_common_one(gpuqd):
    client = gpuqd.connect(hello=False)
    assert client.hello(0, 1000).version >= 1


def test_a_message_before_the_handshake(gpuqd):
    client = gpuqd.connect(hello=False)
    client.tell(status_get=pb.StatusGet())
    assert_ends(client, pb.E_PROTOCOL)


def test_a_second_handshake(gpuqd):
    client = gpuqd.connect()
    client.tell(hello=pb.Hello(version_min=1, version_max=1))
    assert_ends(client, pb.E_PROTOCOL)


def test_a_frame_too_long_before_the_handshake(gpuqd):
    client = gpuqd.connect(hello=False)
    client.send_bytes(HEADER.pack(4097, 0, b"\0\0\0"))
    assert_ends(client, pb.E_PROTOCOL)


@pytest.mark.parametrize("length", [(4 << 20) + 1, 0xffffffff])
def test_a_frame_too_long(gpuqd, length):
    client = gpuqd.connect()
    client.send_bytes(HEADER.pack(length, 0, b"\0\0\0"))
    assert_ends(client, pb.E_PROTOCOL)


@pytest.mark.parametrize("data", [b"\x10", HEADER.pack(100, 0, b"\0\0\0"),
                                  HEADER.pack(100, 0, b"\0\0\0") + b"x" * 50])
def test_a_frame_cut_short(gpuqd, data):
    client = gpuqd.connect()
    client.send_bytes(data)
    client.socket.shutdown(socket.SHUT_WR)
    client.assert_closed()


def test_reserved_bytes_that_are_set(gpuqd):
    client = gpuqd.connect()
    client.send_bytes(HEADER.pack(0, 0, b"\0\1\0"))
    assert_ends(client, pb.E_PROTOCOL)


@pytest.mark.parametrize("payload", [b"\xff" * 64, b"\x0a\xff\xff\xff\xff\x0f", random.Random(5).randbytes(200)],
                         ids=["ones", "length", "noise"])
def test_not_protobuf(gpuqd, payload):
    client = gpuqd.connect()
    client.send_frame(payload)
    assert_ends(client, pb.E_PROTOCOL)


def test_not_protobuf_before_the_handshake(gpuqd):
    client = gpuqd.connect(hello=False)
    client.send_frame(b"GET / HTTP/1.1\r\n\r\n")
    assert_ends(client, pb.E_PROTOCOL)


def test_an_empty_request(gpuqd):
    client = gpuqd.connect()
    client.send_frame(b"")
    assert_ends(client, pb.E_PROTOCOL)


def assert_descriptor_refused(client, send, *args):
    """From Linux 6.16 on the kernel refuses it before it is sent, and the client goes on."""
    with open("/dev/null", "rb") as file:
        try:
            send(*args, [file.fileno()])
        except PermissionError:
            client.status()
            return
    assert_ends(client, pb.E_PROTOCOL)


def test_a_descriptor_from_a_client(gpuqd):
    client = gpuqd.connect()
    payload = pb.Request(serial=9, status_get=pb.StatusGet()).SerializeToString()
    assert_descriptor_refused(client, client.send_frame, payload)


def test_a_descriptor_that_no_header_mentions(gpuqd):
    client = gpuqd.connect()
    payload = pb.Request(serial=9, status_get=pb.StatusGet()).SerializeToString()
    assert_descriptor_refused(client, client.send_bytes,
                              HEADER.pack(len(payload), 0, b"\0\0\0") + payload)


@pytest.mark.skipif(tuple(map(int, platform.release().split(".")[:2])) < (6, 16),
                    reason="the kernel hands descriptors on to whoever does not want them")
def test_a_descriptor_that_is_slow_to_close_holds_nobody_up(gpuqd):
    """A TCP socket with SO_LINGER, unsent bytes and a peer that reads nothing: its last close waits."""
    client = gpuqd.connect()
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_connection(server.getsockname()) as slow:
        slow.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                slow.send(bytes(1 << 16))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
        with pytest.raises(PermissionError):
            socket.send_fds(client.socket, [b"x"], [slow.fileno()])
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
    client.status()


def test_operations_that_are_not_protobuf(client):
    job = Job().launch(client.builtin(), "sum_f64")
    message = job.message
    message.operations = b"\xff\xff\xff"
    completion = client.run(message)
    assert completion.state == pb.FAILED and completion.error.code in (pb.E_INVALID, pb.E_PROTOCOL)
    client.status()


def test_a_tag_used_twice(client):
    client.run(Job())
    client.tag -= 1
    client.tell(submit=pb.Submit(jobs=[pb.Job(tag=1)]))
    replies = client.assert_closed()
    assert any(reply.error.code in (pb.E_PROTOCOL, pb.E_INVALID) for reply in replies)


def test_the_most_jobs_in_one_message(client):
    jobs = [pb.Job(tag=tag, priority=1000) for tag in range(1, JOBS_MAX + 1)]
    client.tell(submit=pb.Submit(jobs=jobs))
    ends = []
    while len(ends) < JOBS_MAX:
        ends += client.receive()[0].completions.completions
    assert [end.id & 0xFFFFFFFF for end in ends] == [job.tag for job in jobs]
    assert all(end.error.code == pb.E_INVALID for end in ends)


@pytest.mark.parametrize("body", ["submit", "fires"])
def test_more_jobs_in_one_message_than_that(client, body):
    tags = range(1, JOBS_MAX + 2)
    if body == "submit":
        client.tell(submit=pb.Submit(jobs=[pb.Job(tag=tag) for tag in tags]))
    else:
        client.tell(fires=pb.Fires(fires=[pb.Fire(tag=tag) for tag in tags]))
    assert_ends(client, pb.E_PROTOCOL)


def test_several_jobs_of_more_bytes_than_that(client):
    job = pb.Job(operations=bytes(JOBS_BYTES // 2))
    client.tell(submit=pb.Submit(jobs=[pb.Job(tag=tag, operations=job.operations) for tag in (1, 2)]))
    assert_ends(client, pb.E_PROTOCOL)


def test_many_requests_in_one_write_are_answered_in_order(client):
    frames, serials = b"", range(100, 164)
    for serial in serials:
        payload = pb.Request(serial=serial, queue_get=pb.QueueGet()).SerializeToString()
        frames += HEADER.pack(len(payload), 0, b"\0\0\0") + payload
    client.send_bytes(frames)
    assert [client.receive()[0].serial for _ in serials] == list(serials)


def test_a_request_in_single_bytes_is_understood(client):
    payload = pb.Request(serial=77, queue_get=pb.QueueGet()).SerializeToString()
    for byte in HEADER.pack(len(payload), 0, b"\0\0\0") + payload:
        client.send_bytes(bytes([byte]))
    assert client.receive()[0].serial == 77


def test_a_client_that_does_not_read_is_bounded(gpuqd, bystander):
    client = gpuqd.connect()
    payload = pb.Request(serial=5, status_get=pb.StatusGet()).SerializeToString()
    frame = HEADER.pack(len(payload), 0, b"\0\0\0") + payload
    client.socket.settimeout(0.5)
    try:
        for _ in range(200):
            client.send_bytes(frame * 1000)
    except (TimeoutError, socket.timeout, OSError):
        pass
    assert bystander.status().state == "ready"


def test_clients_that_come_and_go_leave_nothing(gpuqd, bystander):
    for i in range(50):
        client = gpuqd.connect(hello=i % 2 == 0)
        client.send_bytes(struct.pack("<I", 8))
        client.close()
    until(lambda: sum(user.sessions for user in bystander.status().users) == 1, "only one session left")


def test_unknown_fields_are_ignored(gpuqd):
    """A newer client may say more than this daemon knows."""
    client = gpuqd.connect()
    payload = pb.Request(serial=3, status_get=pb.StatusGet()).SerializeToString()
    client.send_frame(payload + b"\xfa\x3e\x03abc")
    assert client.receive()[0].serial == 3


def test_the_handshake_tells_who_one_is(client):
    assert client.welcome.uid == os.geteuid()
    assert client.welcome.n_devices >= 1 and client.welcome.session and client.welcome.daemon


def test_no_daemon_at_all(tmp_path):
    with pytest.raises(OSError):
        Client(tmp_path / "nobody.sock")
    with pytest.raises((Closed, Refused, OSError)):
        Client(tmp_path / "nobody.sock")


def test_a_session_ends_with_its_process_though_a_forked_child_holds_the_socket(start_gpuqd):
    """Section 1 of PROTOCOL.md. What the process sent before it exited is still served."""
    daemon = start_gpuqd()
    bystander = daemon.connect()
    child_ends, end_child = os.pipe()
    child_lives, say_alive = os.pipe()
    opener = os.fork()
    if opener == 0:
        client = daemon.connect()
        if os.fork() == 0:  # holds the socket until the test has seen what it came for
            os.close(end_child)
            os.write(say_alive, b"x")
            os.read(child_ends, 1)
            os._exit(0)
        os.read(child_lives, 1)
        client.tell(drain=pb.Drain(device=0, reason="the last request"))
        os._exit(0)
    os.waitpid(opener, 0)
    until(lambda: sum(user.sessions for user in bystander.status().users) == 1, "a session that ends")
    assert "the last request" in bystander.status().devices[0].state
    for fd in child_ends, end_child, child_lives, say_alive:
        os.close(fd)
