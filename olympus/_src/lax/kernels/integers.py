"""Quotients and remainders of integers by quotients of floats, which XLA makes vectors of.

A processor divides integers one by one. The quotient of two integers of 32 bits in float64 (of 16
bits in float32) is on the right side of each whole number: it differs from the next one above by a
part of more than 2**-33 (2**-17), and rounding moves it by 2**-53 (2**-24) at most.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...base import config
from ...base.typing import Array, IrValue
from ...core.ir import Literal
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import typeof
from ...types import dtypes
from ..arithmetic import abs, div, div_p, floor, mul, neg, sub
from ..bits import bitwise_not, bitwise_xor
from ..comparison import eq, lt, select
from ..convert import bitcast_convert_type_p, in_dtype
from ..families import add
from ..shape import zeros_of
from .blocks import MOST
from .elementary import FLOAT32, FLOAT64, INT32, bits64

LEAST = 4096    # found with tools/kernel_table.py
# Added to a whole number of fewer than 2**50 (2**21), its lowest bits are the integer's.
_WHOLE_64, _WHOLE_32 = 1.5 * 2.0 ** 52, 1.5 * 2.0 ** 23


def _is_narrow(b: Builder, x: IrValue, y: IrValue) -> bool:
    out = b.avals_out[0]
    return (LEAST <= out.size <= MOST and dtypes.scalar_kind(out.dtype) in "iu"
            and 8 <= dtypes.itemsize_bits(out.dtype) <= 32)


def _is_unknown(b: Builder, x: IrValue, y: IrValue) -> bool:
    """Whether the divisor is no number, by which LLVM multiplies."""
    return type(b.eqn.invars[1]) is not Literal


def _by_floats(formula: Callable[[Array, Array], Array], b: Builder, x: IrValue, y: IrValue
               ) -> IrValue:
    out = b.avals_out[0]
    with config.enable_x64(True):
        return b.by_rule(formula, b.expand([x, y]), [out, out])[0]


def _whole_quotient(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """|x|, |y| and the whole part of their quotient, as floats."""
    dtype = FLOAT32 if typeof(x).dtype.itemsize <= 2 else FLOAT64
    v, w = [abs(in_dtype(z, dtype)) for z in (x, y)]
    # XLA:CPU computes a quotient that is read twice in a loop of its own: `floor` reads it once.
    return v, w, floor(div(v, w))


def _integer(whole: Array, negative: Array, x: Array) -> Array:
    """Whole numbers in the dtype of x, modulo its range, as -2**31 / -1 is; or their negatives."""
    if typeof(whole).dtype == FLOAT64:
        found = bits64(add(whole, _WHOLE_64))
    else:
        found = bitcast_convert_type_p.bind(add(whole, _WHOLE_32), new_dtype=INT32)
    found = in_dtype(found, typeof(x).dtype)
    return select(negative, neg(found), found) if dtypes.iinfo(typeof(x).dtype).min else found


def _quotient(x: Array, y: Array) -> Array:
    """The quotient of integers by zero is -1: all bits are set."""
    found = _integer(_whole_quotient(x, y)[2], lt(bitwise_xor(x, y), 0), x)
    return select(eq(y, 0), bitwise_not(zeros_of(typeof(x))), found)


def _remainder(x: Array, y: Array) -> Array:
    v, w, q = _whole_quotient(x, y)
    return select(eq(y, 0), x, _integer(sub(v, mul(q, w)), lt(x, 0), x))


def _kernel(formula: Callable[[Array, Array], Array], saves: float) -> Kernel:
    return Kernel("quotient of floats", "a processor divides integers one by one", _is_narrow,
                  functools.partial(_by_floats, formula), saves, suits=_is_unknown)


REMAINDER = _kernel(_remainder, 1.3)
KERNELS = {div_p: (_kernel(_quotient, 1.3),)}
