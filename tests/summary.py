# SPDX-License-Identifier: Apache-2.0
"""Sums results to the line that every test script ends with: N passed, N failed, N skipped.

    summary.py FILE...

A file is JUnit XML, or meson's testlog.json, whose tests speak TAP or have an exit status alone. One that
is missing or empty counts as one failure: a suite that did not run has not passed.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

TAP = re.compile(r"^(not )?ok\b[^#\n]*(#\s*skip)?", re.IGNORECASE | re.MULTILINE)


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


def main(paths):
    passed, failed, skipped = add([count(path) for path in paths])
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
