# SPDX-License-Identifier: Apache-2.0
"""What a service holds, and that after all who used it have gone it holds no more than before they came."""

import collections
import os

from . import processes
from .client import Client, Closed
from .patience import until

ARENAS = ("/memfd:gpuq-arena", "/memfd:gpuq-device")


def descriptors(pid):
    """How many of each kind: sockets, memfds by name, files."""
    count = collections.Counter()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        count[target.split(":[")[0]] += 1
    return count


class Remains:
    """Taken when nobody has come yet: assert_none() later says what was not given back."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.before = self._held()

    def _held(self):
        pids = {"keeper": self.daemon.process.pid, "supervisor": self.daemon.supervisor()}
        return {name: descriptors(pid) for name, pid in pids.items()}

    def _workers_arenas(self):
        """What workers have mapped or open of arenas, host and device."""
        held = collections.Counter()
        for pid in self.daemon.workers():
            held.update({name: n for name, n in descriptors(pid).items() if name.startswith(ARENAS)})
            held.update(word for line in processes.maps(pid).splitlines() for word in line.split()[5:6] if word.startswith(ARENAS))
        return held

    def _left(self):
        try:
            return self._what_is_left()
        except (OSError, Closed) as problem:  # a process ended while it was looked at
            return [str(problem)]

    def _what_is_left(self):
        with Client(self.daemon.socket) as client:
            status = client.status()
        # A worker that idles may stay, with its channel, which the keeper holds too.
        n_workers = len(self.daemon.workers())
        allowed = {"keeper": 4 * n_workers, "supervisor": 4 * n_workers}
        held = self._held()
        left = [f"{user.uid}: {user.sessions} sessions, {user.queued + user.running} jobs, {user.arena_bytes} bytes of host "
                f"and {user.device_bytes} of device memory, {user.modules} modules" for user in status.users
                if user.queued or user.running or user.arena_bytes or user.device_bytes or user.modules]
        left += [f"device {device.index}: {device.memory_arenas} bytes in arenas, {device.queued} queued, {device.running} running"
                 for device in status.devices if device.memory_arenas or device.queued or device.running]
        left += [f"{name}: {dict(held[name] - self.before[name])}" for name in held
                 if sum((held[name] - self.before[name]).values()) > allowed[name]]
        arenas = self._workers_arenas()
        left += [f"workers: {dict(arenas)}"] if arenas else []
        if status.queued or status.running:
            left.append(f"{status.queued} queued, {status.running} running")
        uids = [processes.uid(pid) for pid in self.daemon.workers()]
        if len(uids) != len(set(uids)):  # one that was stopped may not have ended yet
            left.append(f"more than one worker for a user: {uids}")
        return left

    def assert_none(self):
        """Nothing is left of sessions, jobs, memory, descriptors; and one worker for a user at most."""
        try:
            until(lambda: not self._left(), "everything to be given back")
        except AssertionError:
            raise AssertionError(f"left behind: {self._left()}") from None
