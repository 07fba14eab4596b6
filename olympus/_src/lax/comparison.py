"""Comparisons, and choosing between arrays by them: select, clamp."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, IrValue
from ..core import reuse, tags
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, Zero
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval, physical_aval
from .families import (
    ANY, BITS, BOOL, REAL, Comparison, add, binary, check_operands, comparison, full_shape, operand,
    to_front,
)
from .shape import broadcast_in_dim, instantiate, zeros_of

# Comparisons -------------------------------------------------------------------------------------


class Equality(Comparison):
    """`eq` and `ne`: also of typed keys, compared word by word."""

    single = True

    def infer(self, *avals: ShapedArray, **params: Hashable) -> ShapedArray:
        if not all(dtypes.is_extended(a.dtype) for a in avals) or avals[0].dtype != avals[1].dtype:
            return super().infer(*avals, **params)
        return make_aval(full_shape(self.name, avals), BOOL)

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue:
        dtype = b.avals_in[0].dtype
        if not dtypes.is_extended(dtype):
            return super().lower(b, *xs, **params)
        shape, words = b.avals_out[0].shape, dtype.physical_shape
        axes = range(len(shape), len(shape) + len(words))
        physical = make_aval((*shape, *words), dtype.physical_dtype)
        x, y = (x if a.shape == shape else b.broadcast(x, physical, axes)
                for x, a in zip(xs, b.avals_in, strict=True))
        each = b.compare(self.op, x, y, "UNSIGNED", physical.update(dtype=BOOL))
        combiner, init = ("stablehlo.and", True) if self.op == "EQ" else ("stablehlo.or", False)
        return b.reduce(combiner, each, init, axes, b.avals_out[0])


eq_p = Equality("eq", "EQ", ANY, numpy_name="equal")
ne_p = Equality("ne", "NE", ANY, numpy_name="not_equal")
lt_p = comparison("lt", "LT", BITS + REAL, numpy_name="less")
le_p = comparison("le", "LE", BITS + REAL, numpy_name="less_equal")
gt_p = comparison("gt", "GT", BITS + REAL, numpy_name="greater")
ge_p = comparison("ge", "GE", BITS + REAL, numpy_name="greater_equal")
# Total order of floats: -nan < -inf < … < -0.0 < 0.0 < … < inf < nan.
eq_to_p = comparison("eq_to", "EQ", BITS + REAL, total=True, pace=1.0)
lt_to_p = comparison("lt_to", "LT", BITS + REAL, total=True, pace=1.0)
le_to_p = comparison("le_to", "LE", BITS + REAL, total=True, pace=1.0)


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """x == y as booleans; NaN equals nothing, itself included.

    Args: x, y: arrays of one dtype and shape; rank 0 and axes of size 1 are broadcast.
    Returns: A bool array of that shape. Complex numbers are equal where both parts are.

    >>> print(lax.eq(onp.array([1., float("nan")]), onp.array([1., float("nan")])))
    [ True False]
    """
    return binary(eq_p, x, y)


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """x != y as booleans; NaN differs from everything, itself included.

    Args: x, y: arrays of one dtype and shape; rank 0 and axes of size 1 are broadcast.

    >>> print(lax.ne(onp.array([1., float("nan")]), onp.array([1., float("nan")])))
    [False  True]
    """
    return binary(ne_p, x, y)


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """x < y as booleans; False where one is NaN.

    >>> print(lax.lt(onp.array([1, 2, 3]), 2))
    [ True False False]
    """
    return binary(lt_p, x, y)


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """x <= y as booleans; False where one is NaN.

    >>> print(lax.le(onp.array([1, 2, 3]), 2))
    [ True  True False]
    """
    return binary(le_p, x, y)


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """x > y as booleans; False where one is NaN.

    Args: x, y: arrays of one dtype, not complex, and one shape; rank 0 and sizes 1 are broadcast.
        For booleans True is the larger.

    >>> print(lax.gt(onp.array([1, 2, 3]), 2))
    [False False  True]
    """
    return binary(gt_p, x, y)


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """x >= y as booleans; False where one is NaN.

    >>> print(lax.ge(onp.array([1, 2, 3]), 2))
    [False  True  True]
    """
    return binary(ge_p, x, y)


def eq_to(x: ArrayLike, y: ArrayLike) -> Array:
    """Equality in the total order of floats, in which NaN equals itself and 0.0 not -0.0."""
    return binary(eq_to_p, x, y)


def lt_to(x: ArrayLike, y: ArrayLike) -> Array:
    """x before y in the total order of floats, which NaNs and signed zeros take part in."""
    return binary(lt_to_p, x, y)


def le_to(x: ArrayLike, y: ArrayLike) -> Array:
    """x not after y in the total order of floats, which NaNs and signed zeros take part in."""
    return binary(le_to_p, x, y)


# Selection ---------------------------------------------------------------------------------------

class SelectN(Primitive):
    """The case that `which` (bool or int32; rank 0 or of the cases' shape) names."""

    algebra = "choice"
    additive = single = True
    spread = staticmethod(tags.elementwise)
    cells = staticmethod(reuse.chosen_each)
    makes_nan = False
    fusion = "fused"
    pace = 0.3
    refuses = "select cases must have the same shardings: "

    def infer(self, which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
        case = cases[0]
        operands = ", ".join(map(str, (which, *cases)))
        if any((c.shape, c.dtype) != (case.shape, case.dtype) for c in cases):
            raise TypeError(f"select_n: operands are {operands}; cases of one dtype and shape are "
                            "required; use olympus.numpy.where, which promotes and broadcasts.")
        if which.dtype != BOOL and which.dtype != dtypes.as_dtype("int32"):
            raise TypeError(f"select_n: which is {which}; bool or int32 is required; compare, or "
                            "convert it with astype.")
        if which.dtype == BOOL and len(cases) > 2:
            raise TypeError(f"select_n: bool which given with {len(cases)} cases; at most two are "
                            "required; use int32 to choose among more.")
        if which.shape not in ((), case.shape):
            raise TypeError(f"select_n: operands are {operands}; which of rank 0 or of the cases' "
                            "shape is required; broadcast it.")
        return make_aval(case.shape, case.dtype, all(c.weak_type for c in cases))

    def lower(self, b: Builder, which: IrValue, *cases: IrValue) -> IrValue:
        index, physical = b.avals_in[0], physical_aval(b.avals_out[0])
        flags = index.update(dtype=BOOL)
        if index.shape and physical.shape != index.shape:   # elements that are arrays themselves
            which = b.broadcast(which, index.update(shape=physical.shape), range(index.ndim))
            flags = flags.update(shape=physical.shape)

        def choose(low: int, high: int) -> IrValue:
            """The right one of cases low … high - 1, by halves."""
            if high - low == 1:
                return cases[low]
            middle = (low + high) // 2
            before, after = choose(low, middle), choose(middle, high)
            if index.dtype == BOOL:
                return b.op("stablehlo.select", [which, after, before])
            limit = b.full(flags.update(dtype=index.dtype), middle)
            below = b.compare("LT", which, limit, "SIGNED", flags)
            return b.op("stablehlo.select", [below, before, after])

        return choose(0, len(cases))

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Tangent]:
        which, *cases = primals
        out = self.bind(*primals)
        if all(type(t) is Zero for t in tangents[1:]):
            return out, Zero(typeof(out).to_tangent_aval())
        made = list(map(instantiate, tangents[1:]))
        return out, self.bind(which, *made)

    def transpose(self, ct: Array, which: ArrayLike, *cases: Array | Linear) -> list[Cotangent]:
        zeros = zeros_of(typeof(ct))
        return [None, *(self.bind(which, *(ct if j == i else zeros for j in range(len(cases))))
                        if type(c) is Linear else None for i, c in enumerate(cases))]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Array, int | None]:
        which, *cases = args
        cases = [to_front(axis, c, d) for c, d in zip(cases, dims[1:], strict=True)]
        if typeof(which).ndim == 0 and dims[0] is None:
            return self.bind(which, *cases), 0
        which, shape = to_front(axis, which, dims[0]), typeof(cases[0]).shape
        if typeof(which).ndim == 1:
            which = broadcast_in_dim(which, shape, (0,))
        return self.bind(which, *cases), 0


select_n_p = SelectN("select_n")


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """The elements of `cases[which]`.

    Args:
      which: bool (at most two cases) or int32, rank 0 or of the cases' shape; False is case 0.
        Out of bounds, the nearest case is taken.
      *cases: arrays of one dtype and shape; Python scalars and rank-0 arrays are broadcast.
    Returns: An array of the cases' dtype and shape; the derivative is the taken case's.

    >>> olympus.lax.select_n(olympus.numpy.array([True, False]), 0., olympus.numpy.ones(2))
    Array([1., 0.], dtype=float32)
    """
    if not cases:
        raise ValueError("select_n: no cases given; at least one is required; pass arrays.")
    shape = next((typeof(c).shape for c in cases if typeof(c).shape), typeof(which).shape)
    if shape:
        like = next((c for c in cases if hasattr(c, "shape")), cases[0])
        cases = tuple(broadcast_in_dim(operand(c, like), shape, ()) if typeof(c).shape == () else c
                      for c in cases)
    elif len(cases) > 1:
        like = next((c for c in cases if hasattr(c, "shape")), cases[0])
        cases = tuple(operand(c, like) for c in cases)
    return select_n_p.bind(which, *cases)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where the bool array `pred` is true, else `on_false`; see `select_n`.

    Args:
      pred: bool, of rank 0 or the cases' shape.
      on_true, on_false: arrays of one dtype and shape; both are computed.
    Returns: An array of their dtype and shape.

    >>> olympus.lax.select(True, 1., 2.)
    Array(1., dtype=float32, weak_type=True)
    """
    return select_n(pred, on_false, on_true)


class Clamp(Primitive):
    """min, x or max, whichever lies in the middle; bounds of rank 0 or of the shape of x."""

    algebra = "clamp"
    spread = staticmethod(tags.elementwise)
    transpose = None
    hands_on_nan = True
    makes_nan = False
    fusion = "fused"
    pace = 0.3

    def infer(self, low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
        check_operands("clamp", (low, x, high), BITS + REAL)
        if low.shape not in ((), x.shape) or high.shape not in ((), x.shape):
            raise TypeError(f"clamp: bounds {low} and {high} given for {x}; rank 0 or the "
                            "operand's shape is required; broadcast them.")
        return make_aval(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)

    def lower(self, b: Builder, low: IrValue, x: IrValue, high: IrValue) -> IrValue:
        return b.op("stablehlo.clamp", [low, x, high])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Tangent]:
        low, x, high = primals
        out = self.bind(low, x, high)
        shape, total = typeof(x).shape, None
        # On a bound the derivative in x is 0, as beyond it; low above high yields high.
        inside = ((gt(low, x), lt(low, high)), (gt(x, low), lt(x, high)), (lt(high, x),))
        for t, flags in zip(tangents, inside, strict=True):
            if type(t) is Zero:
                continue
            t = broadcast_in_dim(t, shape, ()) if typeof(t).shape == () else t
            for flag in flags:
                flag = broadcast_in_dim(flag, shape, ()) if typeof(flag).shape == () else flag
                t = select(flag, t, zeros_of(typeof(t)))
            total = t if total is None else add(total, t)
        return out, Zero(typeof(out).to_tangent_aval()) if total is None else total

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Array, int | None]:
        low, x, high = args
        if all(d is None and typeof(a).ndim == 0 for a, d in ((low, dims[0]), (high, dims[2]))):
            return self.bind(*args), dims[1]
        x = to_front(axis, x, dims[1])
        shape = typeof(x).shape
        low, high = (to_front(axis, a, d) for a, d in ((low, dims[0]), (high, dims[2])))
        low, high = (broadcast_in_dim(a, shape, (0,)) if typeof(a).ndim == 1 else a
                     for a in (low, high))
        return self.bind(low, x, high), 0


clamp_p = Clamp("clamp")


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """max(min, x) cut off at max: `min` where x < min, `max` where x > max, else x.

    Bounds have the dtype of `x` and rank 0 or its shape; not complex.

    Args:
      min, max: bounds of the dtype of `x`, of rank 0 or its shape.
      x: real numbers or booleans, any shape.
    Returns: An array of the shape and dtype of `x`, NaN where one of the three is. The derivative
      in `x` is 0 where a bound holds.

    >>> olympus.lax.clamp(0., olympus.numpy.array([-1., 0.5, 3.]), 1.)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = operand(operand(x, min), max)
    return clamp_p.bind(operand(min, x), x, operand(max, x))


complete_docstrings(globals(), {
    "x, y": "arrays of one dtype, not complex, and one shape; rank 0 and sizes 1 are broadcast.",
}, returns="A bool array of that shape.")
