# SPDX-License-Identifier: Apache-2.0
"""Rows found and shown as cells of Markdown."""

WAYS = {"copies": "with copies", "in-place": "in place on pinned host memory", "device": "on data that stays on the device"}
PEERS = {"own": "own", "mps": "MPS", "gpuq": "gpuq"}
PREPARED = {"gpuq-prepared": "prepared"}  # gpuq too


def find(rows, **wanted):
    """The row with these values; gpuq has one way for host data, which stands for both."""
    way = wanted.pop("way", None)
    for row in rows:
        if all(row.get(key) == value for key, value in wanted.items()) and way in (None, row.get("way")):
            return row
    return find(rows, way="host", **wanted) if way in ("copies", "in-place") else None


def of_each(rows, names=PEERS, **wanted):
    return [find(rows, contender=name, **wanted) for name in names]


def value(row, key, form="{:,.0f}"):
    return form.format(row[key]) if row and row.get(key) is not None else "–"


def values(rows, key, form="{:,.0f}"):
    return [value(row, key, form) for row in rows]


def ratio(row, other, key="jobs_per_s"):
    if not (row and other and row.get(key) and other.get(key)):
        return "–"
    times = row[key] / other[key]
    return f"{times:.2f}" if times < 10 else f"{times:,.0f}"


def table(heads, rows):
    """Lines of a table, and an empty one."""
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
            *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]
