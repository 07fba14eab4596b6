"""The base of special functions: promotion of operands, and primitives with slopes.

A function here is a primitive of `Computed` and one tangent per operand, so that it is one equation
of a program and one compiled call, and its derivatives of every order come from the functions that
the tangents name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from ...base.typing import Array, ArrayLike
from ...core.facts import GivenFacts
from ...core.ir import Literal
from ...core.primitive import Primitive, Zero
from ...core.trace import typeof
from ...lax.families import FLOATING, Partial
from ...lax.special.series import Computed, is_short, log1p_minus
from ...numpy.arithmetic import absolute
from ...numpy.elementary import floor, log
from ...numpy.promote import broadcast_to, promote, to_array
from ...numpy.selection import where
from ...types import dtypes


def flat(t: ArrayLike, y: ArrayLike, *xs: ArrayLike, **params: Any) -> None:
    """The tangent of an operand on which the value does not depend smoothly: none."""


def nowhere(t: ArrayLike, y: ArrayLike, *xs: Array, **params: Any) -> Any:
    """The tangent of an operand by which there is no derivative: NaN."""
    return t * math.nan


class Special(Computed):
    """`Computed`, whose rules take arrays: literals are made arrays first."""

    def __init__(self, name: str, fun: Callable[..., Any], *partials: Partial,
                 kinds: str = FLOATING, wide: str = "float64", **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, fun, partials, kinds, wide, **facts)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any) -> Any:
        shape = next((typeof(t).shape for t in tangents if type(t) is not Zero), ())
        primals = [to_array(broadcast_to(x, shape)) if type(x) is Literal else x for x in primals]
        return super().jvp(primals, tangents, **params)


def apply(prim: Primitive, *xs: ArrayLike, **params: Any) -> Array:
    """The primitive of operands promoted to one inexact dtype and one shape."""
    return prim.bind(*promote(prim.name, *xs, inexact=True), **params)


def operands(name: str, *xs: ArrayLike, inexact: bool = True) -> Sequence[Array]:
    """Operands promoted to one dtype and one shape, as arrays: numbers, too."""
    arrays = promote(name, *xs, inexact=inexact)
    for x in arrays:
        if dtypes.is_extended(x.dtype):
            raise TypeError(f"{name}: {x.aval} given; numbers are required.")
    shape = next((x.shape for x in arrays if type(x) is not Literal), ())
    return [to_array(broadcast_to(x, shape)) if type(x) is Literal else x for x in arrays]


def normal(x: Any) -> Array:
    """Whether numbers are neither 0 nor subnormal, which arithmetic on CPU takes for 0."""
    return absolute(x) >= float(dtypes.finfo(x.dtype).tiny)


def by_format(x: ArrayLike, wide: float, short: float) -> float:
    """A bound of a formula: `wide` of the numbers of float64, `short` of float32's."""
    return short if is_short(x) else wide


def whole(x: ArrayLike) -> Any:
    """Whether numbers are integers."""
    return x == floor(x)


def even(x: ArrayLike) -> Array:
    """Whether numbers are twice integers."""
    return whole(0.5 * x)


def inside(mask: Any, x: ArrayLike, safe: float) -> Array:
    """`x` where the formula is for it, elsewhere a number that does the formula no harm."""
    return where(mask, x, safe)


def outside(mask: ArrayLike, x: ArrayLike, safe: float) -> Array:
    """`inside` of the rest."""
    return where(mask, safe, x)


def horner(x: ArrayLike, coefficients: Sequence[ArrayLike]) -> Any:
    """Sum of coefficients[k] x**k."""
    total = x * 0.0 + coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def chebyshev(y: ArrayLike, coefficients: Sequence[float]) -> Any:
    """Sum of coefficients[k] T_k(y) for |y| <= 1, by Clenshaw's recurrence (DLMF 3.11.15)."""
    first = second = y * 0.0
    for c in coefficients[:0:-1]:
        first, second = 2.0 * y * first - second + c, first
    return y * first - second + coefficients[0]


def log_half(x: Any) -> Array:
    """ln(x/2); in float32 half of the least number is none."""
    return -log(2.0 / x) if is_short(x) else log(0.5 * x)


def log1p(x: Any) -> Array:
    """ln(1+x): XLA's own errs by 100 ULP in float64."""
    near = (x > -0.5) & (x < 1.0)
    return where(near, x + log1p_minus(inside(near, x, 0.0)), log(outside(near, 1.0 + x, 2.0)))
