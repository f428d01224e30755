# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests of concurrent.futures' executors, with gpuq.Executor in the place of theirs.

They come with the interpreter's test suite (Debian's and Ubuntu's libpython3.N-testsuite). The three of them that name
their executor in a program's text, and one that has to be quick, are here in our words.
"""

import importlib
import subprocess
import sys
import threading
import time
import unittest

import pytest

import gpuq as package
from harness.patience import until

try:
    suite = importlib.import_module("test.test_concurrent_futures")
except ImportError:
    pytest.skip("the interpreter's own tests are not installed", allow_module_level=True)


def part(name, module):
    """A mixin of theirs, which from Python 3.12 on is in a module of its own."""
    if hasattr(suite, name):
        return getattr(suite, name)
    return getattr(importlib.import_module(f"{suite.__name__}.{module}"), name)


class Theirs:
    """Kept in a class, or pytest would run them as they are."""

    mixin, base = part("ExecutorMixin", "util"), part("BaseTestCase", "util")
    parts = (part("ExecutorTest", "executor"), part("ExecutorShutdownTest", "test_shutdown"))
    of_futures = (part("WaitTests", "test_wait"), part("AsCompletedTests", "test_as_completed"))


class Threads(Theirs.mixin):
    @staticmethod
    def executor_type(*args, **options):
        return package.Executor(*args, processes=False, **options)


class Processes(Theirs.mixin):
    executor_type = package.Executor
    ctx = "fork"


IN_OUR_WORDS = ("test_interpreter_shutdown", "test_submit_after_interpreter_shutdown", "test_hang_gh83386", "test_cancel_futures")


def make(kind, theirs):
    name = f"{kind.__name__}{theirs.__name__}"
    skipped = {test: None for test in IN_OUR_WORDS if hasattr(theirs, test)}
    globals()[name] = type(name, (kind, theirs, Theirs.base), {"__module__": __name__, **skipped})


MADE = [*((Threads, theirs) for theirs in (*Theirs.parts, *Theirs.of_futures)), *((Processes, theirs) for theirs in Theirs.parts)]
for kind, theirs in MADE:
    make(kind, theirs)


def ended(program, **options):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("processes", [True, False])
def test_what_is_submitted_is_done_before_the_interpreter_ends(gpuq, processes):
    told = ended(f"""
import gpuq
gpuq.Executor(5, processes={processes}).submit(print, "apple", flush=True)
""")
    assert (told.returncode, told.stdout, told.stderr) == (0, "apple\n", "")


@pytest.mark.parametrize("processes", [True, False])
def test_submitting_when_the_interpreter_ends_is_a_runtime_error(gpuq, processes):
    told = ended(f"""
import atexit
@atexit.register
def run_last():
    try:
        executor.submit(id, None)
    except RuntimeError as error:
        print(error)
import gpuq
executor = gpuq.Executor(5, processes={processes})
executor.submit(id, 42).result()
""")
    assert told.stdout.startswith("cannot schedule new futures") and not told.stderr


def test_shutdown_without_wait_lets_the_interpreter_end(gpuq):
    told = ended("""
import gpuq
executor = gpuq.Executor(3, processes=False)
executor.submit(print, "apple", flush=True)
executor.shutdown(wait=False)
""")
    assert (told.returncode, told.stdout, told.stderr) == (0, "apple\n", "")


def wait_for(path):
    while not path.exists():
        time.sleep(0.01)


@pytest.mark.parametrize("processes", [True, False])
def test_shutdown_cancels_what_has_not_begun(gpuq, tmp_path, processes):
    executor = gpuq.Executor(2, processes=processes)
    futures = [executor.submit(wait_for, tmp_path / "go") for _ in range(50)]
    until(lambda: any(future.running() for future in futures), "the first to begin")
    ending = threading.Thread(target=lambda: executor.shutdown(cancel_futures=True))
    ending.start()
    until(lambda: sum(future.cancelled() for future in futures) > 20, "those that have not begun to be cancelled")
    (tmp_path / "go").touch()
    ending.join()
    others = [future for future in futures if not future.cancelled()]
    assert others and all(future.done() and future.exception() is None for future in others)


def test_all_of_theirs_are_here():
    """Nothing was lost on the way."""
    for kind, theirs in MADE:
        names = unittest.TestLoader().getTestCaseNames(globals()[f"{kind.__name__}{theirs.__name__}"])
        assert {name for name in dir(theirs) if name.startswith("test")} - set(IN_OUR_WORDS) == set(names)
