# SPDX-License-Identifier: Apache-2.0
"""What the machine says: a daemon's processes, their CPU time and memory, the GPU's memory."""

import contextlib
import os
import pathlib
import platform
import re
import subprocess


def _parent(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return int(text[text.rindex(")") + 2:].split()[1])


def family(pid):
    """The process and what descends from it, as {pid: program}."""
    parents, found = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(entry)] = _parent(entry)
        except (OSError, ValueError):
            continue
    for child in parents:
        ancestor = child
        while ancestor and ancestor != pid:
            ancestor = parents.get(ancestor, 0)
        if ancestor == pid:
            found[child] = program(child)
    return found


def program(pid):
    try:
        return pathlib.Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


def cpu_ns(pid):
    """CPU time of all threads. The scheduler's own count, where the kernel keeps it; else in ticks of 10 ms."""
    try:
        return sum(int(task.joinpath("schedstat").read_text().split()[0])
                   for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
    except (OSError, IndexError):
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:  # it has ended
            return 0
        user, system = text[text.rindex(")") + 2:].split()[11:13]
        return (int(user) + int(system)) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def cpu_ns_of_libcuda(pid):
    """Of that, what libcuda's own threads took, which have names of its making."""
    n = 0
    with contextlib.suppress(OSError, IndexError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            if task.joinpath("comm").read_text().startswith("cuda"):
                n += int(task.joinpath("schedstat").read_text().split()[0])
    return n


def sleeps(pid):
    """How often its threads went to sleep of themselves: each was woken by somebody's system call."""
    n = 0
    with contextlib.suppress(OSError):  # a thread, or all of it, may end meanwhile
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            text = task.joinpath("status").read_text()
            n += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M).group(1))
    return n


def rss_bytes(pid):
    """Resident memory, its own and its part of what it shares."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(re.search(r"^Rss:\s+(\d+)", rollup, re.M).group(1))


def _nvidia_smi(query):
    try:
        answer = subprocess.run(["nvidia-smi", f"--query-{query}", "--format=csv,noheader,nounits", "-i", "0"],
                                capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def gpu_used_mib():
    """Memory of GPU 0 that is in use, whoever uses it; None without nvidia-smi."""
    used = _nvidia_smi("gpu=memory.used")
    return int(used) if used and used.isdigit() else None


def gpu_mib_of(pids):
    """Memory of GPU 0 that these processes hold; None where nvidia-smi tells no process's."""
    answer = _nvidia_smi("compute-apps=pid,used_memory") or ""
    held = dict(line.split(", ") for line in answer.split("\n") if re.fullmatch(r"\d+, \d+", line.strip()))
    return sum(int(held[str(pid)]) for pid in pids if str(pid) in held) or None


def description(on_gpu):
    gpu, driver = (_nvidia_smi("gpu=name"), _nvidia_smi("gpu=driver_version")) if on_gpu else ("CPU", "gpuq's own")
    return {"gpu": gpu, "driver": driver, "cores": os.cpu_count(), "kernel": platform.release()}
