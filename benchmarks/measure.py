"""Rounds of turns, so that a slow minute of the machine falls on all systems."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from .cases import Case
from .clock import Time
from .figures import Row

TOLERANCE = 1e-2    # of sums of absolute values, in float32 and in different orders


class Player(Protocol):
    """What the driver asks of a contestant."""

    label: str

    def plays(self, case: Case) -> bool: ...
    def sample(self, case: Case) -> dict[str, Any]: ...
    def stop(self) -> None: ...


class Effort(NamedTuple):
    """How much is measured."""

    rounds: int = 3         # each with new processes
    turns: int = 3          # of each; the least counts, so that short bursts of load drop out
    patience: float = 1.0   # seconds after which a round has no further turns
    least: int = 2          # rounds that a case gets in any event
    seconds: float = 15.0   # after which it gets no more
    limit: float = 15.0     # a case that took longer keeps those `after` it from being tried
    until: float = float("inf")     # time.monotonic() after which no case is begun


QUICK = Effort(rounds=2, turns=2, least=1, seconds=2.0, limit=4.0)


class Findings:
    """Rows of figures, and what was not measured, by case and system."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.errors: dict[tuple[str, str], str] = {}
        self.skipped: dict[tuple[str, str], str] = {}
        self.left_out: list[Case] = []      # time was up

    def of(self, case: Case) -> list[Row]:
        return [row for row in self.rows if row.case is case]

    def row(self, case: Case, figure: str) -> Row:
        for row in self.of(case):
            if row.figure == figure:
                return row
        self.rows.append(Row(case, figure))
        return self.rows[-1]


def measure(cases: Iterable[Case], players: Sequence[Player], effort: Effort, findings: Findings,
            tell: Callable[[Row], None]) -> None:
    """Every case by every player; one that fails is noted by its name, and the rest goes on.

    A process may be slower than its twin all its life, by where its memory lies: each round of all
    cases has new ones.
    """
    spent = dict.fromkeys(cases, 0.0)
    for number in range(effort.rounds):
        for case in spent:
            start = time.monotonic()
            if start > effort.until:
                findings.left_out += [case] * (not number)
            elif number < effort.least or spent[case] < effort.seconds:
                Round(case, players, effort, findings).play(number)
                spent[case] += time.monotonic() - start
                for row in findings.of(case):
                    tell(row)
        for player in players:
            player.stop()


class Round:
    """One round of a case, by those that can and have not failed."""

    def __init__(self, case: Case, players: Sequence[Player], effort: Effort,
                 findings: Findings) -> None:
        self.case, self.effort, self.findings = case, effort, findings
        self.out = findings.errors, findings.skipped
        self.sums: dict[str, float] = {}
        self.players = [p for p in players if p.plays(case) and self.fast_enough(p.label)]

    def fast_enough(self, label: str) -> bool:
        """Whether the case before was there and within the limit."""
        if not self.case.after:
            return True
        before = [row for row in self.findings.rows
                  if (row.case.group, row.case.name) == (self.case.group, self.case.after)]
        worst = [max(row.values(label, "cpu"), default=float("inf")) for row in before if row.timed]
        if not worst or max(worst) > self.effort.limit:
            self.findings.skipped[str(self.case), label] = (
                f"not tried: {self.case.after} took more than {self.effort.limit:.0f} s")
            return False
        return True

    def play(self, number: int) -> None:
        for label, values in self.take_turns(number).items():
            for figure, value in values.items():
                self.findings.row(self.case, figure).rounds.setdefault(label, []).append(value)
        self.compare()
        for case, label in self.findings.errors:    # no part of what failed is shown
            if case == str(self.case):
                for row in self.findings.of(self.case):
                    row.rounds.pop(label, None)

    def active(self) -> list[Player]:
        return [p for p in self.players
                if not any((str(self.case), p.label) in table for table in self.out)]

    def take_turns(self, number: int) -> dict[str, dict[str, Any]]:
        """The least of a few turns of each, the order changed from round to round."""
        found: dict[str, dict[str, Any]] = {}
        start = time.monotonic()
        for turn in range(1 if self.case.fresh else self.effort.turns):
            if turn and time.monotonic() - start > self.effort.patience:
                break
            for player in self.active()[::-1 if number % 2 else 1]:
                values = self.turn(player)
                before = found.get(player.label, values)
                found[player.label] = {k: least(before[k], v) for k, v in values.items()}
        return {p.label: found[p.label] for p in self.active() if p.label in found}

    def turn(self, player: Player) -> dict[str, Any]:
        answer = player.sample(self.case)
        key = str(self.case), player.label
        for table, kind in zip(self.out, ("error", "skipped"), strict=True):
            if kind in answer:
                table[key] = answer[kind]
        if "sum" in answer:
            self.sums[player.label] = answer["sum"]
        return {k: Time(*v) if isinstance(v, list) else v
                for k, v in answer.get("values", {}).items()}

    def compare(self) -> None:
        """A result unlike the first player's makes a time worthless."""
        if not self.sums:
            return
        (base, right), *others = self.sums.items()
        for label, value in others:
            if not abs(value - right) <= TOLERANCE * max(abs(value), abs(right)):
                self.findings.errors[str(self.case), label] = (
                    f"computes something else: the sum of absolute values is {value:.6g}, "
                    f"{base}'s {right:.6g}")


def least(x: Any, y: Any) -> Any:
    return Time(*map(min, x, y)) if isinstance(x, Time) else min(x, y)
