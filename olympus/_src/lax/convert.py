"""Conversions: to another dtype, to another view of the bits, to less precision."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.primitive import Axis, Primitive, Zero
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import definitely_equal
from ..types.tree import tree_map
from .shape import move_axis

__all__ = ["bitcast_convert_type", "convert_element_type", "reduce_precision", "stop_gradient"]


class ConvertElementType(Primitive):
    """Elements in another dtype; linear between inexact dtypes."""

    def infer(self, x: ShapedArray, *, new_dtype: np.dtype, weak_type: bool, sharding: Any
              ) -> ShapedArray:
        if dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype):
            raise TypeError(f"convert_element_type: {x} to {new_dtype} given; keys do not convert; "
                            "use random.key_data or random.wrap_key_data.")
        return make_aval(x.shape, new_dtype, weak_type)

    def lower(self, b: Any, x: Any, *, new_dtype: np.dtype, weak_type: bool, sharding: Any) -> Any:
        aval = b.avals_in[0]
        old, kind = aval.dtype, dtypes.scalar_kind(new_dtype)
        if old == new_dtype:
            return x
        if kind == "b":
            # Not zero is true, NaN too; XLA's own conversion would round first.
            compare = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(dtypes.scalar_kind(old),
                                                                     "UNSIGNED")
            return b.compare("NE", x, b.full(aval, 0), compare, b.avals_out[0])
        if dtypes.is_complex(old) and kind != "c":
            part = aval.update(dtype=dtypes.to_real_dtype(old))
            x = b.op("stablehlo.real", [x], None, part)
            if part.dtype == new_dtype:
                return x
        return b.convert(x, b.avals_out[0])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if not dtypes.is_inexact(params["new_dtype"]):
            return out, Zero(typeof(out).to_tangent_aval())
        return out, self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> list[Any]:
        old = x.aval
        return [self.bind(ct, new_dtype=old.dtype, weak_type=old.weak_type, sharding=None)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        return self.bind(*args, **params), dims[0]


class BitcastConvertType(Primitive):
    """The same bits as another dtype; a change of width adds or removes a last axis."""

    def infer(self, x: ShapedArray, *, new_dtype: np.dtype) -> ShapedArray:
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        if "c" in (dtypes.scalar_kind(x.dtype), dtypes.scalar_kind(new_dtype)) \
                and x.dtype != new_dtype:
            raise TypeError(f"bitcast_convert_type: {x} to {new_dtype} given; complex numbers have "
                            "no bit view; use real and imag.")
        if old == new:
            return make_aval(x.shape, new_dtype)
        if old > new:
            return make_aval((*x.shape, old // new), new_dtype)
        ratio = new // old
        if not x.shape or not definitely_equal(x.shape[-1], ratio):
            raise ValueError(f"bitcast_convert_type: {x} to {new_dtype} given; the last axis must "
                             f"have size {ratio}, the ratio of the widths.")
        return make_aval(x.shape[:-1], new_dtype)

    def lower(self, b: Any, x: Any, *, new_dtype: np.dtype) -> Any:
        return x if b.avals_in[0].dtype == new_dtype else b.op("stablehlo.bitcast_convert", [x])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(typeof(out).to_tangent_aval())

    transpose = None

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        return self.bind(move_axis(args[0], dims[0], 0), **params), 0


class ReducePrecision(Primitive):
    """Round to a format with fewer bits, kept in the same dtype."""

    def infer(self, x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
        if not dtypes.is_floating(x.dtype):
            raise TypeError(f"reduce_precision: {x} given; a floating dtype is required.")
        if exponent_bits < 1 or mantissa_bits < 0:
            raise ValueError(f"reduce_precision: exponent_bits {exponent_bits} and mantissa_bits "
                             f"{mantissa_bits} given; at least 1 and 0 are required.")
        return x

    def lower(self, b: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        return b.op("stablehlo.reduce_precision", [x], {
            "exponent_bits": b.attr(f"{exponent_bits} : i32"),
            "mantissa_bits": b.attr(f"{mantissa_bits} : i32")})

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> list[Any]:
        return [self.bind(ct, **params)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        return self.bind(*args, **params), dims[0]


class StopGradient(Primitive):
    """The identity, with derivative zero."""

    def infer(self, x: ShapedArray) -> ShapedArray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        out = self.bind(*primals)
        return out, Zero(typeof(out).to_tangent_aval())

    transpose = None

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        return self.bind(*args), dims[0]


convert_element_type_p = ConvertElementType("convert_element_type")
bitcast_convert_type_p = BitcastConvertType("bitcast_convert_type")
reduce_precision_p = ReducePrecision("reduce_precision")
stop_gradient_p = StopGradient("stop_gradient")


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """Elements converted to `new_dtype`, as C++ would.

    Floats to integers round toward zero; values that do not fit are undefined. Not zero converts to
    True, NaN too. Complex to real keeps the real part, with a warning. A Python type (int, float,
    complex) asks for the default dtype of its kind, weak as that of a Python scalar.
    """
    weak = new_dtype in (int, float, complex)
    dtype = dtypes.python_scalar_dtype(new_dtype) if weak else dtypes.canonical_dtype(new_dtype)
    aval = typeof(operand)
    if aval.dtype == dtype and aval.weak_type == weak and hasattr(operand, "aval"):
        return operand
    if dtypes.is_complex(aval.dtype) and not (dtypes.is_complex(dtype) or dtypes.is_bool(dtype)):
        warnings.warn(f"convert_element_type: {aval} to {dtype} drops the imaginary part; use "
                      "real() to say so.", np.exceptions.ComplexWarning, stacklevel=2)
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak, sharding=None)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The operand's bits as another dtype.

    A narrower dtype adds a last axis of the ratio of the widths, a wider one removes it; the first
    element along it has the lowest bits.
    """
    return bitcast_convert_type_p.bind(operand, new_dtype=dtypes.canonical_dtype(new_dtype))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round to a floating-point format of the given widths; the dtype stays."""
    return reduce_precision_p.bind(operand, exponent_bits=int(exponent_bits),
                                   mantissa_bits=int(mantissa_bits))


def stop_gradient(x: Any) -> Any:
    """The identity on a pytree, constant for differentiation.

    >>> import olympus
    >>> olympus.grad(lambda x: x * olympus.lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    def stop(leaf: Any) -> Any:
        dtype = typeof(leaf).dtype
        return stop_gradient_p.bind(leaf) if dtypes.is_inexact(dtype) else leaf

    return tree_map(stop, x)
