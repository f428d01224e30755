# SPDX-License-Identifier: Apache-2.0
"""The harness itself: daemons that serve one test after the other are few, and how each ends is looked at."""

import pytest

from harness.lender import MOST, Lender


@pytest.fixture
def lender(compile_cache):
    lender = Lender(compile_cache)
    yield lender
    for daemon in lender.daemons():
        daemon.stop()


def lent(lender, **settings):
    daemon = lender.pick(**settings)
    lender.lend(daemon)
    return daemon


def test_the_one_that_was_lent_longest_ago_makes_room(lender):
    first, second = [lent(lender, sessions=n) for n in range(1, 1 + MOST)]
    assert lender.take_back(first) and lender.take_back(second)
    assert lent(lender, sessions=1) is first and lender.take_back(first)
    lent(lender, sessions=3)
    assert second.process.poll() == 0 and first.process.poll() is None and len(lender.daemons()) == MOST


def test_one_that_a_test_has_is_not_stopped(lender):
    daemons = [lent(lender, sessions=n) for n in range(1, 2 + MOST)]
    assert all(daemon.process.poll() is None for daemon in daemons)


def test_who_asks_for_another_is_told_what_was_wrong_with_its_end(lender):
    daemons = [lent(lender, sessions=n) for n in range(1, 1 + MOST)]
    with open(daemons[0].log_path, "a", encoding="utf-8") as log:
        log.write("ERROR: AddressSanitizer: made up\n")
    for daemon in daemons:
        daemon.lent = None
    with pytest.raises(AssertionError, match="made up"):
        lent(lender, sessions=3)
    assert daemons[0] not in lender.daemons()
