"""Ranges of numbers and the grids that they span; both written as slices: mgrid, ogrid, r_, c_."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal as OneOf, overload

import numpy as np

from ..base.docstrings import described_like
from ..base.errors import ConcretizationTypeError
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DType, DTypeLike, R, Shape
from ..control.bodies import check_callable
from ..core.ir import Literal
from ..core.trace import Tracer, describe, literal
from ..devices.array import array_from_numpy
from ..jit.fused import begin_with, fused, named
from ..lax import arithmetic, creation as lax_creation, shape as lax_shape, slicing, transcendental
from ..lax.arithmetic import div, floor, mul, sub
from ..lax.bits import bitwise_and, bitwise_or
from ..lax.comparison import eq, lt
from ..lax.families import add
from ..lax.transcendental import exp, log
from ..types import dtypes
from ..types.shape import (
    SymbolicDim, broadcast_shapes, canonical_axis, canonical_shape, definitely_equal, floor_div,
    is_positive, maximum, prod, static_int,
)
from ..types.sharding import DeviceLike, ShardingLike
from .conditions import where
from .creation import asarray, check_layout, full_like, placed, zeros
from .indexing import concrete
from .joining import concatenate, stack
from .promote import BOOL, array_args, choose, convert, promote, to_array

# Ranges ------------------------------------------------------------------------------------------

@api_boundary
def arange(start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike | None = None,
           dtype: DTypeLike | None = None, *, device: DeviceLike = None,
           out_sharding: ShardingLike = None, like: ArrayLike | None = None) -> Array:
    """The numbers from `start` (0 if only one argument is given) up to, not including, `stop`.

    All bounds must be concrete, because they decide the shape. Under jit use `lax.iota`, or mark
    them
    static.

    Args:
      start, stop, step: real numbers.
      dtype: of the result; by default the bounds', at least int32 (int64 with x64).
      device: a device or sharding to put the result on.
      out_sharding: how the result is cut over devices; see `lax.with_sharding_constraint`.
      like: None or an array of olympus; it has no effect.
    Returns: A vector of ceil((stop - start) / step) numbers, start + i * step. For floats
      `linspace` is the safer choice: rounding decides whether the last one is below `stop`.

    Raises ConcretizationTypeError for traced bounds, ValueError for complex ones and for a step of
    0.

    >>> onp.arange(2, 5)
    Array([2, 3, 4], dtype=int32)
    >>> print(onp.arange(0, 1, 0.25))
    [0.   0.25 0.5  0.75]
    """
    if like is not None:
        check_layout("arange", None, like)
    if any(isinstance(x, SymbolicDim) for x in (start, stop, step)):
        return placed("arange", _symbolic_range(start, stop, step, dtype), device, out_sharding)
    bounds = [_concrete("arange", x) for x in (start, stop, step) if x is not None]
    if start is None:
        raise TypeError("arange: start is None; a number is required.")
    if any(isinstance(x, complex) for x in bounds):
        raise ValueError("arange: complex bounds given; real numbers are required.")
    kind = (dtypes.result_type(int, *[x for x in (start, stop, step) if x is not None])
            if dtype is None else dtypes.requested_dtype("arange", dtype))
    first, last = (0, bounds[0]) if stop is None else (bounds[0], bounds[1])
    by = 1 if step is None else bounds[-1]
    if by == 0:
        raise ValueError("arange: step 0 given; another number is required.")
    try:
        count = max(0, math.ceil((last - first) / by))
    except (ValueError, OverflowError):
        raise ValueError(f"arange: bounds {first} and {last}, step {by} given; finite numbers are "
                         "required.") from None
    if dtypes.is_bool(kind) and count > 2:
        raise TypeError(f"arange: dtype bool given for {count} numbers; a numeric dtype is "
                        "required; compare the numbers with something.")
    if first == 0 and by == 1 and dtypes.is_numeric(kind):
        return placed("arange", lax_creation.iota(kind, count), device, out_sharding)
    wide = np.float64 if isinstance(first + by, float) else np.int64
    values = first + np.arange(count, dtype=wide) * by
    return placed("arange", array_from_numpy(dtypes.converted(values, kind)), device, out_sharding)


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: DTypeLike | None) -> Array:
    """`arange` where a bound is a symbolic dimension, and none is a float."""
    first, last = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    if not all(isinstance(x, (int, np.integer, SymbolicDim)) for x in (first, last, by)):
        raise ValueError(f"arange: start {start}, stop {stop}, step {step} given; with a symbolic "
                         "dimension they must be either dimension expressions or integers; "
                         "convert them, or scale an integer range.")
    if definitely_equal(by, 0):
        raise ValueError(f"arange: start {start}, stop {stop} given; arange has step == 0; another "
                         "number is required.")
    forward = is_positive(by, "arange: the step")
    gap, room = (by, last - first) if forward else (-by, first - last)
    dtype = dtypes.default_int() if dtype is None else dtypes.requested_dtype("arange", dtype)
    numbers = lax_creation.iota(dtype, floor_div(maximum(0, room + gap - 1), gap))
    if not definitely_equal(by, 1):
        numbers = numbers * by
    numbers = numbers if definitely_equal(first, 0) else numbers + first
    return numbers.astype(dtype)


def _concrete(name: str, x: ArrayLike) -> float:
    """A bound as a Python number."""
    if isinstance(x, Tracer):
        value = x._known_value()
        if value is None:
            raise ConcretizationTypeError(
                f"{name}: {describe(x)} given; the number of elements must be known while tracing; "
                f"{'mark the argument static, or ' * x._may_be_static()}use lax.iota with a fixed "
                "size.")
        x = value
    try:
        value = np.asarray(x)
    except TypeError as error:
        begin_with(arange, error)
        raise
    if value.ndim or value.dtype.kind not in "biufcV":
        raise TypeError(f"{name}: {x!r} given; a number is required.")
    return value.item() if value.dtype.kind != "V" else float(value)


@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             retstep: OneOf[False] = False, dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike = None) -> Array: ...


@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *,
             retstep: OneOf[True], dtype: DTypeLike | None = None, axis: int = 0,
             device: DeviceLike = None) -> tuple[Array, Array]: ...


@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             retstep: bool = False, dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike = None) -> Array | tuple[Array, Array]: ...


@named
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             retstep: bool = False, dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike = None) -> Array | tuple[Array, Array]:
    """Numbers from `start` to `stop`, evenly spaced; both may be arrays, also traced.

    Args:
      start, stop: numbers or arrays that broadcast.
      num: how many, a static int.
      endpoint: whether `stop` is the last number.
      retstep: whether to return the spacing too.
      dtype: of the result; inexact by default. Integers are rounded down: of bounds that are
        numbers or NumPy's arrays from float64, as NumPy's are, of other integers exactly, and of
        other floats from the dtype of both.
      axis: the result's axis along which the numbers lie.
      device: a device or sharding to put the result on.
    Returns: An array with an axis more than the bounds; with `retstep` the pair of it and the
      spacing, NaN if there is none.

    Raises ValueError for a negative `num`.

    >>> print(onp.linspace(0, 1, 5))
    [0.   0.25 0.5  0.75 1.  ]
    """
    dtype = None if dtype is None else dtypes.requested_dtype("linspace", dtype)
    if dtype is not None and dtypes.is_integer(dtype) and _is_real(start) and _is_real(stop):
        num = _point_count(num)
        with np.errstate(all="ignore"):
            whole, step = np.linspace(start, stop, num, endpoint, retstep=True, dtype=dtype,
                                      axis=axis)
        step = asarray(step, dtypes.default_float())
        numbers: Any = (asarray(whole), step) if retstep else asarray(whole)
    else:
        numbers = _linspace(start, stop, num, endpoint, retstep, dtype, axis)
    if retstep:
        return placed("linspace", numbers[0], device, None), numbers[1]
    return placed("linspace", numbers, device, None)


def _point_count(num: int) -> int:
    num = static_int(num, "linspace", "num")
    if num < 0:
        raise ValueError(f"linspace: num {num} given; it is not negative.")
    return num


def _is_real(x: ArrayLike) -> bool:
    """Whether a bound is known on the host, where integers are rounded down as NumPy's are."""
    return type(x) in (int, float) or (isinstance(x, (np.ndarray, np.generic))
                                       and x.dtype.kind in "iuf")


@fused(static=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: bool,
              dtype: DType | None, axis: int) -> Any:
    num = _point_count(num)
    first, last = promote("linspace", start, stop, inexact=True)
    computed = first.dtype
    dtype = computed if dtype is None else dtype
    first, last = (_strong(x) for x in (first, last))
    shape = broadcast_shapes(first.shape, last.shape)
    first, last = (_lead(x, shape) for x in (first, last))
    divisions = num - 1 if endpoint else num
    gap = sub(last, first)
    step = (div(gap, literal(divisions, gap.dtype)) if divisions > 0
            else full_like(gap, np.nan))
    real = dtypes.to_real_dtype(computed)
    weights = convert(lax_creation.broadcasted_iota(real, (num, *shape), 0), computed)
    if divisions > 0:
        weights = div(weights, literal(divisions, computed))
    numbers = add(mul(_lead(first, (num, *shape)), sub(literal(1, computed), weights)),
                  mul(_lead(last, (num, *shape)), weights))
    if endpoint and num > 1:
        numbers = slicing.concatenate([slicing.slice_in_dim(numbers, 0, num - 1),
                                       lax_shape.expand_dims(last, (0,))], 0)
    elif num == 1:
        numbers = lax_shape.expand_dims(first, (0,))
    if dtypes.is_integer(dtype) and dtypes.is_floating(computed):
        whole = _integer_points(start, stop, shape, num, divisions)
        numbers = floor(numbers) if whole is None else whole
    numbers = lax_shape.move_axis(convert(numbers, dtype), 0, canonical_axis(axis, len(shape) + 1))
    return (numbers, step) if retstep else numbers


def _integer_points(start: ArrayLike, stop: ArrayLike, shape: tuple[int, ...], num: int,
                    divisions: int) -> Array | None:
    """Points between integers, exactly rounded down; None where a bound is not of integers."""
    first, last = promote("linspace", start, stop)
    dtype = first.dtype
    if not dtypes.is_integer(dtype) or not 0 < divisions < 2**16:
        return None
    if dtype.itemsize < 4:
        dtype = np.dtype(np.int32)
    if dtype.kind == "u":
        return None
    ends = [_lead(_strong(convert(x, dtype)), (num, *shape)) for x in (first, last)]
    return integer_ramp(ends[0], ends[1], divisions, np.arange(num).reshape(-1, *[1] * len(shape)))


def integer_ramp(first: Array, last: Array, divisions: int, steps: np.ndarray) -> Array:
    """first + (last - first) * steps / divisions, rounded down, of int32 or int64. A quotient of
    floats may be a little less than the integer that it stands for.
    """
    unsigned = np.dtype(f"u{first.dtype.name}")
    k, n = steps.astype(unsigned), unsigned.type(divisions)
    rises = last >= first
    # The distance fits the unsigned dtype, and so does `rest * k`: divisions are below 2 ** 16.
    distance = convert(where(rises, last - first, first - last), unsigned)
    whole, rest = distance // n, distance % n
    up = convert(whole * k + rest * k // n, first.dtype)
    down = convert(whole * k + (rest * k + n - unsigned.type(1)) // n, first.dtype)
    return where(rises, first + up, first - down)


def _strong(x: Array) -> Array:
    return convert(x, x.dtype, False)


def _of_rank(x: ArrayLike, *others: ArrayLike) -> Array:
    """`x` with as many axes as the one of all that has most."""
    ranks = [len(getattr(a, "shape", ())) for a in (x, *others)]
    return lax_shape.expand_dims(x, range(max(ranks) - ranks[0]))


def _lead(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` broadcast to a shape that its own ends; literals become arrays."""
    if x.shape == shape and type(x) is not Literal:
        return x
    offset = len(shape) - len(x.shape)
    return lax_shape.broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(range(offset, len(shape))), sharding=None)


@fused(static=("num", "endpoint", "dtype", "axis"))
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             base: ArrayLike = 10.0, dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """Powers whose exponents are evenly spaced: base**linspace(start, stop).

    Args:
      start, stop: the exponents of the ends, numbers or arrays that broadcast.
      num: how many, a static int.
      endpoint: whether base**stop is the last number.
      base: number, or array that broadcasts with the bounds.
      dtype: of the result; inexact by default.
      axis: the result's axis along which the numbers lie.
    Returns: An array with an axis more than the bounds.

    >>> print(onp.logspace(0, 2, 3))
    [  1.  10. 100.]
    """
    if getattr(base, "shape", ()):
        start, base = _of_rank(start, stop, base), _of_rank(base, start, stop)
        base = lax_shape.expand_dims(base, (canonical_axis(axis, base.ndim + 1),))
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    numbers = transcendental.pow(*promote("logspace", base, exponents, inexact=True))
    numbers = _strong(numbers)
    return numbers if dtype is None else convert(numbers, dtypes.requested_dtype("logspace", dtype))


@named
@described_like(logspace)
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
              dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """Numbers from `start` to `stop` with a constant ratio.

    Args:
      start, stop: numbers or arrays that broadcast, not 0 (traced zeros give NaN); real ones of
        one sign, or NaN lies between.
      endpoint: whether `stop` is the last number; both ends are exact.

    >>> print(onp.geomspace(1, 8, 4))
    [1. 2. 4. 8.]
    """
    for x in (start, stop):
        if not isinstance(x, Tracer) and not np.all(np.asarray(x)):
            raise ValueError(f"geomspace: start {start} and stop {stop} given; a geometric "
                             "sequence cannot include zero; choose others.")
    return _geomspace(start, stop, num=num, endpoint=endpoint, dtype=dtype, axis=axis)


@fused(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: ArrayLike, stop: ArrayLike, *, num: int, endpoint: bool,
               dtype: DTypeLike | None, axis: int) -> Array:
    first, last = (_strong(x) for x in promote("geomspace", start, stop, inexact=True))
    zero = literal(0, first.dtype)
    none = bitwise_or(eq(first, zero), eq(last, zero))
    first, last = (choose(none, literal(np.nan, x.dtype), x) for x in (first, last))
    if dtypes.is_complex(first.dtype):
        sign: Any = arithmetic.sign(first)
    else:
        both = bitwise_and(lt(first, zero), lt(last, zero))
        sign = sub(literal(1, first.dtype),
                   mul(literal(2, first.dtype), convert(both, first.dtype)))
    steps = linspace(log(div(first, sign)), log(div(last, sign)), num, endpoint)
    points = mul(exp(steps), _lead(sign, steps.shape))
    ends = [lax_shape.expand_dims(_lead(x, steps.shape[1:]), (0,)) for x in (first, last)]
    if num > 0:
        tail = 1 if endpoint and num > 1 else 0
        parts = [ends[0], slicing.slice_in_dim(points, 1, max(num - tail, 1))]
        points = slicing.concatenate([*parts, ends[1]] if tail else parts, 0)
    points = lax_shape.move_axis(points, 0, canonical_axis(axis, points.ndim))
    return points if dtype is None else convert(points, dtypes.requested_dtype("geomspace", dtype))


# Grids -------------------------------------------------------------------------------------------

@api_boundary
def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False,
             indexing: str = "xy") -> list[Array]:
    """Coordinate arrays of the grid that vectors span.

    Args:
      xi: vectors; arrays of other ranks are flattened.
      copy: must be True: arrays are never views.
      sparse: whether each has size 1 along the other axes, so that they broadcast to the grid.
      indexing: "xy" exchanges the first two axes, so that the first vector runs along the columns;
        "ij" keeps their order.
    Returns: A list of arrays (NumPy: a tuple), one per vector.

    Raises ValueError for another `indexing` and `copy=False`.

    >>> x, y = onp.meshgrid(onp.array([1, 2, 3]), onp.array([4, 5]))
    >>> print(x)
    [[1 2 3]
     [1 2 3]]
    >>> print(y)
    [[4 4 4]
     [5 5 5]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing {indexing!r} given; 'xy' or 'ij' is required.")
    if not copy:
        raise ValueError("meshgrid: copy=False given; arrays are never views; leave it out.")
    xs = array_args("meshgrid", *xi)
    xs = [x if x.ndim == 1 else lax_shape.reshape(to_array(x), (prod(x.shape),)) for x in xs]
    axes = list(range(len(xs)))
    if indexing == "xy" and len(xs) >= 2:
        axes[:2] = [1, 0]
    shape = tuple([xs[axes.index(i)].shape[0] for i in range(len(xs))])
    grids = []
    for x, axis in zip(xs, axes):
        size = tuple([n if i == axis else 1 for i, n in enumerate(shape)]) if sparse else shape
        grids.append(lax_shape.broadcast_in_dim(x, size, (axis,)))
    return grids


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None,
            sparse: OneOf[False] = False) -> Array: ...


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: OneOf[True]
            ) -> tuple[Array, ...]: ...


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
            ) -> Array | tuple[Array, ...]: ...


@api_boundary
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None,
            sparse: bool = False) -> Array | tuple[Array, ...]:
    """The index of every element of a grid, one array per axis.

    Args:
      dimensions: the sizes of the grid.
      dtype: of the result; int32 (int64 with x64) by default.
      sparse: whether to return arrays of size 1 along all other axes instead.
    Returns: [ndim, *dimensions]; a tuple of ndim arrays if `sparse`.

    >>> rows, columns = onp.indices((2, 3))
    >>> print(rows * 10 + columns)
    [[ 0  1  2]
     [10 11 12]]
    """
    shape = canonical_shape(dimensions, "indices")
    dtype = dtypes.requested_dtype("indices", int if dtype is None else dtype)
    if sparse:
        return tuple([lax_creation.broadcasted_iota(
            dtype, tuple([n if i == axis else 1 for i, n in enumerate(shape)]), axis)
            for axis in range(len(shape))])
    return _indices(shape=shape, dtype=dtype) if shape else zeros((0,), dtype)


@fused(static=("shape", "dtype"))
def _indices(*, shape: Shape, dtype: DType) -> Array:
    return slicing.concatenate(
        [lax_creation.broadcasted_iota(dtype, (1, *shape), axis + 1)
         for axis in range(len(shape))], 0)


@api_boundary
def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors reshaped so that indexing with all of them picks the rectangle they span.

    Args: args: vectors of integers; a boolean one, which must not be traced, stands for the places
        where it is true.
    Returns: A tuple of arrays, the i-th along axis i.

    Raises ValueError for other ranks.

    >>> x = onp.arange(12).reshape(3, 4)
    >>> print(x[onp.ix_(onp.array([0, 2]), onp.array([1, 3]))])
    [[ 1  3]
     [ 9 11]]
    """
    xs = array_args("ix_", *[asarray(a) if isinstance(a, (list, tuple)) else a for a in args])
    xs = [asarray(np.flatnonzero(np.asarray(x))) if x.dtype == BOOL else x for x in xs]
    for x in xs:
        if len(x.shape) != 1:
            raise ValueError(f"ix_: {x.aval} given; vectors are required.")
    return tuple([lax_shape.reshape(x, (1,) * i + x.shape + (1,) * (len(xs) - i - 1))
                  for i, x in enumerate(xs)])


@named
def fromfunction(function: Callable[..., R], shape: int | Shape, *, dtype: DTypeLike = float,
                 **kwargs: object) -> R:
    """A function of the coordinates of a grid, called once with all of them (unlike JAX's, not
    vmapped).

    Args:
      function: takes one array per axis.
      shape: the sizes of the grid.
      dtype: of the coordinates; float by default.
      kwargs: are passed on to the function.
    Returns: What the function returns.

    >>> print(onp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int))
    [[ 0  1  2]
     [10 11 12]]
    """
    check_callable("fromfunction", function=function)
    shape = canonical_shape(shape, "fromfunction")
    return function(*indices(shape, dtype, sparse=False), **kwargs)


# Slices ------------------------------------------------------------------------------------------

def _slice_number(name: str, x: ArrayLike) -> complex:
    """A bound or step of a slice as a number; ConcretizationTypeError for traced ones."""
    number = concrete(name, x, "a bound of a slice", "use arange with static numbers")
    if number.ndim or number.dtype.kind not in "iufc":
        raise TypeError(f"{name}: {x!r} given in a slice; numbers are required.")
    return number.item()


def _points(name: str, entry: object) -> Array:
    """The numbers that a slice stands for: with an imaginary step as many as that says."""
    if not isinstance(entry, slice):
        raise TypeError(f"{name}: {entry!r} given; a slice such as 0:5, or 0:1:5j, is required.")
    first, last = 0 if entry.start is None else entry.start, entry.stop
    if last is None:        # without an end, the start is the end, as in `arange`
        if isinstance(entry.step, complex):
            raise TypeError(f"{name}: {entry} given; a slice with an end is required.")
        first, last = 0, first
    start, stop, step = [_slice_number(name, x) for x in (
        first, last, 1 if entry.step is None else entry.step)]
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """The class of `mgrid` and `ogrid`."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name, self._sparse = name, sparse

    def __repr__(self) -> str:
        return f"olympus.numpy.{self._name}"

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if not isinstance(key, tuple):
            return _points(self._name, key)
        points = [_points(self._name, entry) for entry in key]
        if not points:
            return () if self._sparse else asarray([], int)
        dtype = dtypes.result_type(*points)
        grids = meshgrid(*[convert(x, dtype) for x in points], indexing="ij", sparse=self._sparse)
        return tuple(grids) if self._sparse else stack(grids)


class _Joiner:
    """The class of `r_` and `c_`: entries become arrays of some rank, joined along an axis.

    Entries of rank 1 lie along axis `place` of `rank` axes; -1 is the last axis.
    """

    def __init__(self, name: str, axis: int, rank: int, place: int) -> None:
        self._name, self._options = name, (axis, rank, place)

    def __repr__(self) -> str:
        return f"olympus.numpy.{self._name}"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: object) -> Array:
        entries = key if isinstance(key, tuple) else (key,)
        axis, rank, place = self._options
        directive = ""
        if entries and isinstance(entries[0], str):
            directive, entries = entries[0], entries[1:]
            if directive not in ("r", "c"):
                axis, rank, place = self._parsed(directive)
        if any(isinstance(entry, str) for entry in entries):
            raise ValueError(f"{self._name}: text behind the first entry given; a directive must "
                             "be the first.")
        if not entries:
            raise ValueError(f"{self._name}: no entries given; at least one is required.")
        values = [_points(self._name, e) if isinstance(e, slice) else e for e in entries]
        arrays = [to_array(asarray(v)) for v in values]
        dtype = dtypes.result_type(*[v if np.isscalar(v) else a for v, a in zip(values, arrays)])
        joined = concatenate([_raised(self._name, convert(a, dtype), rank, place) for a in arrays],
                             axis)
        if directive in ("r", "c") and joined.ndim == 1:     # a matrix of one row or column
            return joined[None] if directive == "r" else joined[:, None]
        return joined

    def _parsed(self, directive: str) -> tuple[int, int, int]:
        """"axis", "axis,rank" or "axis,rank,place"; fields left out are as in `r_` or `c_`."""
        try:
            numbers = tuple([int(part) for part in directive.split(",")])
        except ValueError:
            numbers = ()
        if not 1 <= len(numbers) <= 3:
            raise ValueError(f"{self._name}: directive {directive!r} given; 'r', 'c' or up to "
                             "three integers with commas are required.")
        axis, rank, place = (*numbers, *self._options[len(numbers):])
        return axis, rank, place


def _raised(name: str, x: Array, rank: int, place: int) -> Array:
    """An array with at least `rank` axes: its own begin at axis `place` of those."""
    missing = rank - x.ndim
    if missing <= 0:
        return x
    first = place + missing + 1 if place < 0 else place
    if not 0 <= first <= missing and x.ndim:
        raise ValueError(f"{name}: place {place} given for an array of {x.ndim} axes among {rank}; "
                         f"a number in [-{missing + 1}, {missing}] is required.")
    ones = [i for i in range(rank) if not first <= i < first + x.ndim]
    return lax_shape.expand_dims(x, ones)


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)
r_ = _Joiner("r_", 0, 1, -1)
c_ = _Joiner("c_", -1, 2, 0)
