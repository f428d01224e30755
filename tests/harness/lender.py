# SPDX-License-Identifier: Apache-2.0
"""Daemons that serve one test after the other."""

import gc

from .client import Client, Closed
from .daemon import Daemon
from .patience import while_short

MOST = 2  # each has a context per user and device, and a driver does not take any number of them


class Lender:
    """One daemon of each configuration, and few at a time: who asks for another has the one stopped that was lent longest ago."""

    def __init__(self, cache):
        self._cache = cache
        self._daemons = {}  # by configuration, the one lent last at the end

    def daemons(self):
        return list(self._daemons.values())

    def pick(self, private=True, **settings):
        """One to lend(). What is wrong with the end of another one that it stops fails who asks."""
        key = (private, *sorted(settings.items()))
        daemon = self._daemons.pop(key, None)
        if not daemon:
            self._make_room()
            daemon = Daemon(private=private, cache=self._cache, **settings)
        self._daemons[key] = daemon
        return daemon

    def lend(self, daemon):
        if not daemon.process:
            daemon.start()
        daemon.lent = (dict(daemon.settings), daemon.sections, _events(daemon))

    def take_back(self, daemon):
        """Whether the next test may have it: nothing of the last one is left, and nothing happened to its processes."""
        before, daemon.lent = daemon.lent, None
        for client in daemon.clients:
            client.close()
        daemon.clients.clear()
        gc.collect()  # those that a test made itself end with it, but for cycles
        if daemon.process.poll() is not None or before != (daemon.settings, daemon.sections, _events(daemon)):
            return False
        while_short(lambda: not _is_idle(daemon))
        return _is_idle(daemon) and not daemon.detached()

    def drop(self, daemon):
        """The next one who asks gets another."""
        self._daemons = {key: other for key, other in self._daemons.items() if other is not daemon}

    def _make_room(self):
        idle = [daemon for daemon in self._daemons.values() if not daemon.lent]
        for daemon in idle[:max(0, len(self._daemons) - MOST + 1)]:
            self.drop(daemon)
            daemon.stop()


def _events(daemon):
    """What its log says beside the start of workers."""
    return [line for line in daemon.log().splitlines() if "is ready on device" not in line]


def _is_idle(daemon):
    try:
        with Client(daemon.socket) as client:
            status = client.status()
    except (OSError, Closed):
        return False
    return status.state == "ready" and not status.queued and not status.running and sum(user.sessions for user in status.users) <= 1
