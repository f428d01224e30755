# SPDX-License-Identifier: Apache-2.0
"""Every attack of hostile/run.py for a moment: the service goes on, and the victim loses nothing. No time is judged."""

import pathlib
import subprocess
import sys

import pytest

from harness import place

pytestmark = [pytest.mark.root, pytest.mark.whole_machine, pytest.mark.timeout(1800)]

RUN = pathlib.Path(__file__).with_name("run.py")


def test_no_attack_takes_anything_from_another_user():
    command = [sys.executable, str(RUN), "--short", "--device", place.DEVICE]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = process.communicate(timeout=4 * place.PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.terminate()  # it ends what it started
        output = "it did not end in time:\n" + process.communicate(timeout=place.PATIENCE_S)[0]
    finally:
        process.kill()
    print(output)
    assert process.returncode == 0, output
