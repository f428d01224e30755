# SPDX-License-Identifier: Apache-2.0
"""Formats the results of run.py as Markdown for docs/benchmarks.md."""

import figures
from contenders import TITLES
from tables import PEERS, PREPARED, WAYS, of_each, ratio, table, value, values

BEGIN, END = "<!-- run.py: begin -->", "<!-- run.py: end -->"
PROBLEM_MAX = 130  # characters of a problem
US = "{:,.1f}"

HEAD = """\
One {gpu} (driver {driver}), {cores} cores, Linux {kernel}; medians of up to {repeats} runs of {seconds} s, contenders
in turn.

| Contender | Meaning |
|---|---|
| *own* | each process has its own CUDA context, pinned memory, and one stream per job in flight |
| *MPS* | the same program, with 4 streams, under a separate MPS |
| *gpuq* | `libgpuq` and `gpuqd`, with one context per user; its worker is started before the measurement |
| *prepared* | gpuq, where each process prepares its jobs once and then fires them |

- An *own* process polls until its oldest job ends. A single process uses 4 streams in all, which is fastest.
- MPS serves one user at a time. If two users share one server (`-multiuser-server`), a fault of one ends the other's
  jobs.
- A gpuq job on host buffers is one request. gpuq chooses between copies and in-place access, so the same figure is in
  the tables for *copies* and *in place*.
"""


def names(unit, whose=PEERS):
    return [f"{title}: {unit}" for title in whose.values()]


def problems(rows):
    """The error messages of contenders."""
    found = []
    for row in rows:
        if "error" in row:
            where = ", ".join(f"{row[key]}" for key in ("processes", "beside", "user") if row.get(key) is not None)
            who = TITLES[row["contender"]] + (f" ({where})" if where else "")
            found.append(f"- {who}: {row['error'][:PROBLEM_MAX]}")
    return [*found, ""] if found else []


def comparison(first, rows, keys):
    """A table. @keys: name of each line, and how to find its rows."""
    lines = []
    prepared = any(row for key in keys.values() for row in of_each(rows, PREPARED, **key))
    whose = {**PEERS, **PREPARED} if prepared else PEERS
    for head, key in keys.items():
        found = of_each(rows, whose, **key)
        own, mps, gpuq = found[:3]
        if any(found):
            lines.append([head, *values(found, "jobs_per_s"), ratio(gpuq, own), ratio(gpuq, mps), *values(found, "p50_us", US),
                          *values(found, "p99_us", US)])
    return table([first, *names("jobs/s", whose), "gpuq / own", "gpuq / MPS", *names("p50 µs", whose), *names("p99 µs", whose)], lines)


def small(rows):
    counts = sorted({row["processes"] for row in rows})
    for way, words in WAYS.items():
        for n in (1, 32):
            yield f"### The small job {words}, {'one at a time' if n == 1 else f'{n} in flight in each process'}\n"
            keys = {count: {"processes": count, "way": way, "in_flight": n} for count in counts}
            yield from comparison("processes", rows, keys)
    yield "### GPU memory in use, and setup time of the slowest process\n"
    found = {count: of_each(rows, processes=count, in_flight=1) for count in counts}
    yield from table(["processes", *names("MiB"), *names("s")],
                     [[count, *values(row, "gpu_mib"), *values(row, "open_s", "{:.2f}")]
                      for count, row in found.items() if any(row)])
    yield from problems(rows)


def large(rows):
    counts = sorted({row["processes"] for row in rows})
    for way in ("copies", "in-place"):
        yield f"### The large job (1,000,000 float32) {WAYS[way]}\n"
        keys = {f"{count} × {n}": {"processes": count, "in_flight": n, "way": way} for count in counts for n in (1, 4)}
        yield from comparison("processes × in flight", rows, keys)
    yield from problems(rows)


def chain(rows):
    yield "### A chain of 16 launches on 64 KiB, one process; the peers run it as a graph\n"
    yield from comparison("data, in flight", rows, {f"{words}, {n}": {"way": way, "in_flight": n}
                                                    for way, words in WAYS.items() for n in (1, 8)})
    yield from problems(rows)


def burst(rows):
    yield "### Short-lived processes with one job each, from the first fork to the last result\n"
    yield from table(["", "processes", "s"],
                     [[TITLES[row["contender"]], row["processes"], value(row, "burst_s", "{:.3f}")] for row in rows])
    yield from problems(rows)


def users(rows):
    yield "### Two users at once, half of the processes each\n"
    yield from table(["", "processes × in flight", "jobs/s in all", "p50 µs", "p99 µs"],
                     [[TITLES[row["contender"]], f"{row['processes']} × {row['in_flight']}", value(row, "jobs_per_s"),
                       value(row, "p50_us", US), value(row, "p99_us", US)] for row in rows if "error" not in row])
    yield from problems(rows)


def latency(rows):
    yield "### One small job at a time beside a process that fills the GPU\n"
    yield from table(["", "beside", "of user", "jobs", "p50 µs", "p99 µs"],
                     [[TITLES[row["contender"]], row["beside"], "–" if row["beside"] == "nothing" else row["user"], row["jobs"],
                       value(row, "p50_us", US), value(row, "p99_us", US)] for row in rows if "error" not in row])
    yield from problems(rows)


def cpu(rows):
    roles, sleepers = ("supervisor", "worker", "keeper"), ("supervisor", "worker", "clients")
    yield "### CPU time of gpuqd's processes per job in µs, and wake-ups per job\n"
    yield from table(["data", "processes × in flight", "polling", "jobs/s", *roles, *(f"{role}: woken" for role in sleepers)],
                     [[row["way"], f"{row['processes']} × {row['in_flight']}", row.get("polling", "on"), value(row, "jobs_per_s"),
                       *(value(row, f"{role}_us", "{:.2f}") for role in roles),
                       *(value(row, f"{role}_sleeps", "{:.3f}") for role in sleepers)] for row in rows])


def busy(rows):
    yield "### Beside programs that keep the cores busy\n"
    yield ("*Beyond* is how much less those programs get done than they would on the cores that the contender leaves "
           "them.\n")
    yield from table(["busy programs", "processes × in flight", "", "jobs/s", "p50 µs", "p99 µs", "cores used", "beyond, %"],
                     [[row["busy"], f"{row['processes']} × {row['in_flight']}", TITLES[row["contender"]],
                       value(row, "jobs_per_s"), value(row, "p50_us", US), value(row, "p99_us", US),
                       value(row, "cores", "{:.2f}"), value(row, "beyond_percent", "{:.1f}")]
                      for row in rows if "error" not in row])
    yield from problems(rows)


def starts(rows):
    yield "### A job for which gpuqd has no worker of its user's\n"
    yield "From the start of the client, or of gpuqd, to the result; a spare worker was there where one is kept.\n"
    yield from table(["the job", "spare workers", "s"],
                     [[row["what"], row["spares"], value(row, "burst_s", "{:.3f}")] for row in rows])


def idle(row):
    used = ", ".join(f"{role} {percent:.2f} %" for role, percent in row["percent"].items())
    of_it = f" ({row['libcuda_percent']:.2f} % in libcuda's threads)" if row.get("libcuda_percent") else ""
    yield (f"Idle for {row['seconds']:.0f} s with a warm worker: {used} of a core{of_it}; memory of the "
           f"supervisor {row['supervisor_rss_mib']:.1f} MiB.\n")


def text(result):
    head = HEAD.format(**{"repeats": result["repeats"], "seconds": result["seconds"], **result["machine"]})
    lines = [head]
    if result.get("not_done"):
        lines.append(f"Interrupted; missing or incomplete: {', '.join(result['not_done'])}.\n")
    lines += figures.lines(result)
    for section in (small, large, chain, burst, users, latency, cpu, busy, starts, idle):
        if section.__name__ in result:
            lines += section(result[section.__name__])
    return "\n".join(lines)


def put(result, path):
    """Replace the text between the marks of the page."""
    page = path.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    curves = "".join(f"![{name}](benchmarks-{name}.svg)\n\n" for name in ("jobs", "latency") if "small" in result)
    path.write_text(f"{before}{BEGIN}\n{text(result)}\n{curves}{END}{after}")
