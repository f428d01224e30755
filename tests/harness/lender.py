# SPDX-License-Identifier: Apache-2.0
"""Daemons that serve one test after the other."""

from .client import Client, Closed
from .daemon import Daemon
from .patience import while_short


class Lender:
    """One daemon of each configuration, at most."""

    def __init__(self, cache):
        self._cache = cache
        self._daemons = {}

    def daemons(self):
        return list(self._daemons.values())

    def lend(self, **settings):
        key = tuple(sorted(settings.items()))
        if key not in self._daemons:
            self._daemons[key] = Daemon(cache=self._cache, **settings).start()
        daemon = self._daemons[key]
        daemon.lent = (dict(daemon.settings), daemon.sections, _events(daemon))
        return daemon

    def take_back(self, daemon):
        """Whether the next test may have it: nothing of the last one is left, and nothing happened to its processes."""
        for client in daemon.clients:
            client.close()
        daemon.clients.clear()
        if daemon.process.poll() is not None or daemon.lent != (daemon.settings, daemon.sections, _events(daemon)):
            return False
        while_short(lambda: not _is_idle(daemon))
        return _is_idle(daemon) and not daemon.detached()

    def drop(self, daemon):
        """The next one who asks gets another."""
        self._daemons = {key: other for key, other in self._daemons.items() if other is not daemon}


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
