# SPDX-License-Identifier: Apache-2.0
"""Sums JUnit files to the line that every test script ends with: N passed, N failed, N skipped.

    summary.py FILE...

A file that is missing or empty counts as one failure: a suite that did not run has not passed.
"""

import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    try:
        suites = list(ElementTree.parse(path).iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return 0, 1, 0

    def total(name):
        return sum(int(suite.get(name) or 0) for suite in suites)

    failed = total("failures") + total("errors")
    skipped = total("skipped")
    return total("tests") - failed - skipped, failed, skipped


def main(paths):
    passed, failed, skipped = (sum(column) for column in zip(*map(count, paths)))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
