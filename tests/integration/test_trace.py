# SPDX-License-Identifier: Apache-2.0
"""`gpuq trace`: a file in Chrome's JSON format of what jobs waited for, and where and when they ran."""

import collections
import decimal
import json
import os
import pathlib
import signal
import tempfile
import time

import pytest

from harness import kernels, perfetto
from harness.client import Job, Refused
from harness.kernels import GateJob
from harness.messages import pb
from harness.patience import until
from harness.terminal import on_terminal

OK, USAGE, NO_DAEMON = 0, 2, 3
ALICE, BOB = 12345, 12346
KEPT = 4096
WAITS = {"waits", "waits for jobs before it", "waits for its modules", "waits for its turn", "in its worker, not running"}


def text_id(id):
    return f"{id >> 32}.{id & 0xffffffff}"


# ---- the file ----

def ns(number):
    """Microseconds with three decimals, without what a float would lose."""
    return int(decimal.Decimal(number) * 1000)


class File:
    """A trace, parsed and checked against the rules of the format."""

    def __init__(self, text):
        document = json.loads(text, parse_float=decimal.Decimal)
        assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
        self.other = document["otherData"]
        self.events = document["traceEvents"]
        self.slices = [event for event in self.events if event["ph"] == "X"]
        self.processes = self._names("process_name")
        self.threads = self._names("thread_name")
        self._check_fields()
        self._check_threads()
        self._check_arrows()

    def _names(self, kind):
        found = [event for event in self.events if event["ph"] == "M" and event["name"] == kind]
        names = {(event["pid"], event["tid"] if kind == "thread_name" else 0): event["args"]["name"] for event in found}
        assert len(names) == len(found), "a process or thread has two names"
        return names

    def _check_fields(self):
        for event in self.events:
            assert event["ph"] in "XMsfi" and event["name"].isprintable() and event["name"], event
            assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
            assert (event["pid"], 0) in self.processes
            if event["ph"] != "M":
                assert ns(event["ts"]) >= ns(self.other["began_us"]), event
            if event["ph"] == "X":
                assert ns(event["dur"]) >= 0 and (event["pid"], event["tid"]) in self.threads, event
        assert all(name.isprintable() and name for name in [*self.processes.values(), *self.threads.values()])

    def _check_threads(self):
        """Nothing overlaps, so nothing is nested."""
        threads = collections.defaultdict(list)
        for event in self.slices:
            threads[event["pid"], event["tid"]].append((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])))
        for spans in threads.values():
            spans.sort()
            assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:]))

    def _check_arrows(self):
        arrows = {phase: {event["id"]: ns(event["ts"]) for event in self.events if event["ph"] == phase} for phase in "sf"}
        assert arrows["s"].keys() == arrows["f"].keys()
        assert all(at <= arrows["f"][id] for id, at in arrows["s"].items())

    def of(self, id, category=None):
        return [event for event in self.slices
                if event["args"]["job"] == text_id(id) and category in (None, event["cat"])]

    def run(self, id):
        """The slice of a job on its device."""
        [event] = self.of(id, "kernel")
        return event

    def jobs(self):
        return {event["args"]["job"] for event in self.slices}


class Tracing:
    """`gpuq trace` in the background; it has begun."""

    def __init__(self, gpuqd, path, *arguments, uid=None, seconds=60):
        self.path = path
        self.process = gpuqd.start_program("gpuq", "trace", f"--seconds={seconds}", "-o", str(path), *arguments, uid=uid)
        self.told = self.process.stdout.readline()  # standard error goes there, too
        assert "gpuq: trace: tracing the jobs of" in self.told

    def end(self, signal=signal.SIGINT):
        self.process.send_signal(signal)
        return self.wait()

    def wait(self):
        self.errors, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == OK, self.errors
        return File(self.path.read_text())


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def test_waiting_and_running_of_two_clients(gpuqd, client, module, tmp_path):
    tracing = Tracing(gpuqd, tmp_path / "trace.json")
    with gpuqd.connect() as other:
        others = other.load(kernels.BASIC)
        short = [other.submit(Job(label="short").launch(others, "nothing")) for _ in range(20)]
        for id in short:
            assert other.wait(id).state == pb.DONE
    gate = GateJob(client, module, label='a "gate" \\ ä')
    behind = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    gate.wait_for()
    time.sleep(0.05)
    gate.open()
    assert client.wait(behind).state == pb.DONE
    file = tracing.end()

    assert file.jobs() >= {text_id(id) for id in (gate.id, behind, *short)}
    assert len(file.jobs()) == file.other["jobs"]  # with those of the gate itself
    assert (file.other["unfinished_jobs"], file.other["missing_jobs"]) == (0, 0)
    for id in (gate.id, behind, *short):
        assert {event["name"] for event in file.of(id) if event["cat"] in ("supervisor", "worker")} <= WAITS
        assert file.run(id)["args"]["state"] == "done"
    run = file.run(gate.id)
    assert run["name"] == 'a "gate" \\ ä: gate' and ns(run["dur"]) > 50_000_000
    assert file.processes[run["pid"], 0] == "device 0"
    assert "worker " in file.threads[run["pid"], run["tid"]] and ", stream " in file.threads[run["pid"], run["tid"]]
    [wait] = [event for event in file.of(behind) if event["name"] == "waits for jobs before it"]
    assert ns(wait["dur"]) > 50_000_000
    assert ns(file.run(behind)["ts"]) >= ns(run["ts"]) + ns(run["dur"])
    sessions = {file.processes[event["pid"], 0] for event in file.slices} - {"device 0"}
    assert len(sessions) >= 2 and all(f"test (pid {os.getpid()})" in name for name in sessions)


def test_its_times_are_of_the_clocks_that_it_says(gpuqd, client, module, tmp_path):
    tracing = Tracing(gpuqd, tmp_path / "trace.json")
    before, unix = time.monotonic_ns(), time.time_ns()
    id = client.submit(Job().launch(module, "nothing"))
    assert client.wait(id).state == pb.DONE
    after = time.monotonic_ns()
    file = tracing.end()
    for event in file.of(id):
        assert before <= ns(event["ts"]) and ns(event["ts"]) + ns(event["dur"]) <= after
    offset = ns(file.other["unix_us"]) - ns(file.other["monotonic_us"])
    assert abs((before + offset) - unix) < 1_000_000_000


def test_a_job_that_runs_on_is_drawn_to_the_end(gpuqd, client, module, tmp_path):
    early = GateJob(client, module, label="early")
    until(lambda: client.status().running == 1, "it to run")
    tracing = Tracing(gpuqd, tmp_path / "trace.json", seconds=0.4)
    waiting = client.submit(Job(after=[early.id], label="late").launch(module, "nothing"))
    file = tracing.wait()
    run, [wait] = file.run(early.id), file.of(waiting)
    assert run["args"]["state"] == "running" and wait["args"]["state"] == "waiting"
    assert ns(run["ts"]) == ns(file.other["began_us"])
    for event in (run, wait):
        assert ns(event["ts"]) + ns(event["dur"]) == ns(file.other["monotonic_us"])
    assert wait["args"]["waits"] == f"depends on job {text_id(early.id)}"
    assert file.other["unfinished_jobs"] == 2
    early.open()


def test_failed_and_cancelled_jobs_say_so(gpuqd, client, module, tmp_path):
    tracing = Tracing(gpuqd, tmp_path / "trace.json")
    gate = GateJob(client, module)
    cancelled = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    client.cancel(cancelled)
    gate.open()
    refused = client.submit(Job().launch(module, "no such kernel"))
    assert client.wait(refused).state == pb.FAILED
    file = tracing.end()
    assert {event["args"]["code"] for event in file.of(cancelled)} == {"GPUQ_E_CANCELLED"}
    assert {event["args"]["state"] for event in file.of(refused)} == {"failed"}
    assert not file.of(cancelled, "kernel")


def test_many_jobs_at_once_get_lanes(gpuqd, client, module, tmp_path):
    tracing = Tracing(gpuqd, tmp_path / "trace.json")
    ids = [client.submit(*[Job().launch(module, "nothing") for _ in range(100)]) for _ in range(3)]
    ids = [id for some in ids for id in (some if isinstance(some, (list, tuple)) else [some])]
    for id in ids:
        assert client.wait(id).state == pb.DONE
    file = tracing.end()
    assert file.other["jobs"] == 300
    assert any(name.startswith("jobs, lane ") for name in file.threads.values())


# ---- what is missing ----

def run_many(client, module, n):
    while n > 0:
        part = min(n, 500)
        client.submit(*[Job().launch(module, "nothing") for _ in range(part - 1)])
        assert client.wait(client.submit(Job().launch(module, "nothing"))).state == pb.DONE
        n -= part
    until(lambda: client.status().running == client.status().queued == 0, "all to end")


def read(client, trace):
    """All that there is to read now: jobs, and the number of those that are missing."""
    jobs, lost = [], 0
    while True:
        trace = client.call(trace_get=pb.TraceGet(trace=trace.trace, next=trace.next)).trace
        assert len(trace.jobs) <= 256
        jobs += trace.jobs
        lost += trace.lost
        if not trace.more:
            return jobs, lost, trace


def test_jobs_that_have_no_place_are_counted(client, module):
    begin = client.call(trace_get=pb.TraceGet()).trace
    assert not begin.jobs and begin.trace and not begin.lost
    run_many(client, module, KEPT + 500)
    jobs, lost, end = read(client, begin)
    assert len(jobs) <= KEPT and len(jobs) + lost == KEPT + 500
    assert len({job.id for job in jobs}) == len(jobs)
    assert [job.ended_ns for job in jobs] == sorted(job.ended_ns for job in jobs)
    time.sleep(0.3)  # until the oldest may go
    run_many(client, module, 10)
    jobs, lost, _ = read(client, end)
    assert (len(jobs), lost) == (10, 0)


def test_gpuq_trace_says_how_many_jobs_are_missing(gpuqd, client, module, tmp_path):
    tracing = Tracing(gpuqd, tmp_path / "trace.json")
    tracing.process.send_signal(signal.SIGSTOP)
    run_many(client, module, KEPT + 500)
    tracing.process.send_signal(signal.SIGCONT)
    file = tracing.end()
    missing, gaps = file.other["missing_jobs"], file.other["gaps"]
    if gaps:  # a slow machine: gpuqd has forgotten the trace
        assert "the trace was interrupted" in tracing.errors
        return
    assert missing >= 500 and missing + file.other["jobs"] == KEPT + 500
    assert f"{missing} jobs are missing" in tracing.errors
    assert any(event["ph"] == "i" and "are missing" in event["name"] for event in file.events)


def test_a_trace_that_nobody_reads_is_forgotten(client):
    begin = client.call(trace_get=pb.TraceGet()).trace
    time.sleep(5.5)

    def is_forgotten():
        try:
            client.call(trace_get=pb.TraceGet(trace=begin.trace + 1))
        except Refused as refused:
            return refused.code == pb.E_NOT_FOUND
        return False
    assert is_forgotten()
    with pytest.raises(Refused) as refused:
        client.call(trace_get=pb.TraceGet(trace=begin.trace, next=begin.next))
    assert refused.value.code == pb.E_NOT_FOUND and "begin again" in refused.value.text


# ---- how it is called ----

@pytest.mark.parametrize("arguments, words", [
    (["--seconds", "0"], "--seconds `0': expected a number of seconds above 0"),
    (["--seconds=soon"], "--seconds `soon'"),
    (["-o", ""], "--output `'"),
    (["now"], "unexpected argument `now'"),
])
def test_bad_arguments(gpuqd, arguments, words):
    ended = gpuqd.run("trace", *arguments)
    assert ended.returncode == USAGE and words in ended.stderr and not ended.stdout


def test_a_terminal_gets_no_trace(gpuqd):
    for arguments in ([], ["-o", "-"]):
        assert not on_terminal(80, "--socket", gpuqd.socket, "trace", *arguments, status=USAGE)


def test_standard_output(gpuqd, client, module):
    for arguments in ([], ["-o", "-"]):
        ended = gpuqd.run("trace", "--seconds", "0.2", *arguments)
        assert ended.returncode == OK
        assert File(ended.stdout).other["jobs"] == 0


def test_a_file_that_cannot_be_written(gpuqd):
    ended = gpuqd.run("trace", "--seconds", "0.1", "-o", "/nonexistent/trace.json")
    assert ended.returncode == 1 and "/nonexistent/trace.json: cannot write: No such file" in ended.stderr


# ---- whose jobs ----

@pytest.fixture
def folder():
    """Where any user may read and write."""
    with tempfile.TemporaryDirectory(prefix="gpuq-trace-") as name:
        path = pathlib.Path(name)
        path.chmod(0o777)
        yield path


@pytest.mark.root
def test_others_see_their_own_jobs_and_administrators_all(service, folder):
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    traces = {uid: Tracing(service, folder / f"{uid}.json", uid=uid) for uid in (ALICE, BOB, None)}
    assert "this user" in traces[ALICE].told and "all users" in traces[None].told
    ids = {}
    for uid, client in ((ALICE, alice), (BOB, bob)):
        module = client.load(kernels.BASIC)
        ids[uid] = client.submit(Job(label=f"of {uid}").launch(module, "nothing"))
        assert client.wait(ids[uid]).state == pb.DONE
    gate = GateJob(alice, alice.load(kernels.BASIC))
    until(lambda: alice.status().running, "it to run")
    files = {uid: tracing.end() for uid, tracing in traces.items()}
    gate.open()
    assert alice.wait(gate.id).state == pb.DONE
    assert files[ALICE].jobs() == {text_id(ids[ALICE]), text_id(gate.id)}
    assert files[BOB].jobs() == {text_id(ids[BOB])}
    assert files[None].jobs() == {text_id(id) for id in (*ids.values(), gate.id)}
    assert files[None].other["users"] == "all" and files[BOB].other["users"] == "one"
    assert f"of {BOB}" not in (folder / f"{ALICE}.json").read_text()


@pytest.mark.root
def test_a_trace_of_another_user_is_not_found(service):
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    begin = alice.call(trace_get=pb.TraceGet()).trace
    assert alice.call(trace_get=pb.TraceGet(trace=begin.trace, next=begin.next)).trace.trace == begin.trace
    with pytest.raises(Refused) as refused:
        bob.call(trace_get=pb.TraceGet(trace=begin.trace, next=begin.next))
    assert refused.value.code == pb.E_NOT_FOUND


# ---- Perfetto ----

@pytest.mark.skipif(bool(perfetto.lacks()), reason=str(perfetto.lacks()))
def test_perfetto_reads_it(gpuqd, client, module, tmp_path):
    tracing = Tracing(gpuqd, tmp_path / "trace.json")
    run_many(client, module, 50)
    gate = GateJob(client, module, label='a "gate" ä')
    behind = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    gate.wait_for()
    gate.open()
    assert client.wait(behind).state == pb.DONE
    file = tracing.end()
    problems, slices, flows, names, labels = perfetto.ask(
        tracing.path,
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
        "select ts, dur, name, depth from slice where dur >= 0 and category != '' order by id",
        "select count(*) from flow",
        "select name from process where name is not null union all select name from thread where name is not null",
        "select distinct extract_arg(arg_set_id, 'args.label') from slice where name glob '*: gate'")
    assert not problems
    assert sorted(row[:3] for row in slices) == sorted([ns(event["ts"]), ns(event["dur"]), event["name"]]
                                                       for event in file.slices)
    assert {depth for _, _, _, depth in slices} == {0}  # nothing is nested
    assert flows == [[sum(event["ph"] == "s" for event in file.events)]]
    assert {"device 0", "jobs"} <= {name for name, in names} and labels == [['a "gate" ä']]
