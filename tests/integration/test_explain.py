# SPDX-License-Identifier: Apache-2.0
"""Where a job's time went, beside the median of its kernel, and the change that would help it most."""

import json

import pytest

from harness import kernels
from harness.client import Job, Refused
from harness.kernels import GateJob
from harness.messages import pb
from harness.patience import until

OK, NO_JOB, DENIED = 0, 4, 5
ALICE, BOB = 12345, 12346
PARTS = ("dependencies_us", "module_us", "queue_us", "launch_us", "ran_us")


@pytest.fixture
def module(client, request):
    """Of a name of its own, because jobs of one name are equal, also those of earlier tests."""
    return client.load(kernels.BASIC, name=request.node.name[:60])


def explain(client, id):
    return client.call(explain_get=pb.ExplainGet(id=id)).explanation


def text_id(id):
    return f"{id >> 32}.{id & 0xffffffff}"


def run(client, module):
    id = client.submit(Job().launch(module, "nothing"))
    completion = client.wait(id)
    assert completion.state == pb.DONE
    return id, completion


def test_the_parts_of_an_ended_job_add_up(client, module):
    for _ in range(3):
        id, completion = run(client, module)
    told = explain(client, id)
    assert (told.id, told.state, told.uid, told.reason) == (id, pb.DONE, client.welcome.uid, "")
    waited = told.times.dependencies_us + told.times.module_us + told.times.queue_us
    assert (waited, told.times.ran_us) == (completion.waited_us, completion.ran_us)
    assert told.n_beside == 1 and told.device == 1
    assert told.n_median == 3 and told.times.moved_bytes == 0


def test_the_median_is_of_jobs_of_the_same_kernels_and_size(client, module):
    for _ in range(4):
        run(client, module)
    source, target = client.arena(4000), client.arena(4000)
    id = client.submit(kernels.copy_job(module, source, target, 1000))
    assert client.wait(id).state == pb.DONE
    told = explain(client, id)
    assert told.n_median == 1 and told.median == told.times
    assert told.times.moved_bytes == 8000


def test_a_job_behind_another_waits_for_it(client, module):
    gate = GateJob(client, module)
    id = client.submit(Job(after=[gate.id], label="behind").launch(module, "nothing"))
    until(lambda: explain(client, gate.id).state == pb.RUNNING, "the first to run")
    told = explain(client, id)
    assert told.state == pb.WAITING and told.reason == f"depends on job {text_id(gate.id)}"
    assert (told.label, told.kernel, told.device) == ("behind", "nothing", 0)
    until(lambda: explain(client, id).times.dependencies_us > told.times.dependencies_us, "it to wait for longer")
    gate.open()
    assert client.wait(id).state == pb.DONE
    ended = explain(client, id)
    assert ended.times.dependencies_us > told.times.dependencies_us
    assert ended.times.dependencies_us > ended.times.queue_us and ended.advice == pb.ADVICE_NOTHING


def test_a_job_cancelled_behind_another_waited_for_it(client, module):
    gate = GateJob(client, module)
    source, target = client.arena(4000), client.arena(4000)
    id = client.submit(kernels.copy_job(module, source, target, 1000, after=[gate.id]))
    client.cancel(id)
    assert client.wait(id).state == pb.CANCELLED
    told = explain(client, id)
    assert told.state == pb.CANCELLED and told.times.dependencies_us > 0 and told.times.queue_us == 0
    assert told.times.moved_bytes == 0 and told.advice == pb.ADVICE_NOTHING
    gate.open()


@pytest.mark.cpu  # with two devices
def test_a_job_whose_module_is_loaded_once_more_waits_for_it(start_gpuqd):
    gpuqd = start_gpuqd(cpu_devices=2)
    client = gpuqd.connect()
    module = client.load(kernels.BASIC, device=0)
    free = client.submit(Job(device=2).launch(module, "nothing"))
    assert client.wait(free).state == pb.DONE
    told = explain(client, free)
    assert told.times.module_us > 0 and told.device == 2


@pytest.mark.whole_machine  # beside others they may not be short
def test_short_equal_jobs_one_at_a_time_are_to_be_more_in_flight(client, module):
    ids = [run(client, module)[0] for _ in range(60)]
    told = [explain(client, id) for id in ids]
    assert all(one.n_median == 60 and one.n_beside == 1 for one in told)
    assert pb.ADVICE_IN_FLIGHT in {one.advice for one in told}


def test_gpuq_explain_as_text_and_as_json(gpuqd, client, module):
    id, completion = run(client, module)
    text = gpuqd.run("explain", text_id(id))
    assert text.returncode == OK, text.stderr
    assert text.stdout.startswith(f"job {text_id(id)} is done, device 0\n")
    for words in ("waited for its turn", "ran, with copies", "MEDIAN is of 1 done job", "Nothing to gain"):
        assert words in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 80

    told = json.loads(gpuqd.run("explain", text_id(id), "--json").stdout)
    assert set(told) == {"version", "id", "uid", "state", "label", "kernel", "reason", "device", "times", "median",
                         "n_median", "n_beside", "advice"}
    assert set(told["times"]) == set(told["median"]) == {*PARTS, "moved_bytes", "gpu_ns"}
    assert (told["id"], told["state"], told["advice"]) == (text_id(id), "done", "nothing")
    assert told["times"]["ran_us"] == completion.ran_us


def test_an_unknown_id_is_an_error(gpuqd):
    ended = gpuqd.run("explain", "4000.7")
    assert ended.returncode == NO_JOB
    assert "no job 4000.7: it is unknown, or it ended too long ago" in ended.stderr and not ended.stdout


def test_a_detached_job_is_not_explained(gpuqd, client):
    with pytest.raises(Refused) as refused:
        explain(client, 7)
    assert refused.value.code == pb.E_INVALID
    ended = gpuqd.run("explain", "0.7")
    assert "0.7 is the id of a detached job" in ended.stderr and not ended.stdout


@pytest.mark.root
def test_a_job_of_another_user_is_explained_to_administrators_only(service):
    alice, bob, root = service.connect(uid=ALICE), service.connect(uid=BOB), service.connect()
    module = alice.load(kernels.BASIC)
    gate = GateJob(alice, module)
    with pytest.raises(Refused) as refused:
        explain(bob, gate.id)
    assert refused.value.code == pb.E_DENIED and "another user" in refused.value.text
    assert service.run("explain", text_id(gate.id), uid=BOB).returncode == DENIED
    assert explain(root, gate.id).uid == ALICE
    gate.open()
    assert alice.wait(gate.id).state == pb.DONE
    assert explain(root, gate.id).state == pb.DONE
    with pytest.raises(Refused) as refused:
        explain(bob, gate.id)
    assert refused.value.code == pb.E_NOT_FOUND
