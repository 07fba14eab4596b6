"""Cumulative reductions along one axis: every prefix (or suffix) combined by an operation.

Values are a windowed reduction, which XLA rewrites to a scan. Derivatives are `scan_pairs`, a
work-efficient tree of slices in 2·log2(n) levels (Blelloch, "Prefix sums and their applications",
1990), on pairs (value, tangent): their combination is the operation's own derivative, so that it
is right at zeros and ties without division.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DimSize, IrValue, Params
from ..base.util import lazy_module
from ..core import tags
from ..core.facts import GivenFacts
from ..core.primitive import Axis, Builder, Linear, Primitive, Tangent, linear_jvp
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import definitely_equal, front_axis, is_static, less, maximum
from . import arithmetic
from .arithmetic import div, is_finite, mul, real, sub
from .bits import bitwise_or
from .comparison import eq, ne, select_n
from .families import Combine, Identity, add
from .reduce import check_kind, combining, highest, largest, lowest, smallest
from .shape import broadcast_in_dim, inserted, rev
from .slicing import concatenate, pad, slice_in_dim
from .transcendental import exp, log
from .windows import emit_windows, sum_windows

Elements = tuple[Array, ...]
CombineAll = Callable[[Elements, Elements], Elements]


def scanned_size(n: DimSize) -> int:
    """The size of an axis that is scanned in halves, which must be known."""
    if not is_static((n,)):
        raise NotImplementedError(
            f"associative_scan: size {n} given; an associative scan over axis of non-constant size "
            "is not supported, because its program depends on the size; give this size as a "
            "number, or use lax.scan.")
    return n


def scan_pairs(combine: CombineAll, elements: Elements, axis: int) -> Elements:
    """Every prefix of `elements` along `axis` combined by an associative operation on tuples."""
    n = typeof(elements[0]).shape[axis]
    if less(scanned_size(n), 2):
        return elements
    evens = [slice_in_dim(x, 0, n, 2, axis) for x in elements]
    firsts = tuple([slice_in_dim(x, 0, n - 1, 2, axis) for x in elements])
    seconds = tuple([slice_in_dim(x, 1, n, 2, axis) for x in elements])
    odd = scan_pairs(combine, combine(firsts, seconds), axis)
    if definitely_equal(n, 2):
        return tuple([concatenate([x, y], axis) for x, y in zip(firsts, odd, strict=True)])
    before = tuple([slice_in_dim(x, 0, (n - 1) // 2, 1, axis) for x in odd])
    after = tuple([slice_in_dim(x, 1, None, 1, axis) for x in evens])
    even = [concatenate([slice_in_dim(x, 0, 1, 1, axis), y], axis)
            for x, y in zip(evens, combine(before, after), strict=True)]
    return tuple([interleave(x, y, axis) for x, y in zip(even, odd, strict=True)])


def interleave(even: ArrayLike, odd: ArrayLike, axis: int) -> Array:
    """even[0], odd[0], even[1], odd[1] … along the axis."""
    # Both are spread out with zeros in the places of the other, and added: x + -0.0 is x, even for
    # x = -0.0.
    aval = typeof(even)
    more = aval.shape[axis] - typeof(odd).shape[axis]
    kind = dtypes.scalar_kind(aval.dtype)
    zero = literal({"f": -0.0, "c": complex(-0.0, -0.0)}.get(kind, 0), aval.dtype)
    pads = [[(0, 0, 0)] * aval.ndim for _ in range(2)]
    pads[0][axis], pads[1][axis] = (0, 1 - more, 1), (1, more, 1)
    wide = pad(even, zero, pads[0]), pad(odd, zero, pads[1])
    return (bitwise_or if dtypes.is_bool(aval.dtype) else add)(*wide)


class Cumulative(Primitive):
    """Prefixes along `axis`, suffixes if `reverse`, combined by a binary operation."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.cumulative"), 512
    spread = staticmethod(tags.along("axis"))
    by_parts = True
    transpose = None
    pace = 2.5
    rounds = True   # whether a prefix of floats depends on the order in which it is combined

    def __init__(self, name: str, combine: Combine, identity: Identity,
                 with_tangent: Any, kinds: str, **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, **facts)
        self.combine, self.identity, self.kinds = combine, identity, kinds
        self.with_tangent = with_tangent

    def infer(self, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_kind(self.name, x, self.kinds)
        return x

    def lower(self, b: Builder, x: IrValue, *, axis: int, reverse: bool) -> IrValue:
        aval = b.avals_in[0]
        n = aval.shape[axis]
        if n in (0, 1):
            return x
        n = maximum(n, 1)       # no window is empty, and a symbolic size may turn out to be 0
        ones, none = (1,) * aval.ndim, ((0, 0),) * (aval.ndim - 1)
        return self.emit(b, x, {
            "window_dimensions": inserted(ones[1:], axis, n), "window_strides": ones,
            "base_dilation": ones, "window_dilation": ones,
            "padding": inserted(none, axis, (0, n - 1) if reverse else (n - 1, 0))})

    def emit(self, b: Builder, x: IrValue, params: Params) -> IrValue:
        """The windows that end, or begin, at each element."""
        aval = b.avals_in[0]
        _, body = combining(b, self.combine, make_aval((), aval.dtype))
        return emit_windows(b, [x], [b.scalar(self.identity(aval.dtype), aval.dtype)], [aval], body,
                            **params)[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, axis: int, reverse: bool
            ) -> tuple[Array, Tangent]:
        pair = (primals[0], tangents[0])
        if reverse:
            pair = tuple([rev(x, (axis,)) for x in pair])
        out, tangent = scan_pairs(self.with_tangent, pair, axis)
        return (rev(out, (axis,)), rev(tangent, (axis,))) if reverse else (out, tangent)

    def vmap(self, axis_: Axis, args: Sequence[Array], dims: Sequence[int], *, axis: int,
             reverse: bool) -> tuple[Array, int | None]:
        dim = dims[0]
        return self.bind(args[0], axis=axis + (axis >= dim), reverse=reverse), dim


class CumulativeSum(Cumulative):
    """Linear: the tangent is the sum of tangents, the transpose sums the other way."""

    adds_up = True
    jvp = linear_jvp

    def emit(self, b: Builder, x: IrValue, params: Params) -> IrValue:
        return sum_windows(b, x, params)

    def transpose(self, ct: Array, x: Linear, *, axis: int, reverse: bool) -> list[Array | None]:
        return [self.bind(ct, axis=axis, reverse=not reverse)]


def _dual_product(p: Elements, q: Elements) -> Elements:
    (x, s), (y, t) = p, q
    return mul(x, y), add(mul(s, y), mul(x, t))


def _extremum(choose: Combine) -> CombineAll:
    def combine(p: Elements, q: Elements) -> Elements:
        (x, s), (y, t) = p, q
        one_half = literal(0.5, typeof(s).dtype)
        z = choose(x, y)
        tie = eq(x, y)
        picked = select_n(eq(x, z), t, s)
        return z, select_n(tie, picked, mul(add(s, t), one_half))
    return combine


def _logaddexp(x: Array, y: Array) -> Array:
    """log(exp x + exp y); exact where either is infinite."""
    return _log_pair(x, y)[0]


def _log_pair(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """log(exp x + exp y) and the derivatives by x and y."""
    aval = typeof(x)
    top = arithmetic.max(x, y)
    # Infinite maxima would give inf - inf: take them as the result, with derivative 1 where equal.
    finite = is_finite(top) if aval.dtype.kind != "c" else is_finite(real(top))
    zero, one = [broadcast_in_dim(literal(v, aval.dtype), aval.shape, ()) for v in (0, 1)]
    shift = select_n(finite, zero, top)
    ex, ey = exp(sub(x, shift)), exp(sub(y, shift))
    total = add(ex, ey)
    value = select_n(finite, top, add(shift, log(total)))
    safe = select_n(ne(total, zero), one, total)
    return value, div(ex, safe), div(ey, safe)


def _log_sum(p: Elements, q: Elements) -> Elements:
    (x, s), (y, t) = p, q
    z, dx, dy = _log_pair(x, y)
    return z, add(mul(s, dx), mul(t, dy))


class CumulativeExtremum(Cumulative):
    """The largest or smallest elements of prefixes, which are elements of them."""

    rounds = False


cumsum_p = CumulativeSum("cumsum", add, lambda dtype: 0, None, "iufc")
cumprod_p = Cumulative("cumprod", mul, lambda dtype: 1, _dual_product, "iufc")
cummax_p = CumulativeExtremum("cummax", largest, lowest, _extremum(largest), "iufc")
cummin_p = CumulativeExtremum("cummin", smallest, highest, _extremum(smallest), "iufc")
cumlogsumexp_p = Cumulative("cumlogsumexp", _logaddexp,
                            lambda dtype: lowest(dtypes.to_real_dtype(dtype)), _log_sum, "fc",
                            pace=20.0)


def _cumulative(prim: Cumulative, operand: ArrayLike, axis: int, reverse: bool) -> Array:
    axis = front_axis(axis, typeof(operand).ndim, prim.name)
    return prim.bind(operand, axis=axis, reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative sums along an axis, from its end if `reverse`.

    Args: axis: the axis; unlike NumPy's, the default is the first one.

    >>> print(olympus.lax.cumsum(olympus.numpy.array([1, 2, 3])))
    [1 3 6]
    """
    return _cumulative(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative products along an axis.

    Returns: An array of the operand's shape and dtype; the derivative is right where factors are 0.

    >>> print(lax.cumprod(onp.array([[1, 2, 3], [4, 5, 6]]), axis=1))
    [[  1   2   6]
     [  4  20 120]]
    """
    return _cumulative(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative maxima along an axis; NaN from the first NaN on.

    Args: operand: numbers (not bool), rank at least 1; complex ones by real, then imaginary part.

    >>> x = onp.array([1, 3, 2])
    >>> print(lax.cummax(x), lax.cummax(x, reverse=True))
    [1 3 3] [3 3 2]
    """
    return _cumulative(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative minima along an axis; NaN from the first NaN on.

    Args: operand: numbers (not bool), rank at least 1; complex ones by real, then imaginary part.

    >>> print(lax.cummin(onp.array([3., 1., float("nan"), 0.])))
    [ 3.  1. nan nan]
    """
    return _cumulative(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative log-sum-exp along an axis: log(cumsum(exp(operand))), without overflow.

    Args: operand: floats or complex numbers, rank at least 1.
    Returns: An array of the operand's shape and dtype; infinite elements give the limit.

    >>> print(lax.cumlogsumexp(onp.array([1000., 1000., -float("inf")])))
    [1000.     1000.6932 1000.6932]
    """
    return _cumulative(cumlogsumexp_p, operand, axis, reverse)


complete_docstrings(globals(), {
    "reverse": "start at its end.",
    "axis": "the axis.",
    "operand": "numbers (not bool), rank at least 1.",
}, returns="An array of the operand's shape and dtype.")
