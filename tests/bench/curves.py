# SPDX-License-Identifier: Apache-2.0
"""Curves of the small job against the number of processes, as SVG: a panel for each way and number in flight."""

import math
import pathlib
from html import escape

from tables import WAYS, find

NAMES = {"own": ("own contexts", "#c2410c"), "mps": ("MPS", "#1d4ed8"), "gpuq": ("gpuq", "#15803d")}
PANEL_W, PANEL_H, GAP_X, GAP_Y, LEFT, TOP = 300, 190, 62, 58, 62, 58
STYLE = ("text{font:12px sans-serif;fill:#222}.t{font-weight:bold}.g{stroke:#ddd}.s{fill:none;stroke-width:2}"
         ".f{fill:#555;font-size:11px}")


def short(number):
    return f"{number // 10**6:,} M" if number >= 10**6 else f"{number:,}"


class Panel:
    """Both axes logarithmic: counts double, and contenders are orders of magnitude apart."""

    def __init__(self, x, y, counts, low, high):
        self.x, self.y, self.counts = x, y, counts
        self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        self.high += self.high == self.low

    def px(self, count):
        span = math.log(self.counts[-1] / self.counts[0]) or 1
        return self.x + PANEL_W * math.log(count / self.counts[0]) / span

    def py(self, value):
        return self.y + PANEL_H * (self.high - math.log10(value)) / (self.high - self.low)

    def frame(self, title):
        yield f'<text class="t" x="{self.x}" y="{self.y - 10}">{escape(title)}</text>'
        for power in range(self.low, self.high + 1):
            y = self.py(10**power)
            yield f'<path class="g" d="M{self.x} {y:.1f}h{PANEL_W}"/>'
            yield f'<text class="f" text-anchor="end" x="{self.x - 6}" y="{y + 4:.1f}">{short(10**power)}</text>'
        for count in self.counts:
            x = self.px(count)
            yield f'<path class="g" d="M{x:.1f} {self.y}v{PANEL_H}"/>'
            yield f'<text class="f" text-anchor="middle" x="{x:.1f}" y="{self.y + PANEL_H + 15}">{count}</text>'

    def line(self, points, colour, dashed):
        path = "L".join(f"{self.px(count):.1f} {self.py(value):.1f}" for count, value in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        yield f'<path class="s" stroke="{colour}"{dash} d="M{path}"/>'
        for count, value in points:
            yield f'<circle fill="{colour}" r="2.5" cx="{self.px(count):.1f}" cy="{self.py(value):.1f}"/>'


def points(rows, contender, way, in_flight, key):
    counts = sorted({row["processes"] for row in rows})
    found = [(count, find(rows, contender=contender, processes=count, way=way, in_flight=in_flight)) for count in counts]
    return [(count, row[key]) for count, row in found if row and row.get(key)]


def legend(keys, y):
    x = LEFT
    for name, colour in NAMES.values():
        yield f'<rect fill="{colour}" x="{x}" y="{y - 9}" width="14" height="10"/><text x="{x + 20}" y="{y}">{name}</text>'
        x += 130
    if len(keys) > 1:
        yield f'<text x="{x}" y="{y}">solid: p50, dashed: p99</text>'


def figure(rows, title, keys):
    """The whole picture; "" if there is nothing to draw."""
    wanted = [(way, n) for way in WAYS for n in (1, 32)]
    series = {(way, n, name, key): points(rows, name, way, n, key) for way, n in wanted for name in NAMES for key in keys}
    values = [value for line in series.values() for _, value in line]
    if not values:
        return ""
    counts = sorted({count for line in series.values() for count, _ in line})
    width, height = LEFT + 2 * PANEL_W + GAP_X + 24, TOP + 3 * (PANEL_H + GAP_Y) + 6
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
             f"<title>{escape(title)}</title><style>{STYLE}</style>",
             f'<rect fill="#fff" width="{width}" height="{height}"/>',
             f'<text class="t" x="{LEFT}" y="18">{escape(title)}</text>']
    for i, (way, n) in enumerate(wanted):
        panel = Panel(LEFT + i % 2 * (PANEL_W + GAP_X), TOP + i // 2 * (PANEL_H + GAP_Y), counts, min(values), max(values))
        parts += panel.frame(f"{WAYS[way]}, {n} in flight")
        for name, (_, colour) in NAMES.items():
            for key in keys:
                if series[way, n, name, key]:
                    parts += panel.line(series[way, n, name, key], colour, key == "p99_us")
    parts += legend(keys, height - 12)
    return "\n".join([*parts, "</svg>", ""])


def draw(result, folder):
    """benchmarks-jobs.svg and benchmarks-latency.svg."""
    for name, title, keys in (("jobs", "Small jobs per second, against processes", ["jobs_per_s"]),
                              ("latency", "From a small job's start to its end, µs, against processes", ["p50_us", "p99_us"])):
        text = figure(result.get("small", []), title, keys)
        if text:
            pathlib.Path(folder, f"benchmarks-{name}.svg").write_text(text)
