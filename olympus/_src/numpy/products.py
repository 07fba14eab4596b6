"""Products of vectors, matrices and tensors, each one `dot_general`; and traces."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import literal
from ..jit.fused import fused
from ..lax import contract, shape as lax_shape, slicing
from ..lax.arithmetic import mul, sub
from ..lax.precision import PrecisionLike
from ..types import dtypes
from ..types.shape import (
    broadcast_shapes, canonical_axes, canonical_axis, definitely_equal, prod as size_of, static_int,
)
from ..types.sharding import ShardingLike
from . import reductions
from .arithmetic import conjugate, multiply
from .diagonals import diagonal_of
from .eager import as_ufunc
from .options import CORE, core_options
from .promote import (
    array_args, broadcast_to, check_ranks, convert, promote_dtypes, refuse_option, to_array,
)

Pairs = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def contraction(x: Array, y: Array, pairs: Pairs, precision: PrecisionLike,
                preferred: DTypeLike | None, out_sharding: ShardingLike = None) -> Array:
    """`dot_general` of operands of one dtype, with a result of that dtype unless preferred.

    The result is weakly typed only if both operands are.
    """
    return contract.dot_general(x, y, pairs, precision, preferred, out_sharding=out_sharding)


def _product_operands(name: str, a: ArrayLike, b: ArrayLike, core: tuple[int, ...] = ()
                      ) -> tuple[Array, Array]:
    """Arrays of one dtype; of those that have `core` axes each, the others are to broadcast."""
    x, y = promote_dtypes(name, a, b)
    if core:
        _at_least(name, x, core[0], 0)
        _at_least(name, y, core[1], 1)
        check_ranks(name, (x.aval, y.aval), core)
    return broadcast_to(x, x.shape), broadcast_to(y, y.shape)


@fused(static=("precision", "preferred_element_type", "out_sharding", "out"), inline=True)
def dot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None,
        out: None = None) -> Array:
    """The sum over the last axis of `a` and the last but one of `b` (its only axis, if a vector).

    With a scalar it is the product. For batches of matrices use `matmul`: here their axes are not
    matched, but follow each other.

    Args:
      a: array [..., k], or a scalar.
      b: array [..., k, m] or [k], or a scalar.

    Raises TypeError for sizes that differ.

    >>> print(onp.dot(onp.array([1, 2]), onp.array([[3, 4], [5, 6]])))
    [13 16]
    """
    refuse_option("dot", out=out)
    x, y = _product_operands("dot", a, b)
    if not x.shape or not y.shape:
        product = multiply(x, y)
        return (product if preferred_element_type is None
                else convert(product, dtypes.requested_dtype("dot", preferred_element_type)))
    axis = builtins.max(y.ndim - 2, 0)
    _check_contracted("dot", x, y, x.ndim - 1, axis)
    return contraction(x, y, (((x.ndim - 1,), (axis,)), ((), ())), precision,
                       preferred_element_type, out_sharding)


def _check_contracted(name: str, x: Array, y: Array, i: int, j: int) -> None:
    if not definitely_equal(x.shape[i], y.shape[j]):
        raise TypeError(f"{name}: operands {x.aval} and {y.aval} given; incompatible shapes: "
                        f"dot_general requires contracting dimensions to have the same shape, got "
                        f"({x.shape[i]},) and ({y.shape[j]},): axis {i} of the first and axis {j} "
                        "of the second are summed over; transpose or reshape one.")


@as_ufunc
@fused(static=("precision", "preferred_element_type", "out_sharding", *CORE), inline=True)
@core_options("(n?,k),(k,m?)->(n?,m?)")
def matmul(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None
          ) -> Array:
    """The matrix product a @ b; leading axes broadcast.

    A vector on the left is a row, on the right a column, and the result lacks that axis. Integers
    wrap
    around in their dtype.

    Args:
      a: array [..., n, k] or [k].
      b: array [..., k, m] or [k].
      axes: which axes of both and of the result the matrices are: a list of three pairs.
      dtype, casting, order, subok: as for a `ufunc`.
    Returns: An array [..., n, m] of the promoted dtype.

    Raises ValueError for scalars, TypeError for sizes that do not fit.

    >>> onp.matmul(onp.ones((2, 3)), onp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    x, y = _product_operands("matmul", a, b)
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
    return _batched_matmul(x, y, precision, preferred_element_type, out_sharding)


def _batched_matmul(x: Array, y: Array, precision: PrecisionLike, preferred: DTypeLike | None,
                    out_sharding: ShardingLike) -> Array:
    """Matrix products with leading axes: axes of size 1 that broadcast are dropped, not repeated.

    A leading axis that only one operand has is a free axis of it; one permutation puts the
    result's axes in order.
    """
    batch = _batch_shape("matmul", x, y)
    n = len(batch)
    operands, contracted, shared = [], [], []
    for z, inner in ((x, -1), (y, -2)):
        lead = z.shape[:-2]
        offset = n - len(lead)
        owned = [i for i, size in enumerate(lead, offset)
                 if not definitely_equal(size, 1) or definitely_equal(batch[i], 1)]
        ones = tuple([i for i, size in enumerate(lead) if i + offset not in owned])
        operands.append((lax_shape.squeeze(z, ones) if ones else z, owned))
        contracted.append(len(owned) + 2 + inner)
    (x, own_x), (y, own_y) = operands
    shared = [i for i in own_x if i in own_y]
    pairs = (((contracted[0],), (contracted[1],)),
             (tuple([own_x.index(i) for i in shared]), tuple([own_y.index(i) for i in shared])))
    product = contraction(x, y, pairs, precision, preferred, out_sharding)
    order = [*shared, *[i for i in own_x if i not in shared], n,
             *[i for i in own_y if i not in shared], n + 1]
    return lax_shape.transpose(product, [order.index(i) for i in range(n + 2)])


def _batch_shape(name: str, x: Array, y: Array) -> tuple[int, ...]:
    try:
        return broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ValueError(f"{name}: operands {x.aval} and {y.aval} given; their leading axes must "
                         "broadcast; reshape one.") from None


@fused(static=("precision", "preferred_element_type"))
def vdot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """The inner product of all elements in row-major order, with the first conjugated.

    Args: a, b: arrays of as many elements.
    Returns: A scalar of the promoted dtype.

    Raises TypeError for other numbers of elements.

    >>> onp.vdot(onp.array([1j, 2]), onp.array([1j, 2]))
    Array(5.+0.j, dtype=complex64)
    """
    x, y = _product_operands("vdot", conjugate(a), b)
    x, y = (lax_shape.reshape(z, (size_of(z.shape),)) for z in (x, y))
    if not definitely_equal(x.shape[0], y.shape[0]):
        raise TypeError(f"vdot: operands of {x.size} and {y.size} elements given; incompatible "
                        "shapes: arrays of as many elements are required; reshape or slice one.")
    return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)


@fused(static=("precision", "preferred_element_type"), inline=True)
def inner(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
          preferred_element_type: DTypeLike | None = None) -> Array:
    """The sums of products along the last axes of both, for all pairs of their other indices.

    Nothing is conjugated. With a scalar it is the product.

    Args:
      a: array [..., k].
      b: array [..., k].

    Raises TypeError for sizes that differ.

    >>> print(onp.inner(onp.array([[1, 2], [3, 4]]), onp.array([1, 10])))
    [21 43]
    """
    x, y = _product_operands("inner", a, b)
    if not x.shape or not y.shape:
        return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)
    _check_contracted("inner", x, y, x.ndim - 1, y.ndim - 1)
    return contraction(x, y, (((x.ndim - 1,), (y.ndim - 1,)), ((), ())), precision,
                       preferred_element_type)


@fused
def _outer(x: Array, y: Array) -> Array:
    n, m = size_of(x.shape), size_of(y.shape)
    x = lax_shape.broadcast_in_dim(lax_shape.reshape(x, (n,)), (n, m), (0,))
    y = lax_shape.broadcast_in_dim(lax_shape.reshape(y, (m,)), (n, m), (1,))
    return multiply(x, y)


@fused(static=("out",))
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` and one of `b`; both are flattened.

    Args:
      a: array of n elements.
      b: array of m elements.
    Returns: [n, m] of the promoted dtype.

    >>> print(onp.outer(onp.array([1, 2]), onp.array([3, 4, 5])))
    [[ 3  4  5]
     [ 6  8 10]]
    """
    refuse_option("outer", out=out)
    return _outer(*_product_operands("outer", a, b))


@fused(static=("axes", "precision", "preferred_element_type", "out_sharding"), inline=True)
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
              *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: ShardingLike = None) -> Array:
    """The sum of products over pairs of axes.

    Args:
      a, b: arrays.
      axes: a number n: the last n axes of `a` with the first n of `b`; or a pair of an axis (or a
        list
        of them) of `a` and of `b`.

    Raises TypeError for sizes and for numbers of axes that do not fit.

    >>> print(onp.tensordot(onp.arange(6).reshape(2, 3), onp.array([[1, 0, 1]]), axes=(1, 1)))
    [[2]
     [8]]
    """
    x, y = _product_operands("tensordot", a, b)
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
    """The Kronecker product: `b` once for each element of `a`, multiplied by it.

    Args: a, b: arrays; axes are aligned at the right.
    Returns: An array of the promoted dtype whose sizes are the products of theirs.

    >>> print(onp.kron(onp.array([1, 10]), onp.array([[1, 2], [3, 4]])))
    [[ 1  2 10 20]
     [ 3  4 30 40]]
    """
    x, y = _product_operands("kron", a, b)
    ndim = builtins.max(x.ndim, y.ndim)
    x, y = (lax_shape.reshape(z, (1,) * (ndim - z.ndim) + z.shape) for z in (x, y))
    mixed = tuple([n for pair in zip(x.shape, y.shape) for n in pair])
    x, y = (lax_shape.broadcast_in_dim(z, mixed, tuple(range(i, 2 * ndim, 2)))
            for i, z in enumerate((x, y)))
    return lax_shape.reshape(multiply(x, y), [n * m for n, m in zip(mixed[::2], mixed[1::2])])


@fused(static=("axisa", "axisb", "axisc", "axis"))
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross product of vectors of 3 numbers; of 2 numbers, its last component alone.

    Args:
      a, b: arrays of 2 or 3 elements along an axis; the others broadcast. A vector of 2 counts as
        one
        in the plane.
      axisa, axisb: the axis of the vectors in each.
      axisc: the axis of the vectors in the result.
      axis: all three at once.
    Returns: An array of the promoted dtype, without the axis for vectors of 2.

    Raises ValueError for other sizes.

    >>> print(onp.cross(onp.array([1, 0, 0]), onp.array([0, 1, 0])))
    [0 0 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_dtypes("cross", a, b)
    x = lax_shape.move_axis(x, canonical_axis(axisa, x.ndim, "cross"), x.ndim - 1)
    y = lax_shape.move_axis(y, canonical_axis(axisb, y.ndim, "cross"), y.ndim - 1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(f"cross: operands {x.aval} and {y.aval} given; vectors of 2 or 3 numbers "
                         "are required;\n  name the axis that has them with axis, axisa or axisb.")
    shape = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    zero = literal(0, x.dtype)

    def parts(z: Array) -> Sequence[Array]:
        rows = [lax_shape.squeeze(slicing.slice_in_dim(z, i, i + 1, axis=z.ndim - 1),
                                  (z.ndim - 1,))
                for i in range(static_int(z.shape[-1], "cross", "size"))]
        return [broadcast_to(p, shape) for p in rows] + [
            broadcast_to(zero, shape)] * (3 - len(rows))

    flat = definitely_equal(x.shape[-1], 2) and definitely_equal(y.shape[-1], 2)
    (x0, x1, x2), (y0, y1, y2) = parts(x), parts(y)
    last = sub(mul(x0, y1), mul(x1, y0))
    if flat:
        return last
    rows = [sub(mul(x1, y2), mul(x2, y1)), sub(mul(x2, y0), mul(x0, y2)), last]
    out = slicing.concatenate([lax_shape.expand_dims(p, (len(shape),)) for p in rows], len(shape))
    return lax_shape.move_axis(out, out.ndim - 1, canonical_axis(axisc, out.ndim, "cross"))


def _at_least(name: str, x: Array, ndim: int, position: int) -> None:
    if x.ndim < ndim:
        raise ValueError(f"{name}: operand {position} is {x.aval}; at least {ndim} axes are "
                         "required.")


@as_ufunc
@fused(static=("precision", "preferred_element_type", *CORE), asking=True)
@core_options("(n),(n)->()")
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The inner product of vectors along an axis, with the first conjugated; the rest broadcasts.

    Args:
      x1, x2: arrays with as many elements along the axis.
      axis: the axis in both, the last by default; or `axes`, a list with each one's.
      keepdims: whether the axis stays, with size 1.
      out, dtype, casting, order, subok: as for a `ufunc`.
    Returns: An array without the axis, of the promoted dtype.

    Raises ValueError for scalars, TypeError for sizes that differ.

    >>> print(onp.vecdot(onp.array([[1, 2], [3, 4]]), onp.array([1, 10])))
    [21 43]
    """
    x, y = _product_operands("vecdot", x1, x2, (1, 1))
    _check_contracted("vecdot", x, y, x.ndim - 1, y.ndim - 1)
    row = lax_shape.expand_dims(conjugate(x), (x.ndim - 1,))
    column = lax_shape.expand_dims(y, (y.ndim,))
    product = matmul(row, column, precision=precision,
                     preferred_element_type=preferred_element_type)
    return lax_shape.squeeze(product, (product.ndim - 2, product.ndim - 1))


@as_ufunc
@fused(static=CORE, asking=True)
@core_options("(m,n),(n)->(m)")
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices and vectors; leading axes broadcast.

    Args:
      x1: array [..., n, k].
      x2: array [..., k].
      axes: which axes of both and of the result take part: a pair, an axis and an axis.
      out, dtype, casting, order, subok: as for a `ufunc`.
    Returns: An array [..., n] of the promoted dtype.

    Raises ValueError for too few axes, TypeError for sizes that differ.

    >>> print(onp.matvec(onp.array([[1, 2], [3, 4]]), onp.array([1, 10])))
    [21 43]
    """
    x, y = _product_operands("matvec", x1, x2, (2, 1))
    product = matmul(x, lax_shape.expand_dims(y, (y.ndim,)))
    return lax_shape.squeeze(product, (product.ndim - 1,))


@as_ufunc
@fused(static=CORE, asking=True)
@core_options("(n),(n,m)->(m)")
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of vectors, conjugated, and matrices; leading axes broadcast.

    Args:
      x1: array [..., k].
      x2: array [..., k, m].
      axes: which axes of both and of the result take part: an axis, a pair and an axis.
      out, dtype, casting, order, subok: as for a `ufunc`.
    Returns: An array [..., m] of the promoted dtype.

    Raises ValueError for too few axes, TypeError for sizes that differ.

    >>> print(onp.vecmat(onp.array([1, 10]), onp.array([[1, 2], [3, 4]])))
    [31 42]
    """
    x, y = _product_operands("vecmat", x1, x2, (1, 2))
    product = matmul(lax_shape.expand_dims(conjugate(x), (x.ndim - 1,)), y)
    return lax_shape.squeeze(product, (product.ndim - 2,))


@fused(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A diagonal over two axes: the elements whose second index is the first plus `offset`.

    Returns:
      An array without both axes and with the diagonal as its last; no view. Empty where the
      diagonal
      lies outside.

    Raises ValueError for rank below 2.

    >>> print(onp.diagonal(onp.array([[1, 2, 3], [4, 5, 6]]), offset=1))
    [2 6]
    """
    (x,) = array_args("diagonal", a)
    if len(x.shape) < 2:
        raise ValueError(f"diagonal: {x.aval} given; at least two axes are required.")
    first, second = canonical_axes((axis1, axis2), x.ndim, "diagonal")
    return diagonal_of(to_array(x), static_int(offset, "diagonal", "offset"), first, second)


@fused(static=("offset", "axis1", "axis2", "dtype", "out"))
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The sum of a diagonal over two axes.

    Args: dtype: of the result; by default as for `sum`: small integers become int32 or uint32.
    Returns: An array without both axes.

    Raises ValueError for rank below 2.

    >>> onp.trace(onp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse_option("trace", out=out)
    a, = array_args("trace", a)
    if a.ndim < 2:
        raise ValueError(f"trace: {a.aval} given; at least two axes are required.")
    elements = diagonal(a, offset, axis1, axis2)
    return reductions.sum(elements, -1, dtype)


complete_docstrings(globals(), {
    "precision": "of the products on accelerators; see `lax.Precision`.",
    "preferred_element_type": "dtype to accumulate in and to return.",
    "a": "array of at least two axes.",
    "offset": "which diagonal: 0 is the main one, positive ones lie above it.",
    "axis1, axis2": "the two axes.",
}, returns="An array with the axes left of `a`, then those left of `b`, of the promoted dtype.")
