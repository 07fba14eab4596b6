"""The values that XLA's algebraic simplifier may not look through, so that compiling keeps numbers.

XLA:CPU simplifies as if floats were real numbers and integers had no bounds
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): it takes `(a / b) / c` for
`a / (b * c)`, `x * 1e20 * 1e20` for `x * inf`, a quotient by a repeated scalar for a product with
its reciprocal, and the square of an integer for a number that is not negative. Each rewriting needs
two operations that follow each other; an `optimization_barrier` between them, a *fence*, stops it.
XLA drops barriers before it fuses, so the kernels stay as they were.

One pass over a program notes how values were computed (`Made`), and fences an operand where the
pair could turn a finite number into 0, infinity or NaN, or an integer into another one. Primitives
say what they are to an algebra (`Primitive.algebra`). Functions and bodies of loops become part of
their callers, so an argument of a nested program may be any constant; its results, and the operands
of calls, are fenced as if the most harmful operation read them.

Left to XLA are rewritings that only keep finite what would overflow: `sqrt(x * x)` becomes
`abs(x)`, `log(exp(x))` becomes `x`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..base.typing import DType
from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, Var, variables
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import SymbolicDim

__all__ = ["NO_FENCES", "Fences", "fences_of", "has_no_reciprocal"]

_SEARCHED = 1 << 16     # elements of a constant; a larger one may have any


class Fences(NamedTuple):
    """The values of a program behind a fence, and those to hold in memory."""

    fenced: frozenset[Var]
    #: Results of arithmetic with a NaN that the program names. LLVM would take an exponential of
    #: what it knows to be NaN for undefined.
    held: frozenset[Var]


NO_FENCES = Fences(frozenset(), frozenset())


class Constant(NamedTuple):
    """The least and greatest magnitude of a constant's elements other than 0, and their sign.

    The sign is 0 where elements differ in it. NaN is the greatest magnitude of all.
    """

    least: float
    most: float
    sign: int

    def inverse(self) -> Constant:
        return Constant(_over(self.most), _over(self.least), self.sign)

    def times(self, other: Constant) -> Constant:
        return Constant(self.least * other.least, self.most * other.most, self.sign * other.sign)

    def negative(self) -> Constant:
        return self._replace(sign=-self.sign)


class Made(NamedTuple):
    """The operation that computed a value: its algebra, its result, its constant operand.

    The value is that result, or its elements moved. `constant` is None if it is not known.
    """

    algebra: str
    root: Var
    constant: Constant | None = None


def has_no_reciprocal(number: Any, dtype: DType) -> bool:
    """Whether 1 / number is no normal number of the dtype: a finite number's, not 0's."""
    if not dtypes.is_inexact(dtype) or not np.isfinite(number):
        return False
    return not _is_normal(_constant(number).inverse(), dtype)


def fences_of(closed: ClosedOlympuspr, nested: bool) -> Fences:
    """The fences of a program, kept with it. `nested`: another program calls it."""
    return closed.derived(("fences", nested), lambda: _Pass(closed, nested).fences())


def _over(x: float) -> float:
    return math.inf if x == 0 else 1 / x


def _constant(value: Any) -> Constant:
    """The range of a number or an array; 0 alone counts as 1, which harms no product."""
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        size = abs(float(value)) or 1.0
        return Constant(size, size, -1 if value < 0 else 1)
    if isinstance(value, SymbolicDim):
        return _UNKNOWN
    array = np.ravel(value)
    array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    array = array[array != 0]
    if not array.size:
        return Constant(1.0, 1.0, 1)
    sizes, sign = np.abs(array), 0
    if array.dtype.kind != "c" and (array[0] < 0) == (array < 0).all() == (array < 0).any():
        sign = -1 if array[0] < 0 else 1
    return Constant(float(sizes.min()), float(sizes.max()), sign)


def _closed_over(value: Any, aval: ShapedArray) -> Constant:
    """The range of an array that a program closes over."""
    if not dtypes.is_inexact(aval.dtype) or value.size > _SEARCHED:
        return _UNKNOWN
    return _constant(np.asarray(value))


@functools.cache
def _limits(dtype: DType) -> tuple[float, float]:
    info = dtypes.finfo(dtype)
    return float(info.smallest_normal), float(info.max)


def _is_normal(c: Constant, dtype: DType) -> bool:
    least, most = _limits(dtype)
    return least <= c.least and c.most <= most


_UNKNOWN = Constant(0.0, math.inf, 0)   # times and plus anything, it is out of range
# Operations that a reader in a called program, or in the caller, may be merged with.
_MERGED = frozenset(("clamp", "exp", "power", "quotient", "scaled", "shifted", "unsigned"))


class _Pass:
    """The pass over one program: how its values were computed, and the fences found so far."""

    def __init__(self, closed: ClosedOlympuspr, nested: bool) -> None:
        self.pr, self.nested = closed.olympuspr, nested
        self.made = {var: Made("constant", var, _closed_over(value, var.aval))
                     for var, value in zip(self.pr.constvars, closed.consts, strict=True)}
        if nested:
            self.made.update({v: Made("argument", v) for v in self.pr.invars})
        self.fenced: set[Var] = set()
        self.held: set[Var] = set()
        self.inexact: dict[Any, bool] = {}      # avals, whose hash is quicker than a dtype's

    def fences(self) -> Fences:
        made, readers = self.made, dict[str, Callable[[OlympusprEqn], None]]()
        for eqn in self.pr.eqns:
            prim = eqn.primitive
            if prim.algebra:
                reader = readers.get(prim.algebra)
                if reader is None:
                    reader = readers[prim.algebra] = getattr(self, prim.algebra)
                reader(eqn)
            elif made and prim.single and self._is_constant(eqn.invars):
                made[eqn.outvars[0]] = Made("constant", eqn.outvars[0], _UNKNOWN)
        if self.nested:
            self._fence(variables(self.pr.outvars), _MERGED)
        if not (self.fenced or self.held):
            return NO_FENCES
        return Fences(frozenset(self.fenced), frozenset(self.held))

    # Operations, by their algebra

    def product(self, eqn: OlympusprEqn) -> None:
        (x, y), (out,) = eqn.invars, eqn.outvars
        if not self._is_inexact(out):
            if x is y:
                self.made[out] = Made("unsigned", out)
            return
        for x, y in ((x, y), (y, x)):
            factor = self._constant(y)
            if factor is not None:
                self._scale(x, factor, out)
                return
        for x, y in ((x, y), (y, x)):
            if self._is_repeated(y, out):   # XLA multiplies the scalar with x's constant
                self._fence((x,), ("scaled",))
        if self._is_made(x, "exp") and self._is_made(y, "exp"):
            self._fence((x,), ("exp",))

    def quotient(self, eqn: OlympusprEqn) -> None:
        (x, y), (out,) = eqn.invars, eqn.outvars
        if not self._is_inexact(out):
            self._fence((x, y), ("unsigned",))
            return
        divisor = self._constant(y)
        if type(y) is Literal or divisor is not None and _is_normal(
                divisor.inverse(), out.aval.dtype):
            assert divisor is not None
            self._scale(x, divisor.inverse(), out)
            return
        self._fence((x,), ("quotient",))
        self._fence((y,), ("called", "exp", "power", "quotient"))
        if divisor is not None or self._is_repeated(y, out):
            self.fenced.add(y)
        self.made[out] = Made("quotient", out)

    def logistic(self, eqn: OlympusprEqn) -> None:
        self.made[eqn.outvars[0]] = Made("quotient", eqn.outvars[0])    # 1 / (1 + exp(-x))

    def sum(self, eqn: OlympusprEqn) -> None:
        (x, y), (out,) = eqn.invars, eqn.outvars
        if not self._is_inexact(out):
            return
        for x, y in ((x, y), (y, x)):
            term = self._constant(y)
            if term is not None:
                self._shift(x, term, out)
                return
        if self._is_made(x, "scaled") and self._is_made(y, "scaled"):
            factors = {self.made[x].constant, self.made[y].constant}
            if len(factors) == 1 or _UNKNOWN in factors:
                self._fence((x,), ("scaled",))

    def difference(self, eqn: OlympusprEqn) -> None:
        (x, y), (out,) = eqn.invars, eqn.outvars
        if not self._is_inexact(out):
            return
        term = self._constant(y)
        if term is not None:
            self._shift(x, term._replace(sign=-term.sign), out)
        elif (term := self._constant(x)) is not None:
            self._note(Made("shifted", out, term))

    def square(self, eqn: OlympusprEqn) -> None:
        if not self._is_inexact(eqn.outvars[0]):
            self.made[eqn.outvars[0]] = Made("unsigned", eqn.outvars[0])

    def integer_power(self, eqn: OlympusprEqn) -> None:
        out, y = eqn.outvars[0], eqn.params["y"]
        if y < 0:
            self.made[out] = Made("quotient", out)
        elif y % 2 == 0:
            self.square(eqn)

    def absolute(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, ("unsigned",))
        self.square(eqn)

    def exponential(self, eqn: OlympusprEqn) -> None:
        self.made[eqn.outvars[0]] = Made("exp", eqn.outvars[0])

    def power(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, ("exp",))
        self.made[eqn.outvars[0]] = Made("power", eqn.outvars[0])

    def logarithm(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, ("power",))

    def ordering(self, eqn: OlympusprEqn) -> None:
        """Comparisons, signs, extrema, remainders, shifts: they read the sign of integers."""
        self._fence(eqn.invars, ("clamp", "unsigned"))

    def clamp(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, ("clamp", "unsigned"))
        self.made[eqn.outvars[0]] = Made("clamp", eqn.outvars[0])

    def broadcast(self, eqn: OlympusprEqn) -> None:
        (x,), (out,) = eqn.invars, eqn.outvars
        constant = self._constant(x)
        if constant is not None:
            self.made[out] = Made("constant", out, constant)
        else:
            self.made[out] = Made("repeated", out)

    def move(self, eqn: OlympusprEqn) -> None:
        x = eqn.invars[0]
        if type(x) is not Literal and (made := self.made.get(x)) is not None:
            self.made[eqn.outvars[0]] = made

    def conversion(self, eqn: OlympusprEqn) -> None:
        (x,), (out,) = eqn.invars, eqn.outvars
        if self._is_made(x, "constant"):
            self.made[out] = self.made[x]._replace(root=out)
        elif self._is_made(x, "unsigned"):
            self.made[out] = self.made[x]

    def called(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, _MERGED)
        self.made.update({v: Made("called", v) for v in eqn.outvars})

    # What they have in common

    def _scale(self, x: Atom, factor: Constant, out: Var) -> None:
        """Note that `out` is x times a constant; fence x if XLA would join it to a bad factor."""
        if self._is_made(x, "scaled"):
            joined = self.made[x].constant
            assert joined is not None
            if not _is_normal(joined.times(factor), out.aval.dtype):
                self._fence((x,), ("scaled",))
        self._note(Made("scaled", out, factor))

    def _shift(self, x: Atom, term: Constant, out: Var) -> None:
        """Note that `out` is x plus a constant; fence x if XLA would join it to a bad term."""
        if self._is_made(x, "shifted"):
            joined = self.made[x].constant
            assert joined is not None
            total = Constant(1.0, joined.most + term.most, 1)
            if joined.sign * term.sign != 1 or not _is_normal(total, out.aval.dtype):
                self._fence((x,), ("shifted",))
        self._note(Made("shifted", out, term))

    def _note(self, made: Made) -> None:
        """Note a result with a constant operand, and hold it if that is NaN."""
        out, constant = made.root, made.constant
        assert out is not None and constant is not None
        if math.isnan(constant.most):
            self.held.add(out)
        self.made[out] = made

    def _fence(self, atoms: Iterable[Atom], algebras: Collection[str]) -> None:
        """Fence the operands that operations of these kinds computed."""
        for atom in atoms:
            made = self._made(atom)
            if made is not None and made.algebra in algebras:
                self.fenced.add(made.root)

    def _made(self, atom: Atom) -> Made | None:
        return None if type(atom) is Literal else self.made.get(atom)

    def _is_made(self, atom: Atom, algebra: str) -> TypeGuard[Var]:
        made = self._made(atom)
        return made is not None and made.algebra == algebra

    def _constant(self, atom: Atom) -> Constant | None:
        """An operand's range, if it is a constant or may become one."""
        if type(atom) is Literal:
            return _constant(atom.val)
        made = self.made.get(atom)
        if made is None or made.algebra not in ("argument", "constant"):
            return None
        return made.constant or _UNKNOWN

    def _is_repeated(self, atom: Atom, out: Var) -> bool:
        """Whether an operand is a scalar at the shape of the result."""
        return self._is_made(atom, "repeated") or atom.aval.shape != out.aval.shape

    def _is_constant(self, atoms: Iterable[Atom]) -> bool:
        for atom in atoms:
            if type(atom) is not Literal:
                made = self.made.get(atom)
                if made is None or made.algebra != "constant":
                    return False
        return True

    def _is_inexact(self, out: Var) -> bool:
        found = self.inexact.get(out.aval)
        if found is None:
            found = self.inexact[out.aval] = dtypes.is_inexact(out.aval.dtype)
        return found
