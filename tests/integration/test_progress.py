# SPDX-License-Identifier: Apache-2.0
"""What a run of the tests that is cut off leaves."""

import types

from harness.progress import Progress


def test_a_test_that_ended_is_on_disk_before_the_next_one_has(tmp_path):
    progress = Progress(tmp_path / "progress.txt")

    def hear(name, when, outcome="passed", **more):
        progress.pytest_runtest_logreport(types.SimpleNamespace(nodeid=name, when=when, outcome=outcome, **more))

    def told():
        return progress.path.read_text().splitlines()

    hear("a::good", "setup", duration=1)
    hear("a::slow", "setup", duration=1)  # of another process
    hear("a::good", "call", duration=2)
    hear("a::good", "teardown", duration=0.5)
    assert told() == ["passed 3.5 s a::good"]
    hear("a::bad", "setup", duration=0)
    hear("a::bad", "call", duration=0)
    hear("a::bad", "teardown", "failed", duration=0)
    hear("a::unfit", "setup", "skipped", duration=0)
    hear("a::unfit", "teardown", duration=0)
    hear("a::slow", "???", "failed")  # as xdist says of a process that died
    assert told()[1:] == ["failed 0.0 s a::bad", "skipped 0.0 s a::unfit", "failed 1.0 s a::slow"]
