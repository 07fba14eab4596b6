"""The values that XLA's algebraic simplifier may not look through, so that compiling keeps numbers.

XLA:CPU simplifies as if floats were real numbers and integers had no bounds
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): it takes `(a / b) / c` for
`a / (b * c)`, `x * 1e20 * 1e20` for `x * inf`, a quotient by a repeated scalar for a product with
its reciprocal, and the square of an integer for a number that is not negative. Each rewriting needs
two operations that follow each other; an `optimization_barrier` between them, a *fence*, stops it.
XLA drops barriers before it fuses, so the kernels stay as they were.

`Fences` looks at an equation before it is lowered and, where it may be the second of such a pair,
at the equation that made its operand. It fences the operand if the pair could turn a finite number
into 0, infinity or NaN, or an integer into another one. Primitives say what they are to an algebra
(`Primitive.algebra`). Functions and bodies of loops become part of their callers, so an argument of
a nested program may be any constant; its results, and the operands of calls, are fenced as if the
most harmful operation read them.

Left to XLA are rewritings that only keep finite what would overflow: `sqrt(x * x)` becomes
`abs(x)`, `log(exp(x))` becomes `x`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..base.typing import ArrayLike, DType, IrValue
from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, Var
from ..core.primitive import Primitive
from ..types import dtypes
from ..types.avals import Aval
from ..types.shape import SymbolicDim

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["Fences", "has_no_reciprocal"]

_SEARCHED = 1 << 16     # elements of a closed-over array; a larger one may have any

_DEEP = 16              # elementwise operations between a divisor and the scalar that it repeats

Number: TypeAlias = float | complex | None      # of a constant; None: not known
Made: TypeAlias = tuple[str, Number]    # what computed an operand, and the constant of that

# What an operand is to the operation that reads it, where it is not just what made it:
_CONSTANT = "constant"      # it is one, or an argument that may become one
_SCALED = "scaled"          # the product or quotient of something and a constant
_SHIFTED = "shifted"        # the sum or difference of those
_REPEATED = "repeated"      # other elements, several times
_UNSIGNED = "unsigned"      # an integer that would not be negative if integers had no bounds
# Operations that one in a called program, or in the caller, may be merged with.
_MERGED = frozenset(("clamp", "exponential", "power", "quotient", _SCALED, _SHIFTED, _UNSIGNED))
# Divisors that XLA moves into the dividend, or takes the reciprocal of.
_DIVISORS = frozenset(("called", "exponential", "power", "quotient", _CONSTANT, _REPEATED))


@functools.cache
def _limits(dtype: DType) -> tuple[float, float]:
    """The least normal and the greatest number of a dtype."""
    info = dtypes.finfo(dtype)
    return float(info.smallest_normal), float(info.max)


def has_no_reciprocal(numbers: ArrayLike | SymbolicDim, dtype: DType) -> bool:
    """Whether the reciprocal of a finite number, or one of an array, is no normal number."""
    if not dtypes.is_inexact(dtype) or isinstance(numbers, SymbolicDim):    # sizes have
        return False
    least, most = _limits(dtype)
    if type(numbers) is float or type(numbers) is int:
        size = abs(numbers)
        return 0 < size < math.inf and not 1 / most <= size <= 1 / least
    sizes = np.abs(np.asarray(numbers, np.complex128 if dtypes.is_complex(dtype) else np.float64))
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    return bool(((sizes > 1 / least) | (sizes < 1 / most)).any())


class Fences:
    """The fences of one program, while it is lowered.

    `env` are the MLIR values of its variables, which a fence replaces; `held` the variables that
    are to be in memory; `makers` the equations that made variables, of those lowered so far.
    """

    def __init__(self, b: Emitter, closed: ClosedOlympuspr, env: dict[Var, IrValue], held: set[Var],
                 makers: dict[Var, OlympusprEqn]) -> None:
        pr, nested = closed.olympuspr, closed is not b.module.fenced_from
        self.b, self.env, self.held, self.makers, self.nested = b, env, held, makers, nested
        self.arguments = frozenset(pr.invars) if nested else ()
        self.closed_over: dict[Atom, Any] = dict(zip(pr.constvars, closed.consts, strict=True))
        self.fenced: set[Var] = set()
        self.repeating: dict[Atom, bool] = {}       # what `_repeats` found
        self.inexact: dict[Aval, bool] = {}     # by aval, whose hash is quicker than a dtype's
        self.constants = nested or bool(self.closed_over)   # whether arrays may be constants
        self.exponentials = "exponential" in [p.algebra for p in pr.primitives]

    def reader(self, prim: Primitive) -> Callable[[OlympusprEqn], None] | None:
        """The method to call before an equation of a primitive is lowered, if there is one."""
        return getattr(self, "_read_" + prim.algebra, None)

    def leave(self, atoms: Iterable[Atom]) -> None:
        """Fence the program's results, if another one calls it."""
        if self.nested:
            self._fence(atoms, _MERGED)

    # The second operation of a pair, by its algebra

    def _read_product(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        aval = x.aval
        single = _is_single(aval.shape)
        if aval is y.aval and not (single or self.constants or self.exponentials
                                   and aval.dtype.itemsize == 2) or not self._is_inexact(aval):
            return
        p, q = self._made(x), self._made(y)
        if p[0] == _CONSTANT:
            x, y, p, q = y, x, q, p
        if q[0] == _CONSTANT:
            self._hold_nan(eqn, q[1])
            if p[0] == _SCALED and not _is_safe(p[1], q[1], aval.dtype):
                self._fence((x,))
        elif p[0] == q[0] == _SCALED:
            if (single or p[1] is None or q[1] is None) and not _is_safe(p[1], q[1], aval.dtype):
                self._fence((x,))   # (x * c) * (y * d)
        elif p[0] == _SCALED and self._is_repeated(y, q, eqn):
            self._fence((x,))       # XLA multiplies the scalar with the constant
        elif q[0] == _SCALED and self._is_repeated(x, p, eqn):
            self._fence((y,))
        elif p[0] == q[0] == "exponential":
            self._fence((x,))       # a sum of 16 bits is no good exponent

    def _read_square(self, eqn: OlympusprEqn) -> None:
        aval = eqn.outvars[0].aval
        if self._is_inexact(aval) and (
                _is_single(aval.shape) or self._made(eqn.invars[0]) == (_SCALED, None)):
            self._fence(eqn.invars, (_SCALED,))

    _read_integer_power = _read_square

    def _read_quotient(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        dtype = eqn.outvars[0].aval.dtype
        if not self._is_inexact(eqn.outvars[0].aval):
            self._fence((x, y), (_UNSIGNED,))
            return
        if self._has_reciprocals(y, dtype):
            kind, number = self._made(x)
            divisor = _number(y) if type(y) is Literal else None
            self._hold_nan(eqn, divisor)
            if kind == _SCALED and not _is_safe(number, 1 / divisor if divisor else None, dtype):
                self._fence((x,))
            return
        self._fence((x,), ("quotient",))
        q = self._made(y)
        if q[0] in _DIVISORS or self._is_repeated(y, q, eqn) or (
                eqn.outvars[0].aval.shape and self._repeats(y, _DEEP)):
            self._fence((y,))

    def _read_sum(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        aval = x.aval
        if not self._is_inexact(aval):
            return
        p = self._made(x)
        if p[0] != _SCALED and aval is y.aval and aval.shape and not self.constants:
            return
        q = self._made(y)
        if p[0] == q[0] == _SCALED:
            if p[1] == q[1] or p[1] is None or q[1] is None:    # x * c + y * c, c a power of 2
                self._fence((x,))
            return
        if p[0] == _CONSTANT:
            x, y, p, q = y, x, q, p
        if q[0] == _CONSTANT:
            self._hold_nan(eqn, q[1])
            if p[0] == _SHIFTED and not _is_joint(p[1], q[1], aval.dtype):
                self._fence((x,))

    def _read_difference(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        aval = x.aval
        if not self._is_inexact(aval):
            self._hold_zero(eqn)
            return
        if aval is y.aval and aval.shape and not self.constants:
            return
        p, q = self._made(x), self._made(y)
        for made in (p, q):
            if made[0] == _CONSTANT:
                self._hold_nan(eqn, made[1])
        # XLA leaves c - (y + d) as it is.
        if q[0] == _CONSTANT and p[0] == _SHIFTED and not _is_joint(
                p[1], None if q[1] is None else -q[1], aval.dtype):
            self._fence((x,))

    def _read_power(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, ("exponential",))

    def _read_logarithm(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, ("power",))

    def _read_sign(self, eqn: OlympusprEqn) -> None:
        """Comparisons, signs, extrema, remainders, shifts: they read the sign of integers."""
        self._fence(eqn.invars, ("clamp", _UNSIGNED))
        if len(eqn.invars) == 2:
            self._hold_zero(eqn)

    _read_absolute = _read_clamp = _read_sign

    def _read_called(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn.invars, _MERGED)

    # The first operation

    def _origin(self, atom: Atom) -> tuple[Atom, bool]:
        """The operand whose elements another one has, and whether it repeats them."""
        repeated = False
        while type(atom) is not Literal and atom not in self.fenced:
            eqn = self.makers.get(atom)
            algebra = "" if eqn is None else eqn.primitive.algebra
            if eqn is None or algebra not in ("broadcast", "choice", "conversion", "move"):
                break
            origin = self._only_case(eqn) if algebra == "choice" else eqn.invars[0]
            if origin is None:
                break
            atom, repeated = origin, repeated or algebra == "broadcast"
        return atom, repeated

    def _made(self, atom: Atom) -> Made:
        """The operation that computed an operand, and the number of its constant, if known."""
        atom, repeated = self._origin(atom)
        if type(atom) is Literal:
            return _CONSTANT, _number(atom)
        eqn = self.makers.get(atom)
        if atom in self.fenced:
            return "", None
        if eqn is None:
            known = atom in self.closed_over or atom in self.arguments
            return (_CONSTANT if known else _REPEATED if repeated else ""), None
        found = getattr(self, "_made_by_" + eqn.primitive.algebra, self._made_by_other)(eqn)
        return found if not repeated or found[0] == _CONSTANT else (_REPEATED, None)

    def _only_case(self, eqn: OlympusprEqn) -> Atom | None:
        """The value that a choice gives in any case; XLA drops such a choice."""
        cases = set[Atom]()
        for atom in eqn.invars[1:]:
            while (maker := self.makers.get(atom)) and maker.primitive.algebra == "move":
                atom = maker.invars[0]
            cases.add(atom)
        return cases.pop() if len(cases) == 1 else None

    def _is_constant(self, atom: Atom) -> bool:
        """Whether an operand is a constant, or an argument that may become one."""
        atom, _ = self._origin(atom)
        return type(atom) is Literal or atom in self.closed_over or atom in self.arguments

    def _made_by_other(self, eqn: OlympusprEqn) -> Made:
        for atom in eqn.invars:
            if type(atom) is not Literal:
                return eqn.primitive.algebra, None
        return _CONSTANT, None

    def _made_by_product(self, eqn: OlympusprEqn) -> Made:
        x, y = eqn.invars
        if not self._is_inexact(eqn.outvars[0].aval):
            return (_UNSIGNED if x is y else ""), None
        return self._with_constant(eqn, _SCALED)

    def _made_by_quotient(self, eqn: OlympusprEqn) -> Made:
        y, dtype = eqn.invars[1], eqn.outvars[0].aval.dtype
        if not self._is_inexact(eqn.outvars[0].aval):
            return "", None
        if self._has_reciprocals(y, dtype):
            number = _number(y) if type(y) is Literal else None
            return _SCALED, 1 / number if number else None
        return "quotient", None

    def _made_by_logistic(self, eqn: OlympusprEqn) -> Made:
        return "quotient", None     # 1 / (1 + exp(-x))

    def _made_by_sum(self, eqn: OlympusprEqn) -> Made:
        return self._with_constant(eqn, _SHIFTED)

    def _made_by_difference(self, eqn: OlympusprEqn) -> Made:
        kind, number = self._with_constant(eqn, _SHIFTED)
        y = eqn.invars[1]
        if kind != _SHIFTED or number is None or type(y) is not Literal:
            return kind, number
        return kind, -number

    def _made_by_square(self, eqn: OlympusprEqn) -> Made:
        return ("" if self._is_inexact(eqn.outvars[0].aval) else _UNSIGNED), None

    _made_by_absolute = _made_by_square

    def _made_by_integer_power(self, eqn: OlympusprEqn) -> Made:
        y = eqn.params["y"]
        return self._made_by_square(eqn) if y >= 0 and y % 2 == 0 else (
            "quotient" if y < 0 else "", None)

    def _with_constant(self, eqn: OlympusprEqn, kind: str) -> Made:
        """The kind of an operation on two operands, if one is a constant, with its number."""
        x, y = eqn.invars
        if type(x) is Literal or type(y) is Literal:
            return kind, _number(x if type(x) is Literal else y)
        # A scalar may be computed from constants.
        shape, found = eqn.outvars[0].aval.shape, 0
        for atom in (x, y):
            found += atom.aval.shape != shape or self._is_constant(atom)
        return ("", kind, _CONSTANT)[found], None

    # What they have in common

    def _hold_nan(self, eqn: OlympusprEqn, number: Number) -> None:
        """Hold the result of arithmetic with NaN in memory.

        LLVM takes an exponential of what it knows to be NaN for undefined.
        """
        if number is not None and number != number:
            self.held.add(eqn.outvars[0])

    def _hold_zero(self, eqn: OlympusprEqn) -> None:
        """Hold in memory the difference of an integer and itself, `x > x`, and their xor.

        LLVM would know that it is 0, and take an angle or an integer quotient of it for undefined.
        """
        x, y = eqn.invars[0], eqn.invars[-1]
        if eqn.primitive.op == "stablehlo.xor":     # XLA computes equal operations once
            p, q = self.makers.get(x), self.makers.get(y)
            same = p is not None and q is not None and p.primitive is q.primitive and (
                getattr(p.primitive, "op", "") in ("GT", "LT")) and (
                [*map(id, p.invars)] == [*map(id, q.invars)])
        else:
            same = x is y and eqn.primitive.op in ("GT", "LT", "stablehlo.subtract")
        if same:
            self.held.add(eqn.outvars[0])

    def _fence(self, atoms: Iterable[Atom], algebras: Collection[str] | None = None) -> None:
        """Fence operands; if `algebras` are given, those that such operations computed."""
        for atom in atoms:
            if type(atom) is not Literal and atom not in self.fenced and (
                    algebras is None or self._made(atom)[0] in algebras):
                if atom.aval.tagged and self.b.module.is_unreduced(atom.aval):
                    continue    # Shardy would sum the terms in front of a fence
                self.env[atom] = self.b.fence(self.env[atom])
                self.fenced.add(atom)

    def _is_inexact(self, aval: Aval) -> bool:
        found = self.inexact.get(aval)
        if found is None:
            found = self.inexact[aval] = dtypes.is_inexact(aval.dtype)
        return found

    def _has_reciprocals(self, divisor: Atom, dtype: DType) -> bool:
        """Whether XLA may multiply by a divisor's reciprocal: if it is a number, or all are.

        A number without one is behind a fence already (`Emitter.scalar`).
        """
        if type(divisor) is Literal:
            return not has_no_reciprocal(divisor.val, dtype)
        value = self.closed_over.get(divisor)
        return value is not None and np.size(value) <= _SEARCHED and (
            not has_no_reciprocal(value, dtype))

    def _is_repeated(self, atom: Atom, made: Made, eqn: OlympusprEqn) -> bool:
        """Whether an operand is a scalar, or other elements repeated, at the result's shape."""
        return made[0] == _REPEATED or atom.aval.shape != eqn.outvars[0].aval.shape

    def _repeats(self, atom: Atom, deep: int) -> bool:
        """Whether an array is computed, element by element, from repeated scalars alone.

        XLA repeats the result in place of the operands.
        """
        if not atom.aval.shape:
            return True
        found = self.repeating.get(atom)
        if found is None:
            eqn = None if atom in self.fenced or not deep else self.makers.get(atom)
            algebra = "" if eqn is None else eqn.primitive.algebra
            found = algebra == "broadcast"
            if eqn is not None and (
                    algebra in ("choice", "conversion", "move") or eqn.primitive.elementwise):
                read = eqn.invars[1:] if algebra == "choice" else eqn.invars
                found = all(self._repeats(a, deep - 1) for a in read)
            self.repeating[atom] = found
        return found


def _number(literal: Literal) -> Number:
    """The number of a literal, None for a symbolic size."""
    return None if isinstance(literal.val, SymbolicDim) else literal.val


def _is_single(shape: Sequence[object]) -> bool:
    """Whether an array has one element: XLA moves constants of such further."""
    return not shape or shape.count(1) == len(shape)


def _is_safe(a: Number, b: Number, dtype: DType) -> bool:
    """Whether a product of constants is a normal number, or one of them is 0."""
    if a is None or b is None:
        return False
    least, most = _limits(dtype)
    return least <= abs(a * b) <= most or a == 0 or b == 0


def _is_joint(a: Number, b: Number, dtype: DType) -> bool:
    """Whether terms of one sign have an exact sum: others may have been there to round."""
    if a is None or b is None or isinstance(a, complex) or isinstance(b, complex):
        return False
    # In float64, what a sum loses: Knuth (1997), Seminumerical Algorithms, 4.2.2, theorem B.
    x, y = float(dtype.type(a)), float(dtype.type(b))
    s = x + y
    rest = (x - (s - (s - x))) + (y - (s - x))
    return x * y >= 0 and rest == 0 and abs(s) <= _limits(dtype)[1] and float(dtype.type(s)) == s
