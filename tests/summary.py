# SPDX-License-Identifier: Apache-2.0
"""Names what failed, and sums results to the line that every test script ends with: N passed, N failed, N skipped.

    summary.py FILE...

A file is JUnit XML, or meson's testlog.json, whose tests speak TAP or have an exit status alone. One that
is missing or empty counts as one failure: a suite that did not run has not passed.
"""

import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

TAP = re.compile(r"^(not )?ok\b[^#\n]*(#\s*skip)?", re.IGNORECASE | re.MULTILINE)
TAP_FAILED = re.compile(r"^not ok \d+ -? ?(.*)\n((?:#.*\n)*)", re.MULTILINE)
NAMED_N = 40  # failed tests, at most


def count_junit(path):
    suites = list(ElementTree.parse(path).iter("testsuite"))

    def total(name):
        return sum(int(suite.get(name) or 0) for suite in suites)

    failed = total("failures") + total("errors")
    skipped = total("skipped")
    return total("tests") - failed - skipped, failed, skipped


def count_test(test):
    """A program that crashed or hung after its last line of TAP failed once more."""
    lines = TAP.findall(test.get("stdout", ""))
    if not lines:
        return {"OK": (1, 0, 0), "SKIP": (0, 0, 1)}.get(test["result"], (0, 1, 0))
    failed = sum(1 for bad, _skip in lines if bad)
    skipped = sum(1 for bad, skip in lines if skip and not bad)
    passed = len(lines) - failed - skipped
    return passed, max(failed, int(test["result"] not in ("OK", "SKIP"))), skipped


def add(counts):
    return [sum(column) for column in zip(*counts)]


def count(path):
    try:
        if not path.endswith(".json"):
            return count_junit(path)
        with open(path) as file:
            return add([count_test(json.loads(line)) for line in file]) or (0, 1, 0)
    except (OSError, ValueError, ElementTree.ParseError):
        return 0, 1, 0


def failed_junit(path):
    """(Test, reason) of each."""
    for case in ElementTree.parse(path).iter("testcase"):
        for verdict in case:
            if verdict.tag in ("failure", "error"):
                yield "::".join(filter(None, (case.get("classname"), case.get("name")))), verdict.get("message") or verdict.tag


def failed_tests(path):
    with open(path) as file:
        for test in map(json.loads, file):
            told = TAP_FAILED.findall(test.get("stdout", ""))
            yield from ((f"{test['name']}::{name}", reason.replace("#", " ")) for name, reason in told)
            if not told and test["result"] not in ("OK", "SKIP"):
                yield test["name"], f"{test['result']}, exit status {test.get('returncode')}: {test.get('stderr', '')[-200:]}"


def name_failed(paths):
    """A line each, after all that was said before: the end of the output is what is read."""
    lines = []
    for path in paths:
        try:
            failed = list(failed_tests(path) if path.endswith(".json") else failed_junit(path))
        except (OSError, ValueError, ElementTree.ParseError) as problem:
            failed = [("no results", str(problem))]
        lines += [f"FAILED {pathlib.Path(path).parent.name}: {name}: {' '.join(reason.split())[:200]}" for name, reason in failed]
    print("\n".join(lines[:NAMED_N]))
    if len(lines) > NAMED_N:
        print(f"... and {len(lines) - NAMED_N} more")


def main(paths):
    passed, failed, skipped = add([count(path) for path in paths])
    if failed:
        name_failed(paths)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
