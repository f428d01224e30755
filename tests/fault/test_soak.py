# SPDX-License-Identifier: Apache-2.0
"""A service that is used for long does not grow: rounds of load with all that happens to a service meanwhile, and after each, when
everybody has gone, what its processes hold.

A round takes one to five seconds. GPUQ_SOAK_MINUTES=10: as many as fit into that time, half of it with a history;
GPUQ_FAULT_ROUNDS=400: so many, twice. CI plays ten minutes beside its other tests (.ci/run)."""

import os
import statistics
import time

import pytest

from harness import kernels, place, processes
from harness.client import InOut, Job, u64
from harness.kernels import FAR, copy_job
from harness.load import Load, USERS
from harness.messages import pb
from harness.remains import Remains, descriptors

pytestmark = [pytest.mark.whole_machine, pytest.mark.root, pytest.mark.timeout(7200)]

QUIET = USERS[0]  # nobody kills this user's worker
FAULTY = 12399
ALLOWED = {pb.E_FAULT, pb.E_HALF_WRITTEN}
REMEMBERED = 4096  # ended jobs of each user that the supervisor knows
PAGES = 512 << 10  # that an allocator may keep or give back
HISTORY_CACHE = 2 << 20  # SQLite's, of the supervisor: it fills in the first minutes
MINUTES = float(os.environ.get("GPUQ_SOAK_MINUTES", "0"))  # for both runs together
LATE_MIN = 8  # rounds, however slow the machine is


# ---- what happens in a round ----

def readers(service):
    screens = [["status"], ["queue"], ["metrics"], ["top", "--once"], ["kernels"]]
    if service.settings["history_keep_days"]:
        screens += [["history"], ["report"]]
    for words in screens:
        ended = service.run(*words)
        assert ended.returncode == 0, (words, ended)


def reload_twice(service):
    with service.configured(poll_us=7):
        pass


def kill_a_worker(service):
    for pid in service.workers():
        if processes.uid(pid) != QUIET:
            os.kill(pid, 9)
            return


def fault(service):
    """On the CPU driver the fault kills the worker."""
    with service.connect(uid=FAULTY) as client:
        module = client.load(kernels.BASIC)
        ended = client.run(Job().launch(module, "wild", [InOut(client.arena(4)), u64(FAR)]))
        assert ended.error.code in ALLOWED, ended


def disconnect_with_jobs_queued(service):
    client = service.connect(uid=FAULTY)
    module = client.load(kernels.BASIC)
    source, target = client.arena(256), client.arena(256)
    client.submit(*[copy_job(module, source, target, 64) for _ in range(20)])
    client.socket.close()


def drain(service):
    for verb in ("drain", "resume"):
        ended = service.run(verb, "0")
        assert ended.returncode == 0, ended


def kill_the_supervisor(service):
    os.kill(service.supervisor(), 9)


ALWAYS = (readers, reload_twice, kill_a_worker, fault, disconnect_with_jobs_queued)
EARLY = (drain, kill_the_supervisor)  # these end the processes whose growth is looked for


# ---- what is held ----

def held(pid):
    return {"memory": processes.anonymous_bytes(pid), "descriptors": sum(descriptors(pid).values()), "threads": len(os.listdir(f"/proc/{pid}/task"))}


def look(service):
    (quiet,) = [pid for pid in service.workers() if processes.uid(pid) == QUIET]
    pids = {"keeper": service.process.pid, "supervisor": service.supervisor(), "worker": quiet}
    return {name: {"pid": pid, **held(pid)} for name, pid in pids.items()}


def grown(samples, history_cache):
    """In words, for each process that lived through all of them: the second half beside the first."""
    found = []
    for name in samples[0]:
        mine = [sample[name] for sample in samples]
        assert len({one["pid"] for one in mine}) == 1, f"the {name} was restarted: {mine}"
        early, late = mine[:len(mine) // 2], mine[len(mine) // 2:]
        for what in ("descriptors", "threads"):  # a worker more or less has some
            if statistics.median(one[what] for one in late) > max(one[what] for one in early):
                found.append(f"{name}'s {what}: {[one[what] for one in mine]}")
        before, after = (statistics.median(one["memory"] for one in part) for part in (early, late))
        if after > before * 1.02 + PAGES + (history_cache if name == "supervisor" else 0):
            found.append(f"{name}'s memory: {[one['memory'] >> 10 for one in mine]} KiB")
    return found


# ---- the run ----

def course(n_rounds):
    """For each round, whether it is in the first third."""
    if not MINUTES:
        yield from (3 * i < n_rounds for i in range(n_rounds))
        return
    begin, length_s, n_late = time.monotonic(), MINUTES * 60 / 2, 0
    while (passed_s := time.monotonic() - begin) < length_s or n_late < LATE_MIN:
        is_early = 3 * passed_s < length_s
        n_late += not is_early
        yield is_early


@pytest.mark.skipif(place.SANITIZED, reason="sanitizers keep memory that was given back")
@pytest.mark.parametrize("history_days", (0, 90))
def test_nothing_grows(start_gpuqd, dice, rounds, tell, history_days):
    """In the first third all of it happens; then supervisor and worker live on, and none of them may hold more in the end."""
    service = start_gpuqd(private=False, cpu_threads=1, poll_us=0, history_keep_days=history_days)
    remains = Remains(service)
    samples, faults, jobs, typed = [], 0, 0, 0
    for i, is_early in enumerate(course(rounds(12, 400))):
        events = [*ALWAYS, *(EARLY if is_early else ())]
        dice.shuffle(events)
        with Load(service, processes=1, seed=dice.randrange(1 << 20)) as load:
            for event in events:
                event(service)
                faults += 1
                load.progress(1)
            if not is_early and not samples:
                load.progress(REMEMBERED)
        jobs, typed = (a + b for a, b in zip((jobs, typed), load.assert_only(ALLOWED)))
        assert not load.setup_codes(), f"not only jobs suffered: {load.setup_codes()}"
        if not is_early:
            remains.assert_none()
            samples.append(look(service))
            print(i, samples[-1], flush=True)
    assert not (found := grown(samples, HISTORY_CACHE if history_days else 0)), "\n".join(found)
    tell(faults=faults, jobs=jobs, typed=typed)
