# SPDX-License-Identifier: Apache-2.0
"""Every attack of hostile/run.py for a moment: the service goes on, and the victim loses nothing. No time is judged."""

import pathlib
import subprocess
import sys

import pytest

from harness import place

pytestmark = [pytest.mark.root, pytest.mark.whole_machine, pytest.mark.timeout(1800)]  # an attack takes a second, or ten beside a build

RUN = pathlib.Path(__file__).with_name("run.py")


def test_no_attack_takes_anything_from_another_user():
    command = [sys.executable, str(RUN), "--short", "--device", place.DEVICE]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for row in process.stdout:
            print(row, end="")
        assert process.wait() == 0
    finally:
        process.terminate()  # it ends what it started
        try:
            process.wait(place.PATIENCE_S)
        finally:
            process.kill()
