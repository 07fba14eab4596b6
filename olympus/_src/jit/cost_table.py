"""The costs of a program by the lines of the user's source, as XLA estimates them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..base import lib, source
from ..base.lib import mlir
from ..base.markup import columns
from ..base.util import Memo, short_number
from ..core.ir import ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var
from ..devices.devices import counting_client, default_platform
from ..lowering.module import Lowering, lower_program
from ..types.shape import is_static


class Cost(NamedTuple):
    """Floating-point operations, calls of functions like exp, and bytes read and written."""

    flops: float
    transcendentals: float
    bytes: float

    def times(self, count: float) -> Cost:
        return Cost(*[count * x for x in self])

    def plus(self, other: Cost) -> Cost:
        return Cost(*map(sum, zip(self, other, strict=True)))


NOTHING = Cost(0.0, 0.0, 0.0)


class CostLine(NamedTuple):
    """A line of source with what its operations cost.

    >>> import olympus
    >>> table = olympus.jit(lambda x: x @ x).lower(olympus.numpy.ones((8, 8))).cost_table()
    >>> table[0].flops, table[0].function
    (1024.0, '<lambda>')
    """

    file: str
    line: int
    function: str
    flops: float
    transcendentals: float
    bytes_accessed: float
    text: str


class CostTable(list[CostLine]):
    """Lines of source by their cost, the dearest first; printed as a table.

    Operations are judged one by one, before XLA fuses them, so that bytes are an upper bound and
    the sums differ from `Compiled.cost_analysis`. What a loop of known length does counts as often
    as it runs, of other loops once, and of branches the dearest.
    """

    def _rows(self) -> list[list[str]]:
        total = sum(row.flops for row in self) or 1.0
        head = ["flops", "%", "transc.", "bytes", "line"]
        return [head, *[
            [short_number(r.flops), f"{100 * r.flops / total:.1f}",
             short_number(r.transcendentals), short_number(r.bytes_accessed),
             f"{source.short_path(r.file)}:{r.line} ({r.function}) {r.text}".rstrip()]
            for r in self]]

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        return "\n".join("  ".join([*(x.rjust(w) for x, w in zip(row, widths)), row[4]])
                         for row in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        return columns(head, rows)


Lines = dict[Any, Cost]     # by source


def cost_table(closed: ClosedOlympuspr, platform: str) -> CostTable:
    """The lines of a program with their costs on a platform."""
    costs: dict[tuple[str, int, str], Cost] = {}
    texts = {}
    for line, cost in Costs(platform).program(closed.olympuspr).items():
        place = None if line is None else source.location(line)
        key = ("<unknown>", 0, "") if place is None else (place.file, place.line, place.function)
        costs[key] = costs.get(key, NOTHING).plus(cost)
        texts[key] = source.source_line(line)
    rows = [CostLine(*key, *cost, texts[key]) for key, cost in costs.items() if any(cost)]
    return CostTable(sorted(rows, key=lambda r: (-r.flops, -r.bytes_accessed, r.file, r.line)))


class Costs:
    """Costs of programs on a platform; equal operations are asked for once."""

    def __init__(self, platform: str | None) -> None:
        self.platform, self.operations, self.programs = platform, Memo(4096), Memo(4096)

    def program(self, pr: Olympuspr) -> Lines:
        """The cost of each line of a program and of those inside it."""
        costs = self.programs.get(pr)
        if costs is None:
            parts = [self._equation(eqn) for eqn in pr.eqns]
            costs = self.programs[pr] = _sum_by_line(parts)
        return costs

    def total(self, eqn: OlympusprEqn) -> Cost:
        """The cost of an equation with all that is inside it."""
        total = NOTHING
        for cost in self._equation(eqn).values():
            total = total.plus(cost)
        return total

    def _equation(self, eqn: OlympusprEqn) -> Lines:
        prim, params = eqn.primitive, eqn.params
        # Programs for derivatives, as a linear solve has them, are not run and cost nothing.
        ran = prim.applied(params, eqn.invars)
        # The body of a reduction or scatter is run for each element: its lowering says that.
        if not ran:
            # None: the line of the enclosing call.
            return {None if eqn.source is source.CALLERS else eqn.source: self._operation(eqn)}
        bodies = [self.program(body.olympuspr) for _, body, _ in ran]
        if prim.branches:
            return max(bodies, key=lambda lines: sum(c.flops for c in lines.values()), default={})
        times = prim.times(params)
        if times is None:       # of a loop or of devices: once
            times = 1
        return {line or eqn.source: cost.times(times)
                for line, cost in _sum_by_line(bodies).items()}

    def _operation(self, eqn: OlympusprEqn) -> Cost:
        # By the types of operands: no estimate depends on a literal's value.
        key = (eqn.primitive, tuple(eqn.params.items()), *[v.aval for v in eqn.invars])
        try:
            cost = self.operations.get(key)
        except TypeError:       # a param without a hash
            return self._asked(eqn)
        if cost is None:
            cost = self.operations[key] = self._asked(eqn)
        return cost

    def _asked(self, eqn: OlympusprEqn) -> Cost:
        return operation_cost(eqn, self.platform)


def operation_cost(eqn: OlympusprEqn, platform: str | None = None) -> Cost:
    """XLA's estimate for a program of one equation, with the primitive's own `flops` if it has any.

    Nothing of one along axes that are bound around it, of one that the platform has no rule for,
    and of one with symbolic sizes, for which XLA counts numbers far from any.
    """
    if not all(is_static(getattr(v.aval, "shape", ())) for v in (*eqn.invars, *eqn.outvars)):
        return NOTHING
    ins = [Var(v.aval) for v in eqn.invars if not isinstance(v, Literal)]
    rest = iter(ins)
    outs = [Var(v.aval) for v in eqn.outvars]
    operands = [v if isinstance(v, Literal) else next(rest) for v in eqn.invars]
    alone = ClosedOlympuspr(Olympuspr([], ins, outs, [
        eqn.replace(invars=operands, outvars=outs)], eqn.effects))
    owner = counting_client(platform)
    try:
        module, _ = lower_program(Lowering(alone, "operation", platform or default_platform()))
        costs = lib.hlo_cost_analysis(owner, mlir.hlo_module(module)) or {}
    except (NameError, NotImplementedError):    # an axis without a size, no rule
        return NOTHING
    # XLA says -1 where it cannot estimate.
    cost = Cost(*[max(costs.get(name, 0.0), 0.0)
                  for name in ("flops", "transcendentals", "bytes accessed")])
    count = eqn.primitive.flops
    return cost if count is None else cost._replace(flops=count(
        *[[v.aval.shape for v in values] for values in (eqn.invars, eqn.outvars)], eqn.params))


def _sum_by_line(parts: Iterable[Lines]) -> Lines:
    total: Lines = {}
    for part in parts:
        for line, cost in part.items():
            total[line] = total.get(line, NOTHING).plus(cost)
    return total
