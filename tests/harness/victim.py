# SPDX-License-Identifier: Apache-2.0
"""One user with small jobs, whose waits, failures and lost bytes are measured while others attack (hostile/victim.c)."""

import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import numpy

from . import place
from .daemon import as_user
from .load import SOURCE, Member
from .patience import until

KIND_JOB = 0  # of which the waits count


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Victim:
    """Works from begin() to end()."""

    def __init__(self, daemon, uid):
        self.uid = uid
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuq-victim-"))
        self.folder.chmod(0o755)
        command = [place.test_program("gpuq-test-victim"), str(SOURCE), str(self.folder / "record-0")]
        self.member = Member(self.folder, 0, uid, command, env=daemon.environment(), start_new_session=True,  # as a login has
                             **as_user(uid))
        self.is_stuck = False

    def begin(self):
        """Returns when it has its first results."""
        assert self.goes_on(place.PATIENCE_S), f"the victim does not work: {self.member.output()}"

    def end(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self, patience_s=60):
        """What it says at its end is in the figures, too."""
        process = self.member.process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.is_stuck = True
            process.kill()
            process.wait()
        self.member.freeze()

    # ---- figures ----

    def goes_on(self, patience_s):
        """Whether another job ends well. What was submitted before now may be that job."""
        goal = self.member.n_good() + 1
        try:
            until(lambda: self.member.n_good() >= goal or self.member.process.poll() is not None, "a good job", patience_s)
        except AssertionError:
            return False
        return self.member.n_good() >= goal

    def n_lost(self):
        return self.member.count(3)

    def n_connects(self):
        return self.member.n_connects()

    def figures(self, begin_ns, end_ns):
        """Of what was in flight between these moments: waits in ms, jobs, failures."""
        entries = self.member.entries()
        entries = entries[(entries["ended_ns"] >= begin_ns) & (entries["submitted_ns"] <= end_ns)]
        jobs = entries[entries["kind"] == KIND_JOB]
        waits = (jobs["ended_ns"] - jobs["submitted_ns"]) / 1e6
        return {
            "jobs": len(jobs), "failed": int((entries["code"] != 0).sum()),
            "p50_ms": percentile(waits, 50), "p99_ms": percentile(waits, 99), "longest_ms": percentile(waits, 100),
        }


def percentile(values, p):
    return float(numpy.percentile(values, p)) if len(values) else None
