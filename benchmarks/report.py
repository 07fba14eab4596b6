"""Findings as Markdown: a table for each group, a summary, and where another system is ahead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from .cases import group_named
from .figures import Row, exponent, means, series, three
from .measure import Findings

NAMES = {"olympus": "Olympus", "jax": "JAX", "numpy": "NumPy", "torch": "PyTorch",
         "scipy": "SciPy", "numba": "Numba"}
AHEAD = 0.95    # a system is ahead of Olympus if its ratio is below this in every round


def named(label: str) -> str:
    return NAMES.get(label, label)


def seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{three(value / size)} {unit}"
    return f"{value * 1e9:.0f} ns"


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


class Report:
    """Findings of some systems, of which the first is the base of all ratios."""

    def __init__(self, findings: Findings, labels: Sequence[str], clock: str) -> None:
        self.findings, self.labels, self.clock = findings, labels, clock
        self.base, *self.others = labels

    def cell(self, row: Row, label: str) -> str:
        value = row.value(label, self.clock)
        if value is None:
            return "failed" if (str(row.case), label) in self.findings.errors else ""
        return seconds(value) if row.timed else f"{three(value)} MB"

    def ratio(self, row: Row, label: str) -> str:
        """Bold where the other is ahead."""
        found = row.ratio(label, self.base, self.clock)
        return "" if found is None else f"**{found}**" if found.high < AHEAD else str(found)

    def groups(self) -> list[tuple[str, list[Row]]]:
        return [(name, list(rows))
                for name, rows in groupby(self.findings.rows, lambda row: row.case.group)]

    def table(self, rows: Sequence[Row]) -> list[str]:
        """A line for each figure: value of the base; value and ratio of the others."""
        others = [label for label in self.others if any(label in row.rounds for row in rows)]
        head = ["", named(self.base)]
        for label in others:
            head += [named(label), f"÷ {named(self.base)}"]
        figures = list(dict.fromkeys(row.figure for row in rows))
        lines = [head, ["-"] * len(head)]
        lines += [self.cells(row, others)
                  for row in sorted(rows, key=lambda row: figures.index(row.figure))]
        return list(map(line, lines))

    def cells(self, row: Row, others: Sequence[str]) -> list[str]:
        """What is told of a row."""
        found = [str(row), self.cell(row, self.base)]
        for label in others:
            found += [self.cell(row, label), self.ratio(row, label)]
        return found

    def growth(self, rows: Iterable[Row]) -> list[str]:
        """For cases that are named by a size, the exponent of the time's growth with it."""
        lines = []
        for (name, figure), members in series(rows).items():
            found = {}
            for label in self.labels:
                points = [(size, value) for size, row in members
                          if (value := row.value(label, self.clock))]
                if len(points) > 2:
                    found[named(label)] = exponent(points)
            if found:
                told = ", ".join(f"{label} {e:.2f}" for label, e in found.items())
                lines.append(f"- {f'{name}: {figure}' if figure else name}: {told}")
        return ["", "Exponents of growth with n:", "", *lines] if lines else []

    def section(self, rows: Sequence[Row]) -> list[str]:
        return self.table(rows) + self.growth(rows)

    def summary(self) -> list[str]:
        """The geometric mean of each group's ratios, and of how many cases; of groups of times."""
        head = ["group", *(f"{named(label)} ÷ {named(self.base)}" for label in self.others)]
        lines = [head, ["-"] * len(head)]
        for name, rows in self.groups():
            found = [means(rows, label, self.base, self.clock) for label in self.others]
            if any(found) and all(row.timed for row in rows):
                lines.append([group_named(name).title,
                              *(f"{three(m[0])} ({m[1]})" if m else "" for m in found)])
        return list(map(line, lines))

    def behind(self) -> list[str]:
        """Where another system was ahead, the largest lead first."""
        found = [(ratio.middle, name, row, label) for name, rows in self.groups() for row in rows
                 for label in self.others
                 if (ratio := row.ratio(label, self.base, self.clock)) and ratio.high < AHEAD]
        head = ["", "group", "ahead", "its time or memory", "Olympus's", "times as much"]
        lines = [head, ["-"] * len(head)]
        for middle, name, row, label in sorted(found, key=lambda entry: entry[:2]):
            lines.append([str(row), group_named(name).title, named(label), self.cell(row, label),
                          self.cell(row, self.base), three(1 / middle)])
        return list(map(line, lines))

    def notes(self) -> list[str]:
        """What failed, was skipped or left out, by its name."""
        lines = [f"- {case}, {named(label)}: {why}"
                 for (case, label), why in (self.findings.errors | self.findings.skipped).items()]
        if self.findings.left_out:
            lines.append(f"- time was up: {', '.join(map(str, self.findings.left_out))}")
        return lines

    def text(self, label: str) -> str:
        parts = [label, ""]
        for name, rows in self.groups():
            parts += [f"### {group_named(name).title}", "", *self.section(rows), ""]
        if self.others:
            parts += ["### Summary", "", *self.summary(), ""]
        if notes := self.notes():
            parts += ["### Not measured", "", *notes, ""]
        return "\n".join(parts)

    def tables(self, label: str, whole: bool) -> dict[str, list[str]]:
        """What pages have between markers: by name, lines. The summaries are of whole runs."""
        found = {name: [*self.section(rows), "", label] for name, rows in self.groups()}
        if whole:
            found["summary"] = [*self.summary(), "", label]
            found["behind"] = self.behind()
        return found


def between_markers(text: str, tables: Mapping[str, Sequence[str]]) -> str:
    """The page with the lines of each table that it has a marker for.

    A marker is `<!-- benchmark NAME -->`; the lines after it, up to `<!-- end -->`, are replaced.
    """
    for name, lines in tables.items():
        before, marker, rest = text.partition(f"<!-- benchmark {name} -->\n")
        if marker:
            _, end, after = rest.partition("<!-- end -->")
            if not end:
                raise ValueError(f"marker <!-- benchmark {name} --> without an <!-- end --> given")
            text = before + marker + "\n".join(lines) + "\n" + end + after
    return text


def write(pages: Iterable[Path], tables: Mapping[str, Sequence[str]]) -> list[Path]:
    """Put tables into the pages that have their markers; the pages that have changed."""
    changed = []
    for page in pages:
        before = page.read_text(encoding="utf-8")
        after = between_markers(before, tables)
        if after != before:
            page.write_text(after, encoding="utf-8")
            changed.append(page)
    return changed
