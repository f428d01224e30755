# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the system tests: a daemon for each test on the CPU driver; on a GPU, where a context takes a second, many are lent from test to test."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import folders, place, processes  # noqa: E402
from harness.daemon import Daemon  # noqa: E402
from harness.lender import Lender  # noqa: E402
from harness.progress import Progress  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--part", choices=("shared", "whole"),
                     help="the tests that may run beside each other, or those that load the whole machine, alone")


def pytest_sessionstart(session):
    if not place.STAGE.is_dir():
        pytest.exit(f"nothing is installed in {place.STAGE}: run tests/setup.sh, or set GPUQ_STAGE", 2)
    processes.adopt_orphans()
    if not hasattr(session.config, "workerinput"):
        session.config.add_cleanup(folders.share())
        if os.environ.get("GPUQ_TEST_PROGRESS"):
            session.config.pluginmanager.register(Progress(os.environ["GPUQ_TEST_PROGRESS"]))


def pytest_collection_modifyitems(config, items):
    part = config.getoption("part")
    if part:
        parts = {"shared": [], "whole": []}
        for item in items:
            parts["whole" if item.get_closest_marker("whole_machine") else "shared"].append(item)
        items[:] = parts.pop(part)
        config.hook.pytest_deselected(items=sum(parts.values(), []))
    rules = [
        ("root", os.geteuid() != 0, "needs root, to be several users"),
        ("cpu", place.on_gpu(), "about the CPU driver"),
        ("gpu", not place.on_gpu(), "no GPU in this run: GPUQ_TEST_DEVICE=gpu"),
    ]
    for item in items:
        for marker, unfit, reason in rules:
            if unfit and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    item.has_passed = report.when == "call" and report.passed
    if report.when == "call" and report.failed:
        for daemon in getattr(item, "daemons", []):
            report.sections.append(("gpuqd's log", daemon.log()))


@pytest.fixture(scope="session")
def compile_cache():
    """What one test compiled serves the others."""
    return pathlib.Path(os.environ["GPUQ_SHARED_CACHE"])


@pytest.fixture
def start_gpuqd(request, compile_cache):
    """Starts daemons of the test's own: start_gpuqd(cpu_devices=2), start_gpuqd(private=False), ..."""
    daemons = request.node.daemons = []

    def start(private=True, **settings):
        daemon = Daemon(private=private, cache=compile_cache, **settings)
        daemons.append(daemon)
        return daemon.start()

    yield start
    problems = []
    for daemon in daemons:
        problems += ended_badly(daemon)
    assert not problems, "\n".join(problems)


def ended_badly(daemon):
    """Stops it, if it runs yet. What was wrong with that."""
    try:
        if daemon.process and daemon.folder.exists():
            daemon.stop()
    except AssertionError as problem:
        return [str(problem)]
    return []


@pytest.fixture(scope="session")
def lender(compile_cache):
    lender = Lender(compile_cache)
    yield lender
    problems = [problem for daemon in lender.daemons() for problem in ended_badly(daemon)]
    assert not problems, "\n".join(problems)


@pytest.fixture
def lend_gpuqd(request, lender, start_gpuqd):
    """lend_gpuqd(private=False, ...): one that tests before may have used and left as it was."""
    if not place.LENDING:
        yield start_gpuqd
        return
    lent = []

    def lend(**settings):
        daemon = lender.pick(**settings)
        if daemon not in lent:
            lent.append(daemon)
            request.node.daemons.append(daemon)
            lender.lend(daemon)
        return daemon

    yield lend
    for daemon in lent:
        request.node.daemons.remove(daemon)
    problems = []
    for daemon in lent:
        if not (request.node.has_passed and lender.take_back(daemon)):
            lender.drop(daemon)
            problems += ended_badly(daemon)
    assert not problems, "\n".join(problems)


@pytest.fixture
def gpuqd(lend_gpuqd):
    """A private daemon."""
    return lend_gpuqd()


@pytest.fixture
def service(lend_gpuqd):
    """A daemon for every user, as root starts it."""
    return lend_gpuqd(private=False)


@pytest.fixture
def client(gpuqd):
    """A session with it."""
    return gpuqd.connect()
