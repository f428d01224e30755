# SPDX-License-Identifier: Apache-2.0
"""The benchmark's programs give right results; how fast is for a machine with a GPU to say."""

import json
import subprocess
import sys

from harness import place


def test_the_benchmark_runs_and_every_result_is_right(tmp_path):
    report = tmp_path / "bench.json"
    answer = subprocess.run(
        [sys.executable, place.ROOT / "tests/bench/run.py", "--prefix", place.STAGE, "--reduced", "--device", place.DEVICE,
         "--json", report], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    rows = json.loads(report.read_text())["rows"]
    assert len(rows) == 16
    assert all(row["jobs"] > 0 for row in rows)
