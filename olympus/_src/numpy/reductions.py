"""Sums, products, extrema, truth and their positions over axes, and cumulative sums and products.

A public function checks its arguments and makes the axes canonical; a fused body of lax operations
follows, so that an eager call is one compiled program.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, Axis, DType, DTypeLike
from ..core.ir import Literal
from ..core.trace import literal
from ..jit.fused import fused
from ..lax import (
    arithmetic, creation as lax_creation, cumulative, reduce, shape as lax_shape, slicing,
)
from ..lax.arithmetic import mul, real
from ..lax.comparison import eq, ne
from ..lax.families import add
from ..types import dtypes
from ..types.shape import (
    broadcast_shapes, canonical_axes, canonical_axis, definitely_equal, prod as size_of,
)
from .options import mask_arg
from .promote import (
    BOOL, array_args, as_bool, broadcast_to, choose, convert, flag, refuse_option, to_array,
    warn_complex,
)

Axes = tuple[int, ...]


# Arguments ---------------------------------------------------------------------------------------

def reduction_args(name: str, a: ArrayLike, axis: int | Sequence[int] | None, keepdims: bool,
                   out: object = None) -> tuple[Array, Axes, bool]:
    """The operand as an array, its axes counted from the front, and whether these stay."""
    refuse_option(name, out=out)
    (x,) = array_args(name, a)
    if type(x) is Literal:      # which may be the result
        x = to_array(x)
    if type(keepdims) is not bool:
        keepdims = flag(name, "keepdims", keepdims)
    return x, canonical_axes(axis, len(x.shape), name), keepdims


def sum_dtype(dtype: DType, promote_integers: bool = True) -> DType:
    """The dtype that sums of a dtype have: small integers and booleans become 32-bit (or 64-)."""
    if dtype == BOOL:
        return dtypes.default_int()
    if promote_integers and dtypes.is_integer(dtype):
        widest = dtypes.default_int() if dtypes.scalar_kind(dtype) == "i" else (
            dtypes.canonical_dtype("uint64"))
        return max_dtype(dtype, widest)
    return dtype


def dtype_for(name: str, x: Array, dtype: DTypeLike) -> DType:
    """The dtype that was asked for; warns where it has no imaginary part and `x` has one."""
    wanted = dtypes.requested_dtype(name, dtype)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(wanted) and wanted != BOOL:
        warn_complex(name, x.aval, wanted)
    return wanted


def max_dtype(a: DType, b: DType) -> DType:
    """The wider of two dtypes."""
    return a if dtypes.itemsize_bits(a) >= dtypes.itemsize_bits(b) else b


def expand(x: Array, axes: Axes, keepdims: bool) -> Array:
    """A reduced array with the reduced axes back, of size 1, if so wanted."""
    return lax_shape.expand_dims(x, axes) if keepdims and axes else x


def masked(x: Array, where: Array | None, neutral: ArrayLike | None) -> Array:
    """`x` with a neutral element where the mask does not hold; the mask broadcasts."""
    if where is None:
        return x
    shape = broadcast_shapes(x.shape, where.shape)
    return choose(broadcast_to(where, shape), broadcast_to(x, shape),
                  broadcast_to(convert(neutral, x.dtype), shape))


def _scalar_initial(name: str, initial: ArrayLike | None) -> Array | None:
    if initial is None:
        return None
    (value,) = array_args(name, initial)
    if value.shape:
        raise ValueError(f"{name}: initial value must be a scalar. Got array of shape "
                         f"{value.shape}; reduce it first.")
    return value


# Sums and products -------------------------------------------------------------------------------

def _total(op: Callable[..., Array], combine: Callable[..., Array], neutral: int, x: Array,
           initial: ArrayLike | None, where: Array | None, axes: Axes, keepdims: bool,
           dtype: DType) -> Array:
    accumulated = dtypes.wide_dtype(dtype)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype) and dtype != BOOL:
        x = real(x)
    x = masked(convert(x, accumulated), where, literal(neutral, accumulated))
    total = op(x, axes) if axes else x
    if initial is not None:
        start = broadcast_to(convert(initial, accumulated), total.shape)
        # Without elements `initial` itself is the result: -0.0 and the neutral 0.0 add to 0.0.
        total = to_array(start) if definitely_equal(size_of(x.shape), 0) else combine(total, start)
    return convert(expand(total, axes, keepdims), dtype)


@fused(static=("axes", "keepdims", "dtype"))
def _sum_or_any(x: Array, initial: Array | None, where: Array | None, *, axes: Axes, keepdims: bool,
                dtype: DType) -> Array:
    if dtype == BOOL:
        return expand(_truth(reduce.reduce_or, False, x, where, axes), axes, keepdims)
    return _total(reduce_sum, add, 0, x, initial, where, axes, keepdims, dtype)


@fused(static=("axes", "keepdims", "dtype"))
def _prod(x: Array, initial: ArrayLike | None, where: Array | None, *, axes: Axes,
          keepdims: bool, dtype: DType) -> Array:
    if dtype == BOOL:
        return expand(_truth(reduce.reduce_and, True, x, where, axes), axes, keepdims)
    return _total(reduce.reduce_prod, mul, 1, x, initial, where, axes, keepdims, dtype)


def reduce_sum(x: Array, axes: Axes) -> Array:
    """lax's sum; the operand itself if there are no axes."""
    return lax_shape.reduce_sum(x, axes) if axes else x


@fused(static=("axis", "dtype", "out", "keepdims", "initial", "promote_integers"))
def sum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
        promote_integers: bool = True) -> Array:
    """The sum of the elements over axes; 0 of none.

    Booleans and small integers add up in int32 or uint32 (64 bits with x64), unless
    `promote_integers` is false; 16-bit floats are accumulated in float32 and rounded once.

    Args:
      a: array of numbers or booleans. Unlike in NumPy lists are refused.
      dtype: dtype of the result; elements are converted before they are added.
    Returns: `a` without the reduced axes.

    >>> onp.sum(onp.ones((2, 3)), axis=0)
    Array([2., 2., 2.], dtype=float32)
    >>> onp.sum(onp.array([200, 100], onp.uint8))
    Array(300, dtype=uint32)
    """
    x, axes, keepdims = reduction_args("sum", a, axis, keepdims, out)
    dtype = (sum_dtype(x.dtype, promote_integers) if dtype is None
             else dtype_for("sum", x, dtype))
    return _sum_or_any(x, _scalar_initial("sum", initial), mask_arg("sum", where), axes=axes,
                       keepdims=keepdims, dtype=dtype)


@fused(static=("axis", "dtype", "out", "keepdims", "initial", "promote_integers"))
def prod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
         keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
         promote_integers: bool = True) -> Array:
    """The product of the elements over axes; 1 of none.

    Its gradient is exact where elements are 0, too.

    Args: dtype: dtype of the result; elements are converted before they are multiplied. By default
        as for `sum`: small integers become int32 or uint32 (64 bits with x64).
    Returns: `a` without the reduced axes.

    >>> onp.prod(onp.array([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int32)
    """
    x, axes, keepdims = reduction_args("prod", a, axis, keepdims, out)
    dtype = (sum_dtype(x.dtype, promote_integers) if dtype is None
             else dtype_for("prod", x, dtype))
    return _prod(x, _scalar_initial("prod", initial), mask_arg("prod", where), axes=axes,
                 keepdims=keepdims, dtype=dtype)


# Truth -------------------------------------------------------------------------------------------

def _truth(op: Callable[..., Array], neutral: bool, x: Array, where: Array | None, axes: Axes
           ) -> Array:
    x = masked(as_bool(x), where, literal(neutral, BOOL))
    return op(x, axes) if axes else x


@fused(static=("axes", "keepdims"))
def _all(x: Array, where: Array | None, *, axes: Axes, keepdims: bool) -> Array:
    return expand(_truth(reduce.reduce_and, True, x, where, axes), axes, keepdims)


@fused(static=("axes", "keepdims"))
def _any(x: Array, where: Array | None, *, axes: Axes, keepdims: bool) -> Array:
    return expand(_truth(reduce.reduce_or, False, x, where, axes), axes, keepdims)


@fused(static=("axis", "out", "keepdims"))
def all(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether no element over axes is zero; True of an empty axis. NaN is not zero.

    Args: a: array of any dtype.
    Returns: bool: `a` without the reduced axes.

    >>> print(onp.all(onp.array([[1, 0], [2, 3]]), axis=1))
    [False  True]
    """
    x, axes, keepdims = reduction_args("all", a, axis, keepdims, out)
    return _all(x, mask_arg("all", where), axes=axes, keepdims=keepdims)


@fused(static=("axis", "out", "keepdims"))
@described_like(all)
def any(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether some element over axes is not zero; False of an empty axis. NaN is not zero.

    >>> print(onp.any(onp.array([[0, 0], [2, 0]]), axis=1))
    [False  True]
    """
    x, axes, keepdims = reduction_args("any", a, axis, keepdims, out)
    return _any(x, mask_arg("any", where), axes=axes, keepdims=keepdims)


@fused(static=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements over axes that are not zero. NaN is not zero.

    Args: a: array of any dtype.

    Returns:
      int32 (int64 with x64): `a` without the reduced axes. NumPy gives a Python int for all axes.

    >>> onp.count_nonzero(onp.array([[1, 0], [2, 3]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    x, axes, keepdims = reduction_args("count_nonzero", a, axis, keepdims)
    return _sum_or_any(as_bool(x), None, None, axes=axes, keepdims=keepdims,
                       dtype=dtypes.default_int())


# Extrema -----------------------------------------------------------------------------------------

@fused(static=("axes", "keepdims", "largest"))
def _extremum(x: Array, initial: ArrayLike | None, where: Array | None, *, axes: Axes,
              keepdims: bool, largest: bool) -> Array:
    from_reduce = reduce.reduce_max if largest else reduce.reduce_min
    combine = arithmetic.max if largest else arithmetic.min
    x = masked(convert(x, x.dtype) if x.aval.weak_type else x, where, initial)
    extremum = from_reduce(x, axes) if axes else x
    if initial is not None:
        extremum = combine(extremum, broadcast_to(convert(initial, x.dtype), extremum.shape))
    return expand(extremum, axes, keepdims)


def _check_extremum(name: str, x: Array, axes: Axes, initial: ArrayLike | None,
                    where: ArrayLike | None) -> None:
    if initial is not None:
        return
    if builtins.any(definitely_equal(x.shape[i], 0) for i in axes):
        raise ValueError(f"{name}: {x.aval} given; zero-size array to reduction operation {name} "
                         "which has no identity; pass initial.")
    if where is not None:
        raise ValueError(f"{name}: where given without initial; reduction operation {name} has no "
                         "identity; pass initial.")


def _extreme(name: str, largest: bool, a: ArrayLike, axis: int | Sequence[int] | None, out: None,
             keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Array:
    x, axes, keepdims = reduction_args(name, a, axis, keepdims, out)
    _check_extremum(name, x, axes, initial, where)
    return _extremum(x, _scalar_initial(name, initial), mask_arg(name, where), axes=axes,
                     keepdims=keepdims, largest=largest)


@fused(static=("axis", "out", "keepdims", "initial"))
def max(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest element over axes; NaN if any is NaN.

    Complex numbers are ordered by real, then imaginary part. Equal largest elements share the
    gradient equally.

    Args: initial: a scalar that takes part, and the result of no elements.
    Returns: `a` without the reduced axes, of the same dtype.

    Raises ValueError for no elements, or `where`, without `initial`.

    >>> onp.max(onp.array([[1, 5], [7, 2]]), axis=1)
    Array([5, 7], dtype=int32)
    """
    return _extreme("max", True, a, axis, out, keepdims, initial, where)


@fused(static=("axis", "out", "keepdims", "initial"))
@described_like(max)
def min(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest element over axes; NaN if any is NaN.

    Complex numbers are ordered by real, then imaginary part. Equal smallest elements share the
    gradient equally.

    >>> onp.min(onp.array([[1, 5], [7, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _extreme("min", False, a, axis, out, keepdims, initial, where)


amax, amin = max, min


@fused(static=("axis", "out", "keepdims"))
def minmax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> tuple[Array, Array]:
    """The pair of the smallest and the largest element over axes.

    NumPy has no function of this name.

    Args: axis, out, keepdims, initial, where: as for `min`.
    Returns: (`min`, `max`) of those arguments.

    >>> low, high = onp.minmax(onp.array([[1, 5], [7, 2]]), axis=0)
    >>> print(low, high)
    [1 2] [7 5]
    """
    return (min(a, axis, out, keepdims, initial, where),
            max(a, axis, out, keepdims, initial, where))


# Positions ---------------------------------------------------------------------------------------

@fused(static=("axis", "keepdims", "largest"))
def _position(x: Array, *, axis: int | None, keepdims: bool, largest: bool) -> Array:
    ndim = len(x.shape)
    if dtypes.is_complex(x.dtype):
        extreme = _extremum(x, None, None, axes=tuple(range(ndim)) if axis is None else (axis,),
                            keepdims=True, largest=largest)
        x = choose(broadcast_to(ne(extreme, extreme), x.shape), ne(x, x),
                   eq(x, broadcast_to(extreme, x.shape)))
        largest = True      # of booleans: the first that is the extremum
    op = reduce.argmax if largest else reduce.argmin
    if axis is None:
        place = op(lax_shape.reshape(broadcast_to(x, x.shape), (size_of(x.shape),)), 0,
                   dtypes.default_int())
        return expand(place, tuple(range(ndim)), keepdims)
    return expand(op(x, axis, dtypes.default_int()), (axis,), keepdims)


def _arg_extreme(name: str, largest: bool, a: ArrayLike, axis: int | None, out: None,
                 keepdims: bool | None) -> Array:
    refuse_option(name, out=out)
    (x,) = array_args(name, a)
    if axis is not None:
        axis = canonical_axis(axis, len(x.shape), name)
    if (size_of(x.shape) if axis is None else x.shape[axis]) == 0:
        raise ValueError(f"{name}: {x.aval} given; attempt to get {name} of an empty sequence; at "
                         "least one element is required.")
    return _position(x, axis=axis, keepdims=flag(name, "keepdims", keepdims), largest=largest)


@fused(static=("axis", "out", "keepdims"))
def argmax(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """The index of the first largest element along an axis.

    The first NaN counts as largest. The index has no gradient.

    Args:
      axis: the axis; None counts all elements in row-major order.
      keepdims: whether the reduced axis (or all of them) stays, with size 1.
    Returns: int32 (int64 with x64): `a` without the axis.

    Raises ValueError if there are no elements.

    >>> onp.argmax(onp.array([[1, 5, 5], [7, 2, 0]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return _arg_extreme("argmax", True, a, axis, out, keepdims)


@fused(static=("axis", "out", "keepdims"))
@described_like(argmax)
def argmin(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """The index of the first smallest element along an axis.

    The first NaN counts as smallest. The index has no gradient.

    >>> onp.argmin(onp.array([[1, 0, 0], [7, 2, 9]]), axis=1)
    Array([1, 1], dtype=int32)
    """
    return _arg_extreme("argmin", False, a, axis, out, keepdims)


@fused(static=("axis", "keepdims", "largest"))
def _nan_position(x: Array, *, axis: int | None, keepdims: bool, largest: bool) -> Array:
    place = _position(without_nan(x, _before_all(x, largest)), axis=axis, keepdims=keepdims,
                      largest=largest)
    axes = tuple(range(len(x.shape))) if axis is None else (axis,)
    none = expand(is_nan(_number_extremum(x, axes, largest)), axes, keepdims)
    return choose(none, literal(-1, place.dtype), place)


def is_nan(x: Array) -> Array:
    """Whether elements of an inexact array are NaN; complex ones in either part."""
    return ne(x, x)


@fused(static=("axis", "out", "keepdims"))
@described_like(argmax)
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None,
              keepdims: bool | None = None) -> Array:
    """The index of the first largest element that is not NaN along an axis.

    Returns:
      int32 (int64 with x64): `a` without the axis; -1 where all are NaN, for which NumPy raises.

    >>> onp.nanargmax(onp.array([[onp.nan, 3., 4.], [onp.nan, onp.nan, onp.nan]]), axis=1)
    Array([ 2, -1], dtype=int32)
    """
    return _nan_arg_extreme("nanargmax", True, a, axis, out, keepdims)


@fused(static=("axis", "out", "keepdims"))
@described_like(argmax)
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None,
              keepdims: bool | None = None) -> Array:
    """The index of the first smallest element that is not NaN along an axis.

    Returns:
      int32 (int64 with x64): `a` without the axis; -1 where all are NaN, for which NumPy raises.

    >>> onp.nanargmin(onp.array([[onp.nan, 3., 4.], [onp.nan, onp.nan, onp.nan]]), axis=1)
    Array([ 1, -1], dtype=int32)
    """
    return _nan_arg_extreme("nanargmin", False, a, axis, out, keepdims)


def _nan_arg_extreme(name: str, largest: bool, a: ArrayLike, axis: int | None, out: None,
                     keepdims: bool | None) -> Array:
    (x,) = array_args(name, a)
    if not dtypes.is_inexact(x.dtype) or not x.shape or 0 in x.shape:
        return _arg_extreme(name[3:], largest, x, axis, out, keepdims)
    refuse_option(name, out=out)
    axis = None if axis is None else canonical_axis(axis, len(x.shape), name)
    return _nan_position(x, axis=axis, keepdims=flag(name, "keepdims", keepdims), largest=largest)


# Without NaN -------------------------------------------------------------------------------------

def without_nan(x: Array, value: complex) -> Array:
    """`x` with NaN replaced by a scalar; dtypes without NaN as they are."""
    if not dtypes.is_inexact(x.dtype):
        return x
    return choose(is_nan(x), literal(value, x.dtype, x.aval.weak_type), x)


@fused(static=("axis", "dtype", "out", "keepdims"))
def nansum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """The sum over axes with NaN counted as 0, also in the gradient.

    Args: a: array of numbers or booleans; complex elements are NaN if either part is.
    Returns: `a` without the reduced axes; 0 where all are NaN.

    >>> onp.nansum(onp.array([[1., onp.nan], [onp.nan, onp.nan]]), axis=1)
    Array([1., 0.], dtype=float32)
    """
    (x,) = array_args("nansum", a)
    return sum(without_nan(x, 0), axis, dtype, out, keepdims, initial, where)


@fused(static=("axis", "dtype", "out", "keepdims"))
def nanprod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None) -> Array:
    """The product over axes with NaN counted as 1.

    Args: a: array of numbers or booleans; complex elements are NaN if either part is.
    Returns: `a` without the reduced axes; 1 where all are NaN.

    >>> onp.nanprod(onp.array([[2., onp.nan], [onp.nan, onp.nan]]), axis=1)
    Array([2., 1.], dtype=float32)
    """
    (x,) = array_args("nanprod", a)
    return prod(without_nan(x, 1), axis, dtype, out, keepdims, initial, where)


@fused(static=("axes", "keepdims", "largest"))
def _nan_extremum(x: Array, initial: ArrayLike | None, where: Array | None, *, axes: Axes,
                  keepdims: bool, largest: bool) -> Array:
    if initial is not None:
        x = without_nan(x, _before_all(x, largest))
        return _extremum(x, initial, where, axes=axes, keepdims=keepdims, largest=largest)
    return expand(_number_extremum(x, axes, largest), axes, keepdims)


def _before_all(x: Array, largest: bool) -> complex:
    """A number that no element precedes as an extremum: not all dtypes have infinities."""
    return (reduce.lowest if largest else reduce.highest)(x.dtype)


def _number_extremum(x: Array, axes: Axes, largest: bool) -> Array:
    """The extremum of the elements that are not NaN; NaN if there is none."""
    op = reduce.reduce_number_max_p if largest else reduce.reduce_number_min_p
    x = convert(x, x.dtype) if x.aval.weak_type else x
    return op.bind(x, axes=axes) if axes else x


def _nan_extreme(name: str, largest: bool, a: ArrayLike, axis: Axis, out: None, keepdims: bool,
                 initial: ArrayLike | None, where: ArrayLike | None) -> Array:
    x, axes, keepdims = reduction_args(name, a, axis, keepdims, out)
    if not dtypes.is_inexact(x.dtype):
        return _extreme(name[3:], largest, x, axis, out, keepdims, initial, where)
    _check_extremum(name, x, axes, initial, where)
    return _nan_extremum(x, _scalar_initial(name, initial), mask_arg(name, where), axes=axes,
                         keepdims=keepdims, largest=largest)


@fused(static=("axis", "out", "keepdims"))
@described_like(max)
def nanmax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest element over axes that is not NaN.

    Returns: `a` without the reduced axes; NaN (without NumPy's warning) where all are NaN and there
      is no `initial`.

    >>> onp.nanmax(onp.array([[1., onp.nan], [onp.nan, onp.nan]]), axis=1)
    Array([ 1., nan], dtype=float32)
    """
    return _nan_extreme("nanmax", True, a, axis, out, keepdims, initial, where)


@fused(static=("axis", "out", "keepdims"))
@described_like(max)
def nanmin(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest element over axes that is not NaN.

    Returns: `a` without the reduced axes; NaN (without NumPy's warning) where all are NaN and there
      is no `initial`.

    >>> onp.nanmin(onp.array([[1., onp.nan], [onp.nan, onp.nan]]), axis=1)
    Array([ 1., nan], dtype=float32)
    """
    return _nan_extreme("nanmin", False, a, axis, out, keepdims, initial, where)


# Cumulative --------------------------------------------------------------------------------------

@fused(static=("axis", "dtype", "product"))
def _cumulate(x: Array, *, axis: int | None, dtype: DType, product: bool) -> Array:
    if axis is None:
        x, axis = lax_shape.reshape(broadcast_to(x, x.shape), (size_of(x.shape),)), 0
    op = cumulative.cumprod if product else cumulative.cumsum
    if dtype == BOOL:
        counts = op(convert(as_bool(x), np.dtype("int32")), axis)
        return as_bool(counts)
    return convert(op(convert(x, dtype), axis), dtype)


def _cumulative(name: str, product: bool, a: ArrayLike, axis: int | None, dtype: DTypeLike | None,
                out: None) -> Array:
    refuse_option(name, out=out)
    (x,) = array_args(name, a)
    axis = None if axis is None else canonical_axis(axis, len(x.shape), name)
    if dtype is None:
        dtype = dtypes.default_int() if x.dtype == BOOL else x.dtype
    return _cumulate(x, axis=axis, dtype=dtype_for(name, x, dtype), product=product)


@fused(static=("axis", "dtype", "out"))
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
           out: None = None) -> Array:
    """Running sums along an axis: element i is the sum of the first i + 1.

    Integers keep their dtype and wrap around in it, where NumPy's widen; `cumulative_sum` widens.

    Args:
      axis: the axis; None runs over all elements in row-major order.
      dtype: dtype of the result; by default `a`'s, int32 (int64 with x64) for booleans.

    >>> onp.cumsum(onp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    Array([[ 1,  3,  6],
           [ 4,  9, 15]], dtype=int32)
    """
    return _cumulative("cumsum", False, a, axis, dtype, out)


@fused(static=("axis", "dtype", "out"))
@described_like(cumsum)
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
            out: None = None) -> Array:
    """Running products along an axis: element i is the product of the first i + 1.

    Integers keep their dtype and wrap around in it, where NumPy's widen; `cumulative_prod` widens.

    >>> onp.cumprod(onp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    Array([[  1,   2,   6],
           [  4,  20, 120]], dtype=int32)
    """
    return _cumulative("cumprod", True, a, axis, dtype, out)


@fused(static=("axis", "dtype", "out"))
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
              out: None = None) -> Array:
    """Running sums along an axis with NaN counted as 0.

    Args:
      axis: the axis; None runs over all elements in row-major order.
      dtype: dtype of the result, by default as for `cumsum`.

    >>> print(onp.nancumsum(onp.array([1., onp.nan, 3.])))
    [1. 1. 4.]
    """
    (x,) = array_args("nancumsum", a)
    return _cumulative("nancumsum", False, without_nan(x, 0), axis, dtype, out)


@fused(static=("axis", "dtype", "out"))
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
               out: None = None) -> Array:
    """Running products along an axis with NaN counted as 1.

    Args:
      axis: the axis; None runs over all elements in row-major order.
      dtype: dtype of the result, by default as for `cumprod`.

    >>> print(onp.nancumprod(onp.array([2., onp.nan, 3.])))
    [2. 2. 6.]
    """
    (x,) = array_args("nancumprod", a)
    return _cumulative("nancumprod", True, without_nan(x, 1), axis, dtype, out)


def _cumulative_api(name: str, product: bool, x: ArrayLike, axis: int | None,
                    dtype: DTypeLike | None, initial: bool) -> Array:
    (x,) = array_args(name, x)
    ndim = len(x.shape)
    if ndim == 0 or (axis is None and ndim != 1):
        raise ValueError(f"{name}: {x.aval} with axis {axis} given; a vector, or an axis of an "
                         "array, is required; pass axis.")
    axis = canonical_axis(0 if axis is None else axis, ndim, name)
    if dtype is None:
        dtype = sum_dtype(x.dtype)
    cumulated = _cumulate(x, axis=axis, dtype=dtypes.requested_dtype(name, dtype), product=product)
    if not initial:
        return cumulated
    first = lax_creation.full(
        (*x.shape[:axis], 1, *x.shape[axis + 1:]), int(product), cumulated.dtype)
    return slicing.concatenate([first, cumulated], axis)


@fused(static=("axis", "dtype", "include_initial", "out"))
def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                   include_initial: bool = False, out: None = None) -> Array:
    """Running sums along an axis, as the array API standard has them.

    Args:
      axis: the axis; required unless `x` is a vector.
      dtype: dtype of the result; by default as for `sum`, so small integers widen. include_initial:
      whether a 0 comes first, so that the axis grows by one.
    Returns: An array of the shape of `x`, but for the axis that `include_initial` makes longer.

    Raises ValueError for scalars, and for no axis given with several.

    >>> onp.cumulative_sum(onp.array([1, 2, 3], onp.int8), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    refuse_option("cumulative_sum", out=out)
    return _cumulative_api("cumulative_sum", False, x, axis, dtype, include_initial)


@fused(static=("axis", "dtype", "include_initial", "out"))
@described_like(cumulative_sum)
def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                    include_initial: bool = False, out: None = None) -> Array:
    """Running products along an axis, as the array API standard has them.

    Args:
      dtype: dtype of the result; by default as for `prod`, so small integers widen.
      include_initial: whether a 1 comes first, so that the axis grows by one.

    >>> onp.cumulative_prod(onp.array([1, 2, 3], onp.int8), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    refuse_option("cumulative_prod", out=out)
    return _cumulative_api("cumulative_prod", True, x, axis, dtype, include_initial)


complete_docstrings(globals(), {
    "axis": "the axis, or a tuple of axes, to reduce; all of them if None.",
    "a": "array of numbers or booleans.",
    "keepdims": "whether reduced axes stay, with size 1.",
    "where": "booleans that broadcast with `a`; only elements where they are True count.",
    "initial": "a scalar to start from.",
    "dtype": "dtype of the result; by default that of `sum`.",
    "promote_integers": "whether integers narrower than the default ones are widened.",
    "x": "array of numbers or booleans with at least one axis.",
}, returns="An array of the shape of `a`, or a vector if `axis` is None.")
