# SPDX-License-Identifier: Apache-2.0
"""Where attacks are played: a service of its own, the victim, the attackers, and what is measured meanwhile."""

import contextlib
import ctypes
import os
import pathlib
import re
import resource
import shutil
import signal
import time

from harness import folders, kernels, place, processes
from harness.attackers import Attackers
from harness.client import Client, Closed, In, Job, Out, Refused
from harness.daemon import Daemon
from harness.patience import until
from harness.victim import Victim, now_ns

VICTIM = 23400
ATTACKERS = tuple(range(23401, 23409))
OWNER = "games"  # a user that every Debian has, whose subordinate uids the attackers are in one attack
N_PROCESSES_OF_ONE = 2
FEW_FILES = 1024  # what a process may open where nobody has raised the limit
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 4096, 16384, 1 << 18, 2
PREPARE_S = 15
FRESH_S = 20
PATIENCE_S = 60  # for the victim after an attack: the service may be restarting
MEMORY_LEAST = 3 << 30  # with less of the machine's memory left an attack is ended
DRAINED = re.compile(r"device \d+ \([^)]*\) is ")
RESTARTED = re.compile(r"the supervisor .*: restarting it|supervisor killed: .*")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Unable(Exception):
    """Why this attack cannot be played here."""


# ---- what the machine lends --------------------------------------------------------

libc = ctypes.CDLL(None, use_errno=True)
has_mounts = False


def private_mounts():
    """From here on, what is mounted is mounted for this process and its children alone, and goes with them."""
    global has_mounts  # pylint: disable=global-statement
    has_mounts = libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0


def mount(source, target, kind=None, flags=0, data=None):
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    if not has_mounts or libc.mount(*words[:3], flags, words[3]) != 0:
        raise Unable("nothing can be mounted here")


def subordinate_file(folder):
    path = folder / "subuid"
    path.write_text(f"{OWNER}:{ATTACKERS[0]}:{len(ATTACKERS)}\n")
    mount(path, "/etc/subuid", flags=MS_BIND)


def small_disk(folder):
    """Returns the settings that name it."""
    disk = folder / "disk"
    disk.mkdir()
    mount("gpuq", disk, "tmpfs", data="size=16m,mode=755")
    return {"cache_dir": disk / "cache", "state_dir": disk / "state"}


def limiter(n_descriptors):
    def apply():
        resource.setrlimit(resource.RLIMIT_NPROC, (256, 256))  # of each uid; workers inherit it
        if n_descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (n_descriptors, n_descriptors))
    return apply


def memory_left():
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable: +(\d+)", text)[1]) * 1024


# ---- one service -------------------------------------------------------------------

class Scene:
    """A service and its victim."""

    def __init__(self, options):
        self.folder = folders.new("gpuq-hostile-")
        self.mounted, self.daemon, self.victim, self.n_fresh = [], None, None, 0
        try:
            self._start(options)
        except BaseException:
            self.close()
            raise

    def _start(self, options):
        self._copy_liar()
        settings = dict(options["settings"])
        if options["subordinate"]:
            subordinate_file(self.folder)
            self.mounted.append("/etc/subuid")
        if options["small_disk"]:
            settings.update(small_disk(self.folder))
            self.mounted.append(self.folder / "disk")
        self.daemon = Daemon(private=False, cache=os.environ["GPUQ_SHARED_CACHE"], **settings)
        self.daemon.start(preexec_fn=limiter(FEW_FILES if options["few_descriptors"] else 0))
        self.victim = Victim(self.daemon, VICTIM)
        self.victim.begin()

    def close(self):
        """Returns what was wrong with its end."""
        problems = []
        if self.victim:
            self.victim.end()
        try:
            status = self.daemon.stop() if self.daemon and self.daemon.process else 0
            problems += [f"gpuqd ended with {status}"] if status else []
        except AssertionError as problem:
            problems.append(str(problem)[-1500:])
        for path in self.mounted:
            libc.umount2(os.fsencode(path), MNT_DETACH)
        shutil.rmtree(self.folder, ignore_errors=True)
        return problems

    def _copy_liar(self):
        """To where workers can read it; sanitized workers cannot load it."""
        if not place.SANITIZED:
            shutil.copy(place.test_program("gpuq-test-liar.so"), self.folder)

    # ---- what is asked of it ----

    def peaks(self):
        """Of supervisor and keeper, in bytes."""
        found = []
        for pid in (*processes.named(self.daemon.process.pid, "gpuqd-supervisor")[:1], self.daemon.process.pid):
            with contextlib.suppress(OSError, AssertionError):
                found.append(processes.peak_bytes(pid))
        return found if len(found) == 2 else (0, 0)

    def reset_peaks(self):
        for pid in (self.daemon.supervisor(), self.daemon.process.pid):
            with contextlib.suppress(OSError):
                processes.reset_peak(pid)

    def fresh(self, is_known):
        """What the victim can begin meanwhile: a session, a module that nobody has (or one that is known), memory, a job. Returns ms,
        or what failed."""
        begin = time.monotonic()
        self.n_fresh += 1
        mark = "" if is_known else f"// {os.getpid()} {id(self)} {self.n_fresh}\n"
        try:
            with Client(self.daemon.socket, uid=VICTIM) as client:
                client.socket.settimeout(FRESH_S)
                module = client.load(kernels.BASIC + mark)
                done = client.run(Job().launch(module, "address", [In(client.arena(4)), Out(client.arena(8))]))
                if done.error.code:
                    return f"a new job: {done.error.text}"
        except TimeoutError:
            return f"a new session: no answer in {FRESH_S} s"
        except (Refused, Closed, OSError) as problem:
            return f"a new session: {problem}"
        return (time.monotonic() - begin) * 1000

    def status(self):
        """As an administrator sees it; None while nobody answers."""
        with contextlib.suppress(Refused, Closed, OSError):
            with Client(self.daemon.socket) as client:
                client.socket.settimeout(FRESH_S)
                return client.status()
        return None

    def cancel_all(self, uids):
        """Detached jobs outlive who submitted them."""
        for uid in uids:
            with contextlib.suppress(Refused, Closed, OSError):
                with Client(self.daemon.socket, uid=uid) as client:
                    client.socket.settimeout(FRESH_S)
                    client.cancel(all=True)

    def is_calm(self):
        """Nobody has jobs but the victim."""
        status = self.status()
        return status and not any(user.queued or user.running or user.sessions for user in status.users if user.uid not in (0, VICTIM))

    def drained(self):
        return len(DRAINED.findall(self.daemon.log()))

    def restarts(self):
        return [line for line in self.daemon.log().splitlines() if RESTARTED.search(line)]

    def strays(self, uids):
        """What attackers left behind: neither workers that the service knows nor what these started, which end with them."""
        found = [pid for pid in processes.children(self.daemon.process.pid) if processes.uid(pid) in uids]
        status = self.status() if found else None
        known = {worker.pid for worker in status.workers} if status else set()
        return [f"{processes.name(pid)} {pid}" for pid in found if pid not in known and processes.is_alive(pid)]


# ---- one attack --------------------------------------------------------------------

class Theatre:
    def __init__(self, n_users, seconds, is_short):
        self.n_users, self.seconds, self.is_short = n_users, seconds, is_short
        self.scene, self.problems = None, []

    def close(self):
        """Returns what was wrong with the service beside what the rows say."""
        if self.scene:
            scene, self.scene = self.scene, None
            self.problems += scene.close()
        return self.problems

    def uids(self):
        return ATTACKERS if self.n_users > 1 else ATTACKERS[:1] * N_PROCESSES_OF_ONE

    def play(self, one):
        """Returns the row of this attack."""
        if one.options["cpu"] and place.on_gpu():
            raise Unable("the CPU driver alone runs a user's code in the worker")
        if one.options["cpu"] and place.SANITIZED:
            raise Unable("a sanitized worker loads no library that lies")
        is_common = self.is_short and not any(one.options[name] for name in ("settings", "small_disk", "few_descriptors", "subordinate"))
        try:
            if not self.scene:
                self.scene = Scene(one.options)
            elif not is_common:
                self.close()
                self.scene = Scene(one.options)
            row = Performance(self.scene, one, self.uids(), self.seconds, self.is_short).row
        except BaseException:
            self.close()
            raise
        if not is_common or row["restarts"] or row["stuck"]:
            before = len(self.problems)
            self.close()
            row["service"] = self.problems[before:]
        return row


class Performance:
    def __init__(self, scene, one, uids, seconds, is_short):
        self.scene, self.one, self.uids, self.seconds, self.is_short = scene, one, uids, seconds, is_short
        self.peak = [0, 0]
        self.row = self._play()

    def _watch(self, attackers, seconds):
        """For so long; what it costs meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            attackers.listen(min(left, 0.2))
            self._weigh()
            if memory_left() < MEMORY_LEAST:
                attackers.said.append("trouble ended early: the machine has little memory left")
                return

    def _weigh(self):
        self.peak = [max(pair) for pair in zip(self.peak, self.scene.peaks())]

    def _attack(self):
        """Returns what the attackers said, and what the victim could begin meanwhile."""
        scene = self.scene
        attackers = Attackers(scene.daemon, self.one.function, self.uids, scene.folder, self.is_short,
                              keep=[scene.victim.member.process.pid], n_processes=self.one.options["processes"],
                              n_groups=self.one.options["groups"])
        try:
            if self.one.options["prepares"]:
                attackers.wait_until_ready(2 if self.is_short else PREPARE_S)
            self._watch(attackers, self.seconds / 2)
            if self.one.options["kills"]:
                os.kill(scene.daemon.supervisor(), signal.SIGKILL)
                fresh = None
            else:
                fresh = scene.fresh(self.is_short and not self.one.options["small_disk"])
            self._watch(attackers, self.seconds / 2)
        finally:
            attackers.end()
        return attackers, fresh

    def _settle(self):
        """Returns whether the victim works on, and whatever of the attackers is left."""
        works = self.scene.victim.goes_on(PATIENCE_S)
        calm_ns = now_ns()
        left = []
        if works:
            self.scene.cancel_all(set(self.uids))
            try:
                until(self.scene.is_calm, "calm", PATIENCE_S)
            except AssertionError:
                left.append("jobs or sessions")
            with contextlib.suppress(AssertionError):
                until(lambda: not self.scene.strays(set(self.uids)), "strays to end", FRESH_S)
            left += self.scene.strays(set(self.uids))
        return works, calm_ns, left

    def _play(self):
        scene, victim = self.scene, self.scene.victim
        before_ns = now_ns()
        time.sleep(0.1 if self.is_short else min(self.seconds, 3))
        scene.reset_peaks()
        at_rest = scene.peaks()
        drained, restarts, lost, connects = scene.drained(), len(scene.restarts()), victim.n_lost(), victim.n_connects()
        begin_ns = now_ns()
        attackers, fresh = self._attack()
        works, calm_ns, left = self._settle()
        self._weigh()
        new_restarts = scene.restarts()[restarts:]
        during = victim.figures(begin_ns, calm_ns)
        if not works:  # a job that has not ended is in no record
            during["longest_ms"] = max(during["longest_ms"] or 0, (calm_ns - begin_ns) / 1e6)
        expected = 1 if self.one.options["kills"] else 0
        log = scene.daemon.log()
        return {
            "attack": self.one.name, "users": len(set(self.uids)), "processes": len(self.uids),
            "control": self.one.options["control"],
            "before": victim.figures(before_ns, begin_ns), "during": during,
            "stuck": not works, "lost_bytes": victim.n_lost() - lost, "sessions_lost": victim.n_connects() - connects,
            "restarts": max(0, len(new_restarts) - expected), "why": new_restarts if len(new_restarts) > expected else [],
            "drained": scene.drained() - drained, "fresh": fresh, "left": left,
            "breaches": attackers.breaches() + ["controls in the log"] * bool(CONTROLS.search(log)),
            "troubles": attackers.troubles(), "words": victim_words(victim),
            "supervisor_bytes": self.peak[0], "keeper_bytes": self.peak[1],
            "supervisor_rest_bytes": at_rest[0], "keeper_rest_bytes": at_rest[1],
        }


def victim_words(victim):
    return sorted(set(victim.member.output().splitlines()))[:5]
