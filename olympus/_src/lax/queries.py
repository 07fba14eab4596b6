"""The dtype of arrays, their shape as a value; and a sink that keeps values alive."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from ..base.typing import Array, ArrayLike, DuckTypedArray, IrValue, Params, PyTree, Shape
from ..core.effects import Effect
from ..core.primitive import Axis, Builder, Primitive, Tangent
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import canonical_shape
from ..types.tree import tree_leaves
from .creation import full
from .shape import broadcast_in_dim
from .sharding import sharding_like
from .slicing import concatenate


class KeepEffect(Effect):
    """Values are kept that nothing else reads."""

    __slots__ = ()
    name = "Keep"


KEEP = frozenset((KeepEffect(),))


class DceSink(Primitive):
    """Reads its operands and has no result: dead-code elimination leaves them."""

    multiple_results = True
    transpose = None

    def infer(self, *avals: ShapedArray, prevent_mlir_dce: bool) -> list[ShapedArray]:
        return []

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        return KEEP

    def lower(self, b: Builder, *xs: IrValue, prevent_mlir_dce: bool) -> list[IrValue]:
        if not prevent_mlir_dce:
            return []
        manual = b.module.places.manual
        if manual is not None and not manual.all_manual:
            raise NotImplementedError(
                f"dce_sink: prevent_mlir_dce=True given where axes {manual.names} of "
                f"{manual.mesh} are manual and XLA divides along the others; all, or none, is "
                "required; give shard_map all axes, or leave prevent_mlir_dce away.")
        for x in xs:
            b.custom_call("dce_sink", [x], [], {"has_side_effect": b.attr("true")})
        return []

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[list[Array], list[Tangent]]:
        return self.bind(*primals, **params), []

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], **params: Hashable
             ) -> tuple[list[Array], list[int | None]]:
        return self.bind(*args, **params), []


dce_sink_p = DceSink("dce_sink")


def dce_sink(val: PyTree, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the computation of `val`, a pytree of arrays, in programs where nothing reads it.

    Args:
      val: what to keep.
      prevent_mlir_dce: keep it in the compiled program too; else only in olympusprs.

    >>> str(olympus.make_olympuspr(lambda x: olympus.lax.dce_sink(x + 1))(1)).count("dce_sink")
    1
    """
    dce_sink_p.bind(*tree_leaves(val), prevent_mlir_dce=bool(prevent_mlir_dce))


def dtype(x: ArrayLike | DuckTypedArray) -> np.dtype:
    """The dtype of an array, of a Python number as an array, or of a name or type.

    Args: x: array, Python number, dtype, or what names one.
    Returns: A `numpy.dtype`, a 32-bit one for a 64-bit one where x64 is off.

    Raises TypeError for anything else.

    >>> lax.dtype(1.0)
    dtype('float32')
    """
    if isinstance(x, (str, type, np.dtype)):
        return dtypes.canonical_dtype(x)
    return typeof(x).dtype


def shape_as_value(shape: Shape) -> Array:
    """A shape as a vector of integers.

    Args: shape: a sequence of ints.
    Returns: A vector of the default integer dtype, int32 with x64 off.

    >>> print(lax.shape_as_value((2, 3)))
    [2 3]
    """
    sizes = canonical_shape(shape, "shape_as_value")
    kind = dtypes.default_int()
    if not sizes:
        return full((0,), 0, kind)
    return concatenate([full((1,), n, kind) for n in sizes], 0)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """`arr` repeated to the shape of `like_arr`, axes aligned at the right.

    Args:
      arr: array; each axis has the size of its counterpart or 1.
      like_arr: array of at least as many axes, of any dtype.
    Returns: An array of the shape of `like_arr` and the dtype of `arr`.

    Raises ValueError where sizes do not fit.

    >>> print(lax.broadcast_like(onp.arange(3), onp.zeros((2, 3))))
    [[0 1 2]
     [0 1 2]]
    """
    aval, like = typeof(arr), typeof(like_arr)
    first = like.ndim - aval.ndim
    if first < 0 or any(n not in (1, m)
                        for n, m in zip(aval.shape, like.shape[first:], strict=True)):
        raise ValueError(f"broadcast_like: array {aval} given to be broadcast like {like}; sizes, "
                         "aligned at the right, must be equal or 1; reshape the array.")
    return broadcast_in_dim(arr, like.shape, tuple(range(first, like.ndim)),
                            out_sharding=sharding_like(like_arr) if like.explicit else None)
