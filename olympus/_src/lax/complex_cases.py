"""Complex results at infinities, NaN and on the axes, as C99 and the array API standard have them.

XLA multiplies parts that are 0 by parts that are infinite, and loses signs of zeros. A function
here takes the parts of z = a + bi and of what XLA computed, p + qi, and returns the right p and q:
where nothing is special they are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

import numpy as np

from ..base.typing import Array, ArrayLike, IrValue
from ..core.facts import GivenFacts
from ..core.primitive import Builder
from ..core.trace import typeof
from .arithmetic import abs, complex, imag, is_finite, neg, real, sign
from .bits import bitwise_and as both, bitwise_not, bitwise_or as either
from .comparison import eq, gt, lt, ne, select
from .convert import bitcast_convert_type
from .families import INEXACT, Elementwise, Partial, operand

if TYPE_CHECKING:
    from .accuracy import AccuracyMode

Parts = tuple[Array, Array]
Mend = Callable[[Array, Array, Array, Array], Parts]


class MendedElementwise(Elementwise):
    """An operation on floating and complex numbers whose complex results are mended."""

    single = True

    def __init__(self, name: str, op: str, mend: Mend, *partials: Partial,
                 **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, op, INEXACT, partials, **facts)
        self.mend = mend

    def lower(self, b: Builder, x: IrValue, accuracy: AccuracyMode | None = None) -> IrValue:
        out, aval = super().lower(b, x, accuracy=accuracy), b.avals_out[0]
        if aval.dtype.kind != "c":
            return out
        return b.by_rule(self._mended, [x, out], [aval, aval])[0]

    def _mended(self, z: Array, out: Array) -> Array:
        return complex(*self.mend(real(z), imag(z), real(out), imag(out)))


def turned(mend: Mend) -> Mend:
    """For f(z) = -i g(iz): iz is -b + ai, and g there is -q + pi."""
    def mended(a: Array, b: Array, p: Array, q: Array) -> Parts:
        real_part, imag_part = mend(neg(b), a, neg(q), p)
        return imag_part, neg(real_part)
    return mended


def mend_cos(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """cos z is cosh iz."""
    return mend_cosh(neg(b), a, p, q)


def mended_pow(x: Array, y: Array, out: Array) -> Array:
    """0 to a power of positive real part is 0: XLA multiplies log 0 by the imaginary part."""
    return _where(both(_zero(x), gt(real(y), 0)), 0, out)


# Questions ---------------------------------------------------------------------------------------

def _infinite(x: ArrayLike) -> Array:
    return eq(abs(x), math.inf)


def _unbounded(x: ArrayLike) -> Array:
    """Infinite or NaN."""
    return bitwise_not(is_finite(x))


def _nan(x: ArrayLike) -> Array:
    return ne(x, x)


def _zero(x: ArrayLike) -> Array:
    return eq(x, 0)


def _where(condition: Array, value: ArrayLike, otherwise: ArrayLike) -> Array:
    return select(condition, operand(value, otherwise), otherwise)


def _below(x: ArrayLike) -> Array:
    """Whether the sign bit is set."""
    dtype = typeof(x).dtype
    return lt(bitcast_convert_type(x, np.dtype(f"i{dtype.itemsize}")), 0)


def _signed(size: ArrayLike, like: ArrayLike) -> Array:
    """A size (not negative) with the sign of another number."""
    size = operand(size, like)
    return select(_below(like), neg(size), size)


# Exponential and hyperbolic functions: NaN and infinite b have no angle --------------------------

def mend_exp(a: Array, b: Array, p: Array, q: Array, least: float = 0.0) -> Parts:
    """At -inf the size 0 needs no angle, at inf only the imaginary part does."""
    lost, vanishing = _unbounded(b), eq(a, -math.inf)
    p = _where(both(lost, eq(a, math.inf)), math.inf, _where(both(lost, vanishing), least, p))
    return p, _where(_zero(b), b, _where(both(lost, vanishing), 0.0, q))


def mend_expm1(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """exp(z) - 1, by the cases of exp."""
    return mend_exp(a, b, p, q, -1.0)


def mend_sinh(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """0 and infinite real parts stay themselves where the angle is lost."""
    lost, none = _unbounded(b), _zero(b)
    keeps_a = either(both(_zero(a), either(lost, none)), both(_infinite(a), lost))
    return _where(keeps_a, a, p), _where(none, b, q)


def mend_cosh(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """On the axes the imaginary part is 0, of the sign of ab."""
    lost, none = _unbounded(b), _zero(b)
    p = _where(both(_infinite(a), lost), math.inf, p)
    q = _where(both(_zero(a), lost), 0.0, q)
    return p, select(none, select(_below(a), neg(b), b), q)


def mend_tanh(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """At infinity it is ±1, whatever the angle."""
    lost, none, far = _unbounded(b), _zero(b), _infinite(a)
    p = _where(far, sign(a), _where(both(_zero(a), either(lost, none)), a, p))
    return p, _where(none, b, _where(both(far, lost), 0.0, q))


# Logarithms, roots and inverse functions ---------------------------------------------------------

def mend_log(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """The size is infinite if a part is, though the other be NaN; MLIR gives 0 no angle."""
    angle = _signed(select(_below(a), operand(math.pi, q), operand(0.0, q)), b)
    q = select(both(_zero(a), _zero(b)), angle, q)
    return _where(either(_infinite(a), _infinite(b)), math.inf, p), q


def mend_sqrt(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """Infinite if a part is; the imaginary part has the sign of the argument's."""
    far = _infinite(b)
    q = _where(both(_nan(b), eq(a, -math.inf)), math.inf, abs(q))
    q = _signed(_where(far, math.inf, q), b)
    return _where(either(far, both(_nan(b), eq(a, math.inf))), math.inf, p), q


def mend_asinh(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """Each part has the sign of the argument's; a NaN part keeps 0 and infinity alone."""
    lost, far = either(_nan(a), _nan(b)), either(_infinite(a), _infinite(b))
    p = _where(lost, select(far, operand(math.inf, p), operand(math.nan, p)), abs(p))
    return _signed(p, a), _where(_zero(b), b, _where(lost, math.nan, q))


def mend_acosh(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """The imaginary part has the sign of the argument's."""
    lost, far = either(_nan(a), _nan(b)), either(_infinite(a), _infinite(b))
    p = _where(lost, select(far, operand(math.inf, p), operand(math.nan, p)), p)
    q = _where(lost, select(_zero(a), operand(math.pi / 2, q), operand(math.nan, q)), abs(q))
    return p, _signed(q, b)


def mend_acos(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """acosh z is ±i acos z: the parts are exchanged."""
    q, p = mend_acosh(a, b, abs(q), p)
    return abs(p), _signed(q, neg(b))


def mend_atanh(a: Array, b: Array, p: Array, q: Array) -> Parts:
    """Each part has the sign of the argument's; 0 and infinite real parts give a real part 0."""
    lost, far = either(_nan(a), _nan(b)), _infinite(b)
    p = _where(lost, select(either(far, either(_zero(a), _infinite(a))), operand(0.0, p),
                            operand(math.nan, p)), abs(p))
    q = _where(lost, select(far, operand(math.pi / 2, q), operand(math.nan, q)), abs(q))
    return _signed(p, a), _signed(q, b)
