# SPDX-License-Identifier: Apache-2.0
"""gpuq top: its screen on a real terminal, its keys, and that the terminal is afterwards as it was before."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import pytest

from harness import kernels, place, processes
from harness.client import Job
from harness.patience import until

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def set_size(descriptor, columns, rows):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def be_its_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A terminal in which gpuq runs, and what it shows."""

    def __init__(self, gpuqd, *arguments, columns=80, rows=24, uid=None):
        self.main, self.terminal = pty.openpty()
        set_size(self.main, columns, rows)
        self.before = termios.tcgetattr(self.terminal)
        self.told = ""
        user = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.process = subprocess.Popen(
            [place.program("gpuq"), *map(str, arguments)], stdin=self.terminal, stdout=self.terminal, stderr=self.terminal,
            env={**gpuqd.environment(), "TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}, preexec_fn=be_its_terminal, **user)

    def read(self):
        """All that was shown so far."""
        ready = select.poll()  # not select(): the tests have many descriptors open
        ready.register(self.main, select.POLLIN)
        while ready.poll(0):
            try:
                self.told += os.read(self.main, 65536).decode()
            except OSError:  # EIO: nobody has it open
                break
        return self.told

    def frames(self):
        """The lines of each screen that was drawn since the last one that was taken."""
        return [re.sub(r"\x1b\[[?]?[0-9;]*[a-zA-Z]", "", frame).split("\r\n") for frame in self.read().split("\x1b[H")[1:]]

    def shows(self, *words):
        """The newest screen once it has these words."""
        def found():
            assert self.process.poll() is None, self.read()
            frame = (self.frames() or [[]])[-1]
            return frame if all(word in "\n".join(frame) for word in words) else None
        return until(found, f"{words} on the screen")

    def types(self, keys):
        os.write(self.main, keys.encode())

    def forget(self):
        self.read()
        self.told = ""

    def ended(self):
        """Its exit status, once the terminal is as it was."""
        status = self.process.wait(place.PATIENCE_S)
        self.assert_given_back()
        return status

    def assert_given_back(self):
        assert termios.tcgetattr(self.terminal) == self.before
        told = self.read()
        assert told.rfind(LEAVE) > told.rfind(ENTER)
        assert told.rfind("\x1b[?25h") > told.rfind("\x1b[?25l") and told.rfind("\x1b[?7h") > told.rfind("\x1b[?7l")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)
        os.close(self.terminal)


@contextlib.contextmanager
def top(gpuqd, *arguments, **options):
    terminal = Terminal(gpuqd, "top", *arguments, **options)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture
def busy(gpuqd, client):
    """A daemon with a job that runs and many that wait for it, and its id as text."""
    module = client.load(kernels.BASIC)
    gate = kernels.GateJob(client, module, label="the gate")
    for number in range(40):
        client.submit(Job(after=[gate.id], label=f"after {number}").launch(module, "nothing"))
    until(lambda: client.status().running == 1 and client.status().queued == 40, "them to be there")
    gpuqd.gate = f"{gate.id >> 32}.{gate.id & 0xffffffff}"
    yield gpuqd
    client.cancel(all=True)


def test_once_in_a_pipe_is_complete_and_plain(busy):
    ended = busy.run("top", "--once")
    assert ended.returncode == 0 and not ended.stderr and "\x1b" not in ended.stdout
    assert "40 waiting, 1 running" in ended.stdout
    for heading in ("DEV", "UTIL", "TEMP", "POWER", "USER", "SHARE", "JOBS/S", "WAIT P50", "WAIT P99", "LIMIT", "LABEL", "STATE"):
        assert heading in ended.stdout
    assert re.search(rf"^ *{re.escape(busy.gate)} +\S+ +the gate +.* running$", ended.stdout, re.M)
    assert len(re.findall(rf" after \d+ .* waiting: depends on job {re.escape(busy.gate)}$", ended.stdout, re.M)) == 40
    assert busy.run("top", "--once", "-u", "12345").stdout.count(" after ") == 0


def test_users_have_their_waits_and_the_limit_that_they_reach_first(start_gpuqd):
    gpuqd = start_gpuqd(jobs=50)
    client = gpuqd.connect()
    module = client.load(kernels.BASIC)
    client.run_well(Job().launch(module, "nothing"))
    gate = kernels.GateJob(client, module)
    for _ in range(39):
        client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    until(lambda: client.status().queued == 39, "them to be there")
    told = gpuqd.run("top", "--once").stdout
    assert re.search(r"^\S+ .* [0-9.]+ [mun]?s +[0-9.]+ [mun]?s jobs 80% ", told, re.M), told
    assert "device memory in buffers" not in told

    told = gpuqd.run("top", "--once", "-u", os.getuid()).stdout
    limits = re.findall(r"^(\w+) .*(?:gpuqd|jobs|host|device|loaded|size|GPU) ?", told[told.index("ALLOWED"):], re.M)
    assert limits[0] == "jobs" and {"sessions", "device_bytes", "gpu_seconds"} <= set(limits), told
    client.cancel(all=True)


@pytest.mark.root
def test_users_see_only_their_own_limits_and_root_all(start_gpuqd):
    service = start_gpuqd(private=False, sessions=20)
    with service.connect(uid=65001) as client, service.connect(uid=65002):
        client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
        own, other = (re.search(rf"^{uid} .*$", service.run("top", "--once", uid=65001).stdout, re.M)[0] for uid in (65001, 65002))
        assert "%" in own[20:] and "%" not in other[20:], (own, other)
        assert "%" in re.search(r"^65002 .*$", service.run("top", "--once").stdout, re.M)[0][20:]


@pytest.mark.parametrize("columns, rows", [(80, 24), (132, 40)])
def test_once_on_a_terminal_is_one_screen(busy, columns, rows):
    terminal = Terminal(busy, "top", "--once", columns=columns, rows=rows)
    assert terminal.process.wait(place.PATIENCE_S) == 0
    told = terminal.read()
    terminal.close()
    lines = told.split("\r\n")
    assert "\x1b" not in told and len(lines) <= rows and max(map(len, lines)) <= columns
    assert busy.gate in told and "depends on" in told
    assert "WAIT P99 LIMIT" in told and ("GPU TIME" in told or columns == 80)


def test_without_a_terminal_it_says_what_to_do(gpuqd):
    ended = gpuqd.run("top")
    assert ended.returncode == 2 and "--once" in ended.stderr


def test_the_screen_fits_and_follows_what_happens(busy, client):
    with top(busy, "-d", "0.1") as terminal:
        frame = terminal.shows("40 waiting, 1 running", "q quit", busy.gate, "depends on")
        assert len(frame) <= 24 and max(len(line.rstrip("\r")) for line in frame) <= 80
        client.cancel(all=True)
        terminal.shows("0 waiting, 0 running")
        terminal.forget()
        set_size(terminal.main, 100, 12)
        until(lambda: terminal.frames() and len(terminal.frames()[-1]) <= 12, "a smaller screen")
        terminal.types("q")
        assert terminal.ended() == 0


def test_a_change_of_size_is_drawn_at_once(busy):
    with top(busy, "-d", "1000") as terminal:
        terminal.shows(busy.gate)
        terminal.forget()
        set_size(terminal.main, 100, 10)
        assert len(terminal.shows("DEV")) <= 10


def test_jobs_per_second_are_those_that_ended(gpuqd, client):
    module = client.load(kernels.BASIC)
    with top(gpuqd, "-d", "0.1") as terminal:
        terminal.shows(" 0.0 jobs/s")

        def rates():
            for _ in range(20):
                client.run_well(Job().launch(module, "nothing"))
            return any(float(rate) > 0 for frame in terminal.frames() for rate in re.findall(r", ([0-9.]+) jobs/s", frame[0]))
        until(rates, "a rate")


def test_s_sorts_and_escape_and_arrows_are_harmless(gpuqd):
    with top(gpuqd) as terminal:
        for order in ("share", "jobs", "wait", "name", "share"):
            terminal.shows(f"s sort ({order})")
            terminal.types("\x1b[A")
            terminal.types("s")
        terminal.types("u")
        terminal.shows("user (empty: all): _")
        terminal.types("\x1b")
        terminal.shows("q quit")
        terminal.types("q")
        assert terminal.ended() == 0


def test_u_shows_one_user(busy):
    with top(busy, rows=60) as terminal:
        terminal.shows("the gate")
        terminal.types("u123456\x7f\n")
        until(lambda: "the gate" not in "\n".join(terminal.shows("u user (one)")), "the others to go")
        terminal.types("uno-such-user\n")
        terminal.shows("this machine has no user `no-such-user'")
        terminal.types("u\n")
        terminal.shows("the gate", "q quit  u user  s")


def test_k_cancels_a_job_of_ones_own(busy, client):
    with top(busy) as terminal:
        terminal.shows(busy.gate)
        terminal.types("kone\n")
        terminal.shows("`one' is not a job id")
        terminal.types("k999999.1\n")
        terminal.shows("999999.1: no such job")
        terminal.types(f"k{busy.gate}\n")
        terminal.shows(f"{busy.gate}: cancelled")
        until(lambda: client.status().running == 0, "it to end")


@pytest.mark.root
def test_k_cancels_no_job_of_others(service):
    client = service.connect(uid=65001)
    gate = kernels.GateJob(client, client.load(kernels.BASIC), label="secret")
    job_id = f"{gate.id >> 32}.{gate.id & 0xffffffff}"
    with top(service, uid=65002) as terminal:
        frame = terminal.shows(job_id)
        assert "secret" not in "\n".join(frame)
        terminal.types(f"k{job_id}\n")
        terminal.shows(f"{job_id}: permission denied")
    gate.open()
    client.wait(gate.id)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT])
def test_a_signal_gives_the_terminal_back(gpuqd, number):
    with top(gpuqd) as terminal:
        terminal.shows("DEV")
        terminal.process.send_signal(number)
        assert terminal.ended() == -number


def test_ctrl_c_ends_it_also_while_gpuqd_does_not_answer(start_gpuqd):
    gpuqd = start_gpuqd()
    with top(gpuqd, "-d", "0.1") as terminal:
        terminal.shows("DEV")
        with processes.stopped(gpuqd.supervisor()):
            terminal.types("\x03")
            assert terminal.ended() == -signal.SIGINT


def test_a_stopped_one_gives_the_terminal_back_and_takes_it_again(gpuqd):
    with top(gpuqd) as terminal:
        terminal.shows("DEV")
        terminal.process.send_signal(signal.SIGTSTP)
        pid, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        terminal.assert_given_back()
        terminal.forget()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.shows("DEV")
        assert ENTER in terminal.told
        terminal.types("q")
        assert terminal.ended() == 0


def test_a_gpuqd_that_goes_is_told_and_found_again(start_gpuqd):
    gpuqd = start_gpuqd()
    with top(gpuqd, "-d", "0.1") as terminal:
        terminal.shows("q quit")
        os.kill(gpuqd.process.pid, signal.SIGTERM)
        gpuqd.process.wait(place.PATIENCE_S)
        terminal.shows("cannot connect")
        gpuqd.start()
        terminal.shows("q quit")
        terminal.types("q")
        assert terminal.ended() == 0
