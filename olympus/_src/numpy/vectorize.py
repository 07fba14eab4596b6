"""`vectorize`, `apply_along_axis`, `apply_over_axes`: functions of parts mapped by vmap."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence, Set
from typing import Any

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree
from ..control.bodies import check_callable
from ..core.trace import typeof
from ..lax import shape as lax_shape
from ..mapping.vmap import vmap
from ..types.shape import broadcast_shapes, canonical_axis, definitely_equal, entries, sequence
from ..types.tree_registry import is_tree_node
from .manipulation import expand_dims, moveaxis
from .promote import array_args, to_array

_NAME = r"\w+"
_ARGUMENT = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE = rf"^{_ARGUMENT}(?:,{_ARGUMENT})*->{_ARGUMENT}(?:,{_ARGUMENT})*$"

Dims = tuple[str, ...]


def _parse(signature: str) -> tuple[list[Dims], list[Dims]]:
    text = re.sub(r"\s+", "", signature)
    if not re.match(_SIGNATURE, text):
        raise ValueError(f"vectorize: signature {signature!r} given; not a valid gufunc signature; "
                         "the form '(n,m),(m)->(n)' is required.")
    ins, outs = [[tuple(re.findall(_NAME, a)) for a in re.findall(_ARGUMENT, side)]
                 for side in text.split("->")]
    return ins, outs


@api_boundary
def vectorize(pyfunc: Callable[..., PyTree], *, excluded: Collection[int | str] = frozenset(),
              signature: str | None = None) -> Callable[..., PyTree]:
    """Make a function of small arrays broadcast over all further leading axes, by vmap.

    Args:
      pyfunc: the function; it is traced, once for all elements, unlike by NumPy's loop.
      excluded: positions and names of arguments that are passed on as they are; so is None.
      signature: the small arrays' axes, as "(n),(n)->()"; scalars by default.
    Returns: A function. It raises ValueError where axes of one name differ in size, or the rest of
      the shapes do not broadcast.

    >>> dots = onp.vectorize(onp.dot, signature="(n),(n)->()")
    >>> print(dots(onp.arange(6.).reshape(2, 3), onp.ones(3)))
    [ 3. 12.]
    """
    if signature is not None and not isinstance(signature, str):
        raise TypeError(f"vectorize: signature {signature!r} given; text such as '(n),(n)->()' is "
                        "required.")
    if not isinstance(excluded, Set):
        excluded = sequence(excluded, "vectorize", "excluded")
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(f"vectorize: excluded {excluded!r} given; positions (int) and names (str) "
                        "are required.")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: excluded={excluded!r} contains negative numbers; positions "
                         "of at least 0 are required.")
    check_callable("vectorize", pyfunc=pyfunc)
    parsed = None if signature is None else _parse(signature)

    @functools.wraps(pyfunc)
    @api_boundary
    def wrapped(*args: ArrayLike | str, **kwargs: object) -> PyTree:
        fun, dynamic, extra = _bind_excluded(pyfunc, excluded, args, kwargs)
        arrays = [to_array(x) for x in array_args("vectorize", *dynamic)]
        named = list(extra)
        arrays += [to_array(x) for x in array_args("vectorize", *extra.values())]
        count = len(dynamic)

        def flat(*xs: Array) -> PyTree:
            return fun(*xs[:count], **dict(zip(named, xs[count:])))

        ins, outs = parsed if parsed is not None else ([()] * len(arrays), None)
        passed = [a for i, a in enumerate(args) if i not in excluded]
        if len(ins) == len(passed) + len(extra) > len(arrays):      # None has a place there
            ins = _without_none(ins, passed, signature)
        if len(ins) != len(arrays):
            raise TypeError(f"vectorize: {len(arrays)} arguments given; the signature "
                            f"{signature!r} names {len(ins)}.")
        return _broadcasting(flat, arrays, ins, outs)

    return wrapped


def _without_none(ins: list[Dims], passed: Sequence[object], signature: str | None) -> list[Dims]:
    """The small arrays' axes of the arguments that are not None, which has none."""
    for i, (dims, value) in enumerate(zip(ins, passed)):
        if value is None and dims:
            raise ValueError(f"vectorize: argument {i} is None, for the axes {dims} of "
                             f"{signature!r}; an array is required; None may stand for ().")
    left = [dims for dims, value in zip(ins, passed) if value is not None]
    return left + ins[len(passed):]


def _bind_excluded(pyfunc: Callable[..., PyTree], excluded: Collection[int | str], args: tuple,
                   kwargs: dict[str, object]
                   ) -> tuple[Callable[..., PyTree], list[object], dict[str, object]]:
    """A function of the mapped arguments only, those by position and those by name."""
    fixed = {i: a for i, a in enumerate(args) if i in excluded or a is None}
    fixed_named = {k: v for k, v in kwargs.items() if k in excluded}
    dynamic = [a for i, a in enumerate(args) if i not in fixed]
    named = {k: v for k, v in kwargs.items() if k not in fixed_named}

    def fun(*xs: Array, **more: object) -> PyTree:
        rest = iter(xs)
        whole = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
        return pyfunc(*whole, **fixed_named, **more)

    return fun, dynamic, named


def _broadcasting(fun: Callable[..., PyTree], arrays: list[Array], ins: list[Dims],
                  outs: list[Dims] | None) -> PyTree:
    sizes: dict[str, int] = {}
    leading = []
    for x, dims in zip(arrays, ins):
        rank = len(x.shape) - len(dims)
        if rank < 0:
            raise ValueError(f"vectorize: {typeof(x)} given for the axes {dims}; input does not "
                             "have enough dimensions for them.")
        for name, n in zip(dims, x.shape[rank:]):
            expected = int(name) if name.isdigit() else sizes.setdefault(name, n)
            if not definitely_equal(expected, n):
                raise ValueError(f"vectorize: axis {name} of size {n} in {typeof(x)} given; "
                                 f"inconsistent size for core dimension; {expected} is required.")
        leading.append(x.shape[:rank])
    shape = broadcast_shapes(*leading)

    def checked(*xs: Array) -> PyTree:
        out = fun(*xs)
        if outs is not None:
            _check_results(out, outs, sizes)
        return out

    mapped = checked
    # Squeezed axes and lacking ones are not mapped: the function sees the array once.
    for level in range(len(shape) - 1, -1, -1):
        from_end = len(shape) - level
        axes = tuple(0 if len(lead) >= from_end and
                     definitely_equal(lead[len(lead) - from_end], shape[level]) else None
                     for lead in leading)
        mapped = vmap(mapped, in_axes=axes, axis_size=shape[level])
    squeezed = []
    for x, lead in zip(arrays, leading):
        offset = len(shape) - len(lead)
        ones = tuple([i for i, n in enumerate(lead)
                      if definitely_equal(n, 1) and not definitely_equal(shape[offset + i], 1)])
        squeezed.append(lax_shape.squeeze(x, ones) if ones else x)
    return mapped(*squeezed)


def _check_results(out: Array | Sequence[Array], outs: list[Dims], sizes: dict[str, int]) -> None:
    """Number of results, and their shapes as far as names are known."""
    results = out if isinstance(out, (tuple, list)) else (out,)
    if len(results) != len(outs) or (len(outs) == 1) == isinstance(out, (tuple, list)):
        raise TypeError(f"vectorize: {len(results)} results returned; the signature has "
                        f"{len(outs)}; wrong number of output arguments.")
    for x, dims in zip(results, outs):
        if x is None:
            if dims:
                raise ValueError(f"vectorize: the result None given for the axes {dims}; an array "
                                 "is required; return one.")
            continue
        # A class of arrays may have a shape of its own, as an operator of Dynamiqs has.
        shape = getattr(x, "shape", None) if is_tree_node(type(x)) else None
        result, shape = (type(x).__name__, shape) if shape is not None else (
            typeof(x), typeof(x).shape)
        if len(shape) != len(dims):
            raise ValueError(f"vectorize: the result {result} given for the axes {dims}; output "
                             f"shape {shape} does not match the core dimensions.")
        for name, n in zip(dims, shape):
            if not definitely_equal(sizes.setdefault(name, n), n):
                raise ValueError(f"vectorize: the result {result} given for the axes {dims}; "
                                 f"inconsistent size for core dimension {name}: {sizes[name]}.")


@api_boundary
def apply_along_axis(func1d: Callable[..., ArrayLike], axis: int, arr: ArrayLike, *args: object,
                     **kwargs: object) -> Array:
    """Apply a function of vectors to every vector along an axis, by vmap.

    Args:
      func1d: from a vector, and the further arguments, to an array or number; it is traced once.
      axis: an int.
      arr: array of at least one axis.
      *args, **kwargs: passed on to the function as they are.
    Returns: An array in which the axes of the function's result take the place of `axis`.

    >>> onp.apply_along_axis(lambda v: v[::2] + v[-1], 1, onp.arange(6).reshape(2, 3))
    Array([[ 2,  4],
           [ 8, 10]], dtype=int32)
    """
    check_callable("apply_along_axis", func1d=func1d)
    arr = to_array(array_args("apply_along_axis", arr)[0])
    ndim = len(arr.shape)
    axis = canonical_axis(axis, ndim, "apply_along_axis")

    def fun(vector: Array) -> ArrayLike:
        return func1d(vector, *args, **kwargs)

    for _ in range(ndim - 1):
        fun = vmap(fun, in_axes=0, out_axes=0)
    out: Any = fun(moveaxis(arr, axis, -1))
    new = len(out.shape) - (ndim - 1)
    return moveaxis(out, tuple(range(ndim - 1, ndim - 1 + new)), tuple(range(axis, axis + new)))


@api_boundary
def apply_over_axes(func: Callable[..., Array], a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """Apply `func(a, axis)` along each axis in turn, each time to the last result.

    Args:
      func: a reduction, with or without keepdims; another rank of its result is a ValueError.
      a: array.
      axes: an int, or several.
    Returns: An array of the rank of `a`: axes that the function removes stay with size 1.

    >>> print(onp.apply_over_axes(onp.sum, onp.arange(12).reshape(2, 3, 2), [0, 2]).tolist())
    [[[14], [22], [30]]]
    """
    check_callable("apply_over_axes", func=func)
    a = to_array(array_args("apply_over_axes", a)[0])
    for axis in entries(axes):
        axis = canonical_axis(axis, len(a.shape), "apply_over_axes")
        out = func(a, axis)
        rank = len(out.shape)
        if rank == len(a.shape) - 1:
            out = expand_dims(out, axis)
        elif rank != len(a.shape):
            raise ValueError(f"apply_over_axes: {typeof(a)} given and {typeof(out)} returned; the "
                             "function must keep the rank, or lower it by one.")
        a = out
    return a
