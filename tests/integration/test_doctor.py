# SPDX-License-Identifier: Apache-2.0
"""gpuq doctor: what it says of a daemon that is well, of one that is not, and of none."""

import json
import os
import re
import resource
import subprocess

import pytest

from harness import place, processes
from harness.daemon import Daemon
from harness.patience import until
from harness.terminal import on_terminal

OK, PROBLEM = 0, 1
CHECKS = {"socket", "daemon", "state", "devices", "config", "folders", "limits", "service", "nodes", "driver",
          "compiler", "programs", "mode"}


def doctor(socket, *arguments, **options):
    return subprocess.run([place.program("gpuq"), "doctor", "--socket", str(socket), *arguments], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=place.PATIENCE_S, **options)


def findings(socket, **options):
    """{check: [what it found]}, after a look at the exit status."""
    ended = doctor(socket, "--json", **options)
    assert not ended.stderr
    document = json.loads(ended.stdout)
    assert set(document) == {"version", "checks", "problems"}
    found = {}
    for finding in document["checks"]:
        assert set(finding) == {"check", "result", "text", "advice"} and finding["text"]
        assert finding["result"] in ("ok", "note", "problem")
        found.setdefault(finding["check"], []).append(finding)
    assert document["problems"] == sum(finding["result"] == "problem" for finding in document["checks"])
    assert ended.returncode == (PROBLEM if document["problems"] else OK)
    return found


def problems(found):
    return {check for check in found for finding in found[check] if finding["result"] == "problem"}


def test_a_daemon_that_is_well(start_gpuqd):
    daemon = start_gpuqd()
    found = findings(daemon.socket)
    assert set(found) == CHECKS
    assert problems(found) <= {"folders"}  # this machine's disk may be nearly full
    assert str(daemon.socket) in found["socket"][0]["text"]
    assert found["config"][0]["text"] == f"{daemon.config}: ok"
    told = [finding["text"] for finding in found["folders"]]
    assert any(daemon.settings["state_dir"].as_posix() in text for text in told), told
    if not place.on_gpu():
        assert found["nodes"][0]["result"] in ("ok", "note") and "CPU driver" in found["nodes"][0]["text"]


def test_a_configuration_that_became_wrong(start_gpuqd):
    daemon = start_gpuqd()
    daemon.write_config(jobs="many")
    (finding,) = findings(daemon.socket)["config"]
    assert finding["result"] == "problem" and "jobs = many" in finding["text"] and finding["advice"]


def test_a_configuration_whose_check_prints_more_than_is_read(start_gpuqd):
    daemon = start_gpuqd()
    with open(daemon.config, "a") as config:
        config.writelines(f"[user {uid}]\njobs = 1\n" for uid in range(54000, 54400))
    found = findings(daemon.socket)
    assert found["config"][0]["text"] == f"{daemon.config}: ok"
    assert any("state_dir" in finding["text"] for finding in found["folders"])


def test_a_daemon_without_a_state_dir_is_well(start_gpuqd):
    daemon = start_gpuqd(state_dir="")
    found = findings(daemon.socket)
    assert not {"state", "config"} & problems(found)
    assert any("state_dir is not set" in finding["text"] for finding in found["state"])


class Wordy(Daemon):
    def arguments(self):
        program, *others = super().arguments()
        return [program, *["--set", "jobs=7"] * 40, *others]


def test_a_long_command_line_is_not_cut(compile_cache):
    daemon = Wordy(cache=compile_cache).start()
    try:
        (finding,) = findings(daemon.socket)["config"]
        assert finding["result"] == "note" and "command line is too long" in finding["text"]
    finally:
        daemon.stop()


def test_a_folder_that_others_may_write_to(start_gpuqd, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    daemon = start_gpuqd(cache_dir=cache)
    cache.chmod(0o777)
    found = findings(daemon.socket)
    cache.chmod(0o755)
    assert any(str(cache) in finding["text"] and "0777" in finding["text"] and "chmod go-w" in finding["advice"]
               for finding in found["folders"] if finding["result"] == "problem"), found["folders"]


def test_no_daemon(tmp_path):
    ended = doctor(tmp_path / "none.sock")
    assert ended.returncode == PROBLEM and not ended.stderr
    assert "No such file or directory" in ended.stdout and "gpuqd --private" in ended.stdout
    found = findings(tmp_path / "none.sock", env={"PATH": os.environ["PATH"]})
    assert "socket" in problems(found) and "daemon" not in found
    assert "'gpuqd --private --socket PATH' and set GPUQ_SOCKET=PATH" in found["socket"][0]["advice"]


def test_a_socket_on_which_nobody_listens(start_gpuqd):
    import socket
    daemon = start_gpuqd()
    path = daemon.folder / "dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        found = findings(path)
    assert found["socket"][0]["result"] == "ok"
    assert found["daemon"][0]["result"] == "problem" and "Connection refused" in found["daemon"][0]["text"]


@pytest.mark.cpu
def test_a_daemon_without_a_usable_device(compile_cache):
    daemon = Daemon(cache=compile_cache, device="gpu")
    daemon.launch()
    try:
        until(lambda: "libcuda" in str(findings(daemon.socket).get("state")), "gpuqd to look for devices")
        found = findings(daemon.socket)
        if "gpu" in found:
            assert problems(found) >= {"gpu", "state"} and not {"nodes", "driver", "compiler", "mode"} & set(found)
            assert next(iter(found)) == "gpu" and "device = cpu" in found["gpu"][0]["advice"]
        else:  # the GPU is there, and this process may not use it
            assert {"state", "nodes", "driver"} <= problems(found)
        assert all(finding["advice"] for check in problems(found) for finding in found[check])
    finally:
        daemon.stop()


@pytest.mark.root
def test_a_right_that_the_daemon_lacks_and_an_owner_that_is_another_user():
    owner = 12345
    daemon = Daemon(cache=None)
    os.chown(daemon.folder, owner, owner)
    daemon.launch(user=owner, group=owner, extra_groups=[],
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NICE, (0, 0)))
    processes.started.add(daemon.process.pid)

    try:
        until(lambda: doctor(daemon.socket, user=owner, group=owner, extra_groups=[]).returncode == OK, "gpuqd to serve")
        as_owner = {"user": owner, "group": owner, "extra_groups": []}
        found = findings(daemon.socket, **as_owner)
        status = subprocess.run([place.program("gpuq"), "--socket", daemon.socket, "status", "--json"], text=True,
                                stdout=subprocess.PIPE, **as_owner)
        lacks = json.loads(status.stdout)["lacks"]  # null where the kernel permits it to everybody
        told = [(finding["text"], finding["result"]) for finding in found["state"]]
        assert told == [(lacks, "note")] if lacks else told[0][1] == "ok"
        assert found["config"][0]["result"] == "ok" and found["service"][0]["text"] == "none: this gpuqd is private"
        # Another user may not connect; root does not run a check with the owner's arguments.
        others = findings(daemon.socket, user=owner + 1, group=owner + 1, extra_groups=[])
        assert "only 12345 may use it" in others["socket"][0]["text"] and "socket" in problems(others)
        found = findings(daemon.socket)
        assert "serves only uid 12345" in found["daemon"][0]["text"]
        assert "private" in found["daemon"][0]["advice"]
    finally:
        daemon.stop()


@pytest.mark.root
def test_a_user_in_none_of_the_groups(start_gpuqd):
    service = start_gpuqd(private=False, allow_groups="adm")
    found = findings(service.socket, user=12345, group=12345, extra_groups=[])
    assert found["socket"][0]["result"] == "ok"
    assert found["daemon"][0]["result"] == "problem" and "adm" in found["daemon"][0]["text"]
    assert "groups" in found["daemon"][0]["advice"]


def test_it_keeps_to_80_columns():
    rows = on_terminal(80, "--socket", "/gone", "doctor", status=PROBLEM).splitlines()
    assert max(map(len, rows)) <= 80 and any("->" in row for row in rows), rows
    words = set(doctor("/gone").stdout.split())  # but other processes on the GPU come and go
    own = [row for row in rows if not re.search(r"\(\d+\)", row)]
    assert own and [word for row in own for word in row.split() if word not in words] == []
