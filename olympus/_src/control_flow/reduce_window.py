"""reduce_window by any associative function, and the general select_and_scatter.

Monoids that `lax.windows` knows become its primitives. For any other function XLA combines the
windows; derivatives gather the elements of each window along a new axis and reduce that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DType, IrValue, PyTree
from ..control.bodies import flatten
from ..control.reduce import combined_by, is_kernel, reduce_p
from ..core import tags
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived
from ..core.primitive import Axis, Builder, Primitive, Tangent, Zero
from ..core.staging import stage
from ..core.trace import literal, typeof
from ..interpreters.batching import batch_flat, to_axis
from ..interpreters.jvp import jvp_flat
from ..lax.arithmetic import max_p, min_p
from ..lax.bits import bitwise_and, bitwise_or
from ..lax.comparison import eq, select_n
from ..lax.families import add_p
from ..lax.indexing import GatherDimensionNumbers, gather
from ..lax.shape import broadcast_in_dim, reshape, transpose
from ..lax.window_extrema import reduce_window_max_p, reduce_window_min_p
from ..lax.windows import (
    Pairs, WindowReduction, dilated, emit_windows, reduce_window_sum_p, window_params,
    windowed_shape, windows_on_axis,
)
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import prod
from ..types.tree import tree_unflatten
from .map import map as map_over
from .reduce import initial_values, is_known, monoid_of, scalar_program

Dims = tuple[int, ...]
BOOL = dtypes.as_dtype(bool)
_MONOIDS: dict[Any, Any] = {add_p: reduce_window_sum_p, max_p: reduce_window_max_p,
                            min_p: reduce_window_min_p}


class ReduceWindow(Primitive):
    """n operands and n initial values; every window combined by the program `olympuspr`."""

    multiple_results = True
    programs = ("olympuspr",)
    algebra = "mask"    # the program may be one
    transpose = None
    spread = staticmethod(tags.as_first)
    remedy = WindowReduction.remedy

    result_avals = Primitive.inferred   # not memoised: the key would keep programs alive

    def infer(self, *avals: ShapedArray, olympuspr: ClosedOlympuspr, **params: Any
              ) -> list[ShapedArray]:
        xs = avals[:len(avals) // 2]
        if any(x.shape != xs[0].shape for x in xs):
            raise TypeError(f"reduce_window: operands {', '.join(map(str, xs))} given; equal "
                            "shapes are required; broadcast them.")
        shape = windowed_shape(xs[0].shape, **params)
        return [make_aval(shape, x.dtype) for x in xs]

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, **params: Any
              ) -> list[IrValue]:
        n = len(args) // 2
        if not is_kernel(b, olympuspr):
            return b.traced(lambda *xs: _by_gathering(xs, olympuspr=olympuspr, **params), args,
                            b.avals_in)
        return emit_windows(b, args[:n], args[n:], b.avals_in[:n],
                            combined_by(b, olympuspr), **params)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Any
            ) -> tuple[list[Array], list[Tangent]]:
        return jvp_flat(lambda *xs: _by_gathering(xs, **params), primals, tangents)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, **params: Any) -> tuple[list[Array], list[int | None]]:
        n = len(args) // 2
        # XLA starts all elements from one value.
        if any(d is not None for d in dims[n:]):
            return batch_flat(lambda *xs: _by_gathering(xs, olympuspr=olympuspr, **params), axis,
                              args, dims)
        xs = [to_axis(x, d, 0, axis.size) for x, d in zip(args[:n], dims[:n], strict=True)]
        return self.bind(*xs, *args[n:], olympuspr=olympuspr, **windows_on_axis(0, params)), [0] * n


def _by_gathering(args: Sequence[ArrayLike], *, olympuspr: ClosedOlympuspr, **params: Any
                  ) -> list[Array]:
    """The same by the elements of the windows along a new axis 0, and whether they are any."""
    n = len(args) // 2
    shape = typeof(args[0]).shape
    sizes = windowed_shape(shape, **params)
    if 0 in sizes or 0 in shape:
        return [broadcast_in_dim(init, sizes, ()) for init in args[n:]]
    by_axis = [*map(_axis_places, shape, sizes, *[params[name] for name in (
        "window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")])]
    rows = [_window_elements(x, [index for index, _ in by_axis]) for x in args[:n]]
    # Places in the padding hold no element. The function's identity is not known: they are flagged.
    if all(inside.all() for _, inside in by_axis):
        return reduce_p.bind(*rows, *args[n:], olympuspr=olympuspr, dimensions=(0,))
    flags = _window_flags([inside for _, inside in by_axis])
    return reduce_p.bind(*rows, flags, *args[n:], literal(True, BOOL),
                         olympuspr=_skipping(olympuspr, n), dimensions=(0,))[:n]


def _axis_places(size: int, count: int, window: int, stride: int, pads: tuple[int, int],
                 base: int, dilation: int) -> tuple[np.ndarray, np.ndarray]:
    """Along one axis, for [place in the window, window]: an index, and whether it is one."""
    steps, starts = np.arange(window) * dilation, np.arange(count) * stride - pads[0]
    at = np.add.outer(steps, starts)
    inside = (at >= 0) & (at < dilated(size, base)) & (at % base == 0)
    # An index in bounds everywhere, so that the gather needs no check; flags say where it counts.
    return np.where(inside, at // base, 0).astype(np.int32), inside


def _merged(x: ArrayLike, ndim: int) -> Array:
    """[w1, o1, w2, o2, ...] -> [w1 * w2 * ..., o1, o2, ...]"""
    x = transpose(x, (*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)))
    shape = typeof(x).shape
    return reshape(x, (prod(shape[:ndim]), *shape[ndim:]))


def _window_elements(x: ArrayLike, indices: Sequence[np.ndarray]) -> Array:
    """The element of each window at each of its places, along a new axis 0."""
    for d, index in enumerate(indices):
        # Axis d becomes two, [place in the window, window]: those before it have been doubled.
        axis, sizes = 2 * d, typeof(x).shape
        window = [1 if i == axis else n for i, n in enumerate(sizes)]
        others = tuple([i if i < axis else i + 1 for i in range(len(sizes)) if i != axis])
        x = gather(x, index[..., None], GatherDimensionNumbers(others, (axis,), (axis,)), window,
                   mode="promise_in_bounds")
    return _merged(x, len(indices))


def _window_flags(insides: Sequence[np.ndarray]) -> Array:
    """Whether the place is an element, laid out as `_window_elements`."""
    shape = tuple([n for inside in insides for n in inside.shape])
    flags = [broadcast_in_dim(inside, shape, (2 * d, 2 * d + 1))
             for d, inside in enumerate(insides)]
    return _merged(functools.reduce(bitwise_and, flags), len(insides))


@derived
def _skipping(program: ClosedOlympuspr, n: int) -> ClosedOlympuspr:
    """The program on n values and a flag each: unflagged values are left out."""
    def combine(*args: Array) -> list[Array]:
        p, q = (args[:n], args[n]), (args[n + 1:-1], args[-1])
        both = bitwise_and(p[1], q[1])
        made = eval_closed(program, *p[0], *q[0])
        return [*(select_n(both, select_n(p[1], y, x), z)
                  for x, y, z in zip(p[0], q[0], made, strict=True)), bitwise_or(p[1], q[1])]

    return stage(combine, [*program.in_avals[:n], make_aval((), BOOL)] * 2)


class SelectAndScatter(Primitive):
    """Combine each source with the output at the place that `select` prefers in its window.

    Operands: operand, source, initial value. `select_olympuspr` says of two elements whether the
    first is preferred; `scatter_olympuspr` combines the present value with a source. Piecewise
    constant in the operand.
    """

    transpose = None
    flat_in = (0,)
    programs = ("select_olympuspr", "scatter_olympuspr")

    result_avals = Primitive.inferred   # not memoised: the key would keep programs alive

    def infer(self, operand: ShapedArray, source: ShapedArray, init: ShapedArray, *,
              select_olympuspr: ClosedOlympuspr, scatter_olympuspr: ClosedOlympuspr,
              window_dimensions: Dims, window_strides: Dims, padding: Pairs) -> ShapedArray:
        ones = (1,) * operand.ndim
        wanted = windowed_shape(
            operand.shape, window_dimensions=window_dimensions, window_strides=window_strides,
            padding=padding, base_dilation=ones, window_dilation=ones)
        if source.shape != wanted or init.shape or source.dtype != init.dtype:
            raise TypeError(f"select_and_scatter: operand {operand}, source {source} and initial "
                            f"value {init} given; a source of shape {wanted} and a scalar of its "
                            "dtype are required.")
        return make_aval(operand.shape, source.dtype)

    def lower(self, b: Builder, operand: IrValue, source: IrValue, init: IrValue, *,
              select_olympuspr: ClosedOlympuspr, scatter_olympuspr: ClosedOlympuspr,
              window_dimensions: Dims, window_strides: Dims, padding: Sequence[Sequence[int]]
              ) -> IrValue:
        op = b.ops("stablehlo.select_and_scatter", [operand, source, init], {
            "window_dimensions": b.i64s(window_dimensions),
            "window_strides": b.i64s(window_strides),
            "padding": b.pairs(padding)}, regions=2)
        for k, program in enumerate((select_olympuspr, scatter_olympuspr)):
            scalar = b.type(make_aval((), b.avals_in[k].dtype))
            b.region(op, k, [scalar] * 2, lambda *pq, p=program: b.call_inline(p, pq))
        return op.result

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Any
            ) -> tuple[Array, Tangent]:
        (operand, *values), out = primals, self.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents[1:]):
            return out, Zero(typeof(out).to_tangent_aval())
        _, (tangent,) = jvp_flat(lambda *xs: [_scattered_by_gathering(operand, *xs, **params)],
                                 values, tangents[1:])
        return out, tangent

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             window_dimensions: Dims, window_strides: Dims, padding: Sequence[Sequence[int]],
             **programs: Hashable) -> tuple[Array, int]:
        params = {"window_dimensions": window_dimensions, "window_strides": window_strides,
                  "padding": padding}
        moved = [to_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        if dims[2] is not None:     # XLA starts all elements from one value
            return map_over(lambda xs: self.bind(*xs, **params, **programs), tuple(moved)), 0
        out = self.bind(*moved[:2], args[2], **windows_on_axis(0, params), **programs)
        return out, 0


def _scattered_by_gathering(operand: ArrayLike, source: ArrayLike, init: ArrayLike, *,
                            select_olympuspr: ClosedOlympuspr, scatter_olympuspr: ClosedOlympuspr,
                            window_dimensions: Dims, window_strides: Dims,
                            padding: Sequence[Sequence[int]]) -> Array:
    """The same by the sources of all windows that reach each element, and whether they chose it."""
    shape, windows = typeof(operand).shape, typeof(source).shape
    if 0 in windows or 0 in shape:
        return broadcast_in_dim(init, shape, ())
    ones = (1,) * len(shape)
    chosen = _preferred_places(operand, select_olympuspr, [*map(
        _axis_places, shape, windows, window_dimensions, window_strides, padding, ones, ones)])
    # Windows reach an element as places reach a window when the sources are spread out by strides.
    pads = [(w - 1 - low, dilated(n, 1) + low - dilated(count, stride))
            for w, (low, _), n, count, stride in zip(window_dimensions, padding, shape, windows,
                                                     window_strides, strict=True)]
    by_axis = [*map(_axis_places, windows, shape, window_dimensions, ones, pads, window_strides,
                    ones)]
    sources, choices = [_window_elements(x, [index for index, _ in by_axis])
                        for x in (source, chosen)]
    own = broadcast_in_dim(_flat_places(shape), typeof(choices).shape,
                           range(1, len(shape) + 1))
    flags = bitwise_and(_window_flags([inside for _, inside in by_axis]), eq(choices, own))
    return reduce_p.bind(sources, flags, init, literal(True, BOOL),
                         olympuspr=_skipping(scatter_olympuspr, 1), dimensions=(0,))[0]


def _flat_places(shape: Dims) -> Array:
    return reshape(np.arange(prod(shape), dtype=np.int32), shape)


@derived
def _preferred(select: ClosedOlympuspr, dtype: DType) -> ClosedOlympuspr:
    """The program that returns the value that `select` prefers among two, and its place."""
    def prefer(x: Array, i: Array, y: Array, j: Array) -> list[Array]:
        first, = eval_closed(select, x, y)
        return [select_n(first, y, x), select_n(first, j, i)]

    return stage(prefer, [make_aval((), dtype), make_aval((), np.dtype(np.int32))] * 2)


def _preferred_places(operand: ArrayLike, select: ClosedOlympuspr,
                      by_axis: Sequence[Sequence[np.ndarray]]) -> Array:
    """The flat place in the operand of the element that each window prefers; -1 if it has none."""
    aval = typeof(operand)
    indices = [index for index, _ in by_axis]
    rows = [_window_elements(x, indices) for x in (operand, _flat_places(aval.shape))]
    flags = _window_flags([inside for _, inside in by_axis])
    starts = (literal(0, aval.dtype), literal(-1, np.dtype(np.int32)), literal(False, BOOL))
    choose = _skipping(_preferred(select, aval.dtype), 2)
    return reduce_p.bind(*rows, flags, *starts, olympuspr=choose, dimensions=(0,))[1]


reduce_window_p = ReduceWindow("reduce_window")
select_and_scatter_p = SelectAndScatter("select_and_scatter")


@api_boundary
def reduce_window(operand: PyTree, init_value: PyTree,
                  computation: Callable[[PyTree, PyTree], PyTree], window_dimensions: Sequence[int],
                  window_strides: Sequence[int] | None = None,
                  padding: str | Sequence[tuple[int, int]] = "VALID",
                  base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> PyTree:
    """Combine the elements of every window by an associative function.

    Args:
      operand: pytree of arrays of one shape.
      init_value: the same structure of scalars of the same dtypes, that each window starts from;
        for the result not to depend on the order they must be the function's identity.
      computation: `(a, b) -> c` on structures of scalars, without traced values from outside.
      window_dimensions: the window's size along each axis.
      window_strides: steps of the window along each axis; None is 1.
      padding: "VALID", "SAME", "SAME_LOWER" or pairs (low, high) per axis; negative ones crop.
        Places of padding are left out, whatever the initial value is.
      base_dilation: spreads the operand out: distance of its elements; None is 1.
      window_dilation: spreads the window out: distance of its places; None is 1.
    Returns: The structure of the operand; each axis is as long as there are windows along it.

    Derivatives of the maximum and minimum go to the first element that attains it.

    >>> print(lax.reduce_window(onp.array([3., 1., 2., 5.]), -onp.inf, lax.max, (2,), (2,)))
    [3. 5.]
    """
    leaves, avals, tree = flatten("reduce_window: operand", operand)
    if not leaves:
        raise TypeError("reduce_window: no operands given; at least one array is required.")
    inits = initial_values("reduce_window", leaves, avals, tree, init_value)
    params = window_params("reduce_window", avals[0].shape, window_dimensions, window_strides,
                           padding, base_dilation, window_dilation)
    program = scalar_program("reduce_window", computation, tree, avals)
    monoid: Any = monoid_of(program)
    prim, dtype = _MONOIDS.get(monoid), avals[0].dtype
    if prim is None or dtypes.scalar_kind(dtype) not in prim.kinds:
        outs = reduce_window_p.bind(*leaves, *inits, olympuspr=program, **params)
        return tree_unflatten(tree, outs)
    out = prim.bind(leaves[0], **params)
    if not is_known(inits[0], prim.identity(dtype), dtype):
        out = monoid.bind(broadcast_in_dim(inits[0], typeof(out).shape, ()), out)
    return tree_unflatten(tree, [out])
