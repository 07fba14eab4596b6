"""The pictures of docs/performance.md and docs/compile_time.md. Imports matplotlib (extra `bench`).

Each is drawn from the rows of one group, or of a whole run, if the report has what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot

from .cases import group_named
from .figures import Row, series
from .report import Report, named

# Text stays text, and equal figures give equal files.
pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "olympus", "font.size": 9,
                        "axes.spines.top": False, "axes.spines.right": False})
COLORS = {"olympus": "#2a6fb0", "jax": "#c44e52", "numpy": "#55a868", "torch": "#dd8452",
          "scipy": "#8172b3", "numba": "#937860"}
LINES = {"plain": "--", "checkpoint": "-"}


def color(label: str) -> str:
    return COLORS.get(label, "#666666")


def draw(report: Report, folder: Path) -> list[Path]:
    """Draw what the report has the rows for; the files that were written."""
    written = []
    for name, make in (("performance", ratios), ("depth", depth), ("checkpoint", checkpoint)):
        figure = make(report)
        if figure is not None:
            figure.tight_layout()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            pyplot.close(figure)
            written.append(folder / f"{name}.svg")
    return written


def ratios(report: Report) -> Any:
    """A dot for each row: how many times Olympus's time the other system takes, by group."""
    timed = [(name, [row for row in rows if row.timed]) for name, rows in report.groups()]
    timed = [(name, rows) for name, rows in timed if rows]
    if len(timed) < 3 or not report.others:
        return None
    figure, place = pyplot.subplots(figsize=(8, 0.42 * len(timed) + 1.2))
    lanes = len(report.others)
    for j, label in enumerate(report.others):
        shift = 0.6 * ((j + 0.5) / lanes - 0.5)
        points = [(ratio.middle, i + shift) for i, (_, rows) in enumerate(timed) for row in rows
                  if (ratio := row.ratio(label, report.base, report.clock))]
        place.plot(*zip(*points, strict=True), "o", markersize=4, alpha=0.6, markeredgewidth=0,
                   color=color(label), label=named(label))
    place.axvline(1, color="black", linewidth=0.8)
    place.set_xscale("log")
    place.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    place.set_yticks(range(len(timed)), [group_named(name).title for name, _ in timed])
    place.invert_yaxis()
    place.set_xlabel("time ÷ Olympus's: to the right of the line, Olympus is faster")
    place.legend(frameon=False, ncols=lanes, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def by_size(report: Report, group: str, figure: str) -> list[tuple[str, list[Any]]]:
    """Of a group's series of three sizes and more: (name, [(n, row)])."""
    found = series(dict(report.groups()).get(group, []))
    return [(name, members) for (name, what), members in found.items()
            if what == figure and len(members) > 2]


def lines(report: Report, place: Any, members: Sequence[tuple[float, Row]], style: str,
          note: str = "") -> None:
    for label in report.labels[::-1]:
        points = [(size, value) for size, row in members
                  if (value := row.value(label, report.clock))]
        if points:
            place.plot(*zip(*points, strict=True), f"o{style}", color=color(label), markersize=4,
                       label=f"{named(label)}{note}")
    sizes = [size for size, _ in members]
    place.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
    place.minorticks_off()
    place.set_xlabel("n")


def depth(report: Report) -> Any:
    """Seconds to the first result against depth."""
    deep = by_size(report, "depth", "first result")
    if not deep:
        return None
    figure, places = pyplot.subplots(1, len(deep), figsize=(4.5 * len(deep), 3.4), squeeze=False)
    for place, (name, members) in zip(places[0], deep, strict=True):
        place.set_xscale("log")
        place.set_yscale("log")
        lines(report, place, members, "-")
        place.set_yticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
        place.set_title(name, fontsize=10)
        place.set_ylabel("seconds to the first result")
        place.legend(frameon=False)
    return figure


def checkpoint(report: Report) -> Any:
    """Megabytes of temporaries, and milliseconds of a step, against depth."""
    if not by_size(report, "checkpoint", "temporaries"):
        return None
    figure, places = pyplot.subplots(1, 2, figsize=(9, 3.4))
    for place, (what, unit) in zip(places, (("temporaries", "MB"), ("step", "s")), strict=True):
        for name, members in by_size(report, "checkpoint", what):
            lines(report, place, members, LINES[name], f", {name}")
        place.set_title(f"{what}, {unit}", fontsize=10)
        place.set_ylim(bottom=0)
    places[0].legend(frameon=False)
    return figure
