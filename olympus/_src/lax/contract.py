"""Contractions: dot_general and its rules."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Sequence

from ..base import config
from ..base.errors import ShardingTypeError
from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Params
from ..base.util import lazy_module, memoize, quoted
from ..core import tags
from ..core.facts import Shapes
from ..core.ir import OlympusprEqn
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Transposed, not_linear
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import definitely_equal, prod, static_int
from ..types.sharding import PartitionSpec, ShardingLike, axes_of
from .families import product_rule
from .precision import CanonicalPrecision, PrecisionLike, canonical_precision, precision_attributes
from .shape import shifted, transpose
from .sharding import as_typed, constrain, settled, undecided

Dims = tuple[int, ...]
FLOAT32 = dtypes.as_dtype("float32")
_INT = frozenset((int,))
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]],
                            tuple[Sequence[int], Sequence[int]]]
DimensionNumbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]


def free_axes(ndim: int, *taken: Dims) -> Dims:
    """The axes that a contraction neither contracts nor pairs up."""
    gone = sum(taken, ())
    return tuple([i for i in range(ndim) if i not in gone])


class DotGeneral(Primitive):
    """Sum of products over contracting axes, in parallel over batch axes.

    Result axes: batch axes, then free axes of lhs, then free axes of rhs. params: out_sharding,
    the mesh axes along which devices keep their terms of the sums, None for none.
    """

    single = True
    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.products"), 256
    spread = staticmethod(tags.contract)
    settled_by = "dot(…, out_sharding=…)"
    hands_on_nan = True
    contracts = True

    def summed_axes(self, params: Params) -> Sequence[int]:
        return params["dimension_numbers"][0][0]

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        (contracted, _), _ = params["dimension_numbers"]
        return 0.1 * prod(outs[0]) * prod([ins[0][axis] for axis in contracted])

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        if avals[0].dtype.kind not in "iu":
            return ""
        return ("products of integers have no fast kernel: take them in float32 where sums are "
                "below 2**24")

    def shown(self, eqn: OlympusprEqn) -> Params:
        params = eqn.params
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        shown = {"dimension_numbers": ((list(lc), list(rc)), (list(lb), list(rb)))}
        if params["precision"] is not None:
            shown["precision"] = params["precision"]
        preferred = params["preferred_element_type"]
        if preferred is not None and any(a.aval.dtype != preferred for a in eqn.invars):
            shown["preferred_element_type"] = preferred
        return shown

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        out = super().inferred(avals, params)
        unreduced = params["out_sharding"]
        if unreduced is None or not out.explicit:
            return out
        spec = out.sharding.spec
        return out.update(sharding=out.sharding.update(
            spec=spec.update(unreduced=spec.unreduced | unreduced)))

    def infer(self, lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: DimensionNumbers,
              precision: CanonicalPrecision, preferred_element_type: DType | None,
              out_sharding: ShardingLike) -> ShapedArray:
        (lc, rc), (lb, rb) = dimension_numbers
        for what, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
            _check_axes(what, lhs, rhs, left, right)
        _check_distinct(lhs, lc, lb)
        _check_distinct(rhs, rc, rb)
        shape = (*[lhs.shape[i] for i in lb], *[lhs.shape[i] for i in free_axes(lhs.ndim, lc, lb)],
                 *[rhs.shape[i] for i in free_axes(rhs.ndim, rc, rb)])
        return make_aval(shape, sum_dtype("dot_general", lhs, rhs, preferred_element_type),
                         lhs.weak_type and rhs.weak_type)

    def lower(self, b: Builder, lhs: IrValue, rhs: IrValue, *, dimension_numbers: DimensionNumbers,
              precision: CanonicalPrecision, preferred_element_type: DType | None,
              out_sharding: ShardingLike) -> IrValue:
        lhs, rhs, out = unmixed(b, lhs, rhs)
        attributes = precision_attributes(b, precision)
        wanted = b.avals_out[0]
        result = b.dot_general(lhs, rhs, dimension_numbers, attributes, out)
        return result if out is wanted else b.convert(result, wanted)

    jvp = product_rule

    def transpose(self, ct: Array, lhs: Array | Linear, rhs: Array | Linear, *,
                  dimension_numbers: DimensionNumbers, precision: CanonicalPrecision,
                  preferred_element_type: DTypeLike | None, out_sharding: ShardingLike
                  ) -> Sequence[Cotangent]:
        (lc, rc), (lb, rb) = dimension_numbers
        params = {"precision": precision, "preferred_element_type": preferred_element_type}
        if type(lhs) is Linear and type(rhs) is Linear:
            raise not_linear("dot_general", "both operands")
        if type(lhs) is Linear:
            return [self._cotangent(ct, lhs.aval, rhs, ((lc, rc), (lb, rb)), True, params), None]
        return [None, self._cotangent(ct, rhs.aval, lhs, ((rc, lc), (rb, lb)), False, params)]

    def _cotangent(self, ct: Array, x: ShapedArray, y: Transposed, dims: DimensionNumbers,
                   left: bool, params: Params) -> Array:
        """Cotangent of x, the left operand or the right one, given y: contract y's free axes."""
        if params["preferred_element_type"] is not None or typeof(y).dtype != x.dtype:
            params = {**params, "preferred_element_type": x.dtype}
        swapped, numbers, permutation = _cotangent_plan(dims, x.ndim, typeof(y).ndim, left)
        factors = (y, ct) if swapped else (ct, y)
        sums = x.to_cotangent_aval().sums[0]
        if sums and _terms(typeof(factors[0]), typeof(factors[1]), numbers) != sums:
            sums = frozenset()
        if x.tagged and not sums:   # where the cotangent is cut follows from the operand alone
            factors = undecided(factors[0]), undecided(factors[1])
        out = self.bind(*factors, dimension_numbers=numbers, out_sharding=sums or None, **params)
        return as_typed(out if permutation is None else transpose(out, permutation),
                        x.to_cotangent_aval())

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             dimension_numbers: DimensionNumbers, **params: Hashable) -> tuple[Array, int | None]:
        (x, y), (dx, dy) = args, dims
        (lc, rc), (lb, rb) = dimension_numbers
        if dx is not None:
            lc, lb = shifted(lc, dx), shifted(lb, dx)
        if dy is not None:
            rc, rb = shifted(rc, dy), shifted(rb, dy)
        if dx is not None and dy is not None:
            numbers = ((lc, rc), ((dx, *lb), (dy, *rb)))
            return self.bind(x, y, dimension_numbers=numbers, **params), 0
        # One operand mapped: its axis is one more free axis of that operand, where it stands.
        out = self.bind(x, y, dimension_numbers=((lc, rc), (lb, rb)), **params)
        if dx is not None:
            return out, len(lb) + free_axes(typeof(x).ndim, lc, lb).index(dx)
        free = free_axes(typeof(y).ndim, rc, rb)
        return out, typeof(out).ndim - len(free) + free.index(dy)


@memoize(1024)
def _cotangent_plan(dims: DimensionNumbers, x_ndim: int, y_ndim: int, left: bool
                    ) -> tuple[bool, DimensionNumbers, Dims | None]:
    """(whether y comes first, the axes to contract, the order of the product's axes or None)."""
    (xc, yc), (xb, yb) = dims
    x_free, y_free, nb = free_axes(x_ndim, xc, xb), free_axes(y_ndim, yc, yb), len(xb)
    first = nb + len(x_free) if left else nb        # where y's free axes are in ct
    ct_free_y, batch = tuple(range(first, first + len(y_free))), tuple(range(nb))
    contracted = [c for _, c in sorted(zip(yc, xc, strict=True))]
    # Axis k of the product belongs at axis axes[k] of x. Usually one order of the factors leaves
    # nothing to move: for the weights of x @ w it is x first. Where either does, ct is: it is what
    # vmap gives one more axis, which then comes first.
    axes, order = [*xb, *x_free, *contracted], list(range(x_ndim))
    if axes != order == [*xb, *contracted, *x_free]:
        return True, ((y_free, ct_free_y), (yb, batch)), None
    permutation = tuple([axes.index(i) for i in order])
    return (False, ((ct_free_y, y_free), (batch, yb)), None if axes == order else permutation)


def _check_axes(what: str, lhs: ShapedArray, rhs: ShapedArray, left: Dims, right: Dims) -> None:
    if len(left) != len(right):
        raise TypeError(f"dot_general: {what} axes {left} of {lhs} and {right} of {rhs} given; as "
                        "many of one as of the other are required.")
    for i, j in zip(left, right, strict=True):
        if not (0 <= i < lhs.ndim and 0 <= j < rhs.ndim):
            raise TypeError(f"dot_general: {what} axes {left} of {lhs} and {right} of {rhs} given; "
                            "each must be an axis of its operand.")
        if not definitely_equal(lhs.shape[i], rhs.shape[j]):
            sizes = [tuple(a.shape[k] for k in axes) for a, axes in ((lhs, left), (rhs, right))]
            raise TypeError(f"dot_general: {what} axes {left} of {lhs} and {right} of {rhs} given: "
                            f"dot_general requires {what} dimensions to have the same shape, got "
                            f"{sizes[0]} and {sizes[1]}; transpose or reshape one.")


def _check_distinct(x: ShapedArray, contracting: Dims, batch: Dims) -> None:
    if len({*contracting, *batch}) < len(contracting) + len(batch):
        raise TypeError(f"dot_general: operand {x}, contracting axes {contracting} and batch axes "
                        f"{batch} given; each axis may be named once.")


def sum_dtype(name: str, lhs: ShapedArray, rhs: ShapedArray, preferred: DType | None) -> DType:
    """The dtype of the result: the preferred one, or the promoted dtype of the operands."""
    if dtypes.is_extended(lhs.dtype) or dtypes.is_extended(rhs.dtype):
        raise TypeError(f"{name}: operands {lhs} and {rhs} given; numeric dtypes are required.")
    if preferred is not None:
        return preferred
    if lhs.dtype == rhs.dtype:
        return lhs.dtype
    try:
        with config.enable_x64(True):   # a rule of types: the same for them at any time
            return dtypes.promote_many(((lhs.dtype, lhs.weak_type), (rhs.dtype, rhs.weak_type)),
                                       "standard")[0]
    except dtypes.TypePromotionError:
        raise TypeError(f"{name}: operands {lhs} and {rhs} given, whose dtypes do not promote to "
                        "one; preferred_element_type is required, or a conversion.") from None


def unmixed(b: Builder, lhs: IrValue, rhs: IrValue) -> tuple[IrValue, IrValue, ShapedArray]:
    """Operands as XLA's products take them: of one dtype, of the kind of the result's.

    Returns both MLIR values and the aval in which to compute the result, to convert from then.
    """
    x, y, out = *b.avals_in[:2], b.avals_out[0]
    # XLA:CPU has no products of less than 8 bits into another dtype.
    if x.dtype == y.dtype and dtypes.scalar_kind(x.dtype) == dtypes.scalar_kind(out.dtype) and (
            x.dtype == out.dtype or dtypes.itemsize_bits(x.dtype) >= 8):
        return lhs, rhs, out
    try:
        common = dtypes.promote_many(((x.dtype, False), (y.dtype, False), (out.dtype, False)),
                                     "standard")[0]
    except dtypes.TypePromotionError:       # an 8-bit float with another: all are exact in float32
        wide = [a.dtype for a in (x, y, out) if dtypes.is_complex(a.dtype)]
        common = wide[0] if wide else out.dtype if dtypes.is_floating(out.dtype) else FLOAT32
    lhs, rhs = [v if a.dtype == common else b.convert(v, a.update(dtype=common))
                for v, a in ((lhs, x), (rhs, y))]
    return lhs, rhs, out if common == out.dtype else out.update(dtype=common)


dot_general_p = DotGeneral("dot_general")


def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
                precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, *,
                out_sharding: ShardingLike = None) -> Array:
    """Contract two arrays: sums of products over pairs of axes, in parallel over batch axes.

    Args:
      lhs, rhs: arrays; different dtypes are promoted, as by operators: of float16 and bfloat16
        the result is float32.
      dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) axes.
      precision: see `Precision`; a value, a pair, a name, or a dot algorithm.
      preferred_element_type: dtype of the sums and of the result; None is the operands'.
      out_sharding: where the result is; see `with_sharding_constraint`.
    Returns: Axes: batch, then the remaining axes of lhs, then those of rhs.

    >>> a, b = onp.arange(4.).reshape(2, 2), onp.array([[1., 0.], [1., 1.]])
    >>> print(lax.dot_general(a, b, (((1,), (0,)), ((), ()))))
    [[1. 1.]
     [5. 3.]]
    """
    try:
        (lc, rc), (lb, rb) = dimension_numbers
        numbers = ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
    except (TypeError, ValueError):
        raise TypeError(f"dot_general: dimension_numbers {dimension_numbers!r} given; ((lhs "
                        "contracting, rhs contracting), (lhs batch, rhs batch)) is required, each "
                        "a sequence of axes.") from None
    (lc, rc), (lb, rb) = numbers
    if {*map(type, (*lc, *rc, *lb, *rb))} - _INT:
        lc, rc, lb, rb = [tuple([static_int(i, "dot_general", "axis") for i in axes])
                          for pair in numbers for axes in pair]
        numbers = ((lc, rc), (lb, rb))
    if preferred_element_type is not None:
        preferred_element_type = dtypes.requested_dtype("dot_general", preferred_element_type)
    params = {"dimension_numbers": numbers, "precision": canonical_precision(precision),
              "preferred_element_type": preferred_element_type}
    if out_sharding is None:
        return dot_general_p.bind(lhs, rhs, out_sharding=None, **params)
    product = functools.partial(dot_general_p.bind, **params)
    a, b = typeof(lhs), typeof(rhs)
    check_terms("dot_general", (a, b), out_sharding,
                [((a, i), (b, j)) for i, j in zip(*numbers[0], strict=True)])
    sums = _terms(a, b, numbers)
    if sums is not None:
        return constrain("dot_general", product(lhs, rhs, out_sharding=sums or None), out_sharding)
    return settled("dot_general", functools.partial(product, out_sharding=None), out_sharding,
                   lhs, rhs)


def _terms(lhs: ShapedArray, rhs: ShapedArray, numbers: DimensionNumbers
           ) -> frozenset[str] | None:
    """The mesh axes along which devices have terms of a product's sums.

    None where types do not say how the product of the terms is cut, so that XLA has to be asked:
    it takes the sums at once, in each run of a loop, where they could wait.
    """
    if not (lhs.explicit and rhs.explicit and lhs.sharding.mesh == rhs.sharding.mesh) or (
            lhs.sums[0] or rhs.sums[0]):
        return None
    (lc, rc), (lb, rb) = numbers
    mine, its = [[axes_of(entry) for entry in x.sharding.spec] for x in (lhs, rhs)]
    if any(mine[i] != its[j] for i, j in zip((*lc, *lb), (*rc, *rb), strict=True)):
        return None
    reduced = lhs.sums[1] | rhs.sums[1]
    if any(not reduced <= x.sums[1].union(*cut) for x, cut in ((lhs, mine), (rhs, its))):
        return None
    rest = [name for i, cut in enumerate(mine) if i not in lc for name in cut]
    rest += [name for j, cut in enumerate(its) if j not in (*rc, *rb) for name in cut]
    summed = frozenset(name for i in lc for name in mine[i])
    return summed if len({*rest}) == len(rest) else None


def check_terms(what: str, avals: Sequence[ShapedArray], out_sharding: ShardingLike,
                summed: Iterable[Sequence[tuple[ShapedArray, int]]]) -> None:
    """ShardingTypeError unless devices have the terms of the sum that is to be left to them.

    `summed` has the operands' axes that go together in each sum.
    """
    spec = getattr(out_sharding, "spec", out_sharding)
    if type(spec) is not PartitionSpec or not spec.unreduced:
        return
    cuts = [{axes_of(a.sharding.spec[i]) for a, i in pairs} for pairs in summed]
    if any(len(cut) > 1 for cut in cuts):
        wrong = ("lhs and rhs contracting dims should be sharded identically where out_sharding has"
                 " unreduced axes")
    elif {name for cut in cuts for axes in cut for name in axes} != spec.unreduced:
        wrong = "out_sharding's unreduced axes should be equal to the contracting specs"
    else:
        return
    raise ShardingTypeError(
        f"{what}: {wrong}: operands {', '.join(map(str, avals))} and out_sharding {out_sharding} "
        f"given; contracted axes that are cut along all of {quoted(spec.unreduced)} "
        "in both are required; reshard the operands, or leave unreduced away.")


def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
        out_sharding: ShardingLike = None) -> Array:
    """The product of two vectors, a matrix and a vector, or two matrices.

    Args:
      lhs, rhs: numbers, rank 1 or 2; the last axis of lhs and the first of rhs have one size.
      dimension_numbers: if given, the call is `dot_general` with them, of any rank.
      precision, preferred_element_type, out_sharding: see `dot_general`.
    Returns: An array of the axes that are left: a scalar for two vectors.

    >>> x = onp.array([[1., 2.], [3., 4.]])
    >>> print(lax.dot(x, onp.array([1., 1.])), lax.dot(x[0], x[1]))
    [3. 7.] 11.0
    """
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type,
                           out_sharding=out_sharding)
    x, y = typeof(lhs), typeof(rhs)
    if not (1 <= x.ndim <= 2 and 1 <= y.ndim <= 2):
        raise TypeError(f"dot: operands {x} and {y} given; ranks 1 or 2 are required; use "
                        "dot_general, or olympus.numpy.matmul for batches.")
    return dot_general(lhs, rhs, (((x.ndim - 1,), (0,)), ((), ())), precision,
                       preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products over the last two axes, in parallel over the leading ones.

    Args:
      lhs: [..., n, k] numbers, rank at least 2.
      rhs: [..., k, m] numbers, with the same leading axes; they are not broadcast, unlike
        `olympus.numpy.matmul`'s.
      precision: see `dot_general`.
    Returns: [..., n, m] of the operands' dtype.

    >>> print(lax.batch_matmul(onp.arange(4.).reshape(2, 1, 2), onp.ones((2, 2, 1))).ravel())
    [1. 5.]
    """
    x, y = typeof(lhs), typeof(rhs)
    if x.ndim < 2 or x.ndim != y.ndim:
        raise ValueError(f"batch_matmul: operands {x} and {y} given; equal ranks of at least 2 are "
                         "required; add axes with lax.broadcast.")
    batch = tuple(range(x.ndim - 2))
    return dot_general(lhs, rhs, (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch)), precision)
