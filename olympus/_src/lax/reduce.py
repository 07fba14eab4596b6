"""Reductions over axes by one monoid, and the positions of extrema.

`reduce_sum` is in `shape`, because transposing a broadcast needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Params
from ..base.util import lazy_module
from ..core import tags
from ..core.facts import Shapes
from ..core.primitive import Axis, Builder, Primitive, Tangent, Zero
from ..core.staging import stage
from ..core.trace import is_array, literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import floor_div, front_axes, front_axis, known_less, less, mod, prod
from ..types.sharding import ShardingLike
from . import arithmetic, families
from .arithmetic import div, mul
from .bits import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_right_arithmetic
from .comparison import eq, gt, lt, ne, select, select_n
from .convert import bitcast_convert_type_p, convert_element_type_p
from .creation import full
from .families import Combine, Identity, add
from .shape import Dims, broadcast_in_dim, reduce_sum, reshape, shifted, transpose, zeros_of
from .sharding import constrain
from .slicing import pad, slice_in_dim

BOOL, FLOAT16, FLOAT32 = map(dtypes.as_dtype, (bool, "float16", "float32"))
# From how many elements, and from which size of an axis on, extrema are combined by pieces.
LARGE, LONG_AXIS = 8192, 16
# Rows of fewer elements, from so many of them on, are combined column by column.
MANY_ROWS = 1024
# So many elements that are computed are combined by pieces also along other axes than the last.
LONG_COLUMN = 64


def check_kind(name: str, x: ShapedArray, kinds: str) -> None:
    """TypeError unless the operand's kind of dtype is accepted."""
    if dtypes.scalar_kind(x.dtype) not in kinds:
        accepted = ", ".join(families.KIND_NAMES[k] for k in kinds)
        raise TypeError(f"{name}: operand {x} given; dtypes accepted are {accepted}; convert it "
                        "with astype.")


def lowest(dtype: DType) -> complex:
    """The identity of max: -inf, the least integer or False."""
    kind = dtypes.scalar_kind(dtype)
    if kind == "f":
        return _infinity(dtype, -1)
    if kind in "iu":
        return int(dtypes.iinfo(dtype).min)
    return False if kind == "b" else complex(float("-inf"), float("-inf"))


def highest(dtype: DType) -> complex:
    """The identity of min: inf, the largest integer or True."""
    kind = dtypes.scalar_kind(dtype)
    if kind == "f":
        return _infinity(dtype, 1)
    if kind in "iu":
        return int(dtypes.iinfo(dtype).max)
    return True if kind == "b" else complex(float("inf"), float("inf"))


def _infinity(dtype: DTypeLike, sign: int) -> float:
    """±inf, or the extreme value of a dtype of floats without infinities."""
    infinity = sign * float("inf")
    if dtypes.as_dtype(dtype).type(infinity) == infinity:
        return infinity
    info = dtypes.finfo(dtype)
    return float(info.max if sign > 0 else info.min)


def largest(x: Array, y: Array) -> Array:
    """The larger of two; NaN if either is."""
    return arithmetic.max(x, y)


def smallest(x: Array, y: Array) -> Array:
    """The smaller of two; NaN if either is."""
    return arithmetic.min(x, y)


def combining(b: Builder, combine: Combine, scalar: ShapedArray
              ) -> tuple[Hashable, Callable[..., Sequence[IrValue]]]:
    """What combines two scalars in the region of a reduction: its name among others, and its body.

    XLA:CPU (jaxlib 0.10.2, 0.12.0.1) hands reductions by `maximum` and `minimum` of some 4,096
    floats to a library that drops NaN. It does not know them by `clamp`, which compiles to the
    same instructions: the bounds that do nothing are the infinities. Nor do other engines, which
    may take an export.
    """
    if (combine not in (largest, smallest) or dtypes.scalar_kind(scalar.dtype) != "f"
            or b.module.platform != "cpu" or b.module.exported):
        program = b.module.combiner(combine, scalar)
        return combine, lambda *pq: b.call_inline(program, pq)

    def clamped(p: IrValue, q: IrValue) -> list[IrValue]:
        bounds = ([q, p, b.scalar(highest(scalar.dtype), scalar.dtype)] if combine is largest else
                  [b.scalar(lowest(scalar.dtype), scalar.dtype), p, q])
        return [b.op("stablehlo.clamp", bounds, None, scalar)]

    return (combine, "clamp"), clamped


class Reduction(Primitive, abstract=True):
    """Combine the elements along axes, in any order, starting from an identity."""

    spread = staticmethod(tags.reduce)
    by_parts = True
    transpose = None
    along = "axes"
    pace = 0.4

    def __init__(self, name: str, combine: Combine, identity: Identity, kinds: str) -> None:
        super().__init__(name)
        self.combine, self.identity, self.kinds = combine, identity, kinds

    def infer(self, x: ShapedArray, *, axes: Dims) -> ShapedArray:
        check_kind(self.name, x, self.kinds)
        return make_aval(tuple([n for i, n in enumerate(x.shape) if i not in axes]), x.dtype,
                         x.weak_type)

    def lower(self, b: Builder, x: IrValue, *, axes: Dims) -> IrValue:
        scalar = make_aval((), b.avals_in[0].dtype)
        program = b.module.combiner(self.combine, scalar)
        return b.reduce_by(self.combine, x, self.identity(scalar.dtype), axes, b.avals_out[0],
                           lambda *pq: b.call_inline(program, pq))

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, axes: Dims
             ) -> tuple[Array, int | None]:
        dim = dims[0]
        gone = shifted(axes, dim)
        return self.bind(args[0], axes=gone), dim - sum(a < dim for a in gone)


class Bitwise(Reduction):
    """and, or, xor: no derivative."""

    algebra = "mask"
    jvp = None
    pace = 0.25
    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.reductions"), 32768


class Extremum(Reduction):
    """max, min: NaN if any element is; equal extrema share the tangent equally."""

    makes_nan = False
    algebra = "mask"
    fusion = "reduces"

    def __init__(self, name: str, combine: Combine, identity: Identity, before: Combine) -> None:
        super().__init__(name, combine, identity, "biufc")
        self.before = before    # whether a real number is passed over for another

    def lower(self, b: Builder, x: IrValue, *, axes: Dims) -> IrValue:
        module, aval, out = b.module, b.avals_in[0], b.avals_out[0]
        kind = dtypes.scalar_kind(aval.dtype)
        if kind not in "fiu" or module.platform not in ("cpu", None):
            return super().lower(b, x, axes=axes)
        alone = module.keeps_calls and b.block.sizes is None
        if kind != "f":     # along rows, XLA:CPU has vectors of bytes alone
            rows = aval.ndim - 1 in axes and dtypes.itemsize_bits(aval.dtype) > 8
            return (self.by_levels(b, x, axes, aval.dtype) if alone and rows
                    else super().lower(b, x, axes=axes))
        apart = module.places.apart and not module.exported
        if not (alone or apart):
            return self._checked(b, x, axes)
        narrow = aval.dtype.itemsize < FLOAT32.itemsize     # XLA:CPU has no vectors of these
        dtype = FLOAT32 if narrow else aval.dtype
        if narrow:
            x = b.convert(x, aval.update(dtype=dtype))
            if alone and aval.dtype == FLOAT16:     # nor is the conversion vectorised elsewhere
                x = b.hold(x, aval.update(dtype=dtype))
        x = (self.by_levels(b, x, axes, dtype) if alone else
             self._clamped(b, x, axes, out.update(dtype=dtype)))
        return b.convert(x, out) if narrow else x

    def _clamped(self, b: Builder, x: IrValue, axes: Dims, out: ShapedArray) -> IrValue:
        """The reduction of an array to an aval on one CPU, which keeps NaN."""
        name, body = combining(b, self.combine, make_aval((), out.dtype))
        return b.reduce_by(name, x, self.identity(out.dtype), axes, out, body)

    def _checked(self, b: Builder, x: IrValue, axes: Dims) -> IrValue:
        """The reduction where devices may share the axes, and NaN where an element is NaN.

        XLA's partitioner makes it one over devices, too, for which it knows `maximum` alone.
        """
        aval, out = b.avals_in[0], b.avals_out[0]
        extremum = super().lower(b, x, axes=axes)
        nan = aval.dtype.type(float("nan"))
        if nan == nan:      # a dtype without
            return extremum
        missing = b.compare("NE", x, x, "FLOAT", aval.update(dtype=BOOL))
        missing = b.reduce("stablehlo.or", missing, False, axes, out.update(dtype=BOOL))
        return b.op("stablehlo.select", [missing, b.full(out, nan), extremum], None, out)

    def by_levels(self, b: Builder, x: IrValue, axes: Dims, dtype: DType) -> IrValue:
        """The reduction on one CPU, in which a long axis is cut into pieces, level by level.

        XLA:CPU makes vectors of what combines a few pieces element by element, but not of what
        reduces a long axis by this combiner. Adjoining axes are one.
        """
        shape = b.avals_in[0].shape
        runs: list[list[int]] = []
        for axis in sorted(axes):
            if runs and runs[-1][1] == axis:
                runs[-1][1] = axis + 1
            else:
                runs.append([axis, axis + 1])
        for start, end in reversed(runs):
            before, n, behind = [prod(part) for part in (shape[:start], shape[start:end],
                                                         shape[end:])]
            out = make_aval((*shape[:start], *shape[end:]), dtype)
            if 1 < n < LONG_AXIS and behind == 1 and before >= MANY_ROWS:
                x = self._shape(b, x, (before, n), dtype)
                (x,) = b.traced(functools.partial(self._of_slices, n), [x], [
                    make_aval((before, n), dtype)])
                x = self._shape(b, x, out.shape, dtype)
            elif n < LONG_AXIS or before * n * behind < LARGE:
                x = self._clamped(b, x, tuple(range(start, end)), out)
            else:
                x = self._shape(b, x, (before, n, behind), dtype)
                while n >= LONG_AXIS:
                    x, n = self._pieces(b, x, (before, n, behind), dtype)
                x = self._clamped(b, x, (1,), make_aval((before, behind), dtype))
                x = self._shape(b, x, out.shape, dtype)
            shape = out.shape
        return x

    def _of_slices(self, n: int, x: Array) -> Array:
        """The extrema of rows of n, column by column, which XLA makes vectors of."""
        columns = [slice_in_dim(x, i, i + 1, 1, 1) for i in range(n)]
        while len(columns) > 1:
            columns = [*columns[2:], self.combine(*columns[:2])]
        return columns[0]

    def _pieces(self, b: Builder, x: IrValue, shape: Dims, dtype: DType) -> tuple[IrValue, int]:
        """The middle axis cut into pieces that are combined: they may overlap, as x ∨ x is x."""
        before, n, behind = shape
        q = 8 * -(-n // 128)    # of at most 16 pieces, which vectors divide
        k, rest = floor_div(n, q), mod(n, q)
        out = make_aval((before, q, behind), dtype)
        head = x if not rest else self._part(b, x, shape, 0, q * k, dtype)
        y = self._clamped(b, self._shape(b, head, (before, k, q, behind), dtype), (1,), out)
        if rest:
            name = "stablehlo.maximum" if self.combine is largest else "stablehlo.minimum"
            y = b.op(name, [y, self._part(b, x, shape, n - q, n, dtype)], None, out)
        return b.hold(y, out), q

    @staticmethod
    def _shape(b: Builder, x: IrValue, shape: Dims, dtype: DType) -> IrValue:
        return b.op("stablehlo.reshape", [x], None, make_aval(shape, dtype))

    @staticmethod
    def _part(b: Builder, x: IrValue, shape: Dims, start: int, stop: int, dtype: DType) -> IrValue:
        """Elements `start` to `stop` of the middle axis."""
        before, _, behind = shape
        return b.op("stablehlo.slice", [x], {
            "start_indices": b.i64s((0, start, 0)), "limit_indices": b.i64s((before, stop, behind)),
            "strides": b.i64s((1, 1, 1))}, make_aval((before, stop - start, behind), dtype))

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, axes: Dims
            ) -> tuple[Array, Tangent]:
        (x,), (t,) = primals, tangents
        out, aval = self.bind(x, axes=axes), typeof(x)
        other_axes = tuple([d for d in range(aval.ndim) if d not in axes])
        tangent = typeof(t)
        missing = ne(out, out)       # every element counts where one is NaN, for NaN
        extreme = broadcast_in_dim(out, aval.shape, other_axes)
        if dtypes.is_complex(aval.dtype):
            at = bitwise_or(eq(x, extreme), broadcast_in_dim(missing, aval.shape, other_axes))
        else:
            at = bitwise_not(self.before(x, extreme))       # nothing is before a NaN
        counted = convert_element_type_p.bind(at, new_dtype=tangent.dtype, sharding=None,
                                              weak_type=tangent.weak_type)
        count = reduce_sum(counted, axes)
        count = select(missing, families.operand(float("nan"), count), count)
        return out, div(reduce_sum(select_n(at, zeros_of(tangent), t), axes), count)


class NumberExtremum(Reduction):
    """max, min of the elements that are not NaN; NaN if there is none."""

    makes_nan = False
    algebra = "mask"
    fusion = "reduces"

    def __init__(self, name: str, extremum: Extremum) -> None:
        super().__init__(name, extremum.combine, extremum.identity, "fc")
        self.extremum = extremum

    def lower(self, b: Builder, x: IrValue, *, axes: Dims) -> IrValue:
        """On CPU by one reduction of ranks; on accelerators two of floats are one kernel."""
        module, aval, out = b.module, b.avals_in[0], b.avals_out[0]
        bits = dtypes.itemsize_bits(aval.dtype)
        if dtypes.scalar_kind(aval.dtype) != "f" or bits < 16 or module.platform != "cpu":
            return b.by_rule(functools.partial(self._by_filling, axes), [x], [aval])[0]
        integer = dtypes.as_dtype(f"int{bits}")
        (x,) = b.by_rule(functools.partial(self._ranks, integer), [x], [aval])
        alone = module.keeps_calls and b.block.sizes is None
        if alone and prod([aval.shape[i] for i in axes]) >= LONG_COLUMN:
            x = self.extremum.by_levels(b, x, axes, integer)
        else:
            (x,) = b.traced(lambda x: self.extremum.bind(x, axes=axes), [x], [
                aval.update(dtype=integer)])
        return b.by_rule(functools.partial(self._elements, aval.dtype), [x], [
            out.update(dtype=integer)])[0]

    def _ranks(self, integer: DType, x: Array) -> Array:
        """Integers in the order of the elements, of NaN one that all others precede."""
        rank = _turned(bitcast_convert_type_p.bind(x, new_dtype=integer))
        return select(ne(x, x), full(typeof(x).shape, self.identity(integer), integer), rank)

    def _elements(self, dtype: DType, rank: Array) -> Array:
        found = bitcast_convert_type_p.bind(_turned(rank), new_dtype=dtype)
        none = eq(rank, self.identity(typeof(rank).dtype))
        return select(none, full(typeof(found).shape, float("nan"), dtype), found)

    def _by_filling(self, axes: Dims, x: Array) -> Array:
        dtype, missing = typeof(x).dtype, ne(x, x)
        fill = full(typeof(x).shape, self.identity(dtype), dtype)
        found = self.extremum.bind(select(missing, fill, x), axes=axes)
        none = reduce_and_p.bind(missing, axes=axes)
        return select(none, full(typeof(found).shape, float("nan"), dtype), found)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, axes: Dims
            ) -> tuple[Array, Tangent]:
        (x,), (t,) = primals, tangents
        out, aval, tangent = self.bind(x, axes=axes), typeof(x), typeof(t)
        other_axes = tuple([d for d in range(aval.ndim) if d not in axes])
        at = eq(x, broadcast_in_dim(out, aval.shape, other_axes))
        counted = convert_element_type_p.bind(at, new_dtype=tangent.dtype, sharding=None,
                                              weak_type=tangent.weak_type)
        count = reduce_sum(counted, axes)
        count = select(eq(out, out), count, families.operand(1, count))
        return out, div(reduce_sum(select_n(at, zeros_of(tangent), t), axes), count)


def _turned(i: Array) -> Array:
    """Ranks for the bits of floats, or the bits for ranks: negative numbers in reverse order."""
    dtype = typeof(i).dtype
    return bitwise_xor(i, bitwise_and(shift_right_arithmetic(
        i, dtypes.itemsize_bits(dtype) - 1), _most(dtype)))


class Product(Reduction):
    """Products; the derivative is right where factors are zero."""

    fusion = "reduces"
    multiplies = True

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, axes: Dims
            ) -> tuple[Array, Tangent]:
        # The product rule along a binary tree: the sum of t_i times the product of the others,
        # without division.
        x, t = [_reduced_first(v, axes) for v in (primals[0], tangents[0])]
        while (n := typeof(x).shape[0]) > 1:
            half = (n + 1) // 2
            (x, x2), (t, t2) = [_split_in_half(v, half, fill) for v, fill in ((x, 1), (t, 0))]
            x, t = mul(x, x2), add(mul(t, x2), mul(x, t2))
        out = self.bind(primals[0], axes=axes)
        tangent: Any = reshape(t, typeof(out).shape) if n else zeros_of(typeof(out))
        return out, tangent


def _reduced_first(x: Array, axes: Dims) -> Array:
    """The reduced axes as one, at the front."""
    shape = typeof(x).shape
    other_axes = tuple([d for d in range(len(shape)) if d not in axes])
    moved = transpose(x, (*axes, *other_axes))
    return reshape(moved, (prod([shape[a] for a in axes]), *[shape[d] for d in other_axes]))


def _split_in_half(x: Array, half: int, fill: int) -> tuple[Array, Array]:
    """The first and second half along axis 0, the second filled up to the first's size."""
    aval = typeof(x)
    n = aval.shape[0]
    rest = slice_in_dim(x, half, n)
    if less(n, 2 * half):
        rest = pad(rest, literal(fill, aval.dtype),
                   [(0, 2 * half - n, 0), *[(0, 0, 0)] * (aval.ndim - 1)])
    return slice_in_dim(x, 0, half), rest


reduce_max_p = Extremum("reduce_max", largest, lowest, lt)
reduce_min_p = Extremum("reduce_min", smallest, highest, gt)
reduce_number_max_p = NumberExtremum("reduce_number_max", reduce_max_p)
reduce_number_min_p = NumberExtremum("reduce_number_min", reduce_min_p)
reduce_prod_p = Product("reduce_prod", mul, lambda dtype: 1, "iufc")
reduce_and_p = Bitwise("reduce_and", lambda x, y: bitwise_and(x, y),
                       lambda dtype: True if dtype == BOOL else _all_bits(dtype), "biu")
reduce_or_p = Bitwise("reduce_or", lambda x, y: bitwise_or(x, y), lambda dtype: 0, "biu")
reduce_xor_p = Bitwise("reduce_xor", lambda x, y: bitwise_xor(x, y), lambda dtype: 0, "biu")


def _all_bits(dtype: DTypeLike) -> int:
    return -1 if dtypes.scalar_kind(dtype) == "i" else _most(dtype)


def _most(dtype: DTypeLike) -> int:
    return int(dtypes.iinfo(dtype).max)


class ArgExtremum(Primitive):
    """The index of the largest or smallest element along one axis: the first NaN, or the first."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.searches"), 8192
    spread = staticmethod(tags.reduce)
    by_parts = True
    transpose = None

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        return "the least index of the maximum: min(where(x == x.max(), arange(x.size), x.size))"

    def __init__(self, name: str, better: Combine, identity: Identity) -> None:
        super().__init__(name)
        self.better, self.identity = better, identity

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        """Without a kernel, pairs are reduced one by one."""
        size = prod(ins[0])
        return (4.0 if known_less(size, self.kernels_from) else 0.5) * size

    def infer(self, x: ShapedArray, *, axes: Dims, index_dtype: DType) -> ShapedArray:
        check_kind(self.name, x, "biuf")
        if dtypes.scalar_kind(index_dtype) not in "iu":
            raise TypeError(f"{self.name}: index_dtype must be an integer type; "
                            f"{dtypes.long_name(index_dtype)} given.")
        if not x.shape[axes[0]]:
            raise ValueError(f"{self.name}: operand {x}, axis {axes[0]} given; argmin and argmax "
                             "require non-empty reduced dimension: at least one element.")
        return make_aval(tuple([n for i, n in enumerate(x.shape) if i not in axes]), index_dtype)

    def lower(self, b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType) -> IrValue:
        aval, out = b.avals_in[0], b.avals_out[0]
        value, index = make_aval((), aval.dtype), make_aval((), index_dtype)
        body = stage(self._pick, [value, index, value, index])
        numbers = b.op("stablehlo.iota", [], {"iota_dimension": b.attr(f"{axes[0]} : i64")},
                       aval.update(dtype=index_dtype))
        start = b.scalar(self.identity(aval.dtype), aval.dtype)
        op = b.ops("stablehlo.reduce", [x, numbers, start, b.scalar(0, index_dtype)],
                   {"dimensions": b.i64s(axes)},
                   [b.type(out.update(dtype=aval.dtype)), b.type(out)], regions=1)
        b.region(op, 0, [b.type(value), b.type(index)] * 2, lambda *args: b.call_inline(body, args))
        return op.results[1]

    def _pick(self, x: Array, i: Array, y: Array, j: Array) -> list[Array]:
        """The better of two (value, index): NaN beats all, then the lower index."""
        lower = lt(i, j)
        first = bitwise_or(self.better(x, y), bitwise_and(eq(x, y), lower))
        first = bitwise_or(first, bitwise_and(ne(x, x), bitwise_or(eq(y, y), lower)))
        return [select_n(first, y, x), select_n(first, j, i)]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        out = self.bind(*primals, **params)
        return out, Zero(typeof(out).to_tangent_aval())

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, axes: Dims,
             index_dtype: DType) -> tuple[Array, int | None]:
        dim = dims[0]
        gone = shifted(axes, dim)
        out = self.bind(args[0], axes=gone, index_dtype=index_dtype)
        return out, dim - sum(a < dim for a in gone)


argmax_p = ArgExtremum("argmax", lambda x, y: gt(x, y), lowest)
argmin_p = ArgExtremum("argmin", lambda x, y: lt(x, y), highest)


def _reduce(prim: Reduction, operand: ArrayLike, axes: Sequence[int],
            out_sharding: ShardingLike = None) -> Array:
    axes = front_axes(axes, typeof(operand).ndim, prim.name)
    if not axes and is_array(operand):
        check_kind(prim.name, typeof(operand), prim.kinds)
        return constrain(prim.name, operand, out_sharding)
    return constrain(prim.name, prim.bind(operand, axes=axes), out_sharding)


def reduce_max(operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
              ) -> Array:
    """The largest element along axes; NaN if there is one, the dtype's lowest value if none.

    Complex numbers are ordered by real, then imaginary part.

    Args: operand: array of any dtype with an order, bool included.
    Returns: An array of the operand's dtype. Equal maxima share the derivative equally.

    >>> x = onp.array([[1., 5.], [5., 2.]])
    >>> print(lax.reduce_max(x, (0,)))
    [5. 5.]
    >>> print(olympus.grad(lambda x: lax.reduce_max(x, (0, 1)))(x))
    [[0.  0.5]
     [0.5 0. ]]
    """
    return _reduce(reduce_max_p, operand, axes, out_sharding)


def reduce_min(operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
              ) -> Array:
    """The smallest element along axes; NaN if there is one, the dtype's highest value if none.

    Complex numbers are ordered by real, then imaginary part.

    Args: operand: array of any dtype with an order, bool included.
    Returns: An array of the operand's dtype. Equal minima share the derivative equally.

    >>> print(lax.reduce_min(onp.array([[1., 5.], [5., float("nan")]]), (1,)))
    [ 1. nan]
    """
    return _reduce(reduce_min_p, operand, axes, out_sharding)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product of the elements along axes.

    Args: operand: numbers (not bool).
    Returns: An array of the operand's dtype, 1 where there are no elements; integers wrap around.
      The derivative is right where factors are 0.

    >>> x = onp.array([2., 0., 3.])
    >>> print(olympus.grad(lambda x: lax.reduce_prod(x, (0,)))(x))
    [0. 6. 0.]
    """
    return _reduce(reduce_prod_p, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans logical) and of the elements along axes.

    Returns: An array of the operand's dtype; all bits set, or True, where there are no elements.

    >>> print(lax.reduce_and(onp.array([[True, False], [True, True]]), (0,)))
    [ True False]
    """
    return _reduce(reduce_and_p, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans logical) or of the elements along axes.

    Returns: An array of the operand's dtype; 0, or False, where there are no elements.

    >>> print(lax.reduce_or(onp.array([[1, 2], [4, 8]]), (1,)))
    [ 3 12]
    """
    return _reduce(reduce_or_p, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise exclusive or of the elements along axes; of booleans, whether an odd number hold.

    Returns: An array of the operand's dtype; 0, or False, where there are no elements.

    >>> print(lax.reduce_xor(onp.array([[True, True, True], [True, True, False]]), (1,)))
    [ True False]
    """
    return _reduce(reduce_xor_p, operand, axes)


def _arg_reduce(prim: ArgExtremum, operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    axis = front_axis(axis, typeof(operand).ndim, prim.name)
    return prim.bind(operand, axes=(axis,),
                     index_dtype=dtypes.requested_dtype(prim.name, index_dtype))


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the largest element along an axis: of the first NaN if any, else the first.

    Args: operand: array of a real dtype.
    Returns: An array of `index_dtype`, without the axis. It has no derivative.

    >>> print(olympus.lax.argmax(olympus.numpy.array([1, 3, 3]), 0, "int32"))
    1
    """
    return _arg_reduce(argmax_p, operand, axis, index_dtype)


@described_like(argmax)
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the smallest element along an axis: of the first NaN if any, else the first.

    >>> print(lax.argmin(onp.array([[3, 1, 1], [0, 5, 9]]), 1, "int32"))
    [1 0]
    """
    return _arg_reduce(argmin_p, operand, axis, index_dtype)


complete_docstrings(globals(), {
    "operand": "integers or booleans.",
    "axes": "axes to reduce; the result lacks them.",
    "out_sharding": "where the result is; see `with_sharding_constraint`.",
    "axis": "the axis to search; it has at least one element.",
    "index_dtype": "integer dtype of the result.",
})
