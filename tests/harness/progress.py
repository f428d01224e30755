# SPDX-License-Identifier: Apache-2.0
"""A line for each test as it ends, in a file: what a run that is cut off had reached."""

import collections


class Progress:
    """A plugin of the process that hears of all tests. GPUQ_TEST_PROGRESS names its file."""

    def __init__(self, path):
        self.path = path
        self.reports = collections.defaultdict(list)  # of tests that have not ended

    def pytest_runtest_logreport(self, report):
        self.reports[report.nodeid].append(report)
        if report.when in ("setup", "call"):
            return
        reports = self.reports.pop(report.nodeid)  # a process that died has one report only, of no phase
        verdict = next((word for word in ("failed", "skipped") if any(one.outcome == word for one in reports)), "passed")
        seconds = sum(getattr(one, "duration", 0) for one in reports)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{verdict} {seconds:.1f} s {report.nodeid}\n")
