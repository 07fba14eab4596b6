"""scatter_apply: a function applied to the elements of windows of an array.

Where windows meet, the function is applied once for each. The primitive carries a state of several
arrays: derivatives push unit tangents through the function along with the values, which gives each
element's derivative whatever the number of times; the result is linear in the tangents.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, IrValue, PyTree, Shape
from ..control.reduce import elementwise, is_kernel
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived
from ..core.primitive import Axis, Builder, Primitive, Tangent, Zero
from ..core.staging import stage
from ..core.trace import literal, typeof
from ..interpreters.jvp import jvp_program
from ..lax.arithmetic import imag, mul, real
from ..lax.comparison import gt, lt, select_n
from ..lax.convert import convert_element_type
from ..lax.creation import full
from ..lax.families import add
from ..lax.indexing import (
    GatherScatterMode, ScatterDimensionNumbers, emit_scatter, mapped_scatter, scatter_add,
    scatter_p,
)
from ..lax.reduce import reduce_max
from ..lax.shape import align, broadcast_in_dim, move_axis
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import canonical_shape
from ..types.tree import tree_flatten
from .reduce import scalar_program
from .while_loop import while_loop

UINT32 = dtypes.as_dtype("uint32")


class ScatterApply(Primitive):
    """Operands: indices, then the state's arrays, all of one type; `olympuspr` maps one state of
    scalars to the next.
    """

    multiple_results = True
    programs = ("olympuspr",)
    transpose = None

    result_avals = Primitive.inferred   # not memoised: the key would keep programs alive

    def infer(self, indices: ShapedArray, *xs: ShapedArray, olympuspr: ClosedOlympuspr,
              update_shape: tuple[int, ...], **params: Any) -> list[ShapedArray]:
        updates = make_aval(update_shape, xs[0].dtype)
        return [scatter_p.infer(x.strong(), indices, updates, update_olympuspr=None,
                                update_consts=(), **params) for x in xs]

    def lower(self, b: Builder, indices: IrValue, *xs: IrValue, olympuspr: ClosedOlympuspr,
              update_shape: tuple[int, ...], dimension_numbers: ScatterDimensionNumbers,
              **params: Any) -> Sequence[IrValue]:
        if len(xs) > 1 or not is_kernel(b, olympuspr):
            return b.traced(functools.partial(
                _by_counting, olympuspr=olympuspr, update_shape=update_shape,
                dimension_numbers=dimension_numbers, **params), [indices, *xs], b.avals_in)
        index, x = b.avals_in
        updates = make_aval(update_shape, x.dtype)
        return emit_scatter(
            b, xs, indices, [b.full(updates, 0)], (x, index, updates),
            lambda old, new: b.call_inline(olympuspr, [old]), dimension_numbers, **params)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], *,
            olympuspr: ClosedOlympuspr, **params: Any) -> tuple[list[Array], list[Tangent]]:
        (indices, *xs), (_, *ts), n = primals, tangents, len(primals) - 1
        nonzero = [(k, unit, t) for k, tangent in enumerate(ts) if type(tangent) is not Zero
                   for unit, t in _real_parts(tangent)]
        # Each array's tangents for a unit tangent of one array; then all are multiplied and summed.
        units = [_constant(unit if k == j else 0, x)
                 for j, unit, _ in nonzero for k, x in enumerate(xs)]
        # Windows may overlap: where the function is applied again to an element, so is its
        # derivative.
        outs = self.bind(indices, *xs, *units, olympuspr=_pushing(olympuspr, n, len(nonzero)),
                         **params)
        totals: list[Any] = [Zero(typeof(x).to_tangent_aval()) for x in xs]
        for g, (_, _, t) in enumerate(nonzero):
            for k in range(n):
                term = mul(outs[n * (g + 1) + k], t)
                totals[k] = term if type(totals[k]) is Zero else add(totals[k], term)
        return outs[:n], totals

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             update_shape: tuple[int, ...], dimension_numbers: ScatterDimensionNumbers,
             **params: Hashable) -> tuple[list[Array], list[int | None]]:
        xs, _ = align(axis, args[1:], dims[1:], 0)
        indices = args[0] if dims[0] is None else move_axis(args[0], dims[0], 0)
        numbers = mapped_scatter(dimension_numbers, dims[0] is not None)
        outs = self.bind(indices, *xs, update_shape=(axis.size, *update_shape),
                         dimension_numbers=numbers, **params)
        return outs, [0] * len(outs)


def _by_counting(indices: ArrayLike, *xs: ArrayLike, olympuspr: ClosedOlympuspr,
                 update_shape: tuple[int, ...], dimension_numbers: ScatterDimensionNumbers,
                 **params: Any) -> Sequence[Array]:
    """The program applied to all elements at once, to each as often as windows hold it.

    A scatter into several arrays would do it; XLA's CPU compiler (jaxlib 0.10.2) gets those wrong
    where two operands are one value, as unit tangents are.
    """
    shape = typeof(xs[0]).shape
    zeros, ones = [broadcast_in_dim(literal(n, UINT32), s, ())
                   for n, s in ((0, shape), (1, update_shape))]
    counts = scatter_add(zeros, indices, ones, dimension_numbers, **params)

    def step(done: Array, xs: Sequence[ArrayLike]) -> list[Array]:
        wanted = gt(counts, broadcast_in_dim(done, shape, ()))
        return [select_n(wanted, x, y) for x, y in zip(xs, elementwise(olympuspr, xs), strict=True)]

    if params["unique_indices"]:
        return step(literal(0, UINT32), xs)
    most = reduce_max(counts, range(len(shape)))
    return while_loop(lambda state: lt(state[0], most),
                      lambda state: (add(state[0], 1), step(state[0], state[1])),
                      (full((), 0, UINT32), [*xs]))[1]


def _real_parts(t: Array) -> list[tuple[complex, Array]]:
    """Units and coefficients: a derivative need not be linear over the complex numbers."""
    dtype = typeof(t).dtype
    if not dtypes.is_complex(dtype):
        return [(1, t)]
    return [(unit, convert_element_type(part(t), dtype))
            for unit, part in ((1, real), (1j, imag))]


def _constant(value: complex, x: Array) -> Array:
    aval = typeof(x)
    return broadcast_in_dim(literal(value, aval.dtype), aval.shape, ())


@derived
def _pushing(program: ClosedOlympuspr, n: int, count: int) -> ClosedOlympuspr:
    """The program on n values followed by `count` lists of their tangents."""
    tangent, _ = jvp_program(program, (True,) * n, (True,) * n)

    def pushed(*args: Array) -> list[Array]:
        made = [eval_closed(tangent, *args[:n], *args[n * g:n * (g + 1)])
                for g in range(1, count + 1)]
        return [*made[0][:n], *(t for out in made for t in out[n:])]

    return stage(pushed, program.in_avals * (count + 1))


scatter_apply_p = ScatterApply("scatter_apply")


@api_boundary
def scatter_apply(operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[PyTree], PyTree],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Shape = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with a function applied to the elements of windows, once for each window.

    Args:
      operand: the array; it is not changed.
      scatter_indices: integers, shape [batch..., k]: each vector along the last axis is a place.
      func: a function of one scalar, without traced values from outside.
      dimension_numbers: how the axes of operand, indices and windows belong together.
      update_shape: the shape that the updates of a scatter with these indices would have.
      indices_are_sorted, unique_indices, mode: as for `scatter`.
    Returns: An array of the operand's shape and dtype.

    Raises TypeError where ranks or sizes do not fit, or func does not return such a scalar.

    >>> points = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, places = onp.array([1., 2., 3.]), onp.array([[0], [2], [2]])
    >>> print(lax.scatter_apply(x, places, lambda v: 10 * v, points, update_shape=(3,)))
    [ 10.   2. 300.]
    """
    aval = typeof(operand)
    program = scalar_program("scatter_apply", func, tree_flatten(0)[1], [aval], 1)
    out, = scatter_apply_p.bind(
        scatter_indices, operand, olympuspr=program,
        update_shape=canonical_shape(update_shape, "scatter_apply"),
        dimension_numbers=dimension_numbers, indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices), mode=GatherScatterMode.from_any(mode))
    return out
