"""Arrays made from a shape: iota, full and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, DType, DTypeLike, DuckTypedArray, IrValue, Shape
from ..core import tags
from ..core.primitive import Builder, Primitive
from ..core.trace import Tracer, is_literal, literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval, scalar_aval
from ..types.memory import Space
from ..types.shape import SymbolicDim, canonical_shape, front_axis
from ..types.sharding import ShardingLike
from ..types.symbolic import set_value_of
from .convert import convert_element_type
from .shape import Dims, broadcast_in_dim_p
from .sharding import constrain, move, sharding_like


class Iota(Primitive):
    """0, 1, 2 … along one axis."""

    jvp = transpose = vmap = None       # it has no operands
    single = True
    fusion = "spreads"
    pace = 0.3

    def infer(self, *, dtype: DType, shape: Dims, dimension: int, sharding: ShardingLike
              ) -> ShapedArray:
        if dtypes.scalar_kind(dtype) not in "iufc":
            raise TypeError(f"iota: dtype {dtypes.long_name(dtype)} given; a numeric dtype is "
                            "required; convert the result instead.")
        return make_aval(shape, dtype)

    def lower(self, b: Builder, *, dtype: DType, shape: Dims, dimension: int,
              sharding: ShardingLike) -> IrValue:
        return b.op("stablehlo.iota", [], {"iota_dimension": b.attr(f"{dimension} : i64")})


iota_p = Iota("iota")


class DimAsValue(Primitive):
    """The number that a symbolic dimension has when the program runs, of the dtype of ints."""

    jvp = transpose = vmap = None       # it has no operands

    def infer(self, *, dim: SymbolicDim) -> ShapedArray:
        return scalar_aval(int)

    def lower(self, b: Builder, *, dim: SymbolicDim) -> IrValue:
        return b.scalar(dim, b.avals_out[0].dtype)


class Empty(Primitive):
    """A scalar whose value is unspecified, in a memory of the device: here zero."""

    jvp = transpose = vmap = None       # it has no operands
    memory = staticmethod(tags.in_memory_inferred)

    def infer(self, *, dtype: DType, memory_space: Space | None) -> ShapedArray:
        return make_aval((), dtypes.as_dtype(dtype), memory_space=memory_space)

    def lower(self, b: Builder, *, dtype: DType, memory_space: Space | None) -> IrValue:
        return b.scalar(0, b.avals_out[0].dtype)


empty2_p = Empty("empty2")      # only programs of others bind it: `empty` is `full`


dim_as_value_p = DimAsValue("dim_as_value")
set_value_of(lambda d: dim_as_value_p.bind(dim=d))


def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1 … size-1 as a vector of the dtype.

    Args:
      dtype: integer, floating or complex.
      size: how many numbers.
    Returns: An array of shape (size,) and that dtype.

    >>> print(olympus.lax.iota("int32", 3))
    [0 1 2]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Shape, dimension: int, *,
                     out_sharding: ShardingLike = None) -> Array:
    """An array of the shape whose elements are their own positions along `dimension`.

    Args:
      dtype: the result's dtype: integer, floating or complex.
      shape: the result's shape.
      dimension: the axis along which the numbers ascend from 0.
      out_sharding: where the result is; see `with_sharding_constraint`.
    Returns: An array of that shape and dtype, constant along the other axes.

    Raises TypeError for dtypes that are not numeric, ValueError for an axis out of bounds.

    >>> print(olympus.lax.broadcasted_iota("int32", (2, 2), 0))
    [[0 0]
     [1 1]]
    """
    shape = canonical_shape(shape, "iota")
    out = iota_p.bind(dtype=dtypes.requested_dtype("iota", dtype), shape=shape,
                      dimension=front_axis(dimension, len(shape), "iota"), sharding=None)
    return constrain("broadcasted_iota", out, out_sharding)


def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         sharding: ShardingLike = None) -> Array:
    """An array with every element equal to a scalar.

    Args:
      shape: the result's shape.
      fill_value: a scalar; it may be traced.
      dtype: the result's dtype; None is the fill value's, weakly typed if it is.
      sharding: where the result is; see `with_sharding_constraint`.

    Raises TypeError if the fill value is not a scalar.

    >>> print(olympus.lax.full((2,), 3.0))
    [3. 3.]
    """
    shape, aval = canonical_shape(shape, "full"), _aval(fill_value)
    if aval.ndim:
        raise TypeError(f"full: fill_value {aval} given; a scalar is required; use "
                        "lax.broadcast_in_dim for arrays.")
    weak = dtype is None and aval.weak_type
    kind = aval.dtype if dtype is None else dtypes.requested_dtype("full", dtype, True)
    if dtypes.is_extended(kind) and aval.dtype != kind:         # every physical element is it
        shape = (*shape, *kind.physical_shape)
        out = kind.of_physical(full(shape, fill_value, kind.physical_dtype))
        return constrain("full", out, sharding)
    out = broadcast_in_dim_p.bind(_scalar_literal("full", fill_value, aval, kind, weak),
                                  shape=shape,
                                  broadcast_dimensions=(), sharding=None)
    return constrain("full", out, sharding)


def _aval(value: ArrayLike) -> ShapedArray:
    """The aval of a fill value; an int may be one that the default dtype does not hold."""
    return scalar_aval(int) if type(value) is int else typeof(value)


def _scalar_literal(name: str, value: ArrayLike, aval: ShapedArray, dtype: Any,
                    weak: bool) -> ArrayLike:
    """A scalar at the dtype: a literal if it is one, so that no conversion is recorded."""
    if is_literal(value) and not dtypes.is_extended(dtype):
        return fill_literal(name, value, dtype, weak)
    return value if aval.dtype == dtype else convert_element_type(value, dtype)


def fill_literal(name: str, value: Any, dtype: DType, weak: bool = False) -> Array:
    """A user's number as a constant of a dtype; errors for no number, or one that does not fit."""
    aval = _aval(value)
    if not is_literal(value):
        if aval.ndim or isinstance(value, Tracer):
            raise TypeError(f"{name}: fill_value {aval} given; a scalar that is known while the "
                            "program is traced is required.")
        value = np.asarray(value)[()]
    value = getattr(value, "raw", value)
    head = f"{name}: fill_value {value} given for dtype {dtypes.long_name(dtype)}"
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dtype):
        raise TypeError(f"{head}; a real number is required; take its real part.")
    if dtypes.is_integer(dtype) and not isinstance(value, (bool, np.bool_, SymbolicDim)):
        limits = dtypes.iinfo(dtype)
        if value != value:
            raise ValueError(f"{head}; a number that is not NaN is required.")
        if not int(limits.min) <= value <= int(limits.max):
            raise OverflowError(f"{head}; a number from {limits.min} to {limits.max} is required; "
                                "use a wider dtype.")
    return literal(value, dtype, weak)


def full_like(x: ArrayLike | DuckTypedArray, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: Shape | None = None, sharding: ShardingLike = None) -> Array:
    """`full` with the shape, dtype and weak type of `x` where they are not given.

    Args:
      x: array, or anything with a shape and a dtype.
      fill_value: a scalar; it may be traced.
      dtype, shape: the result's; None is `x`'s.
      sharding: where the result is; None: where `x` is, if it has its shape.
    Returns: An array; strongly typed if a dtype is given.

    >>> print(olympus.lax.full_like(olympus.numpy.ones(2), 7))
    [7. 7.]
    """
    like, aval = typeof(x), _aval(fill_value)
    if aval.ndim:
        raise TypeError(f"full_like: fill_value {aval} given; a scalar is required.")
    weak = dtype is None and like.weak_type
    dtype = like.dtype if dtype is None else dtypes.requested_dtype("full_like", dtype, True)
    where = sharding_like(x) if sharding is None and shape is None else sharding
    dims = like.shape if shape is None else canonical_shape(shape, "full_like")
    if dtypes.is_extended(dtype):
        return full(dims, fill_value, dtype, sharding=where)
    out = broadcast_in_dim_p.bind(_scalar_literal("full_like", fill_value, aval, dtype, weak),
                                  shape=dims,
                                  broadcast_dimensions=(), sharding=None)
    out = constrain("full_like", tags.pvary(out, like.vma), where)
    return move(out, like.memory_space) if like.tagged and sharding is None else out


def empty(shape: int | Shape, dtype: DTypeLike | None, *, out_sharding: ShardingLike = None
         ) -> Array:
    """An array whose elements are unspecified: here zeros, which cost no more.

    Args:
      shape: the result's shape, or an int for one axis.
      dtype: its dtype; None is a Python int's, int32 with x64 off.
      out_sharding: where the result is; see `with_sharding_constraint`.

    >>> x = olympus.lax.empty((2, 3), "float32")
    >>> x.shape, x.dtype
    ((2, 3), dtype('float32'))
    """
    return full(canonical_shape(shape, "empty"), 0, dtype, sharding=out_sharding)
