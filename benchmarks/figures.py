"""Results and their arithmetic: ratios by round, with median and spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .cases import Case
from .clock import Time


class Spread(NamedTuple):
    """The median of some values, the least and the greatest."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{three(self.middle)} [{three(self.low)}–{three(self.high)}]"


def three(value: float) -> str:
    """Two or three digits, without an exponent: 0.034, 0.52, 1.52, 15.2, 152."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The e of y ~ x ** e, by least squares of the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


class Row:
    """One figure of a case: by system, a value for each round."""

    def __init__(self, case: Case, figure: str = "") -> None:
        self.case, self.figure = case, figure
        self.rounds: dict[str, list[Any]] = {}      # Times, or megabytes

    def __str__(self) -> str:
        return f"{self.case.name}: {self.figure}" if self.figure else self.case.name

    @property
    def timed(self) -> bool:
        return any(isinstance(values[0], Time) for values in self.rounds.values())

    def values(self, label: str, clock: str) -> list[float]:
        """The measurements of a system, round by round."""
        found = self.rounds.get(label, [])
        return [getattr(x, clock) for x in found] if self.timed else found

    def value(self, label: str, clock: str) -> float | None:
        values = self.values(label, clock)
        return statistics.median(values) if values else None

    def ratio(self, label: str, base: str, clock: str) -> Spread | None:
        """How many times the base's value a system's is, within each round.

        Less than a megabyte counts as one: below, it is what the allocator happens to do.
        """
        least = 0.0 if self.timed else 1.0
        pairs = zip(self.values(label, clock), self.values(base, clock), strict=False)
        found = [max(x, least) / max(y, least) for x, y in pairs if max(x, least) and max(y, least)]
        return spread(found) if found else None


SERIES = ", n = "   # in the name of a case, the text before its size


def series(rows: Iterable[Row]) -> dict[tuple[str, str], list[tuple[float, Row]]]:
    """By (name, figure), the rows of cases that are named `name, n = …`, with their n."""
    found: dict[tuple[str, str], list[tuple[float, Row]]] = {}
    for row in rows:
        name, size = row.case.name.partition(SERIES)[::2]
        if size:
            found.setdefault((name, row.figure), []).append((float(size), row))
    return found


def means(rows: Iterable[Row], label: str, base: str, clock: str) -> tuple[float, int] | None:
    """The geometric mean of the rows' median ratios, and of how many."""
    found = [ratio.middle for row in rows if (ratio := row.ratio(label, base, clock))]
    return (geometric_mean(found), len(found)) if found else None
