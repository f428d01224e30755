# SPDX-License-Identifier: Apache-2.0
"""Every allocation and every system call fails in turn, in each program, as it starts and while it serves a
session and its jobs: a clear error or none, never a crash, and all else goes on."""

import os
import re
import signal
import subprocess

import numpy
import pytest

from harness import kernels, place, processes
from harness.client import Client, Closed, Refused
from harness.failing import FailingDaemon, Tree, function
from harness.kernels import copy_job
from harness.load import SOURCE
from harness.messages import pb
from harness.patience import until

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(place.SANITIZED, reason="a sanitizer has an allocator of its own")]

SERIES = ("allocations", "calls")
# Ends by a signal that nobody sent on purpose: the keeper and the supervisor kill by SIGKILL alone.
CRASH = re.compile(r"killed by signal (?!9\b)\d+|Assertion|terminate called|stack smashing|double free|corrupted|"
                   r"AddressSanitizer|runtime error")

# Libraries that end their process when they lack something, and the functions of ours that call them so; libuv,
# whose table of what it watches grows whenever that is due, anywhere. docs/reliability.md tells of the same.
ENDS_ITS_PROCESS = {("libc", "names_find_group"), ("libc", "names_find_uid"), ("libc", "names_find_groups")}


@pytest.fixture(scope="module")
def tree():
    tree = Tree()
    yield tree
    tree.remove()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def chosen(dice, rounds, total, short):
    """Which N of so many: all of them in the long run."""
    wanted = min(total, rounds(short, total))
    return range(1, total + 1) if wanted == total else sorted(dice.sample(range(1, total + 1), wanted))


class Bystander:
    """A session that was there before, with data of its own in the device's memory."""

    def __init__(self, daemon):
        self.client = Client(daemon.socket)
        self.values = numpy.arange(256, dtype=numpy.int32)
        self.module = self.client.load(kernels.BASIC)
        self.source = self.client.array(self.values)

    def run(self):
        """Return: None, or the error of a job, which is right in any case."""
        target = self.client.arena(self.values.nbytes)
        completion = self.client.run(copy_job(self.module, self.source, target, self.values.size))
        if completion.state == pb.DONE:
            numpy.testing.assert_array_equal(target.array(numpy.int32), self.values)
        target.close()
        return None if completion.state == pb.DONE else completion.error

    def assert_well(self):
        error = self.run()
        assert not error, error

    def close(self):
        self.client.close()


def serves_a_fresh_client(daemon):
    try:
        bystander = Bystander(daemon)
        error = bystander.run()
        bystander.close()
        return not error
    except (OSError, Closed, Refused):
        return False


# ---- as it starts ----

def entered(places):
    """Which library, from which function of ours, and by which call there."""
    for library, ours in zip(places, places[1:]):
        if " " in function(ours):  # it has the lines of our own alone
            return library.partition(".so")[0], function(ours).partition(" ")[0], ours
    return None


def is_known(control, log):
    """One process ended, within a library of which that is known, and in the call in which the fault was."""
    where = entered(control.end())
    n_ended = len(re.findall(r"^gpuqd.*(?:the supervisor was|ended: .*) killed by signal", log, re.MULTILINE))
    if n_ended != 1 or not where or where != entered(control.callers()):
        return False
    return where[0] == "libuv" or where[:2] in ENDS_ITS_PROCESS


def start_once(tree, cache, control=None):
    """It comes up and serves, or ends with words; it serves although a library ended a process, where that is
    known. Returns what is wrong, or None."""
    daemon = FailingDaemon(tree, cache=cache)
    daemon.launch()
    try:
        until(lambda: daemon.process.poll() is not None or serves_a_fresh_client(daemon), "it to serve or to end")
        for each in tree.control.values():
            each.stop()
        if daemon.process.poll() is not None and daemon.process.returncode <= 0:
            return f"ended with {daemon.process.returncode}"
        crash = CRASH.search(daemon.log())
        if crash and not (control and daemon.process.poll() is None and is_known(control, daemon.log())):
            return crash.group(0)
        if not daemon.log().strip():
            return "ended without a word"
        if daemon.process.poll() is None and daemon.stop() != 0:
            return f"ended with {daemon.process.returncode} when asked to"
    except AssertionError as problem:
        return str(problem)
    finally:
        daemon.discard()
    return None


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("program", ["gpuqd", "gpuqd-supervisor", "gpuqd-worker"])
def test_each_fails_in_turn_as_it_starts(tree, cache, dice, rounds, tell, program, series):
    for control in tree.control.values():
        control.reset()
    assert not start_once(tree, cache)
    control = tree.control[program]
    numbers = chosen(dice, rounds, control.count(series), 2)
    problems = []
    for number in numbers:
        control.reset()
        control.fail(series, number)
        problem = start_once(tree, cache, control)
        if problem:
            problems.append(f"{number}: {problem}: {control.what()}")
    assert not problems, "\n".join(problems)
    tell(faults=len(numbers))


def test_a_keeper_whose_first_call_fails_says_so(tree, cache):
    """There it has no descriptors to rely on yet."""
    for control in tree.control.values():
        control.reset()
    daemon = FailingDaemon(tree, cache=cache)
    tree.control["gpuqd"].fail("calls", 1)
    daemon.launch()
    try:
        until(lambda: daemon.process.poll() is not None, "it to end")
        assert daemon.process.returncode == 1 and "/dev/null: Too many open files" in daemon.log()
    finally:
        daemon.discard()


# ---- while it serves ----

class Session:
    """A daemon, and a bystander of it; both are made anew when a fault that was not theirs has ended them."""

    def __init__(self, tree, cache, folder):
        self.tree, self.cache, self.record = tree, cache, folder / "record"
        self.start()

    def start(self):
        for control in self.tree.control.values():
            control.reset()
        # The bystander does not come back after a restart: others shall not have to wait for it.
        self.daemon = FailingDaemon(self.tree, cache=self.cache, worker_idle_s=3600, takeover_s=1).start()
        self.was_restarted = False
        self.bystander = Bystander(self.daemon)
        self.use(0)

    def end(self):
        for control in self.tree.control.values():
            control.stop()
        self.bystander.close()
        try:
            self.daemon.stop()
        finally:
            self.daemon.discard()

    def use(self, seed):
        """A session of four jobs by the library, which compares their results. Returns what is wrong, or None."""
        self.record.write_bytes(b"")
        try:
            ended = subprocess.run(
                [place.test_program("gpuq-test-load"), str(SOURCE), str(self.record), str(seed), "4"], text=True,
                env={**self.daemon.environment(), **self.tree.control["client"].environment()},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=place.PATIENCE_S, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "its user waits for ever"
        if ended.returncode < 0 or ended.returncode == 1:
            return f"its user ended with {ended.returncode}: {ended.stdout}"
        return None if ended.returncode == 0 or ended.stdout.strip() else "its user was told nothing"

    def judge(self, may_restart):
        crash = CRASH.search(self.daemon.log())
        if crash:
            return crash.group(0)
        if self.daemon.process.poll() is not None:
            return f"the keeper ended with {self.daemon.process.returncode}"
        try:
            self.bystander.assert_well()
        except (Closed, Refused, BrokenPipeError, ConnectionResetError) as told:
            if isinstance(told, Refused) and told.code != pb.E_SHUTDOWN:
                return f"the bystander: {told}"
            self.was_restarted = True
        if self.was_restarted and not may_restart:
            return "the supervisor ended"
        until(lambda: serves_a_fresh_client(self.daemon), "it to serve again")
        return None


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("program", ["client", "gpuqd-supervisor", "gpuqd-worker", "gpuqd-compiler", "gpuqd"])
def test_each_fails_in_turn_in_a_session(tree, cache, dice, rounds, tell, tmp_path, program, series):
    session, control = Session(tree, cache, tmp_path), tree.control[program]
    before = control.count(series)
    assert not session.use(1)
    numbers = chosen(dice, rounds, control.count(series) - before, 6)
    problems = []
    try:
        for number in numbers:
            control.fail(series, number)
            problem = session.use(number)
            control.stop()
            try:
                problem = problem or session.judge(may_restart=program == "gpuqd")
            except (AssertionError, OSError) as told:
                problem = f"the bystander: {told!r}"
            if problem:
                problems.append(f"{number}: {problem}: {control.what()}\n{session.daemon.log()[-600:]}")
            if problem or session.was_restarted:
                session.bystander.close()
                session.daemon.discard()
                session.start()
    finally:
        session.end()
    assert not problems, "\n".join(problems)
    tell(faults=len(numbers))


def test_a_module_that_could_not_be_loaded_again_is_tried_again(tree, cache):
    """It was compiled once; that a compiler fails later, for lack of memory, is over when there is memory."""
    for control in tree.control.values():
        control.reset()
    daemon, control = FailingDaemon(tree, cache=cache).start(), tree.control["gpuqd-compiler"]
    try:
        bystander = Bystander(daemon)
        control.fail("allocations", 1, 1 << 40)
        for pid in processes.children(daemon.process.pid):
            if processes.name(pid) == "gpuqd-worker.real" and "--probe" not in processes.command(pid):
                os.kill(pid, signal.SIGKILL)
        until(lambda: "killed by signal 9" in daemon.log(), "its end to be noticed")
        assert bystander.run().code in (pb.E_COMPILE, pb.E_INTERNAL)
        control.stop()
        bystander.assert_well()
        bystander.close()
    finally:
        control.stop()
        daemon.discard()
