# SPDX-License-Identifier: Apache-2.0
"""Detached jobs: they outlive their client, the supervisor and the daemon; their outputs are fetched later, by their user."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import tempfile
import threading
import time

import numpy
import pytest

from harness import kernels, place, processes
from harness.client import In, InOut, Job, Out, Refused, Slice, u64
from harness.kernels import Gate, held_at_job, triple_job
from harness.messages import pb
from harness.patience import until

ALICE, BOB = 12345, 12346  # no passwd entry, like a deleted user's

SOURCE = kernels.BASIC + r"""
extern "C" __global__ void twice(const float *x, float *y, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
                y[i] = 2 * x[i];
        if (i == 0)
                printf("twice %d\n", n);
}

extern "C" __global__ void triple_later(const int *in, int *out, unsigned long long n)
{
        for (int i = 0; i < 10000; i++)
                __nanosleep(100000);
        for (unsigned long long i = 0; i < n; i++)
                out[i] = 3 * in[i];
}
"""


@pytest.fixture
def folder():
    """Where any user may read and write."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-detach-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def files(folder):
    """files("a"): the arguments of an addition, and what it should write where."""
    def make(name, n=1000, seed=1):
        values = numpy.random.default_rng(seed).random((2, n), dtype=numpy.float32)
        paths = [folder / f"{name}-{part}.npy" for part in "xyz"]
        numpy.save(paths[0], values[0])
        numpy.save(paths[1], values[1])
        arguments = ["builtin:add_f32", f"in:{paths[0]}", f"in:{paths[1]}", f"out:{paths[2]}:float32:{n}", f"u64:{n}"]
        return arguments, paths[2], values[0] + values[1]
    return make


def detach(daemon, *arguments, **options):
    ended = daemon.run("run", "--detach", *arguments, **options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def fetch(daemon, job, *options, **more):
    ended = daemon.run("fetch", *options, job, **more)
    assert ended.returncode == 0, ended.stderr
    return ended


def restart(daemon):
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(place.PATIENCE_S) == 0
    daemon.start()


def kill_all(daemon):
    """As a machine does that loses its power, but for what the kernel still has to write."""
    family = processes.descendants(daemon.process.pid)
    for pid in [daemon.process.pid, *family]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    daemon.process.wait(place.PATIENCE_S)
    # One that a thread of its keeps at the disk still has the lock on the folder of jobs.
    until(lambda: all(processes.is_gone(pid) for pid in family), "its processes to be gone")
    processes.reap_orphans()
    daemon.socket.unlink(missing_ok=True)


def message(client, job, key=0, note=b""):
    return client.call(detach=pb.Detach(job=job.message, note=note, key=key)).detached.id


def fetched(client, job):
    """The answer, and the outputs' bytes."""
    reply, fds = client.answer(client.tell(fetch=pb.Fetch(id=job)))
    outputs = [os.pread(fds[0], output.length, output.offset) for output in reply.fetched.outputs]
    for fd in fds:
        os.close(fd)
    return reply.fetched, outputs


def refused(client, **body):
    with pytest.raises(Refused) as error:
        client.call(**body)
    return error.value


def small_job(client, module, n=16, gate_address=None):
    """And what it writes, once the gate is open if there is one."""
    values = numpy.arange(n, dtype=numpy.int32)
    source, target = client.array(values), client.arena(4 * n)
    if gate_address is None:
        job = triple_job(module, source, target, n)
    else:
        job = held_at_job(module, source, target, n, gate_address)
    return job, (3 * values).tobytes()


# ---- the command line ----

def test_run_detach_wait_fetch(gpuqd, files):
    arguments, path, result = files("a")
    job = detach(gpuqd, *arguments)
    assert job.startswith("0.") and not path.exists()
    assert gpuqd.run("wait", job).returncode == 0
    fetch(gpuqd, job)
    numpy.testing.assert_array_equal(numpy.load(path), result)
    assert gpuqd.run("fetch", job).returncode == 4
    assert not gpuqd.detached()


def test_fetch_waits_and_says_what_run_would_have(gpuqd, folder):
    source, x, y = folder / "k.cu", folder / "x.npy", folder / "y.npy"
    source.write_text(SOURCE)
    numpy.save(x, numpy.arange(1000, dtype=numpy.float32))
    job = detach(gpuqd, f"{source}:twice", f"in:{x}", f"out:{y.name}:float32:10,100", "i32:1000", cwd=folder)
    source.unlink()
    x.unlink()
    ended = fetch(gpuqd, job, "--json", cwd="/")
    told = json.loads(ended.stdout)
    assert (told["id"], told["state"], told["kernel"], told["output"]) == (job, "done", "twice", "twice 1000\n")
    assert told["outputs"] == [{"argument": 2, "file": str(y), "dtype": "float32", "shape": [10, 100]}]
    numpy.testing.assert_array_equal(numpy.load(y), 2 * numpy.arange(1000, dtype=numpy.float32).reshape(10, 100))


def test_names_and_headers_are_kept_with_the_job(gpuqd, folder):
    source, out = folder / "k.cu", folder / "out.npy"
    (folder / "size.h").write_text("#define SIZE 5\n")
    source.write_text("""
#include "size.h"
template <class T> __global__ void fill(T *x)
{
        for (long long start = clock64(); clock64() - start < 1000000000;)
                ;
        x[threadIdx.x] = SIZE;
}
""")
    job = detach(gpuqd, f"{source}:fill<float>", f"out:{out}:float32:4", "--block", "4")
    (folder / "size.h").unlink()
    kill_all(gpuqd)
    gpuqd.start()  # it is interrupted, and its module compiled again
    fetch(gpuqd, job)
    assert (numpy.load(out) == 5).all()


def test_inout_is_written_back_and_kept_until_then(gpuqd, folder):
    source, data = folder / "k.cu", folder / "data.npy"
    source.write_text(SOURCE)
    numpy.save(data, numpy.arange(100, dtype=numpy.int32))
    job = detach(gpuqd, f"{source}:add_one", f"inout:{data}", "u64:100")
    assert gpuqd.run("wait", job).returncode == 0
    assert numpy.load(data)[0] == 0
    for _ in range(2):
        fetch(gpuqd, job, "--keep")
        numpy.testing.assert_array_equal(numpy.load(data), 1 + numpy.arange(100))
    fetch(gpuqd, job, "--quiet")
    assert not gpuqd.detached()


def test_a_job_that_fails_is_told_with_its_exit_code(gpuqd, folder):
    source, out = folder / "k.cu", folder / "out.npy"
    source.write_text(SOURCE)
    job = detach(gpuqd, "--timeout", "0.3", f"{source}:forever", f"out:{out}:int32:1")
    for _ in range(2):
        ended = gpuqd.run("wait", job)
        assert ended.returncode == 124, ended
    ended = gpuqd.run("fetch", job)
    assert ended.returncode == 124 and not out.exists(), ended
    assert gpuqd.run("wait", job).returncode in (4, 124)  # the history may still have it
    assert not gpuqd.detached()


def test_a_fetch_that_cannot_write_leaves_the_outputs_with_the_daemon(gpuqd, files, folder):
    arguments, path, result = files("a")
    job = detach(gpuqd, *arguments)
    path.mkdir()
    ended = gpuqd.run("fetch", job)
    assert ended.returncode == 1 and path.name in ended.stderr
    path.rmdir()
    fetch(gpuqd, job)
    numpy.testing.assert_array_equal(numpy.load(path), result)


def test_queue_shows_and_cancel_ends_them(gpuqd, folder):
    source, out = folder / "k.cu", folder / "out.npy"
    source.write_text(SOURCE)
    ids = [detach(gpuqd, "--label", "mine", f"{source}:forever", f"out:{out}:int32:1") for _ in range(12)]
    listing = gpuqd.run("queue", "--json")
    entries = {entry["id"]: entry for entry in json.loads(listing.stdout)["jobs"]}
    assert entries.keys() == set(ids) and all(entry["label"] == "mine" for entry in entries.values())
    assert gpuqd.run("cancel", ids[0], ids[-1]).returncode == 0
    assert gpuqd.run("cancel", "--all").returncode == 0
    for job in ids:
        ended = gpuqd.run("wait", job)
        assert ended.returncode == 1 and "cancelled" in ended.stderr, ended
    assert gpuqd.run("cancel", ids[0]).returncode == 4


# ---- the protocol ----

def test_slices_that_overlap_go_on_overlapping(client):
    """One buffer reads what the job writes by another name of the same bytes."""
    module = client.load(SOURCE)
    arena = client.array(numpy.arange(100, dtype=numpy.int32))
    job = Job()
    job.launch(module, "add_one", [InOut(arena.slice(0, 80)), u64(20)], block=32)
    job.launch(module, "add_one", [InOut(arena.slice(40, 80)), u64(20)], block=32)
    job_id = message(client, job)
    arena.array(numpy.int32)[:] = -1  # not its any more
    answer, outputs = fetched(client, job_id)
    assert answer.completion.state == pb.DONE, answer
    first, second = (numpy.frombuffer(output, numpy.int32) for output in outputs)
    assert first.tolist() == [i + 1 + (i >= 10) for i in range(20)]
    assert second.tolist() == [i + 10 + 1 + (i + 10 < 20) for i in range(20)]


def test_the_same_request_twice_is_one_job(client, gpuqd):
    job, result = small_job(client, client.load(SOURCE))
    first = message(client, job, key=77)
    assert message(client, job, key=77) == first and message(client, job, key=78) != first
    assert fetched(client, first)[1] == [result]


def test_a_note_comes_back_as_it_was(client):
    job, result = small_job(client, client.load(SOURCE))
    note = bytes(range(256)) * 256
    job_id = message(client, job, note=note)
    answer, outputs = fetched(client, job_id)
    assert answer.note == note and outputs == [result]
    assert refused(client, detach=pb.Detach(job=job.message, note=note + b"x")).code == pb.E_INVALID


def test_what_a_detached_job_may_not_have(client):
    module = client.load(SOURCE)
    job = Job(after=[client.submit(Job().launch(module, "nothing"))]).launch(module, "nothing")
    assert refused(client, detach=pb.Detach(job=job.message)).code == pb.E_INVALID
    device = client.device_arena(64)
    job = Job().launch(module, "add_one", [InOut(device.slice()), u64(1)])
    assert refused(client, detach=pb.Detach(job=job.message)).code == pb.E_INVALID
    assert refused(client, detach=pb.Detach()).code == pb.E_INVALID
    gone = Job().launch(module, "add_one", [InOut(Slice(999999, 0, 4)), u64(1)])
    assert refused(client, detach=pb.Detach(job=gone.message)).code == pb.E_NOT_FOUND


def test_no_job_comes_after_a_detached_one(client):
    module = client.load(SOURCE)
    job_id = message(client, small_job(client, module)[0])
    completion = client.run(Job(after=[job_id]).launch(module, "nothing"))
    assert completion.state == pb.FAILED and "detached" in completion.error.text


def test_only_what_has_ended_is_discarded(client):
    module = client.load(SOURCE)
    out = client.arena(64)
    job_id = message(client, Job().launch(module, "forever", [Out(out.slice())]))
    assert refused(client, discard=pb.Discard(id=job_id)).code == pb.E_INVALID
    assert refused(client, discard=pb.Discard(id=job_id + 1)).code == pb.E_NOT_FOUND
    waiting = client.tell(wait=pb.Wait(id=job_id))
    assert list(client.cancel(job_id).ids) == [job_id]
    (completion,) = client.answer(waiting)[0].completions.completions
    assert completion.state == pb.CANCELLED
    client.call(discard=pb.Discard(id=job_id))
    assert refused(client, discard=pb.Discard(id=job_id)).code == pb.E_NOT_FOUND


def test_a_clients_death_does_not_end_them(gpuqd):
    other = gpuqd.connect()
    gate = Gate(other)
    address = gate.address(other.load(kernels.BASIC))
    with gpuqd.connect() as client:
        job, result = small_job(client, client.load(kernels.BASIC), gate_address=address)
        job_id = message(client, job)
    gate.wait_for()
    with gpuqd.connect() as client:
        client.tell(fetch=pb.Fetch(id=job_id))
    until(lambda: other.status().users[0].sessions == 1, "both to be gone")
    gate.open()
    assert fetched(gpuqd.connect(), job_id)[1] == [result]


def test_another_jobs_fault_costs_a_detached_job_a_run_from_the_start(client):
    """It may have been half way through writing back: its input is on disk."""
    module = client.load(SOURCE)
    values = numpy.arange(1 << 20, dtype=numpy.int32)
    data = client.array(values)
    ids = [message(client, Job().launch(module, "add_one", [InOut(data.slice()), u64(len(values))], grid=4096, block=256))
           for _ in range(4)]
    small = client.arena(64)
    client.run(Job().launch(module, "wild", [InOut(small.slice()), u64(kernels.FAR)]))
    for job_id in ids:
        answer, outputs = fetched(client, job_id)
        assert answer.completion.state == pb.DONE, answer.completion.error
        numpy.testing.assert_array_equal(numpy.frombuffer(outputs[0], numpy.int32), values + 1)


# ---- limits ----

def test_the_quota_counts_jobs_until_they_are_fetched(start_gpuqd):
    daemon = start_gpuqd(detached_jobs=2)
    client = daemon.connect()
    job, result = small_job(client, client.load(SOURCE))
    ids = [message(client, job) for _ in range(2)]
    error = refused(client, detach=pb.Detach(job=job.message))
    assert error.code == pb.E_QUOTA and "detached_jobs" in error.text
    fetched(client, ids[0])
    client.call(discard=pb.Discard(id=ids[0]))
    assert fetched(client, message(client, job))[1] == [result]


def test_the_quota_counts_bytes(start_gpuqd):
    daemon = start_gpuqd(detached_bytes="1M")
    client = daemon.connect()
    module = client.load(SOURCE)
    big = client.arena(2 << 20)
    error = refused(client, detach=pb.Detach(job=Job().launch(module, "add_one", [InOut(big.slice()), u64(1)]).message))
    assert error.code == pb.E_QUOTA and "detached_bytes" in error.text
    assert message(client, Job().launch(module, "add_one", [InOut(big.slice(0, 4096)), u64(1)]))


def test_results_that_nobody_fetches_go(start_gpuqd):
    daemon = start_gpuqd(detached_keep_s=1)
    client = daemon.connect()
    job_id = message(client, small_job(client, client.load(SOURCE))[0])
    client.call(wait=pb.Wait(id=job_id))
    time.sleep(2.1)  # whole seconds count
    restart(daemon)
    until(lambda: not daemon.detached(), "the result to be discarded")
    assert "not fetched" in daemon.log()


def test_without_a_folder_there_are_none_and_all_else_works(start_gpuqd):
    daemon = start_gpuqd(state_dir="")
    client = daemon.connect()
    job, _result = small_job(client, client.load(SOURCE))
    error = refused(client, detach=pb.Detach(job=job.message))
    assert error.code == pb.E_NO_DEVICE and "state_dir" in error.text
    client.run_well(job)


def test_a_second_daemon_leaves_the_first_ones_alone(gpuqd, start_gpuqd):
    other = start_gpuqd(state_dir=gpuqd.settings["state_dir"])
    client = other.connect()
    job, _result = small_job(client, client.load(SOURCE))
    error = refused(client, detach=pb.Detach(job=job.message))
    assert error.code == pb.E_NO_DEVICE and "another gpuqd" in error.text
    client.run_well(job)


def test_one_that_cannot_be_looked_for_is_not_unknown_to_cancel(gpuqd, start_gpuqd):
    other = start_gpuqd(state_dir=gpuqd.settings["state_dir"])
    client = other.connect()
    job = kernels.GateJob(client, client.load(SOURCE)).id
    error = refused(client, cancel=pb.Cancel(ids=[job, 1]))
    assert error.code == pb.E_NO_DEVICE and "another gpuqd" in error.text
    assert job in client.queue()
    ended = other.run("cancel", "0.1", f"{job >> 32}.{job & 0xffffffff}")
    assert ended.returncode == 1 and "another gpuqd" in ended.stderr and "no such job" not in ended.stderr, ended
    assert client.wait(job).state == pb.CANCELLED
    job = kernels.GateJob(client, client.load(SOURCE)).id
    ended = other.run("cancel", "--json", f"{job >> 32}.{job & 0xffffffff}", "0.1")
    assert ended.returncode == 1 and [entry["outcome"] for entry in json.loads(ended.stdout)["jobs"]] == ["cancelled"], ended
    ended = other.run("cancel", "--json", "0.1")
    assert ended.returncode == 1 and not ended.stdout and "another gpuqd" in ended.stderr, ended


def test_a_reload_leaves_them_where_they_are(gpuqd, tmp_path):
    """state_dir counts from the next start, not from the next supervisor; limits count at once."""
    client = gpuqd.connect()
    module, gate = client.load(kernels.BASIC), Gate(client)
    job, result = small_job(client, module, gate_address=gate.address(module))
    running = message(client, job)
    gate.wait_for()
    before, n_read = gpuqd.settings["state_dir"], gpuqd.log().count("configuration reloaded")
    gpuqd.configure(state_dir=tmp_path, detached_jobs=1)
    until(lambda: gpuqd.log().count("configuration reloaded") > n_read, "the supervisor to have read it")
    assert refused(client, detach=pb.Detach(job=small_job(client, module)[0].message)).code == pb.E_QUOTA
    gate.open()
    assert fetched(client, running)[1] == [result]
    supervisor = gpuqd.supervisor()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: gpuqd.supervisor() != supervisor and gpuqd.is_serving(), "another supervisor")
    client = gpuqd.connect()
    assert fetched(client, running)[1] == [result]
    assert not (tmp_path / "jobs").exists() and "state_dir" in gpuqd.log()
    gpuqd.configure(state_dir=before)


def test_a_reload_while_another_gpuqd_has_the_folder(start_gpuqd, tmp_path):
    first = start_gpuqd(state_dir=tmp_path)
    with first.connect() as client:
        job_id = message(client, small_job(client, client.load(SOURCE))[0])
        _reply, outputs = fetched(client, job_id)
    second = start_gpuqd(state_dir=tmp_path)
    client = second.connect()
    second.configure(detached_keep_s=1000, state_dir=tmp_path / "other")
    error = refused(client, fetch=pb.Fetch(id=job_id))
    assert error.code == pb.E_NO_DEVICE and f"{tmp_path}/jobs: another gpuqd" in error.text
    assert first.stop() == 0
    until(lambda: "found 1 detached job on disk" in second.log(), "the second to have the folder")
    assert fetched(client, job_id)[1] == outputs


# ---- users ----

@pytest.mark.root
def test_they_are_their_users_alone(service, files):
    arguments, path, result = files("a")
    job = detach(service, *arguments, uid=ALICE)
    assert service.run("wait", job, uid=ALICE).returncode == 0
    for verb in ("wait", "fetch", "cancel"):
        assert service.run(verb, job, uid=BOB).returncode == 5
    assert service.run("wait", job).returncode == 0  # root
    assert service.run("fetch", job).returncode == 5
    fetch(service, job, uid=ALICE)
    numpy.testing.assert_array_equal(numpy.load(path), result)
    assert path.stat().st_uid == ALICE


@pytest.mark.root
def test_what_is_on_disk_is_closed_to_all_users(service):
    alice = service.connect(uid=ALICE)
    message(alice, small_job(alice, alice.load(SOURCE))[0])
    status = service.jobs_folder().stat()
    assert status.st_mode & 0o777 == 0o700 and status.st_uid not in (0, ALICE)


@pytest.mark.root
def test_each_user_runs_their_own_after_a_restart(service):
    wanted = {}
    clients = {uid: service.connect(uid=uid) for uid in (ALICE, BOB)}
    modules = {uid: client.load(SOURCE) for uid, client in clients.items()}
    for uid, client in clients.items():
        client.run_well(Job().launch(modules[uid], "nothing"))
    for pid in service.workers():  # they have no more than begun when it ends
        os.kill(pid, signal.SIGSTOP)
    for uid, client in clients.items():
        for n in (16, 32, 48):
            job, result = small_job(client, modules[uid], n)
            wanted[message(client, job)] = (uid, result)
    restart(service)
    for job_id, (uid, result) in wanted.items():
        with service.connect(uid=uid) as client:
            assert fetched(client, job_id)[1] == [result]
            client.call(discard=pb.Discard(id=job_id))
    assert not service.detached()


# ---- restarts ----

def test_ids_are_never_given_twice(gpuqd):
    seen = set()
    for _ in range(3):
        with gpuqd.connect() as client:
            job_id = message(client, small_job(client, client.load(SOURCE))[0])
            fetched(client, job_id)
            client.call(discard=pb.Discard(id=job_id))
        assert job_id not in seen
        seen.add(job_id)
        restart(gpuqd)


def test_a_result_outlives_the_daemon(gpuqd, files):
    arguments, path, result = files("a")
    job = detach(gpuqd, *arguments)
    gpuqd.run("wait", job)
    restart(gpuqd)
    assert gpuqd.run("wait", job).returncode == 0
    fetch(gpuqd, job)
    numpy.testing.assert_array_equal(numpy.load(path), result)


def test_a_cancelled_job_does_not_come_back(gpuqd):
    with gpuqd.connect() as client:
        out = client.arena(64)
        job_id = message(client, Job().launch(client.load(SOURCE), "forever", [Out(out.slice())]))
        client.cancel(job_id)
        client.call(wait=pb.Wait(id=job_id))
    kill_all(gpuqd)
    gpuqd.start()
    client = gpuqd.connect()
    (completion,) = client.call(wait=pb.Wait(id=job_id)).completions.completions
    assert completion.state == pb.CANCELLED and not client.queue()


def test_one_that_ran_at_the_supervisors_death_runs_again(gpuqd):
    """Its worker may be another one: no gate of this one would be there."""
    client = gpuqd.connect()
    values = numpy.arange(16, dtype=numpy.int32)
    job_id = message(client, Job().launch(client.load(SOURCE), "triple_later", [In(client.array(values)), Out(client.arena(64)), u64(16)]))
    until(lambda: all(entry.state == pb.RUNNING for entry in client.queue().values()), "it to run, or to have ended where this is slow")
    supervisor = gpuqd.supervisor()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: gpuqd.supervisor() != supervisor and gpuqd.is_serving(), "another supervisor")
    assert fetched(gpuqd.connect(), job_id)[1] == [(3 * values).tobytes()]


# ---- kill -9 of all of it at random points ----

class Crowd(threading.Thread):
    """A user who detaches one job after the other and remembers what was acknowledged."""

    def __init__(self, daemon, uid, folder, seed):
        super().__init__()
        self.daemon_under_test, self.uid, self.folder, self.seed = daemon, uid, folder, seed
        self.acknowledged = {}
        self.problems = []
        self.stop = False

    def run(self):
        dice = random.Random(self.seed)
        while not self.stop:
            n = dice.randrange(1, 20000)
            name = f"{self.uid}-{self.seed}-{n}"
            x, y, z = (self.folder / f"{name}-{part}.npy" for part in "xyz")
            values = numpy.random.default_rng(n).random((2, n), dtype=numpy.float32)
            numpy.save(x, values[0])
            numpy.save(y, values[1])
            ended = self.daemon_under_test.run("run", "--detach", "builtin:add_f32", f"in:{x}", f"in:{y}",
                                               f"out:{z}:float32:{n}", f"u64:{n}", uid=self.uid)
            if ended.returncode == 0:
                self.acknowledged[ended.stdout.strip()] = (self.uid, z, values[0] + values[1])
            else:
                self.problems.append(ended.stderr)


@pytest.mark.root
def test_a_kill_of_all_at_random_points_loses_nothing_that_was_acknowledged(service, folder):
    dice = random.Random(1)
    wanted = {}
    for turn in range(6):
        crowd = [Crowd(service, uid, folder, f"{turn}.{i}") for i, uid in enumerate((ALICE, BOB, ALICE, BOB))]
        for user in crowd:
            user.start()
        until(lambda: any(user.acknowledged for user in crowd), "a job that is acknowledged")
        time.sleep(dice.random())
        kill_all(service)
        for user in crowd:
            user.stop = True
        for user in crowd:
            user.join()
            assert not user.acknowledged.keys() & wanted.keys(), "an id was given twice"
            wanted.update(user.acknowledged)
        service.start()
    assert wanted
    for job, (uid, path, result) in wanted.items():
        fetch(service, job, uid=uid)
        numpy.testing.assert_array_equal(numpy.load(path), result)
    assert_the_rest_is_whole(service)


@pytest.mark.root
def test_a_supervisor_killed_meanwhile_makes_neither_less_nor_more_of_them(service, folder):
    """The client says again what was not answered; the daemon knows it by its key."""
    dice = random.Random(2)
    crowd = [Crowd(service, uid, folder, i) for i, uid in enumerate((ALICE, BOB, ALICE))]
    for user in crowd:
        user.start()
    for _ in range(5):
        time.sleep(0.3 + dice.random())
        supervisor = service.supervisor()
        os.kill(supervisor, signal.SIGKILL)
        until(lambda: service.supervisor() != supervisor and service.is_serving(), "another supervisor")
    for user in crowd:
        user.stop = True
    for user in crowd:
        user.join()
    wanted = {job: told for user in crowd for job, told in user.acknowledged.items()}
    assert wanted and not [user.problems for user in crowd if user.problems]
    for job, (uid, path, result) in wanted.items():
        fetch(service, job, uid=uid)
        numpy.testing.assert_array_equal(numpy.load(path), result)
    assert not service.detached()


def assert_the_rest_is_whole(daemon):
    """What was stored but not acknowledged any more runs and ends well."""
    for name in daemon.detached():
        number, uid = name.split(".")
        fetch(daemon, f"0.{number}", uid=int(uid))
    assert not daemon.detached() and "damaged" not in daemon.log()
