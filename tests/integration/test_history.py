# SPDX-License-Identifier: Apache-2.0
"""The history of ended jobs: what its rows tell, who sees which, how long they stay, and what `gpuq history' and
`gpuq report' make of them."""

import csv
import io
import json
import os
import pathlib
import re
import signal
import sqlite3
import time

import numpy
import pytest

from harness import kernels, place
from harness.client import In, InOut, Job, Out, Refused, u64
from harness.kernels import GateJob, copy_job, triple_job
from harness.messages import pb
from harness.patience import until
from harness.terminal import on_terminal

ALICE, BOB = 12345, 12346  # no passwd entry, like a deleted user's


@pytest.fixture
def gpuqd(lend_gpuqd):
    """One that no other file's tests use: a user with many kinds of jobs in a minute has the rest in one row, without labels."""
    return lend_gpuqd(history_keep_days=99)


def history(client, **fields):
    """All pages, put together."""
    rows, get = [], pb.HistoryGet(**fields)
    while True:
        page = client.call(history_get=get).history
        rows.extend(page.rows)
        if not page.next_ms and not page.next_row:
            return rows
        get.next_ms, get.next_row = page.next_ms, page.next_row


def n_jobs(rows):
    return sum(row.jobs for row in rows)


def report(client, **fields):
    return list(client.call(report_get=pb.ReportGet(**fields)).report.rows)


def run_some(client, n=3, **fields):
    """Short jobs, with the same kernel."""
    values = numpy.arange(64, dtype=numpy.int32)
    module, source, target = client.load(kernels.BASIC), client.array(values), client.arena(values.nbytes)
    for _ in range(n):
        client.run_well(triple_job(module, source, target, 64, **fields))


def fail_one(client, **fields):
    bad = client.run(Job(**fields).launch(client.load(kernels.BASIC), "wild", [InOut(client.arena(4)), u64(kernels.FAR)]))
    assert bad.state == pb.FAILED
    return bad


def documents(daemon, *arguments, **options):
    ended = daemon.run(*arguments, "--json", **options)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def table(daemon, *arguments, **options):
    ended = daemon.run(*arguments, "--csv", **options)
    assert ended.returncode == 0, ended.stderr
    return list(csv.DictReader(io.StringIO(ended.stdout)))


# ---- rows ----

def test_short_jobs_share_a_row_that_has_their_sums(gpuqd, client):
    since = int(time.time() * 1000) - 60000
    run_some(client, 20, label="twenty")
    rows = history(client, since_ms=since, one_label=True, label="twenty")
    assert n_jobs(rows) == 20 and len(rows) <= 2  # a minute may have ended meanwhile
    for row in rows:
        assert (row.uid, row.gid, row.kernels, row.state) == (os.getuid(), os.getgid(), "triple", pb.DONE)
        assert row.device == 1 and row.bytes == row.jobs * 2 * 256 and not row.retries
        assert row.ran.p99 >= row.ran.median and row.waited.p99 >= row.waited.median
        assert bool(row.id) == (row.jobs == 1)
    assert sum(row.gpu_ns for row in rows) > 0


def test_a_failed_job_has_a_row_with_its_reason(gpuqd, client):
    bad = fail_one(client, label="bad one")
    (row,) = history(client, one_label=True, label="bad one")
    assert (row.id, row.state, row.code, row.jobs) == (bad.id, pb.FAILED, pb.E_FAULT, 1)
    assert row.kernels == "wild" and row.reason == bad.error.text[:200]
    assert row.at_ms <= time.time() * 1000


def test_a_cancelled_job_and_one_that_never_ran(gpuqd, client):
    gate = GateJob(client, client.load(kernels.BASIC), label="gate")
    waiting = client.submit(Job(after=[gate.id], label="waiting").launch(client.load(kernels.BASIC), "nothing"))
    client.cancel(waiting)
    assert client.wait(waiting).state == pb.CANCELLED
    gate.open()
    client.wait(gate.id)
    (row,) = history(client, one_label=True, label="waiting")
    assert (row.id, row.state, row.code, row.ran_us, row.device) == (waiting, pb.CANCELLED, pb.E_CANCELLED, 0, 0)


def test_a_refused_job_is_in_it(gpuqd, client):
    refused = client.run(Job(device=4000).launch(client.load(kernels.BASIC), "nothing"))
    assert refused.state == pb.FAILED
    assert refused.id in [row.id for row in history(client, states=1 << pb.FAILED)]


def test_a_detached_job_has_its_own_id(gpuqd, client):
    values = numpy.arange(64, dtype=numpy.int32)
    job = triple_job(client.load(kernels.BASIC), client.array(values), client.arena(values.nbytes), 64, label="stored")
    job_id = client.call(detach=pb.Detach(job=job.message)).detached.id
    client.call(wait=pb.Wait(id=job_id))
    (row,) = history(client, one_label=True, label="stored")
    assert (row.id, row.state) == (job_id, pb.DONE)


def test_a_retried_job_has_the_gpu_time_of_all_its_tries(start_gpuqd):
    """Two of them: a job that was alone in a worker that died is blamed, and not retried."""
    gpuqd = start_gpuqd()
    client = gpuqd.connect()
    values = numpy.arange(64, dtype=numpy.int32)
    module, gate, source = client.load(kernels.BASIC), kernels.Gate(client, n_held=2), client.array(values)
    jobs = [client.submit(kernels.held_job(module, source, client.arena(values.nbytes), 64, gate, label="tried"))
            for _ in range(2)]
    ran_us = until(lambda: (queue := client.queue()) and min(queue[job].ran_us for job in jobs) > 300000
                   and max(queue[job].ran_us for job in jobs), "them to run for a while")
    for pid in gpuqd.workers():
        os.kill(pid, signal.SIGKILL)
    assert [client.wait(job).state for job in jobs] == [pb.DONE] * 2
    rows = history(client, one_label=True, label="tried")
    assert sorted(row.id for row in rows) == jobs and [row.retries for row in rows] == [1, 1]
    assert sum(row.gpu_ns for row in rows) >= 1000 * ran_us > 1000 * max(row.ran_us for row in rows)
    assert min(row.waited_us for row in rows) >= 300000


def test_queries_select(gpuqd, client):
    run_some(client, 2, label="select")
    fail_one(client, label="select")
    mine = dict(one_label=True, label="select")
    assert n_jobs(history(client, **mine)) == 3
    assert n_jobs(history(client, states=1 << pb.FAILED, **mine)) == 1
    assert n_jobs(history(client, kernel="triple", **mine)) == 2
    assert not history(client, kernel="trip", **mine)
    assert not history(client, since_ms=int(time.time() * 1000) + 3600000, **mine)
    assert not history(client, until_ms=1000, **mine)


@pytest.mark.parametrize("fields", [dict(kernel="k" * 200), dict(label="l" * 100), dict(ids=range(101)), dict(uids=[1] * 101)])
def test_a_query_that_is_wrong_is_refused(client, fields):
    with pytest.raises(Refused) as refused:
        history(client, **fields)
    assert refused.value.code == pb.E_INVALID


def test_an_unknown_grouping_is_refused(client):
    with pytest.raises(Refused) as refused:
        report(client, grouping=7)
    assert refused.value.code == pb.E_INVALID


def test_many_queries_at_once_are_all_answered(client):
    run_some(client)
    serials = [client.tell(history_get=pb.HistoryGet()) for _ in range(50)]
    for serial in serials:
        reply, _fds = client.answer(serial)
        assert n_jobs(reply.history.rows) >= 3


def test_a_client_that_leaves_before_the_answer(gpuqd):
    for _ in range(20):
        with gpuqd.connect() as other:
            for _ in range(5):
                other.tell(history_get=pb.HistoryGet())
    with gpuqd.connect() as other:
        history(other)


# ---- whose ----

@pytest.mark.root
def test_users_see_their_own_rows_and_root_all(service):
    for uid in (ALICE, BOB):
        with service.connect(uid=uid) as client:
            run_some(client, 2, label=f"of {uid}")
    with service.connect(uid=ALICE) as alice, service.connect() as root:
        assert {row.uid for row in history(alice)} == {ALICE}
        assert {row.uid for row in history(root)} >= {ALICE, BOB}
        assert {row.uid for row in history(root, one_user=True, uid=BOB)} == {BOB}
        assert {row.uid for row in history(alice, one_user=True, uid=ALICE)} == {ALICE}
        assert {row.uid for row in report(alice)} == {ALICE}
        assert {row.uid for row in report(root)} >= {ALICE, BOB}
        for call in (history, report):
            with pytest.raises(Refused) as refused:
                call(alice, one_user=True, uid=BOB)
            assert refused.value.code == pb.E_DENIED
    both = f"{ALICE},{BOB}"
    for verb in ("history", "report"):
        assert {row["user"] for row in table(service, verb, "-u", both)} == {str(ALICE), str(BOB)}
        assert {row["user"] for row in table(service, verb, "-u", f"{ALICE},{ALICE}", uid=ALICE)} == {str(ALICE)}
        ended = service.run(verb, "-u", both, uid=ALICE)
        assert ended.returncode == 5 and "admin" in ended.stderr
    ended = service.run("history", "--user", BOB, uid=ALICE)
    assert ended.returncode == 5 and "admin" in ended.stderr
    assert {row["uid"] for row in table(service, "history", uid=ALICE)} == {str(ALICE)}


# ---- how long ----

def test_it_outlives_the_supervisor_and_the_daemon(start_gpuqd, tmp_path):
    daemon = start_gpuqd(state_dir=tmp_path / "state")
    with daemon.connect() as client:
        run_some(client, 5)
        assert n_jobs(history(client)) == 5
    supervisor = daemon.supervisor()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: daemon.supervisor() != supervisor and daemon.is_serving(), "the next supervisor")
    with daemon.connect() as client:
        assert n_jobs(history(client)) == 5
        run_some(client, 2)
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(place.PATIENCE_S) == 0
    daemon = start_gpuqd(state_dir=tmp_path / "state")
    with daemon.connect() as client:
        assert n_jobs(history(client)) == 7


def database(daemon):
    return pathlib.Path(daemon.settings["state_dir"]) / "history" / "history.db"


def test_old_rows_go_after_history_keep_days(start_gpuqd, tmp_path):
    daemon = start_gpuqd(state_dir=tmp_path / "state", history_keep_days=2)
    with daemon.connect() as client:
        fail_one(client)
        fail_one(client)
        assert len(history(client)) == 2
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(place.PATIENCE_S) == 0
    with sqlite3.connect(database(daemon)) as db:
        db.execute("UPDATE ends SET at = at - 3 * 86400000 WHERE row = 1")
    db.close()
    daemon = start_gpuqd(state_dir=tmp_path / "state", history_keep_days=2)
    with daemon.connect() as client:
        until(lambda: len(history(client)) == 1, "the old row to go")


def test_without_history_keep_days_there_is_none(start_gpuqd, tmp_path):
    daemon = start_gpuqd(state_dir=tmp_path / "state")
    with daemon.connect() as client:
        run_some(client)
        assert history(client)
        daemon.configure(history_keep_days=0)
        until(lambda: not database(daemon).exists(), "the file to go")
        run_some(client)
        with pytest.raises(Refused) as refused:
            history(client)
        assert refused.value.code == pb.E_NOT_FOUND and "history_keep_days" in refused.value.text
        daemon.configure(history_keep_days=1)
        until(lambda: database(daemon).exists(), "the file to be there again")
        run_some(client, 2)
        assert n_jobs(history(client)) == 2


def test_without_state_dir_there_is_none(start_gpuqd):
    daemon = start_gpuqd(state_dir="")
    with daemon.connect() as client:
        run_some(client)
        with pytest.raises(Refused) as refused:
            history(client)
        assert refused.value.code == pb.E_NOT_FOUND and "state_dir" in refused.value.text
        assert "state_dir" in client.status().history_problem


# ---- the command line ----

def test_history_shows_a_table(gpuqd, client):
    run_some(client, 2, label="shown")
    bad = fail_one(client, label="shown")
    ended = gpuqd.run("history", "--label", "shown")
    assert ended.returncode == 0 and ended.stderr == ""
    heading, *lines = ended.stdout.splitlines()
    assert heading.split()[:6] == ["ENDED", "JOB", "USER", "LABEL", "KERNELS", "STATE"]
    assert any("triple" in line and "done" in line for line in lines)
    assert any(f"{bad.id >> 32}.{bad.id & 0xffffffff}" in line and "failed" in line for line in lines)
    assert gpuqd.run("history", "--label", "shown", "-h").stdout.splitlines() == lines


def test_on_a_narrow_terminal_the_reason_is_whole(gpuqd, client):
    label = "a label that takes its place"
    fail_one(client, label=label)
    (row,) = documents(gpuqd, "history", "--label", label)["history"]
    lines = on_terminal(80, "--socket", gpuqd.socket, "history", "--label", label, LC_ALL="C.UTF-8", NO_COLOR="1").splitlines()
    assert max(map(len, lines)) <= 80
    place_of_reason = lines[0].index("REASON")
    assert "".join(line[place_of_reason:] for line in lines[1:]).replace(" ", "") == row["reason"].replace(" ", "")


def test_csv_and_json_tell_the_same(gpuqd, client):
    label = 'with, "quotes"'
    run_some(client, 3, label=label)
    fail_one(client, label=label)
    rows = table(gpuqd, "history", "--label", label)
    members = documents(gpuqd, "history", "--label", label)["history"]
    assert sum(int(row["jobs"]) for row in rows) == 4 and len(rows) == len(members)
    for row, member in zip(rows, members):
        assert row["label"] == member["label"] == label
        assert row["id"] == (member["id"] or "")
        for name in ("time", "user", "kernels", "state", "code", "reason"):
            assert row[name] == member[name]
        for name in ("uid", "gid", "device", "jobs", "waited_us", "ran_us", "gpu_us", "bytes", "retries", "slurm_job"):
            assert int(row[name]) == member[name]
        assert int(row["ran_median_us"]) == member["ran_each_us"]["median"]


def test_options_of_history_select(gpuqd, client):
    run_some(client, 2, label="options")
    fail_one(client, label="options")
    def jobs(*arguments):
        return sum(int(row["jobs"]) for row in table(gpuqd, "history", "--label", "options", *arguments))
    assert jobs("--state", "failed") == 1
    assert jobs("--kernel", "triple") == 2
    assert jobs("--user", os.getuid(), "--since", "now-1h") == 3
    assert jobs("-S", "2001-01-01", "-E", "2001-01-02 13:00") == 0


def test_a_job_is_found_by_id_whenever_it_ended(start_gpuqd, tmp_path):
    daemon = start_gpuqd(state_dir=tmp_path / "state")
    with daemon.connect() as client:
        job = fail_one(client).id
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(place.PATIENCE_S) == 0
    with sqlite3.connect(database(daemon)) as db:
        db.execute("UPDATE ends SET at = at - 3 * 86400000")
    db.close()
    daemon = start_gpuqd(state_dir=tmp_path / "state")
    assert not table(daemon, "history")
    assert len(table(daemon, "history", "-j", f"{job >> 32}.{job & 0xffffffff}")) == 1
    assert not table(daemon, "history", "-j", f"{job >> 32}.{job & 0xffffffff}", "-S", "today")


def test_jobs_are_found_by_id(gpuqd, client):
    bad, other, _third = (fail_one(client, label="by id").id for _ in range(3))
    ids = [f"{job >> 32}.{job & 0xffffffff}" for job in (bad, other)]
    assert [row["id"] for row in table(gpuqd, "history", "-j", ",".join(ids))] == ids
    assert [row["id"] for row in table(gpuqd, "history", "--job", ids[1], "-j", ids[0])] == ids
    assert not table(gpuqd, "history", "-j", ids[0], "-E", "2001-01-01")
    assert len(table(gpuqd, "history", "-j", ids[0], "-S", "now-1h")) == 1
    assert not table(gpuqd, "history", "-j", ids[0], "--state", "done")


def test_states_in_any_case_and_several(gpuqd, client):
    run_some(client, 2, label="states")
    fail_one(client, label="states")
    def jobs(states):
        return sum(int(row["jobs"]) for row in table(gpuqd, "history", "--label", "states", "--state", states))
    assert [jobs(states) for states in ("FAILED", "Completed", "done,FAILED", "cancelled", "failed,failed,COMPLETED,done")] == [1, 2, 3, 0, 3]


def test_jobs_of_one_device(gpuqd, client):
    run_some(client, 2, label="device")
    refused = client.run(Job(device=4000).launch(client.load(kernels.BASIC), "nothing"))
    nowhere = f"{refused.id >> 32}.{refused.id & 0xffffffff}"
    assert [row["device"] for row in table(gpuqd, "history", "-j", nowhere)] == [""]
    assert not table(gpuqd, "history", "-j", nowhere, "--device", 0)
    assert sum(int(row["jobs"]) for row in table(gpuqd, "history", "--label", "device", "--device", 0)) == 2
    assert not table(gpuqd, "history", "--device", 1)
    assert sum(int(row["jobs"]) for row in table(gpuqd, "report", "--device", 0)) >= 2
    assert not table(gpuqd, "report", "--device", 1)


def test_a_single_job_tells_when_it_was_submitted(gpuqd, client):
    run_some(client, 3, label="submitted")
    gate = GateJob(client, client.load(kernels.BASIC))
    began = time.time()
    waiting = client.submit(Job(after=[gate.id], label="submitted").launch(client.load(kernels.BASIC), "nothing"))
    told = time.time()
    until(lambda: client.queue()[waiting].waited_us > 500000, "it to wait for a while")
    client.cancel(waiting)
    assert client.wait(waiting).state == pb.CANCELLED
    gate.open()
    rows = {row["id"]: row for row in documents(gpuqd, "history", "--label", "submitted")["history"]}
    single = rows[f"{waiting >> 32}.{waiting & 0xffffffff}"]
    shared = [row for row in rows.values() if row["submitted"] is None]  # rows for short jobs: the first one may be long on a GPU
    assert shared and all(row["submitted_ms"] is None and row["time_ms"] % 60000 == 0 for row in shared)
    assert single["time_ms"] - single["submitted_ms"] == (single["waited_us"] + single["ran_us"]) // 1000 >= 500
    assert began - 0.5 <= single["submitted_ms"] / 1000 <= told + 0.1  # gpuqd notes an end to a quarter of a second
    lines = {row["id"]: row["submitted"] for row in table(gpuqd, "history", "--label", "submitted")}
    assert lines[single["id"]] == single["submitted"] <= single["time"]
    assert "SUBMITTED" in gpuqd.run("history").stdout


def test_a_row_of_one_short_job_has_its_exact_times(gpuqd, client):
    run_some(client, 1, label="exact")
    (row,) = documents(gpuqd, "history", "--label", "exact")["history"]
    assert row["jobs"] == 1
    for name in ("waited", "ran"):
        assert set(row[f"{name}_each_us"].values()) == {row[f"{name}_us"]}


def test_numbers_have_at_most_six_decimals(gpuqd, client):
    run_some(client, 3)
    for arguments in (("report",), ("status",)):
        told = gpuqd.run(*arguments, "--json").stdout
        assert re.search(r'"gpu_seconds": \d+\.\d{1,6},?$', told, re.M), told
        assert not re.search(r"\d\.\d{7}", told), told


@pytest.mark.parametrize("options", [(), ("--per", "day", "--by", "label")])
def test_a_report_on_a_terminal(gpuqd, client, options):
    label = "a label that is longer than it should be for eighty columns"
    run_some(client, 2, label=label)
    lines = on_terminal(80, "--socket", gpuqd.socket, "report", *options, LC_ALL="C.UTF-8", NO_COLOR="1").splitlines()
    assert max(map(len, lines)) <= 80 and lines[0].split()[-1] == "COPIED" and " GPU SEC " in lines[0]
    assert len(lines) == 2 and (label[:8] in lines[1] or not options), lines


def test_a_report_per_week(gpuqd, client):
    run_some(client, 1)
    (row,) = documents(gpuqd, "report", "--per", "week", "--since", "today")["report"]
    assert row["jobs"] >= 1
    ended = gpuqd.run("report", "--per", "week", "--since", "now-3w")
    assert ended.stdout.split()[0] == "WEEK" and time.strftime("%G-W%V") in ended.stdout
    day = (time.mktime(time.strptime(row["begin"][:10], "%Y-%m-%d")), time.mktime(time.strptime(row["end"][:10], "%Y-%m-%d")))
    assert day[1] - day[0] < 8 * 86400


def test_a_report_sums_up(gpuqd, client):
    run_some(client, 3, label="summed")
    fail_one(client, label="summed")
    (row,) = [row for row in table(gpuqd, "report", "--by", "label") if row["label"] == "summed"]
    assert (row["jobs"], row["failed"], row["cancelled"]) == ("4", "1", "0") and float(row["gpu_seconds"]) > 0
    by_user = documents(gpuqd, "report", "--per", "day", "--since", "now-2d")["report"]
    assert sum(row["jobs"] for row in by_user) >= 4
    by_group = documents(gpuqd, "report", "--by", "group")["report"]
    assert all(row["user"] == "-" and row["group"] for row in by_group)
    ended = gpuqd.run("report", "--by", "label", "--per", "month")
    assert ended.stdout.split()[:3] == ["MONTH", "USER", "LABEL"] and "summed" in ended.stdout


@pytest.mark.parametrize("arguments, words", [
    (("history", "--since", "tomorrow"), "--since `tomorrow': expected a time, such as"),
    (("history", "--until", "2026-02-31"), "--until `2026-02-31': expected a time"),
    (("history", "--until", "yesterday"), "--until is not after --since"),
    (("history", "--state", "lost"), "--state `lost': expected done, failed or cancelled"),
    (("history", "--user", "nobody-here"), "this machine has no such user"),
    (("history", "--csv", "--json"), "exclude each other"),
    (("history", "more"), "unexpected argument `more'"),
    (("report", "--by", "colour"), "--by `colour': expected user, group, label, slurm-job or account"),
    (("history", "--state", "failed,lost"), "--state `lost': expected done, failed or cancelled"),
    (("history", "--user", f"{os.getuid()},nobody-here"), "--user `nobody-here': this machine has no such user"),
    (("history", "--user", ",".join(["1"] * 101)), "more than 100 users"),
    (("history", "--job", "1.1,here"), "--job `here': not a job id"),
    (("history", "-j", ",".join(["1"] * 101)), "more than 100 ids"),
    (("history", "--device", "one"), "--device `one': expected a device number"),
    (("report", "--device", "-1"), "--device `-1': expected a device number"),
    (("report", "--per", "year"), "--per `year': expected day, week, month or all"),
    (("report", "--per", "day", "--since", "1970-01-02"), "at most 3660 days"),
])
def test_wrong_options_are_told(gpuqd, arguments, words):
    ended = gpuqd.run(*arguments)
    assert ended.returncode == 2 and words in ended.stderr, ended.stderr
