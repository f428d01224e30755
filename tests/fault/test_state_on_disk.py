# SPDX-License-Identifier: Apache-2.0
"""The compile cache and detached jobs cut short, with bits flipped, of another version, full or not writable; and a
configuration that is none: refused or set aside, never a wrong result and never a crash loop."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile

import numpy
import pytest

from harness import kernels, place
from harness.client import In, Job, Out, Refused
from harness.kernels import Gate, copy_job, held_at_job, triple_job
from harness.messages import pb
from harness.patience import until

pytestmark = pytest.mark.cpu


@pytest.fixture
def own_cache():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-cache-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def entries(cache):
    return sorted(cache.glob("*/*.gpuq"))


def assert_serves(daemon, source=kernels.BASIC, **options):
    """A module from source and a job on it, right."""
    with daemon.connect(**options) as client:
        values = numpy.arange(64, dtype=numpy.int32)
        target = client.arena(values.nbytes)
        client.run_well(copy_job(client.load(source), client.array(values), target, 64))
        numpy.testing.assert_array_equal(target.array(numpy.int32), values)


@pytest.fixture
def entry(own_cache, start_gpuqd):
    """(daemon, path of the one entry, its bytes as they should be); no worker holds its image any more."""
    daemon = start_gpuqd(cache_dir=own_cache, worker_idle_s=3600)
    assert_serves(daemon)
    (path,) = entries(own_cache)
    return daemon, path, path.read_bytes()


def assert_heals(daemon, path, good, bad):
    """With that in the entry's place: right results, and the entry is as it was."""
    path.write_bytes(bad)
    for pid in daemon.workers():
        os.kill(pid, signal.SIGKILL)
    assert_serves(daemon)
    # What a compiler writes is the same each time but for what it names after its temporary files.
    assert len(path.read_bytes()) > len(good) // 2 and path.read_bytes()[:16] == good[:16]


def test_a_cache_entry_cut_short(entry, dice, rounds, tell):
    daemon, path, good = entry
    lengths = [0, 79, len(good) - 1] + [dice.randrange(len(good)) for _ in range(rounds(0, 200))]
    for length in lengths:
        assert_heals(daemon, path, good, good[:length])
    tell(faults=len(lengths))


def test_a_cache_entry_with_flipped_bits(entry, dice, rounds, tell):
    daemon, path, good = entry
    places = [8, 48] + [dice.randrange(len(good)) for _ in range(rounds(1, 500))]
    for at in places:
        bad = bytearray(good)
        bad[at] ^= 1 << dice.randrange(8)
        assert_heals(daemon, path, good, bytes(bad))
    tell(faults=len(places))


def test_a_cache_entry_of_another_version(entry, tell):
    daemon, path, good = entry
    for magic in (b"GPUQCCH0", b"GPUQCCH2"):
        assert_heals(daemon, path, good, magic + good[8:])
    tell(faults=2)


def test_a_cache_entry_that_is_longer_than_it_says(entry, tell):
    daemon, path, good = entry
    assert_heals(daemon, path, good, good + b"\0")
    tell(faults=1)


@pytest.mark.parametrize("kind", ["folder", "link to itself", "fifo"])
def test_a_cache_entry_that_is_no_file(entry, kind, tell):
    daemon, path, _good = entry
    path.unlink()
    {"folder": path.mkdir, "link to itself": lambda: path.symlink_to(path), "fifo": lambda: os.mkfifo(path)}[kind]()
    for pid in daemon.workers():
        os.kill(pid, signal.SIGKILL)
    assert_serves(daemon)
    tell(faults=1)


# ---- the disk ----

@contextlib.contextmanager
def small_disk(n_bytes, options=""):
    """A file system of its own, seen by this process and its children."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-disk-"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={n_bytes},mode=0755{options}", "tmpfs", str(folder)],
                             capture_output=True, text=True)
    if mounted.returncode:
        folder.rmdir()
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def fill(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, bytes(4096))
    os.close(fd)


def fill_up_to(path, left):
    disk = os.statvfs(path.parent)
    with open(path, "wb") as file:
        file.write(bytes(max(0, disk.f_bavail * disk.f_frsize - left)))


@pytest.mark.root
def test_a_full_disk_costs_only_time(start_gpuqd, tell):
    """Another user's file has filled the disk of the cache: modules are compiled and jobs run, nothing is stored."""
    with small_disk(1 << 25) as disk:
        daemon = start_gpuqd(private=False, cache_dir=disk)
        with daemon.connect(uid=12345) as client:
            client.builtin()
            fill(disk / "filler")
            supervisor = daemon.supervisor()
            assert_serves(daemon, uid=12345)
            assert not entries(disk)
            client.builtin()
            (disk / "filler").unlink()
            assert_serves(daemon, uid=12345, source=kernels.BASIC + "// another\n")
            assert len(entries(disk)) == 1
            assert daemon.supervisor() == supervisor
    tell(faults=1)


@pytest.mark.root
def test_no_user_stores_the_last_of_the_disk(start_gpuqd, tell):
    """Many modules of one user, then one of another user: the oldest of the first went, and both are served."""
    with small_disk(1 << 22) as disk:
        daemon = start_gpuqd(private=False, cache_dir=disk)
        sizes = []
        for i in range(3):
            assert_serves(daemon, uid=12345, source=kernels.BASIC + f"// number {i}\n")
            sizes.append(sum(path.stat().st_size for path in entries(disk)))
        assert sizes[0], "the first one is stored"
        fill_up_to(disk / "filler", left=3 * sizes[0] // 2 + (1 << 22) // 16)
        for i in range(3):
            assert_serves(daemon, uid=12346, source=kernels.BASIC + f"// number {i}\n")
            disk_now = os.statvfs(disk)
            assert disk_now.f_bavail * 16 >= disk_now.f_blocks
    tell(faults=1)


@pytest.mark.root
def test_cache_bytes_bound_a_user(start_gpuqd, tell):
    """The oldest results go, so that the cache is never larger."""
    with small_disk(1 << 25) as disk:
        daemon = start_gpuqd(private=False, cache_dir=disk)
        assert_serves(daemon, uid=12345)
        (first,) = entries(disk)
        size = first.stat().st_size
        stop(daemon)
        daemon = start_gpuqd(private=False, cache_dir=disk, cache_bytes=2 * size - 1)
        assert_serves(daemon, uid=12345, source=kernels.BASIC + "// another\n")
        (second,) = entries(disk)
        assert second != first
    tell(faults=1)


@pytest.mark.root
def test_a_cache_folder_without_room_for_a_new_user(start_gpuqd, tell):
    """No folder for that user can be made: that is told, and is over when there is room."""
    with small_disk(1 << 25, ",nr_inodes=64") as disk:
        daemon = start_gpuqd(private=False, cache_dir=disk)
        supervisor = daemon.supervisor()
        with contextlib.suppress(OSError):
            for i in range(64):
                (disk / f"file-{i}").touch()
        with daemon.connect(uid=12345) as client:
            with pytest.raises(Refused) as refused:
                client.builtin()
            assert refused.value.code == pb.E_NO_DEVICE and "space" in refused.value.text.lower(), refused.value
        for path in disk.glob("file-*"):
            path.unlink()
        until(lambda: serves(daemon, uid=12345), "it to serve again")
        assert daemon.supervisor() == supervisor
    tell(faults=1)


def serves(daemon, **options):
    try:
        assert_serves(daemon, **options)
    except Refused:
        return False
    return True


@pytest.mark.root
def test_a_cache_folder_that_cannot_be_written(start_gpuqd, tell):
    with small_disk(1 << 24) as disk:
        daemon = start_gpuqd(private=False, cache_dir=disk)
        assert_serves(daemon, uid=12345)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert_serves(daemon, uid=12345, source=kernels.BASIC + "// another\n")
        assert len(entries(disk)) == 1
        assert_serves(daemon, uid=12345)  # what is in the cache is still to be had
    tell(faults=1)


# ---- the configuration ----

@pytest.mark.parametrize("how", ["empty", "cut", "flipped", "rubbish", "not sealed", "a pipe"])
def test_a_supervisor_with_a_configuration_that_is_none(how, start_gpuqd, dice, rounds, tell):
    """It ends with words and a status: the keeper gives up after three, so there is no loop."""
    good = sealed_config(start_gpuqd().process.pid)
    for _ in range(rounds(3, 100)):
        ended = run_supervisor(bad_config(how, good, dice))
        assert ended.returncode > 0 or how == "flipped", ended
        assert ended.returncode >= 0 and ended.stdout.strip(), ended
    tell(faults=rounds(3, 100))


def sealed_config(keeper):
    (path,) = [path for path in pathlib.Path(f"/proc/{keeper}/fd").iterdir() if "memfd:gpuqd.conf" in target_of(path)]
    return path.read_bytes()


def target_of(path):
    """Of a descriptor that may just have been closed."""
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def bad_config(how, good, dice):
    data = {"empty": b"", "cut": good[:dice.randrange(len(good))], "rubbish": dice.randbytes(len(good)), "not sealed": good}.get(how)
    if how == "a pipe":
        return os.pipe()[0]
    if how == "flipped":
        data = bytearray(good)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    fd = os.memfd_create("gpuqd.conf", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    if how != "not sealed":
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def run_supervisor(config):
    """With a link whose other end is closed at once, so that a supervisor that took it ends as well."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def place_descriptors():
        os.dup2(os.dup(theirs.fileno()), 3)
        os.dup2(config_copy, 4)

    config_copy = os.dup(config)
    os.close(config)
    ours.close()
    try:
        return subprocess.run([place.program("gpuqd-supervisor"), "--private", "--uid", str(os.getuid())], text=True,
                              preexec_fn=place_descriptors, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=place.PATIENCE_S)
    finally:
        theirs.close()
        os.close(config_copy)


# ---- detached jobs ----

VALUES = numpy.arange(16, dtype=numpy.int32)


def detach(client, gate_address=None):
    """A detached job and what it writes, once the gate is open if there is one."""
    module, source, target = client.load(kernels.BASIC), client.array(VALUES), client.arena(VALUES.nbytes)
    if gate_address is None:
        job = triple_job(module, source, target, len(VALUES))
    else:
        job = held_at_job(module, source, target, len(VALUES), gate_address)
    return client.call(detach=pb.Detach(job=job.message)).detached.id, 3 * VALUES


def detach_endless(client):
    job = Job().launch(client.load(kernels.BASIC), "forever", [Out(client.arena(4))])
    job.buffer(In(client.array(VALUES)))
    return client.call(detach=pb.Detach(job=job.message)).detached.id


def fetched(client, job_id):
    reply, fds = client.answer(client.tell(fetch=pb.Fetch(id=job_id)))
    output = reply.fetched.outputs[0]
    data = os.pread(fds[0], output.length, output.offset)
    os.close(fds[0])
    return numpy.frombuffer(data, numpy.int32)


def waited(client, job_id):
    (completion,) = client.call(wait=pb.Wait(id=job_id)).completions.completions
    return completion


def stop(daemon):
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(place.PATIENCE_S) == 0


def jobs_folder(daemon):
    return pathlib.Path(daemon.settings["state_dir"]) / "jobs"


def spoil(path, how, dice):
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[dice.randrange(len(data)):]
    elif how == "flipped":
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif how == "longer":
        data += b"\0"
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(data)


def spoil_row(daemon, table, job_id):
    """A bit of what is in the database's row, which SQLite itself takes for good."""
    with contextlib.closing(sqlite3.connect(jobs_folder(daemon) / "jobs.sqlite")) as database:
        (data,) = database.execute(f"SELECT data FROM {table} WHERE number = ?", (job_id,)).fetchone()
        database.execute(f"UPDATE {table} SET data = ? WHERE number = ?", (data[:-1] + bytes([data[-1] ^ 1]), job_id))
        database.commit()


HOWS = ["cut", "flipped", "longer", "missing", "folder", "row"]


def spoil_one(daemon, table, job_id, how, dice):
    """Its file, or its row. Returns what the error has to name, and the file."""
    path = jobs_folder(daemon) / f"{job_id}.{os.getuid()}.{'in' if table == 'jobs' else 'out'}"
    if how == "row":
        spoil_row(daemon, table, job_id)
        return "jobs.sqlite", path
    spoil(path, how, dice)
    return path.name, path


@pytest.mark.parametrize("how", HOWS)
def test_a_detached_job_that_is_damaged_on_disk(how, start_gpuqd, dice, tell):
    """It is set aside and its user is told; the others run, and the daemon does not care."""
    daemon = start_gpuqd()
    with daemon.connect() as client:
        bad, (good, result) = detach_endless(client), detach(client)
        waited(client, good)
    stop(daemon)
    name, path = spoil_one(daemon, "jobs", bad, how, dice)
    daemon.start()
    supervisor = daemon.supervisor()
    client = daemon.connect()
    completion = waited(client, bad)
    assert completion.state == pb.FAILED and "damaged" in completion.error.text and name in completion.error.text
    assert f"{name}: " in daemon.log() and "damaged" in daemon.log()
    assert path.exists() or how == "missing"
    numpy.testing.assert_array_equal(fetched(client, good), result)
    numpy.testing.assert_array_equal(fetched(client, detach(client)[0]), result)
    assert daemon.supervisor() == supervisor
    assert_still_told_after_a_restart(daemon, bad)
    tell(faults=1, jobs=3)


def assert_still_told_after_a_restart(daemon, job_id):
    stop(daemon)
    daemon.start()
    completion = waited(daemon.connect(), job_id)
    assert completion.state == pb.FAILED and "damaged" in completion.error.text


@pytest.mark.parametrize("how", HOWS)
def test_the_result_of_a_detached_job_that_is_damaged_on_disk(how, start_gpuqd, dice, tell):
    daemon = start_gpuqd()
    with daemon.connect() as client:
        (bad, _), (good, result) = detach(client), detach(client)
        assert {waited(client, job).state for job in (bad, good)} == {pb.DONE}
    stop(daemon)
    spoil_one(daemon, "ends", bad, how, dice)
    daemon.start()
    client = daemon.connect()
    with pytest.raises(Refused) as refused:
        fetched(client, bad)
    assert refused.value.code == pb.E_INTERNAL and "damaged" in refused.value.text, refused.value
    numpy.testing.assert_array_equal(fetched(client, good), result)
    assert_still_told_after_a_restart(daemon, bad)
    tell(faults=1, jobs=2)


def put(path, how, data):
    path.unlink(missing_ok=True)
    if how == "folder":
        path.mkdir()
    elif how == "another version":
        path.write_bytes(data)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA user_version = 99")
    elif how != "missing":
        path.write_bytes({"cut": data[:5000], "rubbish": b"rubbish" * 1000, "header": b"\0" + data[1:]}[how])


@pytest.mark.parametrize("how", ["cut", "rubbish", "header", "missing", "folder", "another version"])
def test_the_database_of_detached_jobs_damaged(how, start_gpuqd, tell):
    """Without it they cannot be kept, which is told; nothing is removed, and all else goes on. With the good one they are back."""
    daemon = start_gpuqd()
    with daemon.connect() as client:
        (job, result), endless = detach(client), detach_endless(client)
        waited(client, job)
    stop(daemon)
    path, files = jobs_folder(daemon) / "jobs.sqlite", daemon.detached()
    good = path.read_bytes()
    put(path, how, good)
    daemon.start()
    assert_serves(daemon)
    with daemon.connect() as client:
        if how == "missing":
            assert detach(client)[0] > endless
        else:
            with pytest.raises(Refused) as refused:
                detach(client)
            assert refused.value.code == pb.E_NO_DEVICE and str(path.parent) in refused.value.text, refused.value
    stop(daemon)
    assert files <= daemon.detached()
    path.rmdir() if how == "folder" else path.unlink()
    path.write_bytes(good)
    daemon.start()
    client = daemon.connect()
    numpy.testing.assert_array_equal(fetched(client, job), result)
    client.cancel(endless)
    assert waited(client, endless).state == pb.CANCELLED
    tell(faults=1, jobs=2)


def test_any_byte_of_the_database_of_detached_jobs(start_gpuqd, dice, rounds, tell):
    """A result is right or damage is told, of the job or of all; the next start with the good database has it."""
    daemon = start_gpuqd()
    with daemon.connect() as client:
        job, result = detach(client)
        waited(client, job)
    stop(daemon)
    path = jobs_folder(daemon) / "jobs.sqlite"
    good = path.read_bytes()
    used = [at for at in range(len(good)) if good[at]]  # the others are free space
    for _ in range(rounds(4, 300)):
        at = dice.choice(used)
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << dice.randrange(8)]) + good[at + 1:])
        daemon.start()
        with daemon.connect() as client:
            try:
                numpy.testing.assert_array_equal(fetched(client, job), result)
            except Refused as told:
                assert "damaged" in told.text or "newer" in told.text, (at, told)
        stop(daemon)
    path.write_bytes(good)
    daemon.start()
    numpy.testing.assert_array_equal(fetched(daemon.connect(), job), result)
    tell(faults=rounds(4, 300), jobs=1)


@pytest.mark.root
def test_a_full_disk_takes_no_detached_jobs_and_keeps_those_it_has(start_gpuqd, tell):
    """A result that has no room waits until it has; what was not acknowledged leaves nothing."""
    with small_disk(1 << 22) as disk:
        daemon = start_gpuqd(private=False, state_dir=disk)
        client = daemon.connect(uid=12345)
        gate = Gate(client)
        running, result = detach(client, gate.address(client.load(kernels.BASIC)))
        endless = detach_endless(client)
        gate.wait_for()
        filler = disk / "filler"
        fill(filler)
        with pytest.raises(Refused) as refused:
            detach(client)
        assert refused.value.code == pb.E_INTERNAL and "space" in refused.value.text.lower(), refused.value
        gate.open()
        client.cancel(endless)
        until(lambda: any("result to disk: No space" in entry.reason for entry in client.queue().values()),
              "the result to wait for room")
        filler.unlink()
        numpy.testing.assert_array_equal(fetched(client, running), result)
        assert waited(client, endless).state == pb.CANCELLED
        assert daemon.detached() == {f"{job}.12345" for job in (running, endless)}
        job, result = detach(client)
        numpy.testing.assert_array_equal(fetched(client, job), result)
        stop(daemon)
    tell(faults=2, jobs=4)


@pytest.mark.root
def test_a_disk_that_became_read_only(start_gpuqd, tell):
    """Results are to be had; nothing new is taken, and nothing is discarded. (It cannot be made so under a running gpuqd.)"""
    with small_disk(1 << 22) as disk:
        daemon = start_gpuqd(private=False, state_dir=disk)
        client = daemon.connect(uid=12345)
        job, result = detach(client)
        waited(client, job)
        client.close()
        stop(daemon)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        daemon.start()
        assert_serves(daemon, uid=12345)
        client = daemon.connect(uid=12345)
        numpy.testing.assert_array_equal(fetched(client, job), result)
        for call in (lambda: detach(client), lambda: client.call(discard=pb.Discard(id=job))):
            with pytest.raises(Refused) as refused:
                call()
            assert "read-only" in refused.value.text.lower(), refused.value
        client.close()
        stop(daemon)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        daemon.start()
        client = daemon.connect(uid=12345)
        numpy.testing.assert_array_equal(fetched(client, job), result)
        client.call(discard=pb.Discard(id=job))
        client.close()
        stop(daemon)
    tell(faults=1, jobs=2)


# ---- the history ----

def history_file(daemon):
    return pathlib.Path(daemon.settings["state_dir"]) / "history" / "history.db"


def run_triple(client, n=1):
    target = client.arena(VALUES.nbytes)
    module, source = client.load(kernels.BASIC), client.array(VALUES)
    for _ in range(n):
        client.run_well(triple_job(module, source, target, len(VALUES)))
    numpy.testing.assert_array_equal(target.array(numpy.int32), 3 * VALUES)


def jobs_in_history(client):
    jobs, get = 0, pb.HistoryGet()
    while True:
        page = client.call(history_get=get).history
        jobs += sum(row.jobs for row in page.rows)
        if not page.next_ms and not page.next_row:
            return jobs
        get.next_ms, get.next_row = page.next_ms, page.next_row


def test_a_history_on_a_full_disk_stops_no_job_and_loses_none(start_gpuqd, tell):
    """What ends while the disk is full is counted in memory, told, and written when there is room."""
    with small_disk(1 << 22) as disk:
        daemon = start_gpuqd(state_dir=disk / "state")
        with daemon.connect() as client:
            run_triple(client, 3)
            assert jobs_in_history(client) == 3
            fill(disk / "filler")
            # A row for each failure, until none has room in the file's last page.
            bad = [Job(device=4000).launch(client.builtin(), "nothing") for _ in range(200)]
            for _ in range(10):
                for job_id in client.submit(*bad):
                    assert client.wait(job_id).state == pb.FAILED
                jobs_in_history(client)
                if client.status().history_problem:
                    break
            until(lambda: "No space" in client.status().history_problem, "the problem to be told")
            before = jobs_in_history(client)
            run_triple(client, 5)
            assert daemon.log().count("cannot write the history") == 1
            (disk / "filler").unlink()
            until(lambda: not client.status().history_problem, "the problem to be over")
            until(lambda: jobs_in_history(client) == client.tag, "all jobs to be in it")
            assert before and client.status().history_lost == 0
    tell(faults=1)


@pytest.mark.root
def test_a_history_that_cannot_be_written_costs_nothing_else(start_gpuqd, tell):
    """Its folder belongs to somebody else: one line in the log, a problem in the status, and jobs run."""
    with small_disk(1 << 22) as disk:
        (disk / "state" / "history").mkdir(parents=True)
        (disk / "state" / "history").chmod(0o700)
        os.chown(disk / "state" / "history", 12345, 12345)
        daemon = start_gpuqd(private=False, state_dir=disk / "state")
        with daemon.connect(uid=12346) as client:
            run_triple(client, 5)
            with pytest.raises(Refused) as refused:
                jobs_in_history(client)
            assert refused.value.code == pb.E_NOT_FOUND and "history.db" in refused.value.text
            assert "Permission denied" in client.status().history_problem
        assert daemon.log().count("cannot write the history") == 1
    tell(faults=1)


@pytest.mark.parametrize("how", ["rubbish", "cut", "flipped"])
def test_a_damaged_history_is_set_aside(how, start_gpuqd, tell):
    """A new one begins, the old one stays beside it, and jobs run as ever."""
    with small_disk(1 << 22) as disk:
        daemon = start_gpuqd(state_dir=disk / "state")
        with daemon.connect() as client:
            run_triple(client)
        stop(daemon)
        path = history_file(daemon)
        data = bytearray(path.read_bytes())
        if how == "rubbish":
            data[:] = os.urandom(len(data))
        elif how == "cut":
            del data[len(data) // 2:]
        else:
            data[100:4096] = bytes(byte ^ 0x55 for byte in data[100:4096])  # the first page, but not its head
        path.write_bytes(data)
        daemon = start_gpuqd(state_dir=disk / "state")
        with daemon.connect() as client:
            run_triple(client, 2)
            until(lambda: "history.db.damaged" in daemon.log(), "it to be set aside")
            until(lambda: jobs_in_history(client) == 2, "the new one to have both jobs")
            assert path.with_name("history.db.damaged").exists()
            assert not client.status().history_problem
    tell(faults=1)
