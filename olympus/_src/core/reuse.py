"""The check that no random key is used twice: the pass behind `olympus_debug_key_reuse`.

Every key is a `Cell`, and an array of keys is an array of cells; copies, slices and reshaped arrays
have the same cells. A draw or a split uses its cells, and may not meet a used one. A program is
read once: its `Summary` has the cells of its operands that it uses, with their lines, and the cells
of its operands that it returns. Each call is checked against the summary.

The rule `Primitive.cells(use, cells, eqn)` gives the results' cells; None stands for new keys and
for values that are no keys. An operation without the rule uses all keys that it gets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..base import errors, source
from ..base.config import debug_key_reuse
from ..base.typing import Array, Params, Shape
from ..types import dtypes
from ..types.shape import is_static
from .context import ThreadState
from .ir import ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn
from .trace import enter, leave

Cells = np.ndarray | None
Lines = tuple[Any, ...]     # the user's lines: of a use, then of the calls around it


class Cell:
    """One key, however often it was copied, with the lines of its use, or None."""

    __slots__ = ("used",)

    def __init__(self, used: Lines | None = None) -> None:
        self.used = used


def _new(shape: Sequence[Any], used: Lines | None = None) -> np.ndarray:
    shape = tuple(shape) if is_static(shape) else ()
    cells = np.empty(shape, object)
    for i in range(cells.size):
        cells.flat[i] = Cell(used)
    return cells


def _is_key(aval: object) -> bool:
    return dtypes.is_key(getattr(aval, "dtype", None))


def with_cells(cells: Sequence[Cells], arrays: list[Array]) -> list[Array]:
    """The arrays; keys among them get the cells that `applied` found."""
    for x, cell in zip(arrays, cells, strict=False):    # `cells` is () without the option
        if cell is not None:
            x._cells = cell
    return arrays


def _cells_of(x: Any) -> Cells:
    """The cells of an array of keys; new cells are kept on the array."""
    if not _is_key(x):
        return None
    if x._cells is None:
        x._cells = _new(x.shape)
    return x._cells


class Summary(NamedTuple):
    """The use of keys in a program, whose operands are constants, inputs, then `captured`."""

    uses: list[tuple[int, int, Lines]]          # (operand, position in it, lines)
    outs: list[Cells]
    origin: dict[Cell, tuple[int, int]]         # cell of an operand -> (operand, position in it)
    captured: list[Any]     # arrays of keys that bodies have as constants
    chooses: bool       # whether it reads or writes keys at indices that are not known


class Use:
    """One run of a program on cells; rules call its methods."""

    def __init__(self, name: str = "", lines: Lines = ()) -> None:
        self.name, self.lines = name, lines
        self.captured: dict[int, tuple[Any, np.ndarray]] = {}
        self.log: list[Cell] = []       # the used cells, in order
        self.known: dict[Any, Any] = {}     # values of variables, for rules that need indices
        self.chooses = False

    def _mark(self, uses: Sequence[tuple[Cell, Lines]]) -> None:
        for cell, lines in uses:
            if cell.used is not None:
                raise _reused(self.name, cell.used, lines)
        for cell, lines in uses:   # after all checks: one use may have a key as two operands
            cell.used = lines
            self.log.append(cell)

    def consume(self, cells: Cells) -> None:
        """Use keys; KeyReuseError if one of them is used already."""
        if cells is not None:
            self._mark([(cell, self.lines) for cell in cells.flat])

    def call(self, closed: ClosedOlympuspr, cells: Sequence[Cells]) -> list[Cells]:
        """Run a program on cells; return the results' cells."""
        usage = summary(closed.olympuspr)
        consts = [self._captured(x) for x in closed.consts]
        return self.apply(usage, [*consts, *cells, *map(self._captured, usage.captured)])

    def _captured(self, x: Any) -> Cells:
        if not _is_key(x):
            return None
        if id(x) not in self.captured:
            self.captured[id(x)] = x, _new(x.shape)
        return self.captured[id(x)][1]

    def apply(self, usage: Summary, operands: Sequence[Cells]) -> list[Cells]:
        """Use the operands' keys that a program uses; return the results' cells."""
        flat = [() if cells is None else cells.reshape(-1) for cells in operands]
        for i, uses in groupby(usage.uses, itemgetter(0)):  # one key as two operands is two uses
            self._mark([(flat[i][position], (*lines, *self.lines))
                        for _, position, lines in uses])
        fresh: dict[Cell, Cell] = {}

        def actual(cell: Cell) -> Cell:
            place = usage.origin.get(cell)
            if place is not None:
                return flat[place[0]][place[1]]
            if cell not in fresh:
                fresh[cell] = Cell(cell.used)
            return fresh[cell]

        return [None if cells is None else _each(actual, cells) for cells in usage.outs]

    def branches(self, programs: Sequence[ClosedOlympuspr], cells: Sequence[Cells]) -> list[Cells]:
        """The results' cells after one of the programs ran: used if any of them used it."""
        made: list[Cells] = []
        branch_uses, uses = [], []
        for closed in programs:
            start = len(self.log)
            made = self.call(closed, cells)
            branch_uses.append([[] if c is None else [(cell, cell.used) for cell in c.flat]
                                for c in made])
            uses += [(cell, cell.used) for cell in self.log[start:]]
            for cell in self.log[start:]:   # each branch starts from the same state
                cell.used = None
            del self.log[start:]
        for cell, lines in uses:
            cell.used = lines
            self.log.append(cell)
        return [None if c is None else _reshaped(list(map(_either, *rows)), c.shape)
                for c, *rows in zip(made, *branch_uses, strict=True)]

    def loop(self, step: Callable[[int, Sequence[Cells]], list[Cells]], carry: Sequence[Cells],
             length: object = None) -> list[Cells]:
        """The carry's cells after a loop of `length` iterations (an int if known).

        It runs as many iterations as a key needs to pass through all positions of the carry.
        """
        limit = 2 + sum(c is not None for c in carry)
        for i in range(min(length, limit) if isinstance(length, int) else limit):
            carry = step(i, carry)
        return list(carry)

    def compute(self, eqn: OlympusprEqn) -> None:
        """Compute an equation's results if its operands are known."""
        values = self._values(eqn)
        if self.known and values is not None and not eqn.effects:
            self.known.update(zip(eqn.outvars, _evaluate_now(eqn, values), strict=True))

    def _values(self, eqn: OlympusprEqn, given: Sequence[object] = ()) -> list[object] | None:
        """An equation's operands, with `given` in place of some; None if one is unknown."""
        values = []
        for i, v in enumerate(eqn.invars):
            x = given[i] if i < len(given) else None
            if x is None:
                x = v.value() if type(v) is Literal else self.known.get(v)
            if x is None:
                return None
            values.append(x)
        return values

    def picked(self, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells] | None:
        """The results' cells of an equation that picks keys: it runs on the cells' numbers.

        None if another operand is unknown.
        """
        keys = [c.reshape(-1) for c in cells if c is not None]
        if not keys:
            return read(self, cells, eqn)
        start, numbered = 0, []
        for c in cells:
            numbered.append(None if c is None else
                            np.arange(start, start + c.size, dtype=np.int32).reshape(c.shape))
            start += 0 if c is None else c.size
        values = self._values(eqn, numbered)
        if values is None:
            self.chooses = True
            return None
        all_keys = np.concatenate(keys)
        return [_reshaped(all_keys[np.asarray(x).reshape(-1)], v.aval.shape)
                if _is_key(v.aval) else None
                for v, x in zip(eqn.outvars, _evaluate_now(eqn, values), strict=True)]

    def rows(self, cells: Cells, shape: Sequence[object]) -> Cells:
        """New cells for the stacked results of all iterations, used if one iteration's are."""
        return None if cells is None else _new(shape, used_at(cells))

    def rest(self, closed: ClosedOlympuspr, xs: Sequence[Cells], start: int) -> None:
        """Use the keys in the rows of operands that the other iterations use."""
        first = len(closed.consts) + start
        for i, position, lines in summary(closed.olympuspr).uses:
            x = xs[i - first] if 0 <= i - first < len(xs) else None
            if x is not None and len(x):
                self._mark([(cell, (*lines, *self.lines))
                            for cell in x.reshape(len(x), -1)[:, position]])


def _evaluate_now(eqn: OlympusprEqn, values: Sequence[object]) -> Sequence[Array]:
    """An equation's results, evaluated at once, also while a function is traced."""
    outer = enter(ThreadState.trace)
    try:
        out = eqn.primitive.bind(*values, **eqn.params)
    finally:
        leave(outer)
    return out if eqn.primitive.multiple_results else [out]


def _either(*cells: tuple[Cell, Lines | None]) -> Cell:
    """The cell of a result that branches give, each as (cell, lines of its use there)."""
    if len({cell for cell, _ in cells}) == 1:
        return cells[0][0]
    return Cell(next((used for _, used in cells if used is not None), None))


def _reshaped(cells: Sequence[Cell] | np.ndarray, shape: Shape) -> np.ndarray:
    out = np.empty(shape, object)
    out.reshape(-1)[:] = cells
    return out


def _each(fun: Callable[..., Cell], *cells: np.ndarray) -> np.ndarray:
    out = np.empty(cells[0].shape, object)
    for i, row in enumerate(zip(*(c.flat for c in cells), strict=True)):
        out.flat[i] = fun(*row)
    return out


def _reused(name: str, first: Lines, second: Lines) -> errors.KeyReuseError:
    again = ", in another iteration or call" if first[:1] == second[:1] else ""
    return errors.KeyReuseError(
        f"{name}: a random key is used at {_call_lines(second)}{again}, after it was used at "
        f"{_call_lines(first)}; a key that nothing has used is required; make one for each use "
        "with random.split or random.fold_in.")


def _call_lines(lines: Lines) -> str:
    distinct = list(dict.fromkeys(p for p in lines if p is not None)) or [None]
    return ", called at ".join(map(source.summarize, distinct))


def summary(pr: Olympuspr) -> Summary:
    """The use of keys in an open program, computed once."""
    usage = pr.cache.get("reuse")
    if usage is None:
        usage = pr.cache["reuse"] = _summarize(pr)
    return usage


def _summarize(pr: Olympuspr, values: Sequence[object] = ()) -> Summary:
    """Compute the use of keys in a program; `values` are its inputs, constants first, if known."""
    inputs = [*pr.constvars, *pr.invars]
    env = {v: _new(v.aval.shape) for v in inputs if _is_key(v.aval)}
    use = Use()
    use.known = {v: x for v, x in zip(inputs, values, strict=False) if v not in env}
    for eqn in pr.eqns:
        ins = [None if type(v) is Literal else env.get(v) for v in eqn.invars]
        outs = [v for v in eqn.outvars if _is_key(v.aval)]
        prim = eqn.primitive
        if not outs and all(cells is None for cells in ins) and not prim.bodies(eqn.params):
            use.compute(eqn)
            continue
        use.lines, use.name = (eqn.source,), prim.name
        if prim.cells is None:
            for cells in ins:
                use.consume(cells)
            out_cells: Sequence[Cells] = [None] * len(eqn.outvars)
        else:
            out_cells = prim.cells(use, ins, eqn)
        for v, cells in zip(eqn.outvars, out_cells, strict=True):
            if _is_key(v.aval):
                env[v] = _new(v.aval.shape) if cells is None else cells
    operands = [env.get(v) for v in inputs] + [cells for _, cells in use.captured.values()]
    origin, uses = {}, []
    for i, cells in enumerate(operands):
        for position, cell in enumerate(() if cells is None else cells.flat):
            origin[cell] = i, position
            if cell.used is not None:
                uses.append((i, position, cell.used))
    outs = [None if type(v) is Literal else env.get(v) for v in pr.outvars]
    return Summary(uses, outs, origin, [x for x, _ in use.captured.values()], use.chooses)


def inputs_used(closed: ClosedOlympuspr) -> list[int]:
    """The indices of a program's inputs that are arrays of keys which it uses."""
    inputs = range(len(closed.consts), len(closed.consts) + len(closed.invars))
    return sorted({i - inputs[0] for i, *_ in summary(closed.olympuspr).uses if i in inputs})


def used_at(cells: Cells) -> Lines | None:
    """The lines of a use, if all keys are used."""
    if cells is None or not cells.size or any(cell.used is None for cell in cells.flat):
        return None
    return cells.flat[0].used


def applied(name: str, closed: ClosedOlympuspr, args: Sequence[Array], library: bool
            ) -> Sequence[Cells]:
    """Check a program that is about to run; the results' cells, or () without the option.

    Lines in a library's program are left out: they are its first caller's.
    """
    if not debug_key_reuse.value:
        return ()
    usage = summary(closed.olympuspr)
    if library:
        if usage.chooses:
            usage = _summarize(closed.olympuspr, (*closed.consts, *args))
        usage = usage._replace(uses=[(*use[:2], ()) for use in usage.uses])
    use = Use(name, (source.user_frame(),))
    return use.apply(usage, list(map(_cells_of, (*closed.consts, *args, *usage.captured))))


# Rules -------------------------------------------------------------------------------------------

def read(use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
    """The rule of operations that read keys, or make new ones of them, and use none."""
    return [None] * len(eqn.outvars)


def chosen(use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
    """The rule of operations that pick keys of their operands: the picked cells, if indices are
    known; new ones otherwise, which count as used only if every candidate is.
    """
    picked = use.picked(cells, eqn)
    if picked is not None:
        return picked
    lines = used_at(np.concatenate([[], *(c.reshape(-1) for c in cells if c is not None)]))
    return [_new(v.aval.shape, lines) if _is_key(v.aval) else None for v in eqn.outvars]


def chosen_each(use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
    """The rule of elementwise choices, in which operand 0 says which operand is taken.

    If that is unknown: the cell that all operands have in common, or a new one.
    """
    picked = use.picked(cells, eqn)
    cases = [c for c in cells[1:] if c is not None]
    if picked is not None:
        return picked
    if len(cases) < len(cells) - 1 or not cases:
        return chosen(use, cells, eqn)

    def one(*candidates: Cell) -> Cell:
        if len(set(candidates)) == 1:
            return candidates[0]
        return Cell(candidates[0].used if all(cell.used for cell in candidates) else None)

    return [_each(one, *cases)]


def _moves_cells(move: Callable[..., np.ndarray]) -> Callable[..., list[Cells]]:
    """The rule of operations that move elements: `move(params, result's shape, *cells)`."""
    def rule(use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        if cells[0] is None:
            return [None]
        if not all(is_static(v.aval.shape) for v in (*eqn.invars, *eqn.outvars)):
            return chosen(use, cells, eqn)
        return [move(eqn.params, eqn.outvars[0].aval.shape, *cells)]

    return rule


def _broadcast_in_dim(params: Params, shape: Shape, x: np.ndarray) -> np.ndarray:
    whole = [1] * len(shape)
    for n, d in zip(x.shape, params["broadcast_dimensions"], strict=True):
        whole[d] = n
    return np.broadcast_to(x.reshape(whole), shape)


broadcast = _moves_cells(_broadcast_in_dim)
reshaped = _moves_cells(lambda params, shape, x: x.reshape(shape))
transposed = _moves_cells(lambda params, shape, x: x.transpose(params["permutation"]))
reversed_ = _moves_cells(lambda params, shape, x: np.flip(x, params["dimensions"]))
tiled = _moves_cells(lambda params, shape, x: np.tile(x, params["reps"]))
concatenated = _moves_cells(lambda params, shape, *xs: np.concatenate(xs, params["dimension"]))
sliced = _moves_cells(lambda params, shape, x: x[tuple(map(
    slice, params["start_indices"], params["limit_indices"], params["strides"] or (1,) * x.ndim))])


def same(use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
    """The rule of operations that return their operands' keys."""
    return list(cells)
