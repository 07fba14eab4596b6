"""`pad`: an array made larger at its ends, in any of NumPy's ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike, PyTree
from ..core.trace import typeof
from ..jit.fused import fused, named
from ..lax import creation, slicing
from ..types import dtypes
from ..types.shape import (
    canonical_axis, extent, is_static, known_less, maximum, minimum, sequence, static_int,
)
from . import arithmetic, promote, reductions, statistics
from .creation import finite_lists
from .elementary import floor, round as _round
from .grids import integer_ramp
from .indexing import take
from .joining import concatenate
from .manipulation import broadcast_to
from .promote import array_args, to_array
from .vectorize import apply_along_axis

_OPTIONS = {
    "constant": ("constant_values",), "linear_ramp": ("end_values",), "edge": (), "wrap": (),
    "empty": (), "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
    "maximum": ("stat_length",), "mean": ("stat_length",), "median": ("stat_length",),
    "minimum": ("stat_length",),
}


@named
def pad(array: ArrayLike, pad_width: int | Sequence[int] | Sequence[Sequence[int]],
        mode: str | Callable[..., ArrayLike] = "constant", **kwargs: object) -> Array:
    """The array with elements added before and after along each axis.

    Args:
      array: array.
      pad_width: an int, (before, after), or one such pair per axis; or a dict of them by axis.
      mode: "constant" (constant_values=0), "edge", "linear_ramp" (end_values=0), "reflect" and
        "symmetric" (reflect_type="even"), "wrap", "empty", "maximum", "minimum", "mean", "median"
        (stat_length=None), or a function of NumPy's form that returns the padded vector.
    Returns: An array of the dtype of `array`, larger by both widths along each axis.

    Raises ValueError for negative widths, another mode, and options that do not belong to it.

    >>> print(onp.pad(onp.array([1, 2]), (1, 2), constant_values=9))
    [9 1 2 9 9]
    """
    if callable(mode):      # user's functions are not made part of a program
        return _pad(array, pad_width, mode, **kwargs)
    return _pad_known(array, pad_width, mode, **kwargs)


def _pad(array: ArrayLike, pad_width: PyTree, mode: str | Callable[..., ArrayLike],
         **kwargs: object) -> Array:
    array = to_array(array_args("pad", array)[0])
    ndim = len(array.shape)
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            pairs[canonical_axis(axis, ndim, "pad")] = _widths_by_axis("pad_width", width, 1)[0]
        widths = pairs
    else:
        widths = _widths_by_axis("pad_width", pad_width, ndim)
    widths = [tuple([extent(n, "pad", "pad_width") for n in pair]) for pair in widths]
    if any(known_less(a, 0) or known_less(b, 0) for a, b in widths):
        raise ValueError(f"pad: pad_width {pad_width} given; index can't contain negative values.")
    if callable(mode):
        return _pad_by_function(array, widths, mode, kwargs)
    if not isinstance(mode, str) or mode not in _OPTIONS:
        raise ValueError(f"pad: mode {mode!r} given; one of {', '.join(_OPTIONS)} or a "
                                  "function is required.")
    wrong = set(kwargs) - set(_OPTIONS[mode])
    if wrong:
        raise ValueError(f"pad: the options {sorted(wrong)} given; unsupported keyword arguments "
                         f"for mode {mode!r}, which takes {_OPTIONS[mode] or 'none'}.")
    return _PADDERS[mode](array, widths, **kwargs)


_pad_known = fused(_pad, static=("pad_width", "mode", "stat_length", "reflect_type", "end_values"))


def _depth(x: PyTree) -> int:
    """How many axes a nest of lists has, whose innermost values may be traced."""
    if isinstance(x, (list, tuple)):
        return 1 + max(map(_depth, x), default=0)
    method = array_method(x)
    return np.ndim(x) if method is None else _depth(method())


def _widths_by_axis(what: str, widths: PyTree, ndim: int
                    ) -> list[tuple[int, int]]:
    """One (before, after) per axis from NumPy's short forms."""
    with finite_lists("pad"):
        depth = _depth(widths)
    if depth == 0:
        return [(widths, widths)] * ndim
    items = sequence(widths, "pad", what)
    if all(_depth(i) == 0 for i in items):
        if len(items) == 1:
            return [(items[0], items[0])] * ndim
        if len(items) == 2:
            return [(items[0], items[1])] * ndim
    elif len(items) == 1 or len(items) == ndim:
        rows = [sequence(i, "pad", what) for i in items]
        if all(len(r) in (1, 2) for r in rows):
            rows = [(r[0], r[-1]) for r in rows]
            return rows * ndim if len(rows) == 1 else rows
    raise ValueError(f"pad: {what} {widths} given for {ndim} axes; a number, a pair, or a pair per "
                     "axis is required; operands could not be broadcast together.")


def _not_empty(array: Array, axis: int, mode: str) -> None:
    if not array.shape[axis]:
        raise ValueError(f"pad: {typeof(array)} and mode {mode!r} given; can't extend empty axis "
                         f"{axis} using modes other than 'constant' or 'empty'.")


def _block(array: Array, axis: int, width: int, value: Array) -> Array:
    shape = (*array.shape[:axis], width, *array.shape[axis + 1:])
    return broadcast_to(value, shape)


def _pad_constant(array: Array, widths: list, constant_values: int | Sequence[Sequence[Array]] = 0
                  ) -> Array:
    values = _widths_by_axis("constant_values", constant_values, len(widths))
    first = values[0][0] if values else 0
    if all(v is first for pair in values for v in pair):
        value = promote.convert(array_args("pad", first)[0], array.dtype, array.weak_type)
        return slicing.pad(array, to_array(value), [(a, b, 0) for a, b in widths])
    for axis, (width, pair) in enumerate(zip(widths, values)):
        blocks = [_block(array, axis, n, promote.convert(array_args("pad", v)[0], array.dtype,
                                                         array.weak_type))
                  for n, v in zip(width, pair)]
        array = concatenate([blocks[0], array, blocks[1]], axis)
    return array


def _padded_indices(mode: str, n: int, width: tuple[int, int]) -> Array | np.ndarray:
    """Which element of an axis stands at each place of the padded one."""
    if is_static((n, *width)):
        return np.pad(np.arange(n, dtype=np.int32), width, mode)  # type: ignore[call-overload]
    size = width[0] + n + width[1]
    place = creation.broadcasted_iota(np.int32, (size,), 0) - width[0]
    if mode == "edge":
        return place.clip(0, n - 1)
    if mode == "wrap":
        return place % n
    last = 2 * n - 1 if mode == "symmetric" else 2 * n - 2      # each period is there and back
    place = place % maximum(last + (mode == "symmetric"), 1)
    return arithmetic.minimum(place, last - place)


def _pad_by_places(mode: str) -> Callable[..., Array]:
    """Modes that copy elements: a gather reads them at their places."""
    def padder(array: Array, widths: list) -> Array:
        for axis, width in enumerate(widths):
            if any(width):
                _not_empty(array, axis, mode)
                indices = _padded_indices(mode, array.shape[axis], width)
                array = take(array, indices, axis, mode="clip")
        return array
    return padder


def _pad_mirrored(mode: str) -> Callable[..., Array]:
    even = _pad_by_places(mode)

    def padder(array: Array, widths: list, reflect_type: str = "even") -> Array:
        if reflect_type == "even":
            return even(array, widths)
        if reflect_type != "odd":
            raise ValueError(f"pad: reflect_type {reflect_type!r} given; 'even' or 'odd' is "
                             "required.")
        for axis, width in enumerate(widths):
            if any(width):
                _not_empty(array, axis, mode)
                array = _pad_odd(array, axis, width, mode)
        return array
    return padder


def _pad_odd(array: Array, axis: int, width: tuple[int, int], mode: str) -> Any:
    """2 * edge - mirrored: an affine map of places, whose two parts NumPy pads exactly.

    For the line f(i) = i the odd reflection continues it, so each padded place is k whole periods
    away: its value is the mirrored element, negated for odd reflections, plus multiples of edges.
    """
    n = static_int(array.shape[axis], f"pad: mode {mode!r}", f"axis {axis} of size")
    basis = np.eye(n)       # the padding is linear in the elements, so its matrix says it all
    matrix = np.pad(basis, (width, (0, 0)), mode, reflect_type="odd")  # type: ignore[call-overload]
    out = None
    for column in range(n):
        weights = matrix[:, column]
        if not weights.any():
            continue
        element = slicing.slice_in_dim(array, column, column + 1, axis=axis)
        shape = [1] * len(array.shape)
        shape[axis] = len(weights)
        part = element * weights.reshape(shape).astype(array.dtype)
        out = part if out is None else out + part
    return out


def _pad_ramp(array: Array, widths: list, end_values: int = 0) -> Array:
    ends = _widths_by_axis("end_values", end_values, len(widths))
    for axis, ((before, after), (left, right)) in enumerate(zip(widths, ends)):
        n = array.shape[axis]
        if not before and not after:
            continue
        _not_empty(array, axis, "linear_ramp")
        first = slicing.slice_in_dim(array, 0, 1, axis=axis)
        last = slicing.slice_in_dim(array, n - 1, n, axis=axis)
        array = concatenate([_ramp(left, first, before, axis, False), array,
                             _ramp(right, last, after, axis, True)], axis)
    return array


def _ramp(end: int, edge: Array, width: int, axis: int, flipped: bool) -> Array:
    """`width` elements from the end value (included) to the edge (not included)."""
    shape = [1] * len(edge.shape)
    shape[axis] = width
    steps = np.arange(width)[::-1 if flipped else 1].reshape(shape)
    (first,), dtype = array_args("pad", end), edge.dtype
    small = dtypes.is_integer(dtype) and dtype.itemsize < 4
    if width < 2**16 and dtypes.is_integer(first.dtype) and (small or dtype.kind == "i"):
        wide = np.dtype(np.int32) if small else dtype
        return promote.convert(integer_ramp(
            promote.convert(first, wide), promote.convert(edge, wide), width, steps), dtype)
    kind = dtypes.to_inexact_dtype(dtype)
    line, last = promote.convert(first, kind), promote.convert(edge, kind)
    out = line + (last - line) * (steps / max(width, 1)).astype(kind)
    return promote.convert(floor(out) if dtypes.is_integer(dtype) else out, dtype)


def _pad_statistic(mode: str, fun: Callable[..., Array], rounded: bool) -> Callable[..., Array]:
    def padder(array: Array, widths: list, stat_length: int | None = None) -> Array:
        lengths = _widths_by_axis("stat_length", stat_length,
                                  len(widths)) if stat_length is not None else \
            [(None, None)] * len(widths)
        for axis, ((before, after), (left, right)) in enumerate(zip(widths, lengths)):
            n = array.shape[axis]
            if not before and not after:
                continue
            _not_empty(array, axis, mode)
            left, right = [n if k is None else minimum(static_int(k, "pad", "stat_length"), n)
                           for k in (left, right)]
            values = []
            for part in (slicing.slice_in_dim(array, 0, left, axis=axis),
                         slicing.slice_in_dim(array, n - right, n, axis=axis)):
                value = fun(part, axis=axis, keepdims=True)
                if rounded and not dtypes.is_inexact(array.dtype):
                    value = _round(value)
                values.append(promote.convert(value, array.dtype))
            array = concatenate([_block(array, axis, before, values[0]), array,
                                 _block(array, axis, after, values[1])], axis)
        return array
    return padder


def _pad_by_function(array: Array, widths: list, fun: Callable[..., ArrayLike],
                     kwargs: dict[str, object]) -> Array:
    """NumPy's protocol: fun(vector, (before, after), axis, kwargs) returns the whole vector."""
    array = slicing.pad(array, creation.full((), 0, array.dtype), [(a, b, 0) for a, b in widths])
    for axis, width in enumerate(widths):
        array = apply_along_axis(fun, axis, array, width, axis, kwargs)
    return array


_PADDERS: dict[str, Callable[..., Any]] = {
    "constant": _pad_constant, "empty": _pad_constant, "linear_ramp": _pad_ramp,
    "edge": _pad_by_places("edge"), "wrap": _pad_by_places("wrap"),
    "reflect": _pad_mirrored("reflect"), "symmetric": _pad_mirrored("symmetric"),
    "maximum": _pad_statistic("maximum", reductions.max, False),
    "minimum": _pad_statistic("minimum", reductions.min, False),
    "mean": _pad_statistic("mean", statistics.mean, True),
    "median": _pad_statistic("median", statistics.median, True),
}
