# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: how long they go on, where their dice start, and the table at the end.

GPUQ_FAULT_LONG=1: the long run, 1,000 kills in each loop. GPUQ_FAULT_ROUNDS=N: so many rounds of each test instead.
GPUQ_FAULT_SEED=N: other dice.
GPUQ_FAULT_TABLE=FILE: the table as JSON as well, written anew after each test.
"""

import json
import os
import pathlib
import random

import numpy
import pytest

LONG = bool(os.environ.get("GPUQ_FAULT_LONG"))
ROUNDS = int(os.environ.get("GPUQ_FAULT_ROUNDS", "0"))
SEED = int(os.environ.get("GPUQ_FAULT_SEED", "1"))
ROW = "a row of the table"
TABLE = []  # in the process that hears of all tests


@pytest.fixture
def rounds():
    """rounds(30, 1000): how often, in the short run and in the long one."""
    return lambda short, long: ROUNDS or (long if LONG else short)


@pytest.fixture
def dice(request):
    """Random numbers that are the same in each run; a failure shows where they started."""
    seed = f"{SEED} {request.node.name}"
    print(f"GPUQ_FAULT_SEED={SEED}")
    return random.Random(seed)


@pytest.fixture
def tell(request):
    """tell(faults=30, jobs=5000, losses=0, recovery_ms=[...]): a row of the table at the end."""
    def add(**row):
        row = {"test": request.node.nodeid.split("/")[-1], **row}
        request.node.user_properties.append((ROW, json.dumps(row, default=float)))
    return add


def percentile(values, p):
    return float(numpy.percentile(values, p)) if len(values) else None


def summary(row):
    values = row.pop("recovery_ms", [])
    return {**row, "recovery_p50_ms": percentile(values, 50), "recovery_p99_ms": percentile(values, 99)}


def pytest_runtest_logreport(report):
    """The properties of tests come from whichever process ran them; what a fixture tells at its end comes last."""
    told = [summary(json.loads(value)) for name, value in report.user_properties if name == ROW]
    if report.when != "teardown" or not told or "PYTEST_XDIST_WORKER" in os.environ:
        return
    TABLE.extend(told)
    if os.environ.get("GPUQ_FAULT_TABLE"):
        write_table(pathlib.Path(os.environ["GPUQ_FAULT_TABLE"]))


def write_table(path):
    """A run that is cut off leaves what it had reached."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps({"seed": SEED, "long": LONG, "rows": TABLE}, indent=1), encoding="utf-8")
    new.replace(path)


def pytest_terminal_summary(terminalreporter):
    if not TABLE:
        return
    write = terminalreporter.write_line
    terminalreporter.section("faults")
    write(f"{'test':72} {'faults':>7} {'jobs':>8} {'typed':>6} {'losses':>6} {'p50 ms':>8} {'p99 ms':>8}")
    for row in TABLE:
        p50, p99 = (f"{value:.1f}" if value is not None else "-" for value in (row["recovery_p50_ms"], row["recovery_p99_ms"]))
        write(f"{row['test']:72} {row['faults']:7} {row.get('jobs', '-'):>8} {row.get('typed', '-'):>6} "
              f"{row.get('losses', 0):6} {p50:>8} {p99:>8}")
