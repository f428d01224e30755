# SPDX-License-Identifier: Apache-2.0
"""libgpuq as a C program uses it: each scenario of gpuq-test-client against a real daemon."""

import re
import subprocess

import pytest

from harness import place
from harness.patience import until

ALONE = ["run", "buffers", "small-buffers", "dependencies", "modules", "status", "loop", "loop-again", "threads", "callbacks",
         "many", "checked", "library", "series", "prepared", "textures", "cancel", "null-handles", "fork", "free-client-first", "no-daemon"]


@pytest.mark.parametrize("scenario", ALONE)
def test_scenario(gpuqd, scenario):
    result = gpuqd.run_program(place.test_program("gpuq-test-client"), scenario, timeout=2 * place.PATIENCE_S)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("scenario", ["run", "loop-again", "threads", "callbacks", "many", "prepared", "cancel",
                                      "free-client-first"])
def test_a_daemon_and_clients_that_poll(lend_gpuqd, scenario):
    """Completion words included, whatever the machine's number of cores."""
    daemon = lend_gpuqd(poll_us=200)
    result = daemon.run_program(place.test_program("gpuq-test-client"), scenario, timeout=2 * place.PATIENCE_S)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_scenario_is_run(gpuqd):
    listing = gpuqd.run_program(place.test_program("gpuq-test-client")).stdout.split()
    assert set(listing) == {*ALONE, "daemon-ends"}


def test_the_daemon_ends_while_a_client_waits(start_gpuqd):
    daemon = start_gpuqd()
    waiting = daemon.start_program(place.test_program("gpuq-test-client"), "daemon-ends")
    assert waiting.stdout.readline() == "waiting\n"
    daemon.stop()
    output, _nothing = waiting.communicate(timeout=place.PATIENCE_S)
    assert waiting.returncode == 0, output


def test_the_demo(gpuqd):
    result = gpuqd.run_program("gpuq-demo", 20, timeout=2 * place.PATIENCE_S)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"20 of 20 jobs right in \d+\.\d\d s on .+: 1 GPU context, \d+ MiB of GPU memory",
                     result.stdout.splitlines()[-1])


def test_the_demo_does_not_wait_for_a_spare_worker(start_gpuqd):
    """A spare never says that it is idle. Once, the demo waited for that until it gave up after 20 s."""
    daemon = start_gpuqd(express="no", spare_workers="1")
    with daemon.connect() as client:
        until(lambda: "spare" in [worker.state for worker in client.status().workers], "a spare worker")
    result = daemon.run_program("gpuq-demo", 2, timeout=15)
    assert result.returncode == 0, result.stdout + result.stderr


def test_only_gpuq_symbols_are_exported():
    library = next((place.STAGE / "lib").rglob("libgpuq.so.0"))
    listing = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("no nm here")
    names = {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines() if line.split()[-2] != "A"}
    assert "gpuq_connect" in names
    assert not [name for name in names if not name.startswith("gpuq_")]
