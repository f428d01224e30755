# SPDX-License-Identifier: Apache-2.0
"""Jobs of a client that was away when the supervisor was killed, before it is back: seen, cancelled, waited for by nobody."""

import os
import signal

import pytest

from harness import kernels, processes
from harness.client import Job, Out
from harness.messages import pb
from harness.patience import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="clients of several users need root")

OWNER, OTHER = 1001, 1002
AGAIN = "the supervisor is up again"


def kill_supervisor(daemon):
    """Returns once another one is up."""
    before = daemon.log().count(AGAIN)
    os.kill(daemon.supervisor(), signal.SIGKILL)
    until(lambda: daemon.log().count(AGAIN) > before, "another supervisor")


def n_taken_over(daemon):
    return daemon.log().count("took over after")


def leave_behind(daemon):
    """A client whose job runs for ever, as it is when nobody waits for it any more. With the job."""
    late = daemon.connect(uid=OWNER)
    module = late.load(kernels.BASIC)
    job = late.submit(Job().launch(module, "forever", [Out(late.arena(4))]))
    until(lambda: late.queue()[job].state == pb.RUNNING, "it to run")
    kill_supervisor(daemon)
    until(lambda: n_taken_over(daemon) == 1, "it to go on without it")
    return late, job


def lose_worker(daemon):
    (worker,) = daemon.workers()
    os.kill(worker, signal.SIGKILL)
    until(lambda: f"worker {worker} ended" in daemon.log(), "its worker to be gone")


@pytest.fixture
def daemon(start_gpuqd):
    return start_gpuqd(private=False, takeover_s=1)


# ---- the queue ----

def test_a_job_that_runs_on_is_shown(daemon):
    late, job = leave_behind(daemon)
    entry = daemon.connect(uid=OWNER).queue()[job]
    assert (entry.state, entry.uid, entry.device) == (pb.RUNNING, OWNER, 1)
    assert "has not come back" in entry.reason
    late.resume()
    (entry,) = [entry for entry in late.call(queue_get=pb.QueueGet()).queue.entries if entry.id == job]
    assert (entry.state, entry.reason) == (pb.RUNNING, "")


def test_one_whose_worker_is_gone_waits_for_its_client(daemon):
    late, job = leave_behind(daemon)
    lose_worker(daemon)
    entry = daemon.connect(uid=OWNER).queue()[job]
    assert entry.state == pb.WAITING
    assert "waits for its client" in entry.reason
    late.resume()
    until(lambda: late.queue()[job].state == pb.RUNNING, "it to run again")
    assert late.queue()[job].retries == 1
    late.cancel(job)
    assert late.wait(job).state == pb.CANCELLED


def test_the_queue_of_another_user_has_it_only_when_asked_for_all(daemon):
    _late, job = leave_behind(daemon)
    other = daemon.connect(uid=OTHER)
    assert job not in other.queue()
    assert job in other.queue(all_users=True)


# ---- cancel ----

@pytest.mark.parametrize("by", (OWNER, 0), ids=("owner", "root"))
def test_it_is_cancelled_while_its_client_is_away(daemon, by):
    late, job = leave_behind(daemon)
    (worker,) = daemon.workers()
    client = daemon.connect(uid=by)
    assert list(client.cancel(job).ids) == [job]
    until(lambda: job not in client.queue(all_users=True), "it to be gone")
    until(lambda: f"worker {worker} ended" in daemon.log(), "its worker to be stopped")
    late.resume()
    completion = late.wait(job)
    assert completion.state == pb.CANCELLED
    assert completion.error.text == f"cancelled by uid {by}"


def test_others_do_not_cancel_it(daemon):
    late, job = leave_behind(daemon)
    assert list(daemon.connect(uid=OTHER).cancel(job).denied) == [job]
    late.resume()
    assert late.queue()[job].state == pb.RUNNING


def test_all_of_a_user_are_cancelled_with_it(daemon):
    late, job = leave_behind(daemon)
    assert list(daemon.connect(uid=OTHER).cancel(all=True).ids) == []
    assert list(daemon.connect(uid=OWNER).cancel(all=True).ids) == [job]
    late.resume()
    assert late.wait(job).state == pb.CANCELLED


def test_one_whose_worker_is_gone_is_cancelled_at_once(daemon):
    late, job = leave_behind(daemon)
    lose_worker(daemon)
    client = daemon.connect(uid=OWNER)
    assert list(client.cancel(job).ids) == [job]
    assert job not in client.queue()
    late.resume()
    assert late.wait(job).state == pb.CANCELLED


def test_it_may_be_back_before_its_worker_has_stopped(daemon):
    late, job = leave_behind(daemon)
    (worker,) = daemon.workers()
    with processes.stopped(worker):  # until it is killed for that, if it comes to it
        assert list(daemon.connect(uid=OWNER).cancel(job).ids) == [job]
        late.resume()
    assert late.wait(job).state == pb.CANCELLED


# ---- takeovers that follow ----

def test_nobody_waits_for_a_job_whose_worker_is_gone(start_gpuqd):
    daemon = start_gpuqd(private=False, takeover_s=1)
    late, job = leave_behind(daemon)
    lose_worker(daemon)
    daemon.write_config(takeover_s=3600)
    daemon.reload()
    until(lambda: "configuration read again" in daemon.log(), "the configuration to hold")
    kill_supervisor(daemon)
    until(lambda: n_taken_over(daemon) == 2, "it to go on without it once more")
    late.resume()
    until(lambda: late.queue()[job].state == pb.RUNNING, "it to run again")


def test_retries_are_counted_on(daemon):
    client = daemon.connect(uid=OWNER)
    job = client.submit(Job().launch(client.load(kernels.BASIC), "forever", [Out(client.arena(4))]))
    until(lambda: client.queue()[job].state == pb.RUNNING, "it to run")
    before = retry(client, job)
    kill_supervisor(daemon)
    client.resume()
    assert client.queue()[job].retries == before


def retry(client, job):
    """Its worker is stopped because of another job. Returns how often it was retried."""
    other = client.submit(Job().launch(client.load(kernels.BASIC), "forever", [Out(client.arena(4))]))
    until(lambda: client.queue()[other].state == pb.RUNNING, "the other to run beside it")
    client.cancel(other)
    assert client.wait(other).state == pb.CANCELLED
    until(lambda: client.queue()[job].state == pb.RUNNING, "it to run again")
    assert client.queue()[job].retries == 1
    return client.queue()[job].retries


# ---- what kernels printed ----

PRINTS = """
#include <stdio.h>
extern "C" __global__ void prints(int *to) { printf("this is %d\\n", 42); *to = 1; }
"""


def test_what_a_kernel_printed_is_told_by_the_next_supervisor(daemon):
    client, other = daemon.connect(uid=OWNER), daemon.connect(uid=OWNER)
    job = client.submit(Job().launch(client.load(PRINTS), "prints", [Out(client.arena(4))]))
    assert other.call(wait=pb.Wait(id=job)).completions.completions[0].state == pb.DONE
    kill_supervisor(daemon)
    client.resume()
    assert client.wait(job).output == "this is 42\n"
