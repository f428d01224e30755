# SPDX-License-Identifier: Apache-2.0
"""The figures that gpuq is measured by, beside those of its peers, with a goal and a stretch goal."""

from tables import PREPARED, find, of_each, ratio, table, value, values

SHARED = " (MPS: in one server, not isolated)"


class Figure:
    """One line: rows of own, MPS and gpuq, and which of their values."""

    def __init__(self, title, goal, stretch, key, form, rows, isolated=False, prepared=None):
        self.title, self.goal, self.stretch, self.key, self.form, self.rows = title, goal, stretch, key, form, rows
        self.isolated = isolated  # MPS is shown, but does not isolate users
        self.prepared = prepared  # gpuq's row with prepared jobs, shown in parentheses

    def against_best(self):
        """The ratio of gpuq to the best peer."""
        more_is_better = self.key == "jobs_per_s"
        peers = [row for row in self.rows[:1 if self.isolated else 2] if row and row.get(self.key)]
        if not peers:
            return "–"
        best = sorted(peers, key=lambda row: row[self.key], reverse=more_is_better)[0]
        return ratio(self.rows[2], best, self.key) if more_is_better else ratio(best, self.rows[2], self.key)

    def cells(self):
        own, mps, gpuq = values(self.rows, self.key, self.form)
        if self.prepared:
            gpuq += f" (prepared {value(self.prepared, self.key, self.form)})"
        return [self.title, own, mps, gpuq, self.against_best(), self.goal, self.stretch]


def most(rows, key, **wanted):
    """For each contender, the row with the most processes (or jobs/s)."""
    found = []
    for name in ("own", "mps", "gpuq"):
        mine = [row for row in rows if row["contender"] == name and "error" not in row and row.get(key)
                and all(row.get(k) == v for k, v in wanted.items())]
        found.append(max(mine, key=lambda row: row[key], default=None))
    return found


def figures(result):
    small, large, chain, users = (result.get(name, []) for name in ("small", "large", "chain", "users"))
    latency, burst, cpu = (result.get(name, []) for name in ("latency", "burst", "cpu"))
    bursts = most(burst, "processes")
    memory = most([row for row in small if row.get("gpu_mib")], "processes")
    counts = " / ".join(str(row["processes"]) if row else "–" for row in bursts)
    holders = " / ".join(str(row["processes"]) if row else "–" for row in memory)
    beside = [find(latency, contender=name, beside="2 s kernels", user="another") for name in ("own", "mps-all", "gpuq")]
    own = [beside[0], find(latency, contender="mps", beside="2 s kernels", user="own"),
           find(latency, contender="gpuq", beside="2 s kernels", user="own")]
    two = {n: [find(users, contender=name, in_flight=n) for name in ("own", "mps-all", "gpuq")] for n in (1, 32)}
    rate, us = "{:,.0f}", "{:,.1f}"
    many = {"processes": 16, "in_flight": 32}
    in_place = {n: of_each(small, way="in-place", processes=16, in_flight=n) for n in (1, 32)}
    lone = {"way": "in-place", "processes": 1, "in_flight": 1}
    alone, fired = of_each(small, **lone), of_each(small, PREPARED, **lone)
    link = {"way": "device", "in_flight": 1}
    links, fired_links = of_each(chain, **link), of_each(chain, PREPARED, **link)
    supervisor = [None, None, find(cpu, contender="gpuq", way="in-place", polling="off", **many)]
    return [
        Figure(f"{counts} processes, one job each, first fork to last result, s", "0.3", "0.1", "burst_s", "{:.2f}", bursts),
        Figure(f"GPU memory for {holders} processes, MiB", "600", "550", "gpu_mib", rate, memory),
        Figure("in place, 16 processes, 32 in flight, jobs/s", "450,000", "620,000", "jobs_per_s", rate, in_place[32]),
        Figure("in place, 16 processes, one at a time, jobs/s", "300,000", "550,000", "jobs_per_s", rate, in_place[1]),
        Figure("the same, p50 µs", "50", "28", "p50_us", us, in_place[1]),
        Figure("device data, 16 processes, 32 in flight, jobs/s", "900,000", "2,000,000", "jobs_per_s", rate,
               of_each(small, way="device", **many)),
        Figure("with copies, 16 processes, 32 in flight, jobs/s", "300,000", "620,000", "jobs_per_s", rate,
               of_each(small, way="copies", **many)),
        Figure("in place, one process, one at a time, p50 µs", "20", "14", "p50_us", us, alone),
        Figure("the same, prepared, p50 µs", "16", "14", "p50_us", us, [*alone[:2], *fired]),
        Figure("chain of 16 launches on device data, one at a time, p50 µs", "35", "25", "p50_us", us, links, prepared=fired_links[0]),
        Figure("large job, 4 processes, jobs/s", "6,100", "6,285", "jobs_per_s", rate, most(large, "jobs_per_s", processes=4)),
        Figure(f"two users, one at a time, jobs/s in all{SHARED}", "150,000", "400,000", "jobs_per_s", rate, two[1], True),
        Figure(f"two users, 32 in flight, jobs/s in all{SHARED}", "150,000", "400,000", "jobs_per_s", rate, two[32], True),
        Figure(f"p99 beside another user's 2 s kernels, µs{SHARED}", "2,500", "2,000", "p99_us", us, beside, True),
        Figure("p99 beside one's own 2 s kernels, µs", "5,000", "2,500", "p99_us", us, own),
        Figure("CPU in the supervisor per job, 16 processes, 32 in flight, polling off, µs", "1.5", "0.5", "supervisor_us", "{:.2f}", supervisor),
    ]


def lines(result):
    """The table; the column before the goals is the ratio of gpuq to the best peer."""
    cells = [figure.cells() for figure in figures(result) if any(figure.rows)]
    return table(["", "own contexts", "MPS", "gpuq", "against the best peer", "goal", "stretch goal"], cells) if cells else []
