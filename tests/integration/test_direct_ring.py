# SPDX-License-Identifier: Apache-2.0
"""These tests use the direct ring by hand. A client that uses it wrongly, in whatever way, harms itself alone."""

import os
import signal

import pytest

from harness import processes
from harness.client import Job, Refused
from harness.direct import IS_DONE, IS_LENT, LAST_TAG, N, N_ENTRIES, N_TAKEN, N_WRITTEN, PREPARED, TAG, DirectClient
from harness.messages import pb
from harness.patience import until

ALICE, BOB = (3001, 3002) if os.geteuid() == 0 else (None, None)


@pytest.fixture
def daemon(lend_gpuqd):
    """For several users, if the tests can be several."""
    return lend_gpuqd(private=ALICE is None)


@pytest.fixture
def direct(daemon):
    client = DirectClient(daemon.socket, uid=ALICE)
    daemon.clients.append(client)
    return client


class Bystander:
    """Somebody whose session must go on, and another user's, whose worker must live."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.same = self.begin(ALICE)
        self.other = self.begin(BOB)
        self.supervisor = daemon.supervisor()
        self.workers = self.of_other()
        self.n = 0

    def begin(self, uid):
        client = DirectClient(self.daemon.socket, uid=uid, open_ring=False)
        self.daemon.clients.append(client)
        client.wait(client.fire())
        return client

    def of_other(self):
        return [pid for pid in self.daemon.workers() if BOB is not None and processes.uid(pid) == BOB]

    def until_gone(self, worker):
        """gpuqd knows that it has ended."""
        until(lambda: worker not in [other.pid for other in self.other.status().workers], "the worker's end")

    def check(self):
        for client in (self.same, self.other):
            assert client.wait(client.fire()).state == pb.DONE
            assert client.value() == client.n_fired
        assert self.daemon.supervisor() == self.supervisor
        assert self.of_other() == self.workers
        until(lambda: not any(user.running or user.queued for user in self.other.status().users), "no job is left")


@pytest.fixture
def bystander(daemon):
    bystander = Bystander(daemon)
    yield bystander
    bystander.check()


def assert_protocol_error(client):
    assert client.assert_closed()[-1].error.code == pb.E_PROTOCOL


# ---- rightly ----


def test_jobs_in_the_ring_are_done(direct):
    direct.until_lent()
    assert direct.get(IS_LENT) == 1
    n_done = 0
    while n_done < 2 * N_ENTRIES:
        if not direct.has_begun:  # the machine was so busy that a job took long
            direct.until_lent()
        entry = direct.write()
        direct.wait_end(entry)
        n_done += direct.is_done(entry)
    direct.end()
    assert direct.value() == direct.n_fired


def test_as_many_as_there_are_entries(direct):
    direct.until_lent()
    for entry in [direct.write() for _ in range(N_ENTRIES)]:
        assert direct.wait_end(entry) == pb.DONE
    direct.end()
    assert direct.value() == direct.n_fired


def test_jobs_in_flight_are_known_when_the_ring_is_back(direct):
    direct.prepare_wait()
    direct.until_lent()
    direct.shut()
    held = direct.write(prepared=direct.waiting)
    behind = [direct.write(prepared=direct.waiting) for _ in range(3)]
    direct.hear("direct_recall")  # as it takes long
    direct.end()
    assert {direct.job_id(entry) for entry in [held, *behind]} == set(direct.queue())
    direct.open()
    assert [direct.wait_end(entry) for entry in [held, *behind]] == [pb.DONE] * 4


def test_a_prepared_job_that_is_not_known_to_be_short_is_no_obstacle(direct):
    """Others are lent. When it is fired, its worker gives the ring back, and the daemon runs it, after those before it."""
    never_fired = direct.prepare(Job().copy(direct.copied, direct.counter, 4 * N, direction=pb.OUT))
    direct.until_lent()
    before = direct.write()
    unknown = direct.write(prepared=never_fired)
    behind = direct.write()
    assert [direct.wait_end(entry) for entry in (before, unknown, behind)] == [pb.DONE] * 3
    assert direct.is_known(unknown)
    direct.end()
    assert direct.value() == direct.n_fired


def test_of_many_prepared_jobs_those_in_use_are_lent(direct):
    for _ in range(200):
        direct.prepare(Job().fill(direct.counter, 4 * N))
    direct.until_lent()
    assert direct.wait_end(direct.write()) == pb.DONE
    direct.end()
    assert direct.value() == direct.n_fired


def test_what_is_written_before_earlier_jobs_have_ended_waits(direct):
    direct.prepare_wait()
    direct.until_offered()
    direct.shut()
    held = direct.fire(prepared=direct.waiting)
    direct.begin()
    entry = direct.write()
    assert direct.get(N_TAKEN) != direct.get(N_WRITTEN)
    direct.open()
    assert direct.wait_end(entry) == pb.DONE
    assert direct.wait(held).state == pb.DONE
    direct.end()
    assert direct.value() == direct.n_fired


def test_what_is_fired_and_closed_at_once_is_used_to_its_end(direct):
    """The jobs in flight keep what they use."""
    for _ in range(5):
        direct.until_lent()
        entries = [direct.write() for _ in range(N_ENTRIES)]
        direct.end()
        direct.tell(unprepare=pb.Unprepare(prepared=direct.increment))
        module, counter = direct.module, direct.counter
        direct.tell(module_unload=pb.ModuleUnload(module=module.module))
        counter.close()
        assert [direct.wait_end(entry) for entry in entries] == [pb.DONE] * N_ENTRIES
        direct.start()


def test_jobs_are_known_to_have_ended_when_their_session_is_gone(daemon, direct):
    other = DirectClient(daemon.socket, uid=ALICE, open_ring=False)
    daemon.clients.append(other)
    ids = []
    while len(ids) < 3:
        direct.until_lent()
        entry = direct.write()
        assert direct.wait_end(entry) == pb.DONE
        if not direct.is_known(entry):  # else the ring was recalled: the machine was so busy that a job took long
            ids.append(direct.job_id(entry))
        direct.end()
    direct.value()
    direct.close()
    for job_id in ids:
        assert other.call(wait=pb.Wait(id=job_id)).completions.completions[0].state == pb.DONE
        assert other.run(Job(after=[job_id]).fill(other.counter, 4)).state == pb.DONE


@pytest.mark.root
def test_another_user_gets_the_device(direct, bystander):
    direct.until_lent()
    bystander.check()
    entries = [direct.write() for _ in range(10)]
    direct.hear("direct_recall")
    direct.end()
    assert [direct.wait_end(entry) for entry in entries] == [pb.DONE] * 10
    assert direct.value() == direct.n_fired


# ---- requests out of order ----


def test_a_second_ring_is_refused(direct):
    with pytest.raises(Refused):
        direct.call(direct_open=pb.DirectOpen())
    direct.until_lent()


@pytest.mark.parametrize("has_ring", [True, False])
@pytest.mark.parametrize("request_", ["direct_begin", "direct_end"])
def test_begun_or_ended_without_an_offer(daemon, bystander, has_ring, request_):
    client = DirectClient(daemon.socket, uid=ALICE, open_ring=has_ring)
    daemon.clients.append(client)
    client.tell(**{request_: {"direct_begin": pb.DirectBegin, "direct_end": pb.DirectEnd}[request_]()})
    assert_protocol_error(client)


def test_ended_without_being_begun(direct, bystander):
    direct.until_offered()
    direct.tell(direct_end=pb.DirectEnd())
    assert_protocol_error(direct)


OTHER_REQUESTS = {
    "status": {"status_get": pb.StatusGet()},
    "fire": {"fires": pb.Fires()},
    "begin": {"direct_begin": pb.DirectBegin()},
    "open": {"direct_open": pb.DirectOpen()},
    "cancel": {"cancel": pb.Cancel(all=True)},
}


@pytest.mark.parametrize("what", OTHER_REQUESTS)
@pytest.mark.parametrize("state", ["begun", "lent"])
def test_another_request_while_it_is_begun(direct, bystander, what, state):
    if state == "lent":
        direct.until_lent()
    else:
        direct.until_offered()
        direct.begin()
    for _ in range(10):
        direct.write()
    direct.tell(**OTHER_REQUESTS[what])
    assert_protocol_error(direct)


# ---- no answer ----


def test_no_answer_to_an_offer(direct, bystander):
    direct.until_offered()
    for _ in range(50):
        assert direct.wait(direct.fire(64)).state == pb.DONE
    assert direct.value() == direct.n_fired
    direct.hear("direct_recall")
    for _ in range(50):
        assert direct.wait(direct.fire(64)).state == pb.DONE
    assert not direct.events, "the first offer was not answered"
    direct.begin()
    direct.end()
    direct.until_lent()


@pytest.mark.root
def test_no_answer_to_a_recall(direct, bystander):
    direct.until_lent()
    bystander.check()
    direct.hear("direct_recall")
    entry = direct.write()
    bystander.check()
    assert not direct.is_done(entry)
    direct.end()
    assert direct.wait_end(entry) == pb.DONE


# ---- nonsense in the memory ----


@pytest.mark.parametrize("ahead", [N_ENTRIES, N_ENTRIES + 1, 1 << 31, -1, -N_ENTRIES, -N_ENTRIES - 1])
@pytest.mark.parametrize("state", ["begun", "lent"])
def test_n_written_jumps(direct, bystander, ahead, state):
    if state == "lent":
        direct.until_lent()
        for entry in [direct.write() for _ in range(3)]:
            until(lambda: direct.is_done(entry), "its end")
    else:
        direct.until_offered()
        direct.begin()
    direct.put(N_WRITTEN, direct.get(N_WRITTEN) + ahead)
    direct.ring_bell()
    direct.try_end()
    direct.assert_closed()


@pytest.mark.parametrize("tag", ["repeated", "falling", "zero", "of the messages"])
def test_tags_that_do_not_rise(direct, bystander, tag):
    direct.until_lent()
    for entry in [direct.write() for _ in range(3)]:
        until(lambda: direct.is_done(entry), "its end")
    direct.write(tag={"repeated": direct.tag, "falling": direct.tag - 1, "zero": 0, "of the messages": 1}[tag])
    direct.try_end()
    direct.assert_closed()


def test_first_tag_of_a_loan_is_an_old_one(direct, bystander):
    direct.until_offered()
    direct.begin()
    entry = direct.write(tag=1)
    direct.assert_closed()
    assert not direct.is_done(entry)


def test_an_unknown_prepared_job(direct, bystander):
    direct.until_lent()
    entries = [direct.write(), direct.write(prepared=12345), direct.write()]
    direct.hear("direct_recall")
    direct.end()
    assert [direct.wait_end(entry) for entry in entries] == [pb.DONE, pb.FAILED, pb.DONE]
    assert direct.value() == direct.n_fired


@pytest.mark.parametrize("word", [N_TAKEN, LAST_TAG, IS_LENT])
@pytest.mark.parametrize("value", [0, 1, 1 << 31, 0xffffffff])
def test_words_of_the_others_are_overwritten(direct, bystander, word, value):
    direct.until_lent()
    for _ in range(100):
        direct.write()
        direct.put(word, value)
    direct.end()
    assert direct.value() == direct.n_fired, "only the words of its own were read"
    direct.put(word, value)
    direct.until_offered()
    direct.begin()
    direct.write()
    direct.try_end()


def test_overwritten_and_its_worker_is_lost(direct, bystander):
    direct.until_lent()
    for _ in range(100):
        direct.write()
        direct.put(N_TAKEN, 7)
    (worker,) = direct_workers(direct, bystander)
    os.kill(worker, signal.SIGKILL)
    bystander.until_gone(worker)
    direct.try_end()
    direct.close()


def test_jobs_are_made_up_and_the_worker_is_lost(direct, bystander):
    direct.until_lent()
    (worker,) = direct_workers(direct, bystander)
    os.kill(worker, signal.SIGSTOP)
    make_up(direct, 400)
    direct.put(LAST_TAG, 0xffffffff)
    os.kill(worker, signal.SIGKILL)
    bystander.until_gone(worker)
    direct.try_end()
    direct.close()


def test_a_job_is_said_to_be_done_that_is_not(direct, bystander):
    """Its user's worker must not be taken for one that reports what it was not given."""
    direct.prepare_wait()
    direct.until_lent()
    workers = direct_workers(direct, bystander)
    direct.shut()
    tag = direct.next_tag()
    entry = direct.write(tag=tag, prepared=direct.waiting, done=tag)
    direct.hear("direct_recall")
    direct.end()
    direct.open()
    assert direct.wait(direct.job_id(entry)).state == pb.DONE
    bystander.check()
    assert direct_workers(direct, bystander) == workers


def make_up(direct, n):
    """Entries before the last one are changed to those of other jobs."""
    for i in range(n):
        entry = (direct.get(N_WRITTEN) - 1 - i) % N_ENTRIES
        direct.put(direct.offset(entry, IS_DONE), 0)
        direct.put(direct.offset(entry, PREPARED), direct.increment)
        direct.put(direct.offset(entry, TAG), direct.tag + 1 + n - i)


def test_jobs_are_made_up_that_the_worker_never_had(direct, bystander):
    direct.until_lent()
    make_up(direct, 100)
    direct.end()
    assert not direct.queue()
    assert direct.wait(direct.fire()).state == pb.DONE
    assert direct.value() == direct.n_fired


@pytest.mark.root
def test_an_entry_that_is_written_while_the_ring_goes_back(direct, bystander):
    """The client has not counted the entry yet: no worker has it, and the next reader of the ring takes it once."""
    direct.until_lent()
    entry = direct.prepare_entry()
    bystander.check()
    direct.hear("direct_recall")
    assert not direct.is_known(entry)
    direct.count_entry()
    direct.end()
    assert direct.wait_end(entry) == pb.DONE
    assert direct.value() == direct.n_fired


def direct_workers(direct, bystander):
    daemon = bystander.daemon
    return [pid for pid in daemon.workers() if pid not in bystander.of_other()]


# ---- its end in each state ----


def until_state(client, state):
    client.prepare_wait()
    if state == "lent":
        client.until_lent()
    else:
        client.until_offered()
    if state == "begun":
        client.shut()
        client.fire(prepared=client.waiting)
        client.begin()
    if state != "offered":
        for _ in range(100):
            client.write()


@pytest.mark.parametrize("state", ["offered", "begun", "lent"])
def test_the_client_goes(daemon, direct, bystander, state):
    until_state(direct, state)
    direct.close()
    if state == "begun":
        with DirectClient(daemon.socket, uid=ALICE, open_ring=False) as other:
            assert other.wait(other.fire()).state == pb.DONE


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("is_ended", [False, True])
def test_the_client_goes_while_the_ring_comes_back(direct, bystander, is_ended, is_killed):
    direct.until_lent()
    (worker,) = direct_workers(direct, bystander)
    for _ in range(100):
        direct.write()
    os.kill(worker, signal.SIGSTOP)
    if is_ended:
        direct.end()
    direct.close()
    if BOB is not None:
        assert bystander.other.wait(bystander.other.fire()).state == pb.DONE
    os.kill(worker, signal.SIGKILL if is_killed else signal.SIGCONT)
    if is_killed:
        bystander.until_gone(worker)
