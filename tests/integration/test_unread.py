# SPDX-License-Identifier: Apache-2.0
"""Replies with a descriptor that nobody reads. The kernel counts these against the supervisor, and lets it send no
descriptor to anybody over its limit: no arena to another user, no worker to the keeper."""

import os
import re
import resource
import signal

import numpy
import pytest

from harness.client import HEADER, In, Job, Out, Refused, u64
from harness.daemon import Daemon
from harness.messages import pb
from harness.patience import until

# One after the other, with a uid of their own for the supervisor: the kernel counts for all processes of a uid.
pytestmark = [pytest.mark.root, pytest.mark.xdist_group("unread")]
SUPERVISOR = "bin"

VICTIM, ATTACKER = 12346, 12350
N_FILES = 8192  # of the daemon: the kernel's limit of unread descriptors
N_SOCKETS, N_REQUESTS = 79, 255  # many times that
SHARE = N_FILES // 8  # of all users' clients
FIRST = SHARE // 128 + SHARE // 4  # of the greediest


def first_share(n_unread):
    """The same beside what clients of earlier supervisors have not read."""
    share = (N_FILES - n_unread + 64) // 8
    return share // 128 + share // 4 + 1


def limit_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (N_FILES, N_FILES))


@pytest.fixture
def daemon(start_gpuqd, monkeypatch):
    launch = Daemon.launch
    monkeypatch.setattr(Daemon, "launch", lambda self, **options: launch(self, preexec_fn=limit_files, **options))
    return start_gpuqd(private=False, supervisor_user=SUPERVISOR)


def attack(daemon, uid, n_sockets=N_SOCKETS, arena=None):
    """Many requests for a descriptor on each of many connections. Returns these; nothing is read."""
    clients = [daemon.connect(uid=uid) for _ in range(n_sockets)]
    arena = arena or clients[0].arena(4096)
    arena.let_go()
    request = pb.Request(serial=99, arena_open=pb.ArenaOpen(arena=arena.id)).SerializeToString()
    for client in clients:
        client.send_bytes((HEADER.pack(len(request), 0, b"\0\0\0") + request) * N_REQUESTS)
    return clients


def unread(clients):
    """What the kernel says: scm_fds of each socket."""
    return sum(int(re.search(r"scm_fds:\s*(\d+)", open(f"/proc/self/fdinfo/{client.socket.fileno()}").read())[1])
               for client in clients if client.socket.fileno() >= 0)


class Victim:
    """Somebody who has an arena, makes others, and runs jobs."""

    def __init__(self, daemon):
        self.client = daemon.connect(uid=VICTIM)
        self.module = self.client.builtin()
        self.values = self.client.array(numpy.arange(100, dtype=numpy.float64))

    def work(self):
        out = self.client.arena(8)
        self.client.run_well(Job().launch(self.module, "sum_f64", [In(self.values), Out(out), u64(100)], 1, 64))
        assert out.array(numpy.float64)[0] == 4950
        out.close()


def kill_supervisor(daemon):
    before = daemon.log().count("the supervisor is running again")
    os.kill(daemon.supervisor(), signal.SIGKILL)
    until(lambda: daemon.log().count("the supervisor is running again") > before, "another supervisor")


@pytest.mark.parametrize("n_users, n_sockets", [(1, N_SOCKETS), (8, N_SOCKETS // 4)])
def test_others_go_on_and_a_supervisor_that_is_killed_comes_back(daemon, n_users, n_sockets):
    """Issue 17, attack 1: nobody was sent a descriptor, and supervisors were killed because they started no worker."""
    victim = Victim(daemon)
    attackers = []
    for round in range(3):
        before = unread(attackers)
        fresh = [client for i in range(n_users) for client in attack(daemon, ATTACKER + i, n_sockets)]
        attackers += fresh
        until(lambda: unread(fresh) >= SHARE // 5, "an attack")
        victim.work()
        assert unread(fresh) <= first_share(before) * (1 if n_users == 1 else 4)
        if round < 2:
            kill_supervisor(daemon)
            victim.client.resume()
            victim.work()  # in a new worker
    assert unread(attackers) >= 3 * (SHARE // 5)  # those of dead supervisors count as well
    assert "did not respond" not in daemon.log()


def test_sockets_of_sessions_that_ended_count(daemon):
    """They were no longer charged, though the kernel counts what is unread on them."""
    victim = Victim(daemon)
    first = daemon.connect(uid=ATTACKER)
    arena = first.arena(4096)
    clients = []
    for _ in range(N_SOCKETS // 8):
        clients += attack(daemon, ATTACKER, 8, arena)
        for client in clients[-8:]:
            client.socket.shutdown(1)  # that ends its session
        victim.work()
        assert unread(clients) <= FIRST
    for client in clients:
        client.close()
    fresh = attack(daemon, ATTACKER, 1, arena)
    until(lambda: unread(fresh) == 64, "the user to have a share again")
    victim.work()


def test_a_user_who_has_too_many_is_told_and_goes_on_after_reading(daemon):
    clients = attack(daemon, ATTACKER)
    other = daemon.connect(uid=ATTACKER)

    def is_refused():
        try:
            other.arena(4096).close()
        except Refused as problem:
            assert problem.code == pb.E_QUOTA and "unread replies with a descriptor" in problem.text
            return True
        return False

    until(is_refused, "an attack")
    for client in clients:
        client.close()
    until(lambda: not is_refused(), "the descriptors to be read or gone")


def test_all_of_many_requests_are_answered_once_they_are_read(daemon):
    """The connection waits, and loses nothing."""
    client, = attack(daemon, ATTACKER, 1)
    victim = Victim(daemon)
    victim.work()
    assert unread([client]) <= 64
    for _ in range(N_REQUESTS):
        reply, fds = client.receive()
        assert reply.serial == 99 and len(fds) == 1, reply
        os.close(fds[0])
    client.status()


def test_a_session_ends_with_its_process_though_a_child_holds_the_socket_and_reads_nothing(daemon):
    bystander = daemon.connect()
    child_ends, end_child = os.pipe()
    opener = os.fork()
    if opener == 0:
        attack(daemon, ATTACKER, 1)
        if os.fork() == 0:
            os.close(end_child)
            os.read(child_ends, 1)
            os._exit(0)
        os._exit(0)
    os.waitpid(opener, 0)
    until(lambda: not any(user.uid == ATTACKER and user.sessions for user in bystander.status().users),
          "the session to end")
    os.close(child_ends)
    os.close(end_child)
