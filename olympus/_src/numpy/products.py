"""Products of vectors, matrices and tensors, each one `dot_general`; and traces."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import literal
from ..lax import contract, slicing
from ..lax import shape as lax_shape
from ..lax.arithmetic import mul, sub
from ..lax.precision import PrecisionLike
from ..transforms.fused import fused
from ..types import dtypes
from ..types.shape import (
    broadcast_shapes,
    canonical_axes,
    canonical_axis,
    definitely_equal,
    static_int,
)
from ..types.shape import prod as size_of
from ..types.sharding import ShardingLike
from . import reductions
from .creation import diagonal_of
from .eager import as_ufunc
from .options import CORE, core_options
from .promote import array_args, broadcast_to, convert, promote_dtypes, refuse_option, to_array
from .ufuncs import conjugate, multiply

__all__ = ["cross", "diagonal", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot",
           "trace", "vdot", "vecdot", "vecmat"]

Pairs = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def contraction(x: Any, y: Any, pairs: Pairs, precision: Any, preferred: Any,
                out_sharding: Any = None) -> Any:
    """`dot_general` of operands of one dtype, with a result of that dtype unless preferred.

    The result is weakly typed only if both operands are.
    """
    return contract.dot_general(x, y, pairs, precision, preferred, out_sharding=out_sharding)


def _operands(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    x, y = promote_dtypes(name, a, b)
    return broadcast_to(x, x.shape), broadcast_to(y, y.shape)


@fused(static=("precision", "preferred_element_type", "out_sharding"), inline=True)
def dot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None
       ) -> Array:
    """a[..., k], b[..., k, m] -> [..., ..., m]: the last axis of `a` with the last but one of `b`.

    With a scalar the product; of a vector `b` its only axis counts. For batches of matrices use
    `matmul`. `precision` and `preferred_element_type` are those of `lax.dot_general`.
    """
    x, y = _operands("dot", a, b)
    if not x.shape or not y.shape:
        found = multiply(x, y)
        return (found if preferred_element_type is None
                else convert(found, dtypes.requested_dtype("dot", preferred_element_type)))
    axis = builtins.max(y.ndim - 2, 0)
    _check_contracted("dot", x, y, x.ndim - 1, axis)
    return contraction(x, y, (((x.ndim - 1,), (axis,)), ((), ())), precision,
                       preferred_element_type, out_sharding)


def _check_contracted(name: str, x: Any, y: Any, i: int, j: int) -> None:
    if not definitely_equal(x.shape[i], y.shape[j]):
        raise TypeError(f"{name}: operands {x.aval} and {y.aval} given; incompatible shapes: axis "
                        f"{i} of the first and axis {j} of the second are summed over, so their "
                        "sizes must be equal; transpose or reshape one.")


@as_ufunc
@fused(static=("precision", "preferred_element_type", "out_sharding", *CORE), inline=True)
@core_options("(n?,k),(k,m?)->(n?,m?)")
def matmul(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None
          ) -> Array:
    """a[..., n, k] @ b[..., k, m] -> [..., n, m]; leading axes broadcast; vectors as in NumPy.

    Raises ValueError for scalars, TypeError for sizes that do not fit.

    >>> import olympus.numpy as jnp
    >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    x, y = _operands("matmul", a, b)
    for i, z in enumerate((x, y)):
        if not z.shape:
            raise ValueError(f"matmul: operand {i} is {z.aval}; at least one axis is required; use "
                             "multiply for scalars.")
    _check_contracted("matmul", x, y, x.ndim - 1, builtins.max(y.ndim - 2, 0))
    if y.ndim <= 2:
        return contraction(x, y, (((x.ndim - 1,), (builtins.max(y.ndim - 2, 0),)), ((), ())),
                           precision, preferred_element_type, out_sharding)
    if x.ndim == 1:
        return contraction(x, y, (((0,), (y.ndim - 2,)), ((), ())), precision,
                           preferred_element_type, out_sharding)
    return _batched(x, y, precision, preferred_element_type, out_sharding)


def _batched(x: Any, y: Any, precision: Any, preferred: Any, out_sharding: Any) -> Any:
    """Matrix products with leading axes: axes of size 1 that broadcast are dropped, not repeated.

    A leading axis that only one operand has is a free axis of it; one permutation puts the
    result's axes in order.
    """
    batch = _batch_shape("matmul", x, y)
    n = len(batch)
    kept, contracted, shared = [], [], []
    for z, inner in ((x, -1), (y, -2)):
        lead = z.shape[:-2]
        offset = n - len(lead)
        owned = [i for i, size in enumerate(lead, offset)
                 if not definitely_equal(size, 1) or definitely_equal(batch[i], 1)]
        ones = tuple([i for i, size in enumerate(lead) if i + offset not in owned])
        kept.append((lax_shape.squeeze(z, ones) if ones else z, owned))
        contracted.append(len(owned) + 2 + inner)
    (x, own_x), (y, own_y) = kept
    shared = [i for i in own_x if i in own_y]
    pairs = (((contracted[0],), (contracted[1],)),
             (tuple([own_x.index(i) for i in shared]), tuple([own_y.index(i) for i in shared])))
    found = contraction(x, y, pairs, precision, preferred, out_sharding)
    order = [*shared, *[i for i in own_x if i not in shared], n,
             *[i for i in own_y if i not in shared], n + 1]
    return lax_shape.transpose(found, [order.index(i) for i in range(n + 2)])


def _batch_shape(name: str, x: Any, y: Any) -> tuple[int, ...]:
    try:
        return broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ValueError(f"{name}: operands {x.aval} and {y.aval} given; their leading axes must "
                         "broadcast; reshape one.") from None


@fused(static=("precision", "preferred_element_type"))
def vdot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of conj(a) * b over all elements in row-major order: a scalar."""
    x, y = _operands("vdot", conjugate(a), b)
    x, y = (lax_shape.reshape(z, (size_of(z.shape),)) for z in (x, y))
    return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)


@fused(static=("precision", "preferred_element_type"), inline=True)
def inner(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
          preferred_element_type: DTypeLike | None = None) -> Array:
    """a[..., k], b[..., k] -> [..., ...]: the last axes are summed over; with a scalar `dot`."""
    x, y = _operands("inner", a, b)
    if not x.shape or not y.shape:
        return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)
    _check_contracted("inner", x, y, x.ndim - 1, y.ndim - 1)
    return contraction(x, y, (((x.ndim - 1,), (y.ndim - 1,)), ((), ())), precision,
                       preferred_element_type)


@fused
def _outer(x: Any, y: Any) -> Any:
    n, m = size_of(x.shape), size_of(y.shape)
    x = lax_shape.broadcast_in_dim(lax_shape.reshape(x, (n,)), (n, m), (0,))
    y = lax_shape.broadcast_in_dim(lax_shape.reshape(y, (m,)), (n, m), (1,))
    return multiply(x, y)


@fused(static=("out",))
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """a[n], b[m] -> [n, m]: all products; arrays of other ranks are flattened."""
    refuse_option("outer", out=out)
    return _outer(*_operands("outer", a, b))


@fused(static=("axes", "precision", "preferred_element_type", "out_sharding"), inline=True)
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
              *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: ShardingLike = None) -> Array:
    """The sum over pairs of axes: the last of `a` with the first of `b`, or as listed.

    Args:
      axes: the number of axes, or a pair of an axis (or a list of them) of `a` and of `b`.
    """
    x, y = _operands("tensordot", a, b)
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        left, right = (canonical_axes(s, z.ndim, "tensordot") for s, z in zip(axes, (x, y)))
        if len(left) != len(right):
            raise TypeError(f"tensordot: axes {axes} given; as many of the one as of the other "
                            "are required.")
    elif isinstance(axes, (tuple, list)):
        raise TypeError(f"tensordot: axes {axes} given; an int or a pair is required.")
    else:
        n = builtins.max(static_int(axes, "tensordot", "axes"), 0)  # NumPy: nothing below 0
        if n > builtins.min(x.ndim, y.ndim):
            raise TypeError(f"tensordot: axes {n} for {x.aval} and {y.aval} given; both must have "
                            "as many axes.")
        left, right = tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    for i, j in zip(left, right):
        _check_contracted("tensordot", x, y, i, j)
    return contraction(x, y, ((left, right), ((), ())), precision, preferred_element_type,
                       out_sharding)


@fused
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: sizes multiply along each axis, aligned at the right."""
    x, y = _operands("kron", a, b)
    ndim = builtins.max(x.ndim, y.ndim)
    x, y = (lax_shape.reshape(z, (1,) * (ndim - z.ndim) + z.shape) for z in (x, y))
    mixed = tuple([n for pair in zip(x.shape, y.shape) for n in pair])
    x, y = (lax_shape.broadcast_in_dim(z, mixed, tuple(range(i, 2 * ndim, 2)))
            for i, z in enumerate((x, y)))
    return lax_shape.reshape(multiply(x, y), [n * m for n, m in zip(mixed[::2], mixed[1::2])])


@fused(static=("axisa", "axisb", "axisc", "axis"))
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """a[..., 3], b[..., 3] -> [..., 3]: the cross product; of [..., 2] its last component [...].

    Raises ValueError for other sizes.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_dtypes("cross", a, b)
    x = lax_shape.move_axis(x, canonical_axis(axisa, x.ndim, "cross"), x.ndim - 1)
    y = lax_shape.move_axis(y, canonical_axis(axisb, y.ndim, "cross"), y.ndim - 1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(f"cross: operands {x.aval} and {y.aval} given; vectors of 2 or 3 numbers "
                         "are required.")
    shape = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    zero = literal(0, x.dtype)

    def parts(z: Any) -> list[Any]:
        found = [lax_shape.squeeze(slicing.slice_in_dim(z, i, i + 1, axis=z.ndim - 1),
                                   (z.ndim - 1,))
                 for i in range(static_int(z.shape[-1], "cross", "size"))]
        return [broadcast_to(p, shape) for p in found] + [
            broadcast_to(zero, shape)] * (3 - len(found))

    flat = definitely_equal(x.shape[-1], 2) and definitely_equal(y.shape[-1], 2)
    (x0, x1, x2), (y0, y1, y2) = parts(x), parts(y)
    last = sub(mul(x0, y1), mul(x1, y0))
    if flat:
        return last
    found = [sub(mul(x1, y2), mul(x2, y1)), sub(mul(x2, y0), mul(x0, y2)), last]
    out = slicing.concatenate([lax_shape.expand_dims(p, (len(shape),)) for p in found], len(shape))
    return lax_shape.move_axis(out, out.ndim - 1, canonical_axis(axisc, out.ndim, "cross"))


def _at_least(name: str, x: Any, ndim: int, position: int) -> None:
    if x.ndim < ndim:
        raise ValueError(f"{name}: operand {position} is {x.aval}; at least {ndim} axes are "
                         "required.")


@as_ufunc
@fused(static=("precision", "preferred_element_type", *CORE))
@core_options("(n),(n)->()")
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """x1[..., k], x2[..., k] -> [...]: conj(x1) * x2 summed along an axis; the rest broadcasts."""
    x, y = _operands("vecdot", x1, x2)
    for i, z in enumerate((x, y)):
        _at_least("vecdot", z, 1, i)
    _check_contracted("vecdot", x, y, x.ndim - 1, y.ndim - 1)
    row = lax_shape.expand_dims(conjugate(x), (x.ndim - 1,))
    column = lax_shape.expand_dims(y, (y.ndim,))
    found = matmul(row, column, precision=precision,
                   preferred_element_type=preferred_element_type)
    return lax_shape.squeeze(found, (found.ndim - 2, found.ndim - 1))


@as_ufunc
@fused(static=CORE)
@core_options("(m,n),(n)->(m)")
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1[..., n, k], x2[..., k] -> [..., n]: leading axes broadcast."""
    x, y = _operands("matvec", x1, x2)
    _at_least("matvec", x, 2, 0)
    _at_least("matvec", y, 1, 1)
    found = matmul(x, lax_shape.expand_dims(y, (y.ndim,)))
    return lax_shape.squeeze(found, (found.ndim - 1,))


@as_ufunc
@fused(static=CORE)
@core_options("(n),(n,m)->(m)")
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1[..., k], x2[..., k, m] -> [..., m]: conj(x1) as a row; leading axes broadcast."""
    x, y = _operands("vecmat", x1, x2)
    _at_least("vecmat", x, 1, 0)
    _at_least("vecmat", y, 2, 1)
    found = matmul(lax_shape.expand_dims(conjugate(x), (x.ndim - 1,)), y)
    return lax_shape.squeeze(found, (found.ndim - 2,))


@fused(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Diagonal `offset` over two axes, as the last axis of the result."""
    (x,) = array_args("diagonal", a)
    if len(x.shape) < 2:
        raise ValueError(f"diagonal: {x.aval} given; at least two axes are required.")
    first, second = canonical_axes((axis1, axis2), x.ndim, "diagonal")
    return diagonal_of(to_array(x), static_int(offset, "diagonal", "offset"), first, second)


@fused(static=("offset", "axis1", "axis2", "dtype", "out"))
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The sum of diagonal `offset` over two axes; booleans and small integers as int32."""
    refuse_option("trace", out=out)
    found = diagonal(a, offset, axis1, axis2)
    return reductions.sum(found, -1, dtype)
