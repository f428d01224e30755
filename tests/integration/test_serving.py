# SPDX-License-Identifier: Apache-2.0
"""What one client asks for in bulk comes in parts, and who says nothing is sent away."""

import pytest

from harness import kernels
from harness.client import Job, Out, Refused
from harness.messages import pb

MANY = 2500  # more than two pages
PAGE = 1024


@pytest.fixture
def crowd(gpuqd, client):
    """A job that does not end, and many behind it."""
    module = client.load(kernels.BASIC)
    endless = client.submit(Job().launch(module, "forever", [Out(client.arena(4))]))
    scratch = client.arena(4096)
    ids = client.submit(*(Job(after=[endless]).fill(scratch, 4, 0) for _ in range(MANY)))
    client.status()  # served behind them, so other sessions see them all
    yield [endless, *ids]
    client.cancel(all=True)
    for job_id in [endless, *ids]:
        client.wait(job_id)


def test_a_list_of_jobs_comes_in_pages(client, crowd):
    told, sizes, following = [], [], 0
    while True:
        page = client.call(queue_get=pb.QueueGet(next=following)).queue
        told += [entry.id for entry in page.entries]
        sizes.append(len(page.entries))
        following = page.next
        if not following:
            break
    assert told == crowd
    assert sizes == [PAGE, PAGE, MANY + 1 - 2 * PAGE]


def test_the_command_shows_all_pages(gpuqd, crowd):
    rows = gpuqd.run("queue", "-h").stdout.splitlines()
    assert [row.split()[0] for row in rows] == [f"{job >> 32}.{job & 0xffffffff}" for job in crowd]


def test_a_list_that_was_never_begun(client):
    with pytest.raises(Refused) as refused:
        client.call(queue_get=pb.QueueGet(next=12345))
    assert refused.value.code == pb.E_NOT_FOUND


def test_reports_are_as_new_as_the_requests(gpuqd, client, crowd):
    """However many others ask at the same time."""
    others = [gpuqd.connect() for _ in range(8)]
    for other in others:
        for _ in range(10):
            other.tell(status_get=pb.StatusGet())
    more = client.submit(Job(after=[crowd[0]]).fill(client.arena(64), 4, 0))
    assert client.status().queued == MANY + 1
    for other in others:
        for _ in range(10):
            assert other.receive()[0].WhichOneof("body") == "status"
        other.close()
    client.cancel(more)
    client.wait(more)


def test_cancelling_all_is_answered_with_all(client, crowd):
    assert sorted(client.cancel(all=True).ids) == sorted(crowd)


def test_who_does_not_say_hello_is_sent_away(start_gpuqd):
    gpuqd = start_gpuqd(hello_timeout_s=1)
    silent, polite = gpuqd.connect(hello=False), gpuqd.connect()
    reply = silent.assert_closed()[-1]
    assert reply.error.code == pb.E_PROTOCOL and "hello" in reply.error.text
    assert polite.status().queued == 0
