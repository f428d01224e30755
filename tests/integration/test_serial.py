# SPDX-License-Identifier: Apache-2.0
"""Random programs of several sessions and users, under each capability alone and all together.

Whatever is run together with what, moved how, waited for in which way and in whoever's turn: each job ends as it must
and all memory holds what the same jobs leave when they are run one after the other, bit for bit. The same
programs are played under every configuration, so those agree with each other too.

    GPUQ_FAULT_LONG=1         many more programs, other ones each time
    GPUQ_PROPERTY_SEED=7      only this one, as a failure names it
    GPUQ_PROPERTY_STEPS=12    only its first steps: the way to a smaller one
"""

import itertools
import json
import os
import random

import pytest

from harness import place
from harness.patience import until
from harness.serial_parts import CANCELLED, DONE, FAILED
from harness.serial_play import check
from harness.serial_program import Program

ALICE, BOB = 12345, 12346
N_STEPS = int(os.environ.get("GPUQ_PROPERTY_STEPS", 40))
LONG = bool(os.environ.get("GPUQ_FAULT_LONG"))

ON = {"coalesce": "yes", "in_place": "yes", "poll_us": 5000, "quantum_ms": 2}
CONFIGURATIONS = {
    "all": ON,
    "waits-for-company": {**ON, "coalesce_us": 500},
    "no-coalescing": {**ON, "coalesce": "no"},
    "not-in-place": {**ON, "in_place": "no"},
    "no-polling": {**ON, "poll_us": 0},
    "no-quanta": {**ON, "quantum_ms": 0},
    "nothing": {"coalesce": "no", "in_place": "no", "poll_us": 0, "quantum_ms": 0},
    "few-in-flight": {**ON, "inflight_jobs": 3},
}


def seeds(n, n_long):
    if "GPUQ_PROPERTY_SEED" in os.environ:
        return [int(os.environ["GPUQ_PROPERTY_SEED"])]
    first = random.randrange(1 << 32) if LONG else 0
    return range(first, first + (n_long if LONG else n))


def users():
    """Sessions of two users, where one may be several."""
    return [ALICE, ALICE, ALICE, BOB, BOB] if os.geteuid() == 0 else [os.geteuid()] * 4


def start(start_gpuqd, settings):
    return start_gpuqd(private=os.geteuid() != 0, **settings)


def play(daemon, seed, owners=None, **options):
    try:
        return check(daemon, Program(seed, owners or users(), N_STEPS, **options))
    except AssertionError as problem:
        raise AssertionError(f"GPUQ_PROPERTY_SEED={seed} GPUQ_PROPERTY_STEPS={N_STEPS}: {problem}") from None


def has_shown(daemon, name, programs):
    """That capability was used: else one more program is played, since it hangs on what comes together when."""
    if counters(daemon).get(name, 0) > 0:
        return True
    play(daemon, next(programs))
    return False


def counters(daemon):
    """Of all workers, as `gpuq status --json` has them."""
    status = json.loads(daemon.run("status", "--json").stdout)
    sums = {}
    for worker in status["workers"]:
        for name, value in worker.get("counters", {}).items():
            sums[name] = sums.get(name, 0) + value
    return sums


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_all_ends_as_in_serial_order(start_gpuqd, name):
    daemon = start(start_gpuqd, CONFIGURATIONS[name])
    for seed in seeds(4, 40):
        ended = play(daemon, seed)
        assert ended[DONE] > 0
    told = until(lambda: counters(daemon), "the workers' counters")
    settings, again = CONFIGURATIONS[name], itertools.cycle(seeds(4, 40))
    if settings["coalesce"] == "no":
        assert told["batches"] == told["coalesced"] == 0
    elif name != "few-in-flight":
        until(lambda: has_shown(daemon, "coalesced", again), "jobs to have been run together")
    if settings["in_place"] == "no":
        assert told["in_place"] == 0
    elif "GPUQ_PROPERTY_STEPS" not in os.environ:
        until(lambda: has_shown(daemon, "in_place", again), "a kernel to have worked in place")


@pytest.mark.cpu
def test_on_two_devices(start_gpuqd):
    daemon = start(start_gpuqd, {**ON, "cpu_devices": 2})
    for seed in seeds(4, 40):
        play(daemon, seed, variables=False)


@pytest.mark.parametrize("name", ["all", "no-polling"])
def test_jobs_that_a_worker_takes_by_itself(start_gpuqd, name):
    """Of several sessions of one user, since a worker does so while no other user has work."""
    daemon = start(start_gpuqd, CONFIGURATIONS[name])
    mates = [user for user in users() if user == users()[0]][:3]

    def has_shown_it(programs):
        if counters(daemon).get("direct", 0) > 0:
            return True
        play(daemon, next(programs), mates, steady=True)
        return False

    for seed in seeds(3, 40):
        play(daemon, seed, mates, steady=True)
    if "GPUQ_PROPERTY_STEPS" not in os.environ:
        until(lambda: has_shown_it(itertools.cycle(seeds(3, 40))), "a worker to take jobs by itself")


@pytest.mark.timeout(300)  # each worker that is stopped costs one that starts, half a second to a second on a GPU
@pytest.mark.parametrize("name", ["all", "nothing"])
def test_jobs_that_end_early_disturb_nobody(start_gpuqd, name):
    """Cancelled in the queue or in flight, faulting, or running too long."""
    daemon = start(start_gpuqd, CONFIGURATIONS[name])
    ended = [play(daemon, seed, rough=True) for seed in seeds(1 if place.on_gpu() else 3, 40)]
    assert "GPUQ_PROPERTY_SEED" in os.environ or sum(each[FAILED] + each[CANCELLED] for each in ended) > 0
