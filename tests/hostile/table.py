# SPDX-License-Identifier: Apache-2.0
"""The rows of hostile/run.py, for people: a line as each attack ends, then what was wrong."""

COLUMNS = ("attack", 22), ("uids", 4), ("p50 before", 10), ("p50 ms", 8), ("p99 before", 10), ("p99 ms", 8), ("longest ms", 10), \
    ("new ms", 8), ("jobs", 6), ("failed", 6), ("lost B", 8), ("restarts", 8), ("drained", 7), ("supervisor MiB", 14), ("keeper MiB", 10)


def head():
    return " ".join(f"{name:{width}}" if i == 0 else f"{name:>{width}}" for i, (name, width) in enumerate(COLUMNS))


def number(value, form=".1f"):
    return format(value, form) if isinstance(value, (int, float)) else "-"


def cells(row):
    before, during = row["before"], row["during"]
    return [row["attack"], row["users"], number(before["p50_ms"], ".2f"), number(during["p50_ms"], ".2f"), number(before["p99_ms"], ".2f"),
            number(during["p99_ms"]), number(during["longest_ms"]), number(row["fresh"], ".0f"), during["jobs"], during["failed"],
            row["lost_bytes"], row["restarts"], row["drained"], number(row["supervisor_bytes"] / (1 << 20)),
            number(row["keeper_bytes"] / (1 << 20))]


def line(row):
    if "skipped" in row:
        return f"{row['attack']:22} skipped: {row['skipped']}"
    found = " ".join(f"{cell:{width}}" if i == 0 else f"{cell:>{width}}" for i, (cell, (_, width)) in enumerate(zip(cells(row), COLUMNS)))
    return found + (f"  BAD: {'; '.join(faults(row))}" if is_bad(row) else "")


def faults(row):
    """What must not be, in words."""
    if "skipped" in row:
        return []
    said = ["the victim works no more"] if row["stuck"] else []
    if row["during"]["failed"]:
        said.append(f"{row['during']['failed']} jobs failed: {' | '.join(row['words'])}")
    said += [f"{row['lost_bytes']} bytes lost: {' | '.join(row['words'])}"] if row["lost_bytes"] else []
    said += [f"restarted: {line}" for line in row["why"]] + [f"breach: {text}" for text in row["breaches"]]
    said += [f"{row['drained']} drains"] if row["drained"] else []
    said += [f"left behind: {', '.join(row['left'])}"] if row["left"] else []
    said += [row["fresh"]] if isinstance(row["fresh"], str) else []
    said += [text for text in row["troubles"] if text.startswith("the attack itself failed")]
    return said + row.get("service", [])


def is_bad(row):
    return bool(faults(row))


def summary(rows, problems, seconds):
    bad = [row for row in rows if is_bad(row)]
    lines = [f"{row['attack']}: {text}" for row in rows for text in row.get("troubles", [])]
    lines = ["", "What attackers were told:"] + lines if lines else []
    lines += ["", *(f"BAD {row['attack']}: {text}" for row in bad for text in faults(row)), *(f"BAD the service: {text}" for text in problems)]
    return "\n".join(lines + [f"{len(rows)} attacks, {len(bad)} of them hurt, in {seconds:.0f} s"])


# ---- for docs/reliability.md ---------------------------------------------------------

def waits(row):
    if row is None or "skipped" in row:
        return "not played"
    during = row["during"]
    return " / ".join(number(during[name], ".3g" if (during[name] or 0) < 100 else ".0f") for name in ("p50_ms", "p99_ms", "longest_ms"))


def harm(rows):
    """Of all of them, in a few words."""
    rows = [row for row in rows if row and "skipped" not in row]
    counts = [("jobs failed", sum(row["during"]["failed"] for row in rows)), ("bytes lost", sum(row["lost_bytes"] for row in rows)),
              ("restarts", sum(row["restarts"] for row in rows)), ("drains", sum(row["drained"] for row in rows)),
              ("new sessions failed", sum(isinstance(row["fresh"], str) for row in rows)),
              ("breaches", sum(len(row["breaches"]) for row in rows)), ("processes left", sum(len(row["left"]) for row in rows)),
              ("no job ended", sum(row["stuck"] for row in rows))]
    return ", ".join(f"{n} {name}" for name, n in counts if n) or "none"


def markdown(runs):
    """@runs: what --json wrote, of one uid and of eight."""
    rows = [{row["attack"]: row for row in run["rows"]} for run in runs]
    lines = ["| Attack | " + " | ".join(f"{run['users']} uid{'s' * (run['users'] > 1)}: p50 / p99 / longest, ms" for run in runs)
             + " | Supervisor, MiB | Harm |", "|---" * (len(runs) + 3) + "|"]
    for name in rows[0]:
        same = [found.get(name) for found in rows]
        peak = max((row["supervisor_bytes"] for row in same if row and "skipped" not in row), default=0) / (1 << 20)
        lines.append(f"| {name} | " + " | ".join(map(waits, same)) + f" | {peak:.0f} | {harm(same)} |")
    return "\n".join(lines)
