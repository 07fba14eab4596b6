"""Sorting along an axis, lexicographically by several keys, and the k largest elements.

Order of keys: numbers with -0.0 equal to 0.0, then NaN; complex numbers by real, then imaginary
part; False before True.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ..base.typing import Array, ArrayLike, DimSize, DType, IrValue, Params
from ..base.util import lazy_module
from ..core import reuse, tags
from ..core.facts import Shapes
from ..core.primitive import Axis, Builder, Primitive, Tangent, Zero
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.memory import Space
from ..types.shape import (
    SymbolicDim, bit_length, canonical_axis, exceeds, extent, known_less, prod, static_int,
)
from .arithmetic import add, imag, neg, real
from .bits import (
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right_arithmetic,
    shift_right_logical,
)
from .comparison import eq, gt, lt, ne, select
from .convert import bitcast_convert_type_p, in_dtype
from .creation import broadcasted_iota, full, full_like
from .cumulative import cumsum
from .indexing import ScatterDimensionNumbers, scatter_add, take_along
from .reduce import check_kind, reduce_or_p, smallest
from .shape import Dims, align, move_axis, reshape
from .slicing import slice_in_dim

BOOL, INT32, INT64, UINT32, UINT64, FLOAT32, FLOAT64 = map(dtypes.as_dtype, (
    "bool", "int32", "int64", "uint32", "uint64", "float32", "float64"))
SHORT = 16      # elements of a row that a sorting network is for


class Sort(Primitive):
    """All operands permuted along `dimension`, so that the first `num_keys` of them ascend."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.order"), 8192
    cells = staticmethod(reuse.chosen)
    spread = staticmethod(tags.along("dimension"))
    memory = staticmethod(tags.in_memory_inferred)
    multiple_results = True
    by_parts = True
    transpose = None
    makes_nan = False

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        size = max(map(prod, ins))
        pace = 4.0 * (1.0 + math.log2(max(max(ins[0], default=1), 1)))
        return size * (pace if known_less(size, self.kernels_from) else min(pace, 12.0))

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        if exceeds(avals[0].shape[params["dimension"]], SHORT):
            return "where a few of the largest are wanted: lax.top_k"
        return ("short rows: order slices pairwise with minimum and maximum, as a sorting network "
                "does")

    def infer(self, *avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
              ) -> list[ShapedArray]:
        if any(a.shape != avals[0].shape for a in avals):
            raise TypeError(f"sort: operands {', '.join(map(str, avals))} given; equal shapes are "
                            "required; broadcast them.")
        if not 1 <= num_keys <= len(avals):
            raise ValueError(f"sort: num_keys {num_keys} given for {len(avals)} operands; 1 to "
                             f"{len(avals)} is required.")
        for aval in avals[:num_keys]:
            check_kind("sort", aval, "biufc")
        if any(dtypes.is_extended(a.dtype) for a in avals):
            raise TypeError(f"sort: operands {', '.join(map(str, avals))} given; dtypes that NumPy "
                            "knows are required; sort indices with the keys of the order, and take "
                            "by them.")
        return list(avals)

    def lower(self, b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int
              ) -> Sequence[IrValue]:
        words, alone = _may_sort_words(b, dimension), len(xs) == 1
        integers = alone and dtypes.scalar_kind(b.avals_in[0].dtype) in "iu"
        if words and not integers and not _had_better_compare(b.avals_in):
            by_words = functools.partial(_by_words, dimension=dimension, num_keys=num_keys)
            if not alone or b.avals_in[0].dtype != FLOAT64 or b.avals_in[0].size < _MANY:
                return b.by_rule(by_words, xs, b.avals_in)
            (several,) = b.by_rule(has_several_of_a_key, xs, b.avals_in)
            by_key = functools.partial(sorted_by_key, dimension=dimension)
            return b.case(several, [lambda rule=rule: b.by_rule(rule, xs, b.avals_in)
                                    for rule in (by_key, by_words)], [b.type(b.avals_out[0])])
        # Equal integers are alike, and XLA:CPU is faster where they are to stay in their order.
        is_stable = is_stable or words
        scalars = [make_aval((), a.dtype) for a in b.avals_in]
        op = b.ops("stablehlo.sort", xs, {
            "dimension": b.attr(f"{dimension} : i64"),
            "is_stable": b.attr("true" if is_stable else "false")}, regions=1)

        def less(*args: IrValue) -> list[IrValue]:
            pairs = [pair for i in range(num_keys)
                     for pair in _real_comparisons(b, args[2 * i], args[2 * i + 1], scalars[i])]
            return [_lexicographic(b, pairs)]

        b.region(op, 0, [b.type(a) for a in scalars for _ in range(2)], less)
        return list(op.results)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, dimension: int,
            is_stable: bool, num_keys: int) -> tuple[list[Array], list[Tangent]]:
        places = broadcasted_iota(UINT32, typeof(primals[0]).shape, dimension)
        *outs, order = self.bind(*primals, places, dimension=dimension, is_stable=is_stable,
                                 num_keys=num_keys)
        empty = not typeof(order).size
        return outs, [t if type(t) is Zero or empty else take_along(t, order, dimension)
                      for t in tangents]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *, dimension: int,
             is_stable: bool, num_keys: int) -> tuple[list[Array], list[int | None]]:
        xs, dim = align(axis, args, dims)
        outs = self.bind(*xs, dimension=dimension + (dimension >= dim), is_stable=is_stable,
                         num_keys=num_keys)
        return outs, [dim] * len(outs)


def _real_comparisons(b: Builder, x: IrValue, y: IrValue, aval: ShapedArray
                      ) -> list[tuple[IrValue, IrValue, str]]:
    """The real pairs to compare for one pair of keys, with the comparison's kind."""
    kind = dtypes.scalar_kind(aval.dtype)
    if kind == "c":
        part = make_aval((), dtypes.to_real_dtype(aval.dtype))
        return [pair for op in ("stablehlo.real", "stablehlo.imag") for pair in _real_comparisons(
            b, b.op(op, [x], None, part), b.op(op, [y], None, part), part)]
    if kind == "f" and b.module.for_one_cpu:
        (x, y) = b.traced(lambda *xs: list(map(float_key, xs)), [x, y], [aval, aval])
        return [(x, y, "UNSIGNED")]
    if kind == "f":
        return [(_canonical(b, x, aval), _canonical(b, y, aval), "TOTALORDER")]
    return [(x, y, "SIGNED" if kind == "i" else "UNSIGNED")]


def _canonical(b: Builder, x: IrValue, aval: ShapedArray) -> IrValue:
    """One zero and one NaN, so that the total order of floats has them where they belong."""
    flag = make_aval((), BOOL)
    zero, nan = b.scalar(0.0, aval.dtype), b.scalar(float("nan"), aval.dtype)
    x = b.op("stablehlo.select", [b.compare("EQ", x, zero, "FLOAT", flag), zero, x], None, aval)
    return b.op("stablehlo.select", [b.compare("NE", x, x, "FLOAT", flag), nan, x], None, aval)


def _lexicographic(b: Builder, pairs: Sequence[tuple[IrValue, IrValue, str]]) -> IrValue:
    """x1 < y1, or equal and x2 < y2, or …"""
    flag = make_aval((), BOOL)
    result: Any = None
    for x, y, kind in reversed(pairs):
        less = b.compare("LT", x, y, kind, flag)
        if result is not None:
            both = b.op("stablehlo.and", [b.compare("EQ", x, y, kind, flag), result], None, flag)
            less = b.op("stablehlo.or", [less, both], None, flag)
        result = less
    return result


# By words ----------------------------------------------------------------------------------------

# XLA:CPU sorts one array of integers by a merge sort of its own, anything else through a compiled
# comparison, at five times the cost. So one CPU sorts words of 64 bits: keys as unsigned integers,
# with the place of each element in the low bits, which makes it a stable sort of all operands.
# Other platforms compare, and so do several devices, and exports, which other engines read; on a
# CPU they take subnormal numbers for zeros.
# Beside an element that takes 12 bytes, and 4 more for the merging.
_WORD = 64
# Fewer elements are compared: words take 45 to 80 ms to compile, a comparison 15 to 30, which 1,000
# calls would repay at this size. For narrow floats XLA converts the arrays, which takes as long.
_LEAST = 512


def _may_sort_words(b: Builder, axis: int) -> bool:
    aval = b.avals_in[0]
    return (b.module.for_one_cpu and aval.size > 0 and not exceeds(aval.shape[axis], 2 ** 32)
            and all(a.memory_space is Space.Device for a in b.avals_in))


def _had_better_compare(avals: Sequence[ShapedArray]) -> bool:
    return avals[0].size < _LEAST and all(
        dtypes.scalar_kind(a.dtype) in "biu" or a.dtype.itemsize >= 4 for a in avals)


def _key_bits(dtype: np.dtype) -> int:
    kind, bits = dtypes.scalar_kind(dtype), dtypes.itemsize_bits(dtype)
    return 1 if kind == "b" else 32 if kind == "f" and bits < 16 else bits


def _by_words(*xs: ArrayLike, dimension: int, num_keys: int) -> Sequence[Array]:
    """The operands in the order of the keys, sorted word by word from the lowest on."""
    shape = typeof(xs[0]).shape
    below = bit_length(shape[dimension])
    order: Any = None
    keys = [key for x in xs[:num_keys] for key in unsigned_keys(x)]
    # Narrow keys leave room in words of half the size; a vector holds twice as many.
    size = UINT32 if sum(bits for _, bits in keys) + below <= 32 else UINT64
    places = in_dtype(broadcasted_iota(UINT32, shape, dimension), size)
    for word in _words(keys, _WORD - below):
        if order is not None:
            word = take_along(word, order, dimension)
        packed = bitwise_or(shift_left(in_dtype(word, size), below), places)
        (packed,) = sort_p.bind(packed, dimension=dimension, is_stable=True, num_keys=1)
        taken = in_dtype(bitwise_and(packed, (1 << below) - 1), UINT32)
        order = taken if order is None else take_along(order, taken, dimension)
    return [take_along(x, order, dimension) for x in xs]


def _words(keys: Sequence[tuple[Array, int]], room: int) -> list[Array]:
    """The bits of all keys as words of `room` bits, the lowest first."""
    words: list[Any] = []
    used = room
    for key, bits in reversed(keys):
        if used < room:
            words[-1] = bitwise_or(words[-1], shift_left(key, used))
            key, bits, used = shift_right_logical(key, room - used), bits - room + used, used + bits
        while bits > 0:
            words.append(key)
            key, bits, used = shift_right_logical(key, room), bits - room, bits
    return words


def unsigned_keys(x: ArrayLike) -> list[tuple[Array, int]]:
    """Unsigned integers that are in the order of the elements, with their numbers of bits."""
    dtype = typeof(x).dtype
    kind, bits = dtypes.scalar_kind(dtype), _key_bits(dtype)
    if kind == "c":
        return [*unsigned_keys(real(x)), *unsigned_keys(imag(x))]
    if kind == "f":
        return [(in_dtype(float_key(x), UINT64), bits)]
    if kind == "i":
        return [(add(in_dtype(in_dtype(x, INT64), UINT64), 1 << (bits - 1)), bits)]
    return [(in_dtype(x, UINT64), bits)]


def float_key(x: ArrayLike) -> Array:
    """Unsigned integers of the elements' size, or of 32 bits, that are in their order.

    By the bits: arithmetic would lose subnormal numbers. Both zeros have one key.
    """
    dtype = typeof(x).dtype
    if dtypes.itemsize_bits(dtype) < 16:
        x, dtype = in_dtype(x, FLOAT32), FLOAT32
    unsigned = dtypes.as_dtype(f"uint{dtypes.itemsize_bits(dtype)}")
    return key_of_bits(bitcast_convert_type_p.bind(x, new_dtype=unsigned), dtype)


def key_of_bits(u: Array, dtype: DType) -> Array:
    """`float_key` of the bits of floats."""
    sign = 1 << (dtypes.itemsize_bits(dtype) - 1)
    infinity = int(np.array(np.inf, dtype).view(typeof(u).dtype))
    key = select(lt(u, sign), bitwise_or(u, sign), neg(u))
    nan = gt(bitwise_and(u, sign - 1), infinity)
    return select(nan, full_like(u, 2 * sign - 1), key)


# Rows of float64 alone need no places, for which its key leaves no room: elements of equal keys
# are equal, unless there are zeros with a sign or unusual NaN. That is known when it runs: two
# sorts are compiled, for 80 ms more, which many elements repay, sorted in half the time.
_MANY = 1 << 15


def has_several_of_a_key(x: Array) -> Array:
    """1 if keys do not tell what all elements are, else 0."""
    key = float_key(x)
    bits, again = [bitcast_convert_type_p.bind(x, new_dtype=typeof(key).dtype)
                   for x in (x, float_of_key(key))]
    return in_dtype(reduce_or_p.bind(ne(bits, again), axes=tuple(range(typeof(x).ndim))), INT32)


def sorted_by_key(x: Array, *, dimension: int) -> Array:
    (keys,) = sort_p.bind(float_key(x), dimension=dimension, is_stable=True, num_keys=1)
    return float_of_key(keys)


def float_of_key(key: Array) -> Array:
    """An array of float32 or float64 of such keys."""
    unsigned = typeof(key).dtype
    dtype = FLOAT32 if unsigned == UINT32 else FLOAT64
    sign = 1 << (dtypes.itemsize_bits(dtype) - 1)
    u = select(lt(key, sign), neg(key), bitwise_xor(key, sign))
    nan = int(np.array(np.nan, dtype).view(unsigned))
    u = select(eq(key, 2 * sign - 1), full_like(u, nan), u)
    return bitcast_convert_type_p.bind(u, new_dtype=dtype)


# The largest -------------------------------------------------------------------------------------

_LARGEST_INT32 = 2 ** 31 - 1


class TopK(Primitive):
    """The k largest elements along the last axis, descending, and their indices."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.partition"), 32768
    spread = staticmethod(tags.along("axis"))
    multiple_results = True
    by_parts = True
    transpose = None
    makes_nan = False
    work = Sort.work

    def infer(self, x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
        check_kind("top_k", x, "biuf")
        if known_less(k, 0) or known_less(x.shape[axis], k):
            raise ValueError(f"top_k: operand {x}, k {k}, axis {axis} given; 0 <= k <= "
                             f"{x.shape[axis]} is required; k is at most the axis's size.")
        if exceeds(x.shape[axis], _LARGEST_INT32):
            raise ValueError(f"top_k: operand {x}, axis {axis} given; an axis of at most "
                             f"{_LARGEST_INT32} elements is required: top_k returns int32 indices, "
                             "which will overflow; take the largest of parts first.")
        shape = (*x.shape[:axis], k, *x.shape[axis + 1:])
        return [make_aval(shape, x.dtype, x.weak_type), make_aval(shape, INT32)]

    def lower(self, b: Builder, x: IrValue, *, k: int, axis: int) -> Sequence[IrValue]:
        aval = b.avals_in[0]
        if aval.dtype != FLOAT32 and _may_sort_words(b, axis):  # XLA:CPU sorts all of others
            return b.by_rule(functools.partial(_by_rank, k=k, axis=axis), [x], [aval])
        if dtypes.scalar_kind(aval.dtype) == "f":
            # XLA compares bits: a NaN with the sign bit, as computed ones have, would be the least.
            x = b.op("stablehlo.select", [
                b.compare("NE", x, x, "FLOAT", aval.update(dtype=BOOL)),
                b.full(aval, float("nan")), x], None, aval)
        count = {"k": k if isinstance(k, SymbolicDim) else b.attr(f"{k} : i64")}
        if dtypes.itemsize_bits(aval.dtype) >= 8:
            outs = list(b.ops("chlo.top_k", [x], count).results)
            # XLA:CPU sorts all, 60 times slower, where it can merge a reader's slice with its own.
            return outs if b.module.holds.hold == "off" or b.module.alone is None else [
                b.hold(out, a) for out, a in zip(outs, b.avals_out, strict=True)]
        values, indices = b.avals_out       # XLA fails on narrower ones
        out, places = b.ops("chlo.top_k", [b.convert(x, aval.update(dtype=FLOAT32))], count,
                            avals=[values.update(dtype=FLOAT32), indices]).results
        return [b.convert(out, values), places]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, k: int, axis: int
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        values, indices = self.bind(*primals, k=k, axis=axis)
        return [values, indices], [take_along(tangents[0], indices, axis),
                                   Zero(typeof(indices).to_tangent_aval())]

    def vmap(self, axis_: Axis, args: Sequence[Array], dims: Sequence[int], *, k: int, axis: int
             ) -> tuple[list[Array], list[int | None]]:
        return self.bind(move_axis(args[0], dims[0], 0), k=k, axis=axis + 1), [0, 0]


def _by_rank(x: Array, *, k: int, axis: int) -> Sequence[Array]:
    """`top_k` of what float32 holds as float32, and of the rest by sorting."""
    rank, shape = rank_of(x), typeof(x).shape
    if dtypes.itemsize_bits(typeof(x).dtype) < 32:
        _, order = top_k_p.bind(in_dtype(rank, FLOAT32), k=k, axis=axis)
    else:
        _, order = sort_p.bind(bitwise_not(rank), broadcasted_iota(INT32, shape, axis),
                               dimension=axis, is_stable=True, num_keys=1)
        order = slice_in_dim(order, 0, k, 1, axis)
    return [take_along(x, order, axis), order]


def rank_of(x: Array) -> Array:
    """Numbers in the total order of the elements: those themselves, or the bits of floats."""
    dtype = typeof(x).dtype
    bits = dtypes.itemsize_bits(dtype)
    if dtypes.scalar_kind(dtype) != "f" or bits < 16:
        return x
    i = bitcast_convert_type_p.bind(x, new_dtype=dtypes.as_dtype(f"int{bits}"))
    rest = 2 ** (bits - 1) - 1
    rank = bitwise_xor(i, bitwise_and(shift_right_arithmetic(i, bits - 1), rest))
    return select(ne(x, x), full_like(rank, rest), rank)


# Given ranks -------------------------------------------------------------------------------------

class Ranked(Primitive):
    """Elements of x[..., n] by ranks[..., k] in 0 … n-1, and of the next rank (or the last one)."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.ranks"), 8192
    multiple_results = True
    flat_in = (1,)
    by_parts = True
    transpose = None
    work = Sort.work
    makes_nan = False

    def infer(self, x: ShapedArray, ranks: ShapedArray) -> list[ShapedArray]:
        check_kind("ranked", x, "biuf")
        check_kind("ranked", ranks, "iu")
        return [make_aval((*x.shape[:-1], ranks.shape[-1]), x.dtype, x.weak_type)] * 2

    @staticmethod
    def spread(operands: Sequence[tags.Operand], outs: Sequence[ShapedArray], params: object
               ) -> list[tags.Entries]:
        for x in operands:
            tags.whole(x, [len(x.shape) - 1])
        return [tags.merged(operands)] * 2

    def lower(self, b: Builder, x: IrValue, ranks: IrValue) -> Sequence[IrValue]:
        return b.by_rule(_ranked_by_sort, [x, ranks], b.avals_in)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]
            ) -> tuple[list[Array], list[Tangent]]:
        x, ranks = primals
        axis = typeof(x).ndim - 1
        order = sort((x, broadcasted_iota(INT32, typeof(x).shape, axis)), axis)[1]
        places = [take_along(order, at, axis) for at in _with_next(x, ranks)]
        outs, slopes = [[take_along(v, at, axis) for at in places] for v in (x, tangents[0])]
        return outs, [*slopes]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[list[Array], list[int | None]]:
        return self.bind(*align(axis, args, dims, 0)[0]), [0, 0]


def _with_next(x: Array, ranks: Array) -> tuple[Array, Array]:
    last = full_like(ranks, typeof(x).shape[-1] - 1)
    return ranks, smallest(add(ranks, 1), last)


def _ranked_by_sort(x: Array, ranks: Array) -> list[Array]:
    axis = typeof(x).ndim - 1
    (x,) = sort_p.bind(x, dimension=axis, is_stable=True, num_keys=1)
    return [take_along(x, at, axis) for at in _with_next(x, ranks)]


# Parted ------------------------------------------------------------------------------------------

class Partition(Primitive):
    """All operands [..., n] permuted along the last axis, so that each of `ranks`, ascending, has
    the element of the first operand that sorting puts there, with none larger before it and none
    smaller behind it."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.partition"), 16384
    multiple_results = True
    by_parts = True
    transpose = None
    work = Sort.work
    makes_nan = False

    def infer(self, x: ShapedArray, *carried: ShapedArray, ranks: Dims) -> list[ShapedArray]:
        check_kind("partition", x, "biuf")
        return [x, *carried]

    @staticmethod
    def spread(operands: Sequence[tags.Operand], outs: Sequence[ShapedArray], params: object
               ) -> list[tags.Entries]:
        for x in operands:
            tags.whole(x, [len(x.shape) - 1])
        return [tags.merged(operands)] * len(outs)

    def lower(self, b: Builder, *xs: IrValue, ranks: Dims) -> Sequence[IrValue]:
        return b.by_rule(_parted_by_sort, xs, b.avals_in)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, ranks: Dims
            ) -> tuple[list[Array], list[Tangent]]:
        axis = typeof(primals[0]).ndim - 1
        places = broadcasted_iota(INT32, typeof(primals[0]).shape, axis)
        *outs, order = self.bind(*primals, places, ranks=ranks)
        return outs, [t if type(t) is Zero else take_along(t, order, axis) for t in tangents]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *, ranks: Dims
             ) -> tuple[list[Array], list[int | None]]:
        outs = self.bind(*align(axis, args, dims, 0)[0], ranks=ranks)
        return outs, [0] * len(outs)


def _parted_by_sort(*xs: Array) -> Sequence[Array]:
    return sort_p.bind(*xs, dimension=typeof(xs[0]).ndim - 1, is_stable=True, num_keys=1)


# Places of given ranks ---------------------------------------------------------------------------

class Placed(Primitive):
    """The places in x[..., n] of the elements that a stable sort puts at ranks[..., k]: int32."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.places"), 32768
    flat_in = (1,)
    by_parts = True
    jvp = transpose = None
    work = Sort.work
    makes_nan = False

    def infer(self, x: ShapedArray, ranks: ShapedArray) -> ShapedArray:
        check_kind("placed", x, "biuf")
        check_kind("placed", ranks, "iu")
        return make_aval((*x.shape[:-1], ranks.shape[-1]), INT32)

    @staticmethod
    def spread(operands: Sequence[tags.Operand], outs: Sequence[ShapedArray], params: object
               ) -> list[tags.Entries]:
        for x in operands:
            tags.whole(x, [len(x.shape) - 1])
        return [tags.merged(operands)]

    def lower(self, b: Builder, x: IrValue, ranks: IrValue) -> IrValue:
        return b.by_rule(_placed_by_sort, [x, ranks], b.avals_in)[0]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Array, int]:
        return self.bind(*align(axis, args, dims, 0)[0]), 0


def _placed_by_sort(x: Array, ranks: Array) -> Array:
    axis = typeof(x).ndim - 1
    places = broadcasted_iota(INT32, typeof(x).shape, axis)
    order = sort_p.bind(x, places, dimension=axis, is_stable=True, num_keys=1)[1]
    return take_along(order, ranks, axis)


class TruePlaces(Primitive):
    """The places of the first `size` true elements of a vector, and its length where there are
    fewer."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.true_places"), 256
    jvp = transpose = None
    makes_nan = False

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        return 4.0 * max(prod(ins[0]), prod(outs[0]))

    def infer(self, x: ShapedArray, *, size: DimSize, dtype: DType) -> ShapedArray:
        check_kind("true_places", x, "b")
        return make_aval((size,), dtype)

    @staticmethod
    def spread(operands: Sequence[tags.Operand], outs: Sequence[ShapedArray], params: object
               ) -> list[tags.Entries]:
        tags.whole(operands[0], [0])
        return [tags.merged(operands)]

    def lower(self, b: Builder, x: IrValue, *, size: DimSize, dtype: DType) -> IrValue:
        return b.by_rule(functools.partial(_places_by_counts, size, dtype), [x], b.avals_in)[0]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, size: DimSize,
             dtype: DType) -> tuple[Array, int | None]:
        (out,), (dim,) = axis.batched(lambda x: [_places_by_counts(size, dtype, x)], args, dims)
        return out, dim


def _places_by_counts(size: DimSize, dtype: DType, x: Array) -> Array:
    """Element k lies behind the k-th step of the counts up to each place: count those up to k."""
    counts, n = cumsum(in_dtype(x, dtype), 0), typeof(x).shape[0]
    steps = scatter_add(full((size,), 0, dtype), reshape(counts, (n, 1)), full((n,), 1, dtype),
                        ScatterDimensionNumbers((), (0,), (0,)), mode="drop")
    return cumsum(steps, 0)


sort_p = Sort("sort")
placed_p = Placed("placed")
true_places_p = TruePlaces("true_places")
partition_p = Partition("partition")
top_k_p = TopK("top_k")
ranked_p = Ranked("ranked")


@overload
def sort(operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
         ) -> Array: ...


@overload
def sort(operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True,
         num_keys: int = 1) -> tuple[Array, ...]: ...


def sort(operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True,
         num_keys: int = 1) -> Array | tuple[Array, ...]:
    """Sort an array, or several by the same permutation, along an axis.

    Args:
      operand: an array, or a sequence of arrays of one shape.
      dimension: the axis to sort along.
      is_stable: whether equal elements keep their order.
      num_keys: how many of the arrays are compared, the first one first.
    Returns: The sorted array, or a tuple of them.

    Raises TypeError for unequal shapes, ValueError for an axis or num_keys out of bounds.

    >>> print(olympus.lax.sort(olympus.numpy.array([3, 1, 2])))
    [1 2 3]
    """
    several = isinstance(operand, (tuple, list))
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("sort: no operands given; at least one array is required.")
    axis = canonical_axis(dimension, typeof(operands[0]).ndim, "sort")
    outs = sort_p.bind(*operands, dimension=axis, is_stable=bool(is_stable),
                       num_keys=static_int(num_keys, "sort", "num_keys"))
    return tuple(outs) if several else outs[0]


def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1,
                 is_stable: bool = True) -> tuple[Array, Array]:
    """Sort `keys` along an axis, and `values` by the same permutation.

    Args:
      keys: array of any dtype with an order; NaN comes last.
      values: array of its shape, of any dtype.
      dimension: the axis.
      is_stable: whether the values of equal keys keep their order.
    Returns: (keys, values), sorted.

    >>> keys, values = lax.sort_key_val(onp.array([3, 1, 2]), onp.array([10, 20, 30]))
    >>> print(keys, values)
    [1 2 3] [20 30 10]
    """
    keys, values = sort((keys, values), dimension, is_stable, 1)
    return keys, values


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True
         ) -> list[Array]:
    """The k largest elements along an axis, descending, and their indices.

    Args:
      operand: array of a real dtype.
      k: how many; at most the axis's size.
      axis: the axis to search.
      is_stable: whether the lower index comes first among equals; it does in either case.
    Returns: [values, indices], the indices int32. NaN counts as largest, -0.0 as less than 0.0.

    >>> values, indices = olympus.lax.top_k(olympus.numpy.array([1, 3, 2]), 2)
    >>> print(values, indices)
    [3 2] [1 2]
    """
    ndim = typeof(operand).ndim
    axis, last = canonical_axis(axis, ndim, "top_k"), ndim - 1
    values, indices = top_k_p.bind(move_axis(operand, axis, last), k=extent(k, "top_k", "k"),
                               axis=last)
    return [move_axis(values, last, axis), move_axis(indices, last, axis)]
