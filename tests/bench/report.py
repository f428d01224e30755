# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/benchmarks.md, from what run.py measured."""

from contenders import TITLES

WAYS = {"copies": "with copies", "in-place": "in place on pinned host memory", "device": "on data that stays on the device"}
PEERS = ("own", "mps", "gpuq")
PROBLEM_MAX = 130  # characters of a problem in a table


def find(rows, **wanted):
    """The row with these values; gpuq has one way for host data, which stands for both."""
    for row in rows or ():
        way = wanted.get("way")
        same = all(row.get(key) == value for key, value in wanted.items() if key != "way")
        if same and (way is None or row.get("way") == way or (row.get("way") == "host" and way != "device")):
            return row
    return None


def value(row, key, form="{:,.0f}"):
    return form.format(row[key]) if row and row.get(key) is not None else "–"


def ratio(row, other, key="jobs_per_s"):
    if not (row and other and row.get(key) and other.get(key)):
        return "–"
    return f"{row[key] / other[key]:.2f}"


def table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def problems(rows):
    """What a contender refused or could not do, in its own words."""
    for row in rows:
        if "error" in row:
            where = ", ".join(str(row[key]) for key in ("processes", "beside", "user") if row.get(key) is not None)
            print(f"- {TITLES[row['contender']]}{f' ({where})' if where else ''}: {row['error'][:PROBLEM_MAX]}")
    if any("error" in row for row in rows):
        print()


def compared(rows, heads, keys, **wanted):
    """For each of the keys the row's cells: jobs/s of each, ratios, p50 and p99 of each."""
    for head, key in zip(heads, keys):
        found = [find(rows, contender=name, **key, **wanted) for name in PEERS]
        own, mps, gpuq = found
        if any(found):
            yield [head, *(value(row, "jobs_per_s") for row in found), ratio(gpuq, own), ratio(gpuq, mps),
                   *(value(row, "p50_us", "{:,.1f}") for row in found), *(value(row, "p99_us", "{:,.1f}") for row in found)]


def comparison(first, lines):
    names = ("own", "MPS", "gpuq")
    table([first, *(f"{name}: jobs/s" for name in names), "gpuq / own", "gpuq / MPS", *(f"{name}: p50 µs" for name in names),
           *(f"{name}: p99 µs" for name in names)], lines)


def show_small(result):
    rows = result["small"]
    counts = sorted({row["processes"] for row in rows})
    for way, words in WAYS.items():
        for n in (1, 32):
            print(f"### The small job {words}, {'one at a time' if n == 1 else f'{n} in flight in each process'}\n")
            comparison("processes", compared(rows, counts, [{"processes": count} for count in counts], way=way, in_flight=n))
    alone = [row for row in rows if row["contender"] == "alone" and "error" not in row]
    if alone:
        print("### One process, 32 in flight on 16 streams\n")
        table(["data", "jobs/s", "gpuq, most from any number of processes", "gpuq / alone"],
              [[WAYS[row["way"]], value(row, "jobs_per_s"), value(most(rows, row["way"]), "jobs_per_s"),
                ratio(most(rows, row["way"]), row)] for row in alone])
    show_memory(rows, counts)
    problems(rows)


def most(rows, way):
    found = [row for row in rows if row["contender"] == "gpuq" and "error" not in row
             and (row["way"] == way or (row["way"] == "host" and way != "device"))]
    return max(found, key=lambda row: row["jobs_per_s"], default=None)


def show_memory(rows, counts):
    print("### GPU memory in use, and how long a process's set-up took\n")
    lines = []
    for count in counts:
        found = [find(rows, contender=name, processes=count, in_flight=1) for name in PEERS]
        if any(found):
            lines.append([count, *(value(row, "gpu_mib") for row in found), *(value(row, "open_s", "{:.2f}") for row in found)])
    table(["processes", *(f"{name}: MiB" for name in ("own", "MPS", "gpuq")), *(f"{name}: s" for name in ("own", "MPS", "gpuq"))],
          lines)


def show_large(result):
    rows = result["large"]
    counts = sorted({row["processes"] for row in rows})
    for way in ("copies", "in-place"):
        print(f"### The large job {WAYS[way]}\n")
        keys = [{"processes": count, "in_flight": n} for count in counts for n in (1, 4)]
        comparison("processes × in flight", compared(rows, [f"{k['processes']} × {k['in_flight']}" for k in keys], keys, way=way))
    problems(rows)


def show_chain(result):
    print("### A chain of 16 launches on 64 KiB (the peers: as a graph), one process\n")
    keys = [{"way": way, "in_flight": n} for way in WAYS for n in (1, 8)]
    comparison("data, in flight", compared(result["chain"], [f"{WAYS[k['way']]}, {k['in_flight']}" for k in keys], keys))
    problems(result["chain"])


def show_burst(result):
    print("### Short-lived processes with one job each, from the first fork to the last result\n")
    table(["", "processes", "s"], [[TITLES[row["contender"]], row["processes"], value(row, "burst_s", "{:.3f}")]
                                   for row in result["burst"]])
    problems(result["burst"])


def show_users(result):
    print("### Two users at once, half of the processes each\n")
    good = [row for row in result["users"] if "error" not in row]
    table(["", "processes × in flight", "jobs/s in all", "p50 µs", "p99 µs"],
          [[TITLES[row["contender"]], f"{row['processes']} × {row['in_flight']}", value(row, "jobs_per_s"),
            value(row, "p50_us", "{:,.1f}"), value(row, "p99_us", "{:,.1f}")] for row in good])
    problems(result["users"])


def show_latency(result):
    print("### One small job at a time beside a process that fills the GPU\n")
    good = [row for row in result["latency"] if "error" not in row]
    table(["", "beside", "of user", "jobs", "p50 µs", "p99 µs"],
          [[TITLES[row["contender"]], row["beside"], "–" if row["beside"] == "nothing" else row["user"], row["jobs"],
            value(row, "p50_us", "{:,.1f}"), value(row, "p99_us", "{:,.1f}")] for row in good])
    problems(result["latency"])


def show_cpu(result):
    print("### CPU time of gpuqd's processes for one job, µs\n")
    table(["data", "processes × in flight", "jobs/s", "supervisor", "worker", "keeper"],
          [[row["way"], f"{row['processes']} × {row['in_flight']}", value(row, "jobs_per_s"),
            *(value(row, f"{role}_us", "{:.2f}") for role in ("supervisor", "worker", "keeper"))] for row in result["cpu"]])


def show_idle(result):
    idle = result["idle"]
    used = ", ".join(f"{role} {percent:.2f} %" for role, percent in idle["percent"].items())
    print(f"Idle for {idle['seconds']:.0f} s with a warm worker: {used} of a core; the supervisor's memory "
          f"{idle['supervisor_rss_mib']:.1f} MiB.\n")


def show(result):
    print(", ".join(str(text) for key, text in result["machine"].items() if text) + "\n")
    for name, function in (("small", show_small), ("large", show_large), ("chain", show_chain), ("burst", show_burst),
                           ("users", show_users), ("latency", show_latency), ("cpu", show_cpu), ("idle", show_idle)):
        if name in result:
            function(result)
