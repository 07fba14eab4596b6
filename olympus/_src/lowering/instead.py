"""Operations that are lowered in the place of others, so that XLA may not simplify them.

They hide a number that XLA, or LLVM behind it, would draw conclusions from.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.typing import IrValue
from ..core.primitive import Builder, Primitive
from ..types import dtypes
from ..types.avals import ShapedArray
from .attributes import i64s


def hidden(b: Builder, constant: IrValue, aval: ShapedArray) -> IrValue:
    """A constant that is held in memory. XLA folds calls of scalars, but not of repeated ones."""
    if aval.shape:
        return b.hold(constant, aval)
    pair = b.hold(b.broadcast(constant, aval.update(shape=(2,)), ()), aval)
    one = b.op("stablehlo.slice", [pair], {
        "start_indices": i64s([0]), "limit_indices": i64s([1]), "strides": i64s([1])},
        aval.update(shape=(1,)))
    return b.op("stablehlo.reshape", [one], None, aval)


class _Instead(Primitive, abstract=True):
    """An operation that is lowered only, in the place of another one."""

    infer = jvp = transpose = vmap = None


class _PlusZero(_Instead):
    """x + 0, which is 0 where x is -0; XLA takes the sum for x."""

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        x, = b.expand([x])
        aval = b.avals_out[0]
        if not dtypes.is_complex(aval.dtype):
            return self.part(b, x, aval)
        part = aval.update(dtype=dtypes.to_real_dtype(aval.dtype))
        return b.op("stablehlo.complex", [
            self.part(b, b.op(f"stablehlo.{name}", [x], None, part), part)
            for name in ("real", "imag")])

    def part(self, b: Builder, x: IrValue, aval: ShapedArray) -> IrValue:
        zero = b.full(aval, 0.0)
        is_zero = b.compare("EQ", x, zero, "FLOAT", aval.update(dtype=dtypes.as_dtype(bool)))
        return b.op("stablehlo.select", [is_zero, zero, x], None, aval)


class _Nan(_Instead):
    """NaN, of the bits of an operand, so that LLVM does not know it."""

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        x, = b.expand([x])
        return _nan_of(b, x, b.avals_out[0])


def _nan_of(b: Builder, x: IrValue, aval: ShapedArray) -> IrValue:
    of = dtypes.as_dtype(f"uint{aval.dtype.itemsize * 8}")
    bits = aval.update(dtype=of)
    nan = np.asarray(math.nan, aval.dtype).view(of)[()]
    found = b.op("stablehlo.or", [b.op("stablehlo.bitcast_convert", [x], None, bits),
                                  b.full(bits, int(nan))], None, bits)
    return b.op("stablehlo.bitcast_convert", [found], None, aval)


class _BesideComputed(_Instead):
    """An operation on two operands, and which of these XLA computes from constants, and the other:
    NaN of the bits of the other where it is NaN.
    """

    def __init__(self, op: str) -> None:
        super().__init__(f"{op}_beside_computed")
        self.op = f"stablehlo.{op}"

    def lower(self, b: Builder, *xs: IrValue) -> IrValue:
        x, y, computed, other = b.expand(xs)
        aval = b.avals_out[0]
        if b.module.exported:       # engines that read exports do not all take floats apart
            return b.op(self.op, [x, y], None, aval)
        is_nan = b.compare("NE", computed, computed, "FLOAT",
                           aval.update(dtype=dtypes.as_dtype(bool)))
        return b.op("stablehlo.select", [
            is_nan, _nan_of(b, other, aval), b.op(self.op, [x, y], None, aval)], None, aval)


plus_zero_p, nan_p = _PlusZero("plus_zero"), _Nan("nan")
#: by algebra
beside_computed = {
    "difference": _BesideComputed("subtract"), "product": _BesideComputed("multiply"),
    "quotient": _BesideComputed("divide"), "sum": _BesideComputed("add")}
