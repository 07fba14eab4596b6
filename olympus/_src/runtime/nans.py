"""`debug_nans` and `debug_infs`: the operation that makes a NaN, and the user's line of it.

A program with a NaN in its results runs again, equation by equation, also within calls, branches,
loops and the functions of `shard_map`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import lib, source
from ..base.config import debug_infs, debug_nans
from ..base.typing import Array, ArrayLike
from ..core.context import ctx
from ..core.evaluate import bind, evaluate
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn
from ..core.primitive import Higher, Primitive
from ..core.trace import Tracer, typeof
from ..types import dtypes
from ..types.avals import ShapedArray

ADVICE = ("The cotangent is 0 there: `where` did not choose this value, whose derivative is not "
          "finite.\n  Choose the operand as well, so that no branch computes outside of its "
          "domain:\n    safe = onp.where(ok, x, 1.0); onp.where(ok, f(safe), other)")
_BACKWARD = ("transpose",)      # in the names of a backward pass's equations

Test = Callable[[np.ndarray], np.ndarray]


def debugging() -> bool:
    """Whether results are looked at."""
    return debug_nans.value or debug_infs.value


def check_results(name: str, closed: ClosedOlympuspr | None, args: Sequence[ArrayLike],
                  outs: Sequence[Array]) -> None:
    """Raise FloatingPointError if a result has a NaN (or an infinity, if so configured).

    Args:
      name: the name of the user's function.
      closed: the program that gave the results, if the user wrote it.
      args: its arguments.
      outs: its results.
    """
    kinds = [(test, what, f"{option.name.removeprefix('olympus_')} is on")
             for option, test, what in ((debug_nans, np.isnan, "nan"),
                                        (debug_infs, np.isinf, "inf")) if option.value]
    for test, what, why in kinds:
        wrong = [x for x in outs if _has(test, x)]
        if not wrong:
            continue
        if closed is not None:
            # Otherwise the operations of the second run would be checked, and raise, themselves.
            with debug_nans(False), debug_infs(False):
                culprit = _Search(test).culprit(closed, args)
            if culprit is not None:
                prim = culprit.operation
                raise FloatingPointError(
                    f"{name}: invalid value ({what}) encountered in {prim}: the result "
                    f"{culprit.aval} of {prim} at {culprit.line}, and {why}; look at the operands "
                    f"there.{culprit.details}")
        # A compiled program's arguments are not the operands of the equation that made the NaN.
        place = _Place.of(test, wrong[0], args) if closed is None else None
        raise FloatingPointError(
            f"{name}: invalid value ({what}) encountered in {name}: the result {wrong[0].aval}, "
            f"and {why}; look at the operands at this line."
            + ("" if place is None else _eager_details(place)))


def _has(test: Test, x: ArrayLike) -> bool:
    value = _array_on_devices(x)
    return (type(value) is lib.ArrayImpl and dtypes.is_inexact(value.dtype)
            and bool(test(lib.to_numpy(value)).any()))


def _array_on_devices(x: object) -> Any:
    """The array of an operand; within `shard_map`, its parts on all devices, stacked."""
    while isinstance(x, Tracer):
        x = x._val
    return x.value() if type(x) is Literal else x


def element(value: np.ndarray, aval: ShapedArray, index: tuple[int, ...]) -> str:
    """The operand's element at the result's index; its type where shapes differ."""
    with contextlib.suppress(IndexError, ValueError):
        return value[index].item()
    return value.item() if value.size == 1 else aval.str_short()


class _Place(NamedTuple):
    """The first wrong element: its place, and the operands' elements there."""

    index: tuple[int, ...]
    device: str
    operands: list[object]

    @classmethod
    def of(cls, test: Test, x: Array, operands: Sequence[ArrayLike]) -> _Place:
        array = _array_on_devices(x)
        index = tuple(int(i) for i in np.argwhere(test(lib.to_numpy(array)))[0])
        own = index[array.ndim - x.aval.ndim:]      # leading axes count devices
        return cls(own, _device(array, index), [
            typeof(a).str_short() if dtypes.is_extended(typeof(a).dtype) else
            element(np.asarray(_array_on_devices(a)), typeof(a),
                    index if isinstance(a, Tracer) else own)
            for a in operands])


def _device(x: Array, index: tuple[int, ...]) -> str:
    """Which device has an element, if not all have the same."""
    if x.sharding.is_fully_replicated:
        return ""
    return next(f", on device {device}"
                for device, where in x.sharding.devices_indices_map(x.shape).items()
                if all(i in range(*s.indices(n)) for i, s, n in zip(index, where, x.shape)))


def _details(place: _Place, forward: str, hazard: bool, loops: Sequence[str] = ()) -> str:
    """Further lines of the message: the pass, the iteration, the element, the hazard."""
    lines = [f"It is in the backward pass, for the operation at {forward}."] if forward else []
    lines += [*loops, f"Element {[*place.index]}{place.device}; the operands there are "
              f"{', '.join(map(str, place.operands))}."]
    if hazard:
        lines.append(ADVICE)
    lines.append("olympus.debug.find_nan(f, *args) says where the operands come from.")
    return "".join(f"\n  {line}" for line in lines)


def _eager_details(place: _Place) -> str:
    """The details of an operation that was not compiled."""
    forward = ctx.transposed
    return _details(place, "" if forward is None else source.summarize(forward.source),
                    forward is not None and 0 in place.operands)


class _Culprit(NamedTuple):
    operation: Primitive
    aval: ShapedArray
    line: str
    details: str


class _Found(Exception):
    """Carries a culprit out of the programs it was found in."""

    def __init__(self, culprit: _Culprit) -> None:
        super().__init__()
        self.culprit = culprit


class _Around:
    """An equation whose bodies run, and the number of runs that each body has begun."""

    def __init__(self, eqn: OlympusprEqn) -> None:
        self.eqn, self.runs, self.body = eqn, Counter[int](), 0

    def begin(self, body: ClosedOlympuspr) -> None:
        self.body = id(body)
        self.runs[self.body] += 1

    def iteration(self) -> list[str]:
        """Which iteration it is, if the equation is a loop."""
        # The current run was counted when it began.
        prim, params, i = self.eqn.primitive, self.eqn.params, self.runs[self.body] - 1
        if not (getattr(prim, "rows", 0) or prim.endless):
            return []
        if params.get("reverse"):
            i = params["length"] - 1 - i
        return [f"It is in iteration {i} of {prim} at {source.summarize(self.eqn.source)}."]


class _Search:
    """A second run of a program, which stops at the first element that `test` marks."""

    def __init__(self, test: Test) -> None:
        self.test = test
        self.around: list[_Around] = []

    def culprit(self, closed: ClosedOlympuspr, args: Sequence[ArrayLike]) -> _Culprit | None:
        """The first equation whose results have a wrong element while its operands have none."""
        try:
            self.run(closed, *args)
        except _Found as found:
            return found.culprit
        return None     # run operation by operation, the program may round otherwise

    def run(self, closed: ClosedOlympuspr, *xs: ArrayLike) -> list[Array]:
        if self.around:
            self.around[-1].begin(closed)
        return evaluate(closed.olympuspr, closed.consts, xs,
                        lambda eqn, ins: self.step(closed, eqn, ins))

    def step(self, closed: ClosedOlympuspr, eqn: OlympusprEqn, ins: list[Array]
             ) -> Array | list[Array]:
        out = bind(eqn, ins)
        outs = out if eqn.primitive.multiple_results else [out]
        wrong = [x for x in outs if _has(self.test, x)]
        # If an operand is wrong, too, the equation only hands the fault on.
        if wrong and not any(_has(self.test, x) for x in ins):
            # The bodies first: an error found in one is raised there, nearer to the cause.
            if isinstance(eqn.primitive, Higher):
                self.around.append(_Around(eqn))
                eqn.primitive.step_through(self.run, *ins, **eqn.params)
                self.around.pop()
            # No fault in the bodies: the equation itself is the culprit, as XLA computed it.
            raise _Found(self.as_culprit(closed, eqn, wrong[0], ins))
        return out

    def as_culprit(self, closed: ClosedOlympuspr, eqn: OlympusprEqn, x: Array, ins: Sequence[Array]
             ) -> _Culprit:
        """The message on the equation that makes `x`."""
        place = _Place.of(self.test, x, ins)
        back = ctx.transposed is not None or any(
            map(_backward, [eqn, *[around.eqn for around in self.around]]))
        # The zero is the cotangent if the backward pass made it, as far as this program says.
        inside = bool(self.around) or ctx.transposed is not None
        made = {v for e in closed.olympuspr.eqns if _backward(e) for v in e.outvars}
        made.update(closed.olympuspr.invars if inside else ())
        hazard = back and any(value == 0 and type(atom) is not Literal and atom in made
                              for atom, value in zip(eqn.invars, place.operands, strict=True))
        loops = [line for around in reversed(self.around) for line in around.iteration()]
        line = source.summarize(self.line_of(eqn))
        return _Culprit(eqn.primitive, x.aval, line,
                        _details(place, line if back else "", hazard, loops))

    def line_of(self, eqn: OlympusprEqn) -> source.Source | None:
        """The user's line of an equation, or of the equation that runs it."""
        around = [eqn, *[around.eqn for around in reversed(self.around)], ctx.transposed]
        # Equations that the library recorded for all callers have no line; their caller has one.
        known = (e.source for e in around if e is not None and e.source is not source.CALLERS)
        return next(known, None) or source.user_frame()


def _backward(eqn: OlympusprEqn) -> bool:
    """Whether a backward pass bound it."""
    return _BACKWARD in eqn.ctx.names
