"""Operations that are lowered in the place of others, so that XLA may not simplify them.

They hide a number that XLA, or LLVM behind it, would draw conclusions from.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Sequence
from typing import Any

import numpy as np

from ..base.typing import IrValue, Params
from ..core.primitive import Builder, Primitive
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from .attributes import i64s
from .known_numbers import Number
from .made import is_term
from .platforms import rule_of


def hidden(b: Builder, constant: IrValue, aval: ShapedArray) -> IrValue:
    """A constant that XLA does not know.

    XLA folds calls of scalars and of arrays, but not of repeated scalars. So a number of two
    elements is held in memory. The bits of an array are joined with such a 0 by `xor`: of `or`
    LLVM would know which bits are 1.
    """
    if is_term(aval):
        return constant
    if not aval.shape:
        return _held_number(b, constant, aval)
    if dtypes.is_complex(aval.dtype):
        part = aval.update(dtype=dtypes.to_real_dtype(aval.dtype))
        return b.op("stablehlo.complex", [
            hidden(b, b.op(f"stablehlo.{name}", [constant], None, part), part)
            for name in ("real", "imag")], None, aval)
    bits = aval.update(dtype=dtypes.as_dtype(f"uint{dtypes.itemsize_bits(aval.dtype)}"))
    scalar = make_aval((), bits.dtype)
    zero = b.broadcast(_held_number(b, b.scalar(0, bits.dtype), scalar), bits, ())
    found = b.op("stablehlo.xor", [
        b.op("stablehlo.bitcast_convert", [constant], None, bits), zero], None, bits)
    return b.op("stablehlo.bitcast_convert", [found], None, aval)


def _held_number(b: Builder, number: IrValue, aval: ShapedArray) -> IrValue:
    two = make_aval((2,), aval.dtype)       # without the sharding of a scalar
    one = b.op("stablehlo.slice", [b.hold(b.broadcast(number, two, ()), two)], {
        "start_indices": i64s([0]), "limit_indices": i64s([1]), "strides": i64s([1])},
        make_aval((1,), aval.dtype))
    return b.op("stablehlo.reshape", [one], None, aval)


class _Instead(Primitive, abstract=True):
    """An operation that is lowered only, in the place of another one."""

    infer = jvp = transpose = vmap = None


class PlusZero(_Instead):
    """x + 0, which is 0 where x is -0; XLA takes the sum for x.

    `parts`: the parts of complex numbers to which +0 is added; the others stay.
    """

    def __init__(self, name: str, parts: Container[str] = ("real", "imag")) -> None:
        super().__init__(name)
        self.parts = parts

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        x, = b.expand([x])
        return self.plus_zero(b, x, b.avals_out[0])

    def plus_zero(self, b: Builder, x: IrValue, aval: ShapedArray) -> IrValue:
        if not dtypes.is_complex(aval.dtype):
            return self.part(b, x, aval)
        kind = aval.update(dtype=dtypes.to_real_dtype(aval.dtype))
        parts = [(name, b.op(f"stablehlo.{name}", [x], None, kind)) for name in ("real", "imag")]
        return b.op("stablehlo.complex", [
            self.part(b, part, kind) if name in self.parts else part for name, part in parts])

    def part(self, b: Builder, x: IrValue, aval: ShapedArray) -> IrValue:
        zero = b.full(aval, 0.0)
        is_zero = b.compare("EQ", x, zero, "FLOAT", aval.update(dtype=dtypes.as_dtype(bool)))
        return b.op("stablehlo.select", [is_zero, zero, x], None, aval)


class _Nan(_Instead):
    """NaN, of the bits of an operand, so that LLVM does not know it."""

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        x, = b.expand([x])
        return _nan_of(b, x, b.avals_out[0])


def has_nan_bits(aval: ShapedArray) -> bool:
    """Whether `nan_p` can make a NaN of a type."""
    return not dtypes.is_complex(aval.dtype) and aval.dtype.itemsize > 1


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


def _as_plain(b: Builder, primitive: Primitive, xs: Sequence[IrValue], params: Params
              ) -> IrValue | Sequence[IrValue]:
    """Call the rule of a primitive whose equation another one replaces.

    Only the rule sees the replaced equation: in a module of several platforms the other one is
    lowered anew for each.
    """
    eqn = b.eqn
    b.eqn = eqn.replace(primitive=primitive)
    try:
        return rule_of(b.module, primitive)(b, *xs, **params)
    finally:
        b.eqn = eqn


class GivenHidden(_Instead):
    """An operation whose operands at some places XLA does not know."""

    def __init__(self, primitive: Primitive, places: frozenset[int]) -> None:
        super().__init__(primitive.name)
        self.primitive, self.places = primitive, places
        self.multiple_results = primitive.multiple_results

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue | Sequence[IrValue]:
        return _as_plain(b, self.primitive, [
            hidden(b, x, aval) if i in self.places else x
            for i, (x, aval) in enumerate(zip(xs, b.avals_in, strict=True))], params)


class PlusZeroAfter(PlusZero):
    """A sum of elements, which is 0 where they are -0, as it begins with 0.

    XLA takes the sum of a repeated number for a product, and the sum of negatives for the negative
    of their sum.
    """

    def __init__(self, primitive: Primitive) -> None:
        super().__init__(primitive.name)
        self.primitive = primitive

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue:
        out: Any = _as_plain(b, self.primitive, xs, params)
        return self.plus_zero(b, out, b.avals_out[0])


nan_p = _Nan("nan")
_plus_zero: dict[tuple[str, ...], PlusZero] = {
    parts: PlusZero("plus_zero", parts) for parts in (("real", "imag"), ("real",), ("imag",))}
#: by algebra
beside_computed = {
    "difference": _BesideComputed("subtract"), "product": _BesideComputed("multiply"),
    "quotient": _BesideComputed("divide"), "sum": _BesideComputed("add")}


def plus_zero(zero: Number) -> PlusZero:
    """The sum with a 0 that has at least one part +0."""
    return _plus_zero[tuple([name for name in ("real", "imag")
                             if math.copysign(1, getattr(zero, name)) > 0])]
