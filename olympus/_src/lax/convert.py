"""Changing the dtype of elements: by value, by bits, and rounding within a dtype."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..base import source
from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Params
from ..core import reuse, tags
from ..core.ir import OlympusprEqn
from ..core.primitive import Axis, Builder, Linear, Primitive, Tangent, Zero
from ..core.trace import is_array, literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import definitely_equal, is_static, static_int
from ..types.sharding import ShardingLike
from .bits import shift_left, shift_right_logical
from .families import FLOATING, Elementwise, operand as as_literal
from .shape import broadcast_in_dim, check_element, move_axis, reduce_sum


class ConvertElementType(Primitive):
    """Elements as the nearest values of another dtype; complex to real keeps the real part."""

    algebra = "conversion"
    additive = single = True
    cells = staticmethod(reuse.same)
    spread = staticmethod(tags.elementwise)
    hands_on_nan = True
    makes_nan = False
    fusion = "fused"
    pace = 0.3

    def shown(self, eqn: OlympusprEqn) -> Params:
        return {k: v for k, v in eqn.params.items() if k != "sharding" or v is not None}

    def infer(self, x: ShapedArray, *, new_dtype: DType, weak_type: bool, sharding: ShardingLike
              ) -> ShapedArray:
        if dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype):
            raise ValueError(f"convert_element_type: {x} to {new_dtype} given; dtypes that NumPy "
                             "knows are required; use random.key_data and random.wrap_key_data "
                             "for keys.")
        return make_aval(x.shape, new_dtype, weak_type)

    def lower(self, b: Builder, x: IrValue, *, new_dtype: DType, weak_type: bool,
              sharding: ShardingLike) -> IrValue:
        old, new = b.avals_in[0], b.avals_out[0]
        if new.dtype == old.dtype:
            return x
        kind = dtypes.scalar_kind(old.dtype)
        if new.dtype == np.bool_:
            compare = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(kind, "UNSIGNED")
            return b.compare("NE", x, b.full(old, 0), compare, new)
        if kind == "c" and not dtypes.is_complex(new.dtype):
            x = b.op("stablehlo.real", [x], None, old.update(dtype=dtypes.to_real_dtype(old.dtype)))
        if kind == "b" and dtypes.is_inexact(new.dtype):
            # XLA would select 0 for a product with a converted boolean, where NaN * False is NaN.
            # Tiles of GPUs hold no bytes; TPUs read more for a choice.
            if b.module.fences_by_choice and b.platform != "tpu" and new.dtype.itemsize > 1:
                return b.op("stablehlo.select", [x, b.full(new, 1), b.full(new, 0)])
            x = b.convert(x, old.update(dtype=np.dtype("uint8")))
        return b.convert(x, new)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any
            ) -> tuple[Array, Tangent]:
        out = self.bind(*primals, **params)
        if not dtypes.is_inexact(params["new_dtype"]):
            return out, Zero(typeof(out).to_tangent_aval())
        return out, self.bind(*tangents, **params)

    def transpose(self, ct: Array, x: Linear, *, new_dtype: DType, weak_type: bool,
                  sharding: ShardingLike) -> list[Array | None]:
        return [self.bind(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type,
                          sharding=sharding)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int | None]:
        return self.bind(*args, **params), dims[0]


convert_element_type_p = ConvertElementType("convert_element_type")


def in_dtype(x: ArrayLike, dtype: DType) -> Any:
    """An array in a dtype, as weak as it is."""
    aval = typeof(x)
    return x if aval.dtype == dtype else convert_element_type_p.bind(
        x, new_dtype=dtype, weak_type=aval.weak_type, sharding=None)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The elements as values of `new_dtype` (64-bit ones only with x64 on), strongly typed.

    Floats become integers by truncation, saturating at the dtype's limits, NaN becoming 0. Complex
    numbers become real by dropping the imaginary part, with NumPy's ComplexWarning; use `real` to
    say so. Anything becomes bool by comparison with zero.

    Args:
      operand: array or Python number, any dtype.
      new_dtype: what to convert to.
    Returns: An array of the operand's shape and `new_dtype`.

    Raises TypeError for a Python complex with an imaginary part that is to be real, OverflowError
    for a Python int that neither the dtype nor the default int holds.

    >>> olympus.lax.convert_element_type(olympus.numpy.array([-1.7, 2.5, 3e9]), "int32")
    Array([        -1,          2, 2147483647], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError(f"convert_element_type: {typeof(operand)} to None given; a dtype is "
                         "required; pass operand.dtype to keep its own.")
    dtype = dtypes.requested_dtype("convert_element_type", new_dtype)
    if type(operand) is int and not -2**31 <= operand < 2**31 and not dtypes.is_extended(dtype):
        # The default integer may not hold all numbers of the requested dtype.
        operand = as_literal(dtypes.scalar_type_of(dtype)(operand), literal(0, dtype))
    aval = typeof(operand)
    if (dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dtype)
            and not dtypes.is_bool(dtype)):
        if type(operand) is complex:
            if operand.imag != 0:
                raise TypeError(f"convert_element_type: {operand} to {dtype} given; a real number "
                                "is required; take its real part.")
            return convert_element_type(operand.real, dtype)
        source.warn(f"convert_element_type: {aval} to {dtype} drops the imaginary part; use "
                    "lax.real to say so.", np.exceptions.ComplexWarning)
    if dtype == aval.dtype and not aval.weak_type and is_array(operand):
        return operand
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=False, sharding=None)


class BitcastConvertType(Primitive):
    """The same bits as elements of another dtype; a last axis appears or goes with their width."""

    algebra = "part"
    transpose = None
    makes_nan = False
    pace = 0.3

    spread = staticmethod(tags.leading)

    def infer(self, x: ShapedArray, *, new_dtype: DType) -> ShapedArray:
        if new_dtype != x.dtype and not (dtypes.scalar_kind(x.dtype) in "iuf"
                                         and dtypes.scalar_kind(new_dtype) in "iuf"):
            raise TypeError(f"bitcast_convert_type: {x} to {dtypes.long_name(new_dtype)} given; "
                            "integers or floats on either side are required; use array.view.")
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        if old == new:
            return make_aval(x.shape, new_dtype)
        if old > new:
            return make_aval((*x.shape, old // new), new_dtype)
        if not x.shape or not definitely_equal(x.shape[-1], new // old):
            raise ValueError(f"bitcast_convert_type: {x} to {dtypes.long_name(new_dtype)} given; a "
                             f"last axis of size {new // old} is required, whose elements make "
                             "one; reshape the operand.")
        return make_aval(x.shape[:-1], new_dtype)

    def lower(self, b: Builder, x: IrValue, *, new_dtype: DType) -> IrValue:
        if b.avals_in[0].shape != b.avals_out[0].shape and not is_static(b.avals_in[0].shape):
            return b.inline(_by_shifts, x, new_dtype=new_dtype)     # XLA gives this no sizes
        return b.op("stablehlo.bitcast_convert", [x])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, new_dtype: DType
            ) -> tuple[Array, Tangent]:
        out = self.bind(*primals, new_dtype=new_dtype)
        return out, Zero(typeof(out).to_tangent_aval())

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, new_dtype: DType
             ) -> tuple[Array, int | None]:
        check_element(self, axis, args, dims, {"new_dtype": new_dtype})
        return self.bind(move_axis(args[0], dims[0], 0), new_dtype=new_dtype), 0


bitcast_convert_type_p = BitcastConvertType("bitcast_convert_type")


def _by_shifts(x: ArrayLike, *, new_dtype: DTypeLike) -> Array:
    """The bits of elements as others of another width, the lowest bits first."""
    aval = typeof(x)
    old, new = [dtypes.as_dtype(f"uint{dtypes.itemsize_bits(d)}") for d in (aval.dtype, new_dtype)]
    x = bitcast_convert_type_p.bind(x, new_dtype=old)
    narrow, wide = sorted((old, new), key=dtypes.itemsize_bits)
    width = dtypes.itemsize_bits(narrow)
    count = dtypes.itemsize_bits(wide) // width
    shape = (*aval.shape, count) if wide == old else aval.shape
    shifts = broadcast_in_dim(np.array([width * k for k in range(count)], wide), shape,
                              (len(shape) - 1,))
    if wide == old:
        x = shift_right_logical(broadcast_in_dim(x, shape, range(aval.ndim)), shifts)
        x = convert_element_type(x, new)
    else:
        x = reduce_sum(shift_left(convert_element_type(x, new), shifts), (len(shape) - 1,))
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The same bits read as `new_dtype`, an integer or floating dtype.

    Elements half as wide come in pairs along a new last axis, and so on; wider elements use up a
    last axis of the size that makes one (ValueError otherwise). The derivative is zero.

    Args:
      operand: integers or floats, any shape.
      new_dtype: the dtype to read them as.
    Returns: An array of `new_dtype`; of the operand's shape where the two dtypes are as wide.

    >>> olympus.lax.bitcast_convert_type(olympus.numpy.float32(1.0), "int32")
    Array(1065353216, dtype=int32)
    """
    return bitcast_convert_type_p.bind(
        operand, new_dtype=dtypes.requested_dtype("bitcast_convert_type", new_dtype))


class ReducePrecision(Elementwise):
    """Values rounded to fewer exponent and mantissa bits; linear for the sake of derivatives."""

    def lower(self, b: Builder, x: IrValue, *, exponent_bits: int, mantissa_bits: int) -> IrValue:
        return b.op("stablehlo.reduce_precision", [x], {
            "exponent_bits": b.attr(f"{exponent_bits} : i32"),
            "mantissa_bits": b.attr(f"{mantissa_bits} : i32")})


reduce_precision_p = ReducePrecision(
    "reduce_precision", "stablehlo.reduce_precision", FLOATING,
    [lambda t, z, x, **bits: reduce_precision_p.bind(t, **bits)], linear=(0,))


def reduce_precision(operand: float | ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to a format with fewer bits, in their own dtype.

    Args:
      operand: floats, any shape.
      exponent_bits, mantissa_bits: of the format, not counting the sign and the leading 1; bfloat16
        has 8 and 7.
    Returns: An array of the operand's shape and dtype: infinite where the format overflows.

    Raises ValueError unless exponent_bits >= 1 and mantissa_bits >= 0.

    >>> olympus.lax.reduce_precision(1.0 + 2.0 ** -9, exponent_bits=8, mantissa_bits=7)
    Array(1., dtype=float32, weak_type=True)
    """
    exponent_bits = static_int(exponent_bits, "reduce_precision", "exponent_bits")
    mantissa_bits = static_int(mantissa_bits, "reduce_precision", "mantissa_bits")
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(f"reduce_precision: exponent_bits={exponent_bits}, mantissa_bits="
                         f"{mantissa_bits} given; at least 1 and 0 are required.")
    return reduce_precision_p.bind(operand, exponent_bits=exponent_bits,
                                   mantissa_bits=mantissa_bits)
