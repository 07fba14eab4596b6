"""Sorting of long vectors: by the digits of their keys, or by counting.

A pass by a digit puts each element behind those that have the same digit or a lower one. XLA:CPU
(0.10.2, 0.12.0.1) makes its loop one kernel: some 5 ns an element and pass, where a merge sort
takes 2 ns for each time that the number of elements doubles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ..arithmetic import mul, sub
from ..bits import (
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right_logical,
)
from ..comparison import eq, ge, gt, le, lt, ne, select
from ..convert import bitcast_convert_type_p, in_dtype
from ..creation import full, full_like, iota
from ..cumulative import cumsum
from ..families import add
from ..indexing import ScatterDimensionNumbers, scatter_add, take_along
from ..reduce import largest, reduce_max_p, reduce_min_p, reduce_sum, smallest
from ..shape import broadcast_in_dim, reshape
from ..slicing import dynamic_slice, dynamic_update_slice, slice_in_dim
from ..sort import (
    float_key, float_of_key, has_several_of_a_key, sort_p, sorted_by_key, unsigned_keys,
)
from ..stack import stack
from . import networks
from .reductions import pieces

OfTwo = Callable[[IrValue, IrValue], IrValue]
BOOL, INT32, UINT8, UINT32, UINT64, FLOAT32, FLOAT64 = map(dtypes.as_dtype, (
    "bool", "int32", "uint8", "uint32", "uint64", "float32", "float64"))
NUMBER = make_aval((), INT32)
# Found with tools/kernel_table.py: from so many elements on, 500 calls repay the 40 ms more that
# the loops take to compile, or the 180 ms of counting. Keys of 64 bits are sorted alone;
# words that a sort is made of compile several times as long by digits.
LEAST, LEAST_COUNTED, MOST = 8192, 16384, 2 ** 31 - 1
KEYS = {"b": (8,), "i": (8, 16, 32, 64), "u": (8, 16, 32), "f": (16, 32)}      # bits
GO_ALONG = 8, 16, 32        # bits
COUNTED = 8, 16             # bits
# Bits of a digit, for keys of 8 bits and so on: at most 2,048 counters are in the nearest cache.
DIGITS = {8: 8, 16: 8, 32: 11, 64: 11}
UNROLL = 4      # steps of loops over elements, for 1.3 times the speed
# So many floats alone repay the 30 ms that two kernels more, to words and back, take to compile.
LEAST_WORDS = 1 << 17
# Rows of float32 that repay the 160 ms that a second sort takes to compile.
LEAST_OF_ROWS = 1 << 17
# So many elements repay the loop's compilation.
LEAST_HALVES, MOST_KEYS = 1 << 14, 8
TALLIES = 3     # digits that are counted in a step
# So many integers repay the 25 ms that it takes to compile what counts so many values, which are
# written as vectors of so many.
LEAST_RANGED, RANGE, FILL, BLOCK = 1 << 16, 1 << 12, 64, 1 << 10


def _is_long(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    key = b.avals_in[0]
    n, bits = key.shape[dimension], dtypes.itemsize_bits(key.dtype)
    return (LEAST <= n <= MOST and key.size == n and num_keys == 1 and (bits < 64 or len(xs) == 1)
            and bits in KEYS.get(dtypes.scalar_kind(key.dtype), ())
            and all(a.memory_space is Space.Device for a in b.avals_in))


def _are_few(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    """Whether equal elements are alike, and there are few different ones."""
    aval = b.avals_in[0]
    dtype = aval.dtype
    return (len(xs) == 1 and dtypes.scalar_kind(dtype) in "biu" and aval.size >= LEAST_COUNTED
            and dtypes.itemsize_bits(dtype) in COUNTED
            and _is_long(b, *xs, dimension=dimension, is_stable=is_stable, num_keys=num_keys))


def _by_counts(b: Builder, x: IrValue, **params: Hashable) -> Sequence[IrValue]:
    aval = b.avals_in[0]
    flat = make_aval((aval.size,), aval.dtype)
    x = b.op("stablehlo.reshape", [x], None, flat)
    (x,) = b.traced(_counted_booleans if aval.dtype == BOOL else _counted, [x], [flat])
    return [b.op("stablehlo.reshape", [x], None, aval)]


def _counted(x: Array) -> Array:
    """The value of place i is the number of values that end at i or before."""
    dtype, n = typeof(x).dtype, typeof(x).size
    bits = dtypes.itemsize_bits(dtype)
    counts = tally(1 << bits, in_dtype(_key(_bits(x), dtype), INT32))
    ends = slice_in_dim(cumsum(counts), 0, (1 << bits) - 1)
    keys = in_dtype(cumsum(tally(n, ends)), dtypes.as_dtype(f"uint{bits}"))
    return _of_bits(_key(keys, dtype), dtype)


def tally(size: int, places: Array) -> Array:
    """int32[size]: how often each place occurs; those beyond the end count nowhere."""
    shape = typeof(places).shape
    return scatter_add(full((size,), 0, INT32), reshape(places, (*shape, 1)),
                       full(shape, 1, INT32), ScatterDimensionNumbers((), (0,), (0,)), mode="drop")


def _counted_booleans(x: Array) -> Array:
    count = reduce_sum(in_dtype(x, INT32), (0,))
    n = typeof(x).size
    return ge(iota(INT32, n), broadcast_in_dim(sub(n, count), (n,), ()))


def _by_digits(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int
               ) -> Sequence[IrValue]:
    n = b.avals_in[0].size
    flat = [make_aval((n,), a.dtype) for a in b.avals_in]
    values = [b.op("stablehlo.reshape", [x], None, a) for x, a in zip(xs, flat, strict=True)]
    keys, carried, places = flat[0], flat[1:], make_aval((n,), UINT32)
    # One operand that is not wide goes along; for others, their places do.
    along = not carried or len(carried) == 1 and dtypes.itemsize_bits(carried[0].dtype) in GO_ALONG
    if along:
        outs = _sorted_words(b, values, flat)
    else:
        numbers = b.op("stablehlo.iota", [], {"iota_dimension": b.attr("0 : i64")}, places)
        key, order = _sorted_words(b, [values[0], numbers], [keys, places])
        outs = [key, *[b.traced(lambda x, i: take_along(x, i, 0), [x, order], [a, places])[0]
                       for x, a in zip(values[1:], carried, strict=True)]]
    return [b.op("stablehlo.reshape", [x], None, a)
            for x, a in zip(outs, b.avals_out, strict=True)]


def _sorted_words(b: Builder, xs: Sequence[IrValue], avals: Sequence[ShapedArray]
                  ) -> list[IrValue]:
    """Keys, and perhaps one more operand, in the order of the keys: as one word for each element,
    which a pass moves in one write. Keys alone may be words as they are."""
    dtype, n = avals[0].dtype, avals[0].size
    bits, kind = dtypes.itemsize_bits(dtype), dtypes.scalar_kind(dtype)
    below = dtypes.itemsize_bits(avals[1].dtype) if avals[1:] else 0
    packs = below > 0 or bits < 32 or kind == "f" and n >= LEAST_WORDS
    word = avals[0] if not packs else make_aval((n,), dtypes.as_dtype(
        f"uint{_word_bits(bits + below)}"))
    (x,) = b.traced(functools.partial(_packed, word.dtype), xs, avals) if packs else xs
    # The first bit of a digit is a number of the keys' dtype: to convert it would be one more
    # operation.
    size, place = DIGITS[bits], make_aval((), dtypes.as_dtype(f"uint{bits}"))
    one, count = make_aval((1,), word.dtype), -(-bits // size)

    def digit(x: IrValue, shift: IrValue) -> IrValue:
        return b.traced(functools.partial(_digit, dtype, below), [x, shift], [one, place])[0]

    def in_order(x: IrValue) -> list[IrValue]:
        counts = _counts(b, x, word, digit, count, size, place)

        # One loop over the digits: each written out would take as long again to compile. Signed
        # integers are often small: a digit that all elements share leaves them as they are.
        def by_digit(k: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
            (x,) = values
            start, several = _starts(b, counts, k, size, n)
            shift = b.convert(b.op("stablehlo.multiply", [k, b.scalar(size, INT32)], None, NUMBER),
                              place)

            def one_pass() -> list[IrValue]:
                return _pass(b, x, word, start, shift, digit, 1 << size)

            if kind != "i" and bits < 64:
                return one_pass()
            return [*b.case(several, [lambda: [x], one_pass], [b.type(word)])]

        return b.counted_loop(count, [x], by_digit)

    def in_range_or_order(x: IrValue) -> list[IrValue]:
        least, is_short = _range(b, x, word)
        return [*b.case(is_short, [lambda: in_order(x), lambda: _by_values(b, x, word, least)],
                        [b.type(word)])]

    ranged = kind == "i" or kind == "u" and bits == 32
    has_range = ranged and not packs and LEAST_RANGED <= n <= MOST - FILL
    (x,) = b.one_kernel([x], in_range_or_order if has_range else in_order)
    return b.traced(functools.partial(_unpacked, [a.dtype for a in avals]), [x], [word]
                    ) if packs else [x]


def _range(b: Builder, x: IrValue, word: ShapedArray) -> tuple[IrValue, IrValue]:
    """The least of some integers, and 1 if all are less than RANGE above it, else 0: blocks are
    looked at until they are not."""
    number, count = make_aval((), word.dtype), -(-word.size // BLOCK)

    def goes_on(i: IrValue, least: IrValue, most: IrValue) -> IrValue:
        return b.traced(lambda i, *ends: bitwise_and(lt(i, count), _is_short(*ends)),
                        [i, least, most], [NUMBER, number, number])[0]

    first = b.op("stablehlo.reshape", [_element(b, x, b.scalar(0, INT32), make_aval(
        (1,), word.dtype))], None, number)
    _, least, most = b.while_loop(
        [b.constant(0, NUMBER), first, first], goes_on,
        lambda *values: b.traced(_further, [x, *values], [word, NUMBER, number, number]))
    return least, b.traced(lambda *ends: in_dtype(_is_short(*ends), INT32), [least, most],
                           [number, number])[0]


def _is_short(least: Array, most: Array) -> Array:
    return lt(_bits(sub(most, least)), RANGE)       # the bits are right even if it overflows


def _further(x: Array, i: Array, *ends: Array) -> list[Array]:
    """The least and the largest of what was looked at and of block i; the last one overlaps."""
    block, extrema = dynamic_slice(x, [mul(i, BLOCK)], (BLOCK,)), list[Array]()
    for combine, reduction in ((smallest, reduce_min_p), (largest, reduce_max_p)):
        x = block
        for size in (BLOCK // 8, BLOCK // 64):
            x = pieces(combine, size, 0, x)
        extrema.append(reduction.bind(x, axes=(0,)))
    return [add(i, 1), smallest(ends[0], extrema[0]), largest(ends[1], extrema[1])]


def _by_values(b: Builder, x: IrValue, word: ShapedArray, least: IrValue) -> list[IrValue]:
    """How often each value occurs is counted; then it is written as often."""
    counters, entry = make_aval((RANGE + 1,), INT32), make_aval((1,), INT32)
    one, number = make_aval((1,), word.dtype), make_aval((), word.dtype)
    longer, flag = word.update(shape=(word.size + FILL,)), make_aval((), BOOL)

    def count(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        at = b.traced(lambda x, least: in_dtype(sub(reshape(x, ()), least), INT32), [
            _element(b, x, i, one), least], [one, number])[0]
        (counts,) = values
        here = b.op("stablehlo.add", [_element(b, counts, at, entry), b.full(entry, 1)], None,
                    entry)
        return [_put(b, counts, here, at, counters)]

    zeros = b.constant(np.append(np.zeros(RANGE, np.int32), np.int32(1)), counters)
    (counts,) = b.counted_loop(word.size, [zeros], count, UNROLL)

    def write(k: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        at, out = values
        end, fill = b.traced(_end_and_fill, [k, at, _element(b, counts, k, entry), least], [
            NUMBER, NUMBER, entry, number])
        _, out = b.while_loop(
            [at, out], lambda at, out: b.compare("LT", at, end, "SIGNED", flag),
            lambda at, out: [b.op("stablehlo.add", [at, b.scalar(FILL, INT32)], None, NUMBER),
                             _put(b, out, fill, at, longer)])
        return [end, out]

    _, out = b.counted_loop(RANGE, [b.constant(0, NUMBER), b.full(longer, 0)], write)
    return b.traced(lambda x: slice_in_dim(x, 0, word.size), [out], [longer])


def _end_and_fill(k: Array, at: Array, count: Array, least: Array) -> list[Array]:
    """Where the k-th value ends, and some of it."""
    value = add(least, in_dtype(k, typeof(least).dtype))
    return [add(at, reshape(count, ())), broadcast_in_dim(value, (FILL,), ())]


def _word_bits(bits: int) -> int:
    return next(size for size in (8, 16, 32, 64) if size >= bits)


def _packed(word: DType, *xs: Array) -> Array:
    """Keys, and the bits of what goes along below them, as words."""
    key, *rest = [in_dtype(_bits(x) if i else _word(x), word) for i, x in enumerate(xs)]
    if not rest:
        return key
    return bitwise_or(shift_left(key, dtypes.itemsize_bits(typeof(xs[1]).dtype)), rest[0])


def _unpacked(kinds: Sequence[DType], x: Array) -> list[Array]:
    below = dtypes.itemsize_bits(kinds[1]) if kinds[1:] else 0
    return [_of_word(shift_right_logical(x, below) if below else x, kinds[0]),
            *[_of_bits(x, dtype) for dtype in kinds[1:]]]


def _word(x: Array) -> Array:
    """An element of an unsigned integer that it can be made of again, in the order of the elements,
    but for -0, which precedes 0, and NaN, which come last in some order; integers as they are."""
    dtype = typeof(x).dtype
    x, sign = _bits(x), 1 << dtypes.itemsize_bits(dtype) - 1
    if dtypes.scalar_kind(dtype) != "f":
        return x
    x = select(lt(x, sign), bitwise_or(x, sign), bitwise_not(x))
    return sub(x, sign - 1 - _infinity(dtype))


def _of_word(x: Array, dtype: DType) -> Array:
    if dtypes.scalar_kind(dtype) == "f":
        sign = 1 << dtypes.itemsize_bits(dtype) - 1
        x = in_dtype(x, dtypes.as_dtype(f"uint{dtypes.itemsize_bits(dtype)}"))
        x = add(x, sign - 1 - _infinity(dtype))
        x = select(lt(x, sign), bitwise_not(x), bitwise_xor(x, sign))
    return _of_bits(x, dtype)


def _infinity(dtype: DType) -> int:
    """The bits of infinity."""
    unsigned = dtypes.as_dtype(f"uint{dtypes.itemsize_bits(dtype)}")
    return int(np.array(np.inf, dtype).view(unsigned))


def _key(x: Array, dtype: DType) -> Array:
    """The key of a word: one of both zeros, and one of all NaN, so that they keep their order."""
    kind = dtypes.scalar_kind(dtype)
    if kind == "f":
        zero = _infinity(dtype)
        x = select(eq(x, zero), full_like(x, zero + 1), x)
        return smallest(x, full_like(x, 2 * zero + 2))
    return bitwise_xor(x, 1 << dtypes.itemsize_bits(dtype) - 1) if kind == "i" else x


def _bits(x: Array) -> Array:
    """The bits of elements of at least 8 bits as unsigned integers."""
    dtype = typeof(x).dtype
    if dtype == BOOL:
        return in_dtype(x, UINT8)
    return bitcast_convert_type_p.bind(x, new_dtype=dtypes.as_dtype(
        f"uint{dtypes.itemsize_bits(dtype)}"))


def _of_bits(x: Array, dtype: DType) -> Array:
    """The elements with the low bits of x."""
    x = in_dtype(x, UINT8 if dtype == BOOL else dtypes.as_dtype(
        f"uint{dtypes.itemsize_bits(dtype)}"))
    return ne(x, 0) if dtype == BOOL else bitcast_convert_type_p.bind(x, new_dtype=dtype)


def _counts(b: Builder, x: IrValue, word: ShapedArray, digit: OfTwo, digits: int, size: int,
            place: ShapedArray) -> IrValue:
    """int32[digits * 2**size + 1]: how many elements have each value of each digit, in one pass.

    The last number is none: of zeros alone XLA would make a kernel, where it copies a constant.
    """
    total = digits << size
    counters = make_aval((total + 1,), INT32)
    one, entry = make_aval((1,), word.dtype), make_aval((1,), INT32)

    def tally(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        (counts,), here = values, _element(b, x, i, one)
        for k in range(digits):
            at = digit(here, b.scalar(k * size, place.dtype))
            if k:
                at = b.op("stablehlo.add", [at, b.scalar(k << size, INT32)], None, NUMBER)
            count = b.op("stablehlo.add", [_element(b, counts, at, entry), b.full(entry, 1)], None,
                         entry)
            counts = _put(b, counts, count, at, counters)
        return [counts]

    zeros = b.constant(np.append(np.zeros(total, np.int32), np.int32(1)), counters)
    return b.counted_loop(word.size, [zeros], tally, max(TALLIES // digits, 1))[0]


def _starts(b: Builder, counts: IrValue, k: IrValue, size: int, n: int
            ) -> tuple[IrValue, IrValue]:
    """int32[2**size + 1]: how many of n elements have lower values of digit k; and 1 if not all
    have one."""
    starts, entry = make_aval(((1 << size) + 1,), INT32), make_aval((1,), INT32)
    first = b.op("stablehlo.multiply", [k, b.scalar(1 << size, INT32)], None, NUMBER)

    def place(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        at = b.op("stablehlo.add", [first, i], None, NUMBER)
        return b.traced(functools.partial(_before, n), [i, _element(b, counts, at, entry), *values],
                        [NUMBER, entry, entry, NUMBER, starts])

    zeros = b.constant(np.append(np.zeros(1 << size, np.int32), np.int32(1)), starts)
    _, several, positions = b.counted_loop(1 << size, [
        b.constant(np.zeros(1, np.int32), entry), b.constant(1, NUMBER), zeros], place)
    return positions, several


def _before(n: int, i: Array, here: Array, before: Array, several: Array, positions: Array
            ) -> list[Array]:
    several = smallest(several, in_dtype(ne(reshape(here, ()), n), INT32))
    return [add(before, here), several, dynamic_update_slice(positions, before, [i])]


def _pass(b: Builder, x: IrValue, word: ShapedArray, start: IrValue, shift: IrValue,
          digit: OfTwo, size: int) -> list[IrValue]:
    """The words in the order of one digit; equal ones keep theirs."""
    counters, place = make_aval((size + 1,), INT32), make_aval((1,), INT32)
    one = make_aval((1,), word.dtype)

    def body(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        start, out = values
        here = _element(b, x, i, one)
        at = digit(here, shift)
        # Otherwise XLA copies the counters at each step.
        to = b.hold(_element(b, start, at, place), place)
        more = b.op("stablehlo.add", [to, b.full(place, 1)], None, place)
        to = b.op("stablehlo.reshape", [to], None, NUMBER)
        return [_put(b, start, more, at, counters), _put(b, out, here, to, word)]

    # The words before are overwritten: XLA copies them, for which it compiles nothing.
    return b.counted_loop(word.size, [start, x], body, UNROLL)[1:]


def _element(b: Builder, x: IrValue, i: IrValue, aval: ShapedArray) -> IrValue:
    return b.op("stablehlo.dynamic_slice", [x, i], {"slice_sizes": b.i64s((1,))}, aval)


def _put(b: Builder, x: IrValue, values: IrValue, i: IrValue, aval: ShapedArray) -> IrValue:
    return b.op("stablehlo.dynamic_update_slice", [x, values, i], None, aval)


def _digit(dtype: DType, below: int, x: Array, shift: Array) -> Array:
    """The digit of the key of a word that begins at a bit, as a scalar."""
    bits = dtypes.itemsize_bits(dtype)
    size, unsigned = DIGITS[bits], dtypes.as_dtype(f"uint{bits}")
    if typeof(x).dtype == dtype:
        x = _word(x)
    key = _key(in_dtype(shift_right_logical(x, below) if below else x, unsigned), dtype)
    digit = bitwise_and(shift_right_logical(key, reshape(shift, (1,))), (1 << size) - 1)
    return reshape(in_dtype(digit, INT32), ())


# Rows of float32 alone

def _are_float_rows(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int
                    ) -> bool:
    aval = b.avals_in[0]
    return (len(xs) == 1 and aval.dtype == FLOAT32 and aval.size >= LEAST_OF_ROWS
            and networks.are_many(aval, dimension) and aval.memory_space is Space.Device)


def _rows_by_keys(b: Builder, x: IrValue, *, dimension: int, is_stable: bool, num_keys: int
                  ) -> Sequence[IrValue]:
    """By the keys, where they tell what all elements are; or by words with places."""
    (several,) = b.by_rule(has_several_of_a_key, [x], b.avals_in)

    def by_keys() -> list[IrValue]:
        return b.by_rule(functools.partial(sorted_by_key, dimension=dimension), [x], b.avals_in)

    def by_words() -> list[IrValue]:
        return [*sort_p.lower(b, x, dimension=dimension, is_stable=is_stable, num_keys=num_keys)]

    return b.case(several, [by_keys, by_words], [b.type(b.avals_out[0])])


# Wide keys, and several

def _have_halves(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    avals, size = b.avals_in, b.avals_in[0].size
    integers = len(avals) == 1 and dtypes.scalar_kind(avals[0].dtype) in "iu"   # XLA merges them
    return (not integers and LEAST_HALVES <= size <= MOST and avals[0].shape[dimension] == size
            and num_keys <= MOST_KEYS and all(dtypes.itemsize_bits(a.dtype) >= 8 for a in avals)
            and all(a.memory_space is Space.Device for a in avals))


def _by_halves(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int
               ) -> Sequence[IrValue]:
    """Sorted by 32 bits of the keys after another, the lowest first; equal ones keep their order.

    Integers are often small: of int32, a digit that all elements share is passed over.
    """
    flat = [make_aval((a.size,), a.dtype) for a in b.avals_in]
    n, key, places = flat[0].size, flat[0].update(dtype=INT32), flat[0].update(dtype=UINT32)
    vectors = [b.op("stablehlo.reshape", [x], None, a) for x, a in zip(xs, flat, strict=True)]
    halves = b.traced(_halves, vectors[:num_keys], flat[:num_keys])
    each = make_aval((len(halves), n), INT32)
    (table,) = b.traced(lambda *rows: stack(rows, 0), halves, [key] * len(halves))
    table = b.hold(table, each)

    def by_half(k: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        (half,) = b.traced(_half_in_order, [k, table, *values], [NUMBER, each, places])
        return _sorted_words(b, [b.hold(half, key), *values], [key, places])[1:]

    (order,) = b.counted_loop(len(halves), [b.op("stablehlo.iota", [], {
        "iota_dimension": b.attr("0 : i64")}, places)], by_half)
    outs = [b.traced(lambda x, i: take_along(x, i, 0), [x, order], [a, places])[0]
            for x, a in zip(vectors, flat, strict=True)]
    return [b.op("stablehlo.reshape", [out], None, a)
            for out, a in zip(outs, b.avals_out, strict=True)]


def _halves(*xs: Array) -> list[Array]:
    """The keys of arrays as int32 that are in their order, the lowest bits first."""
    words = list[Array]()
    for key, bits in reversed([key for x in xs for key in unsigned_keys(x)]):
        for start in range(0, bits, 32):
            half = in_dtype(shift_right_logical(key, start), UINT32)
            words.append(bitcast_convert_type_p.bind(bitwise_xor(half, 1 << 31), new_dtype=INT32))
    return words


def _half_in_order(k: Array, table: Array, order: Array) -> Array:
    half = reshape(dynamic_slice(table, [k, 0], (1, typeof(table).shape[1])), typeof(order).shape)
    return take_along(half, order, 0)


# float64 alone

def _is_double(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    aval = b.avals_in[0]
    return (len(xs) == 1 and aval.dtype == FLOAT64 and aval.shape[dimension] == aval.size
            and LEAST <= aval.size <= MOST and aval.memory_space is Space.Device)


def _by_keys(b: Builder, x: IrValue, **params: Hashable) -> Sequence[IrValue]:
    """By the keys alone: elements of a key are equal, but for zeros and NaN, which are put back in
    their order where there are any."""
    aval, flag = b.avals_in[0], make_aval((), BOOL)
    flat, keys = [make_aval((aval.size,), dtype) for dtype in (FLOAT64, UINT64)]
    x = b.op("stablehlo.reshape", [x], None, flat)
    (key,) = _sorted_words(b, b.traced(float_key, [x], [flat]), [keys])
    (out,) = b.traced(float_of_key, [key], [keys])

    def first(key: IrValue, least: int) -> IrValue:
        """The first place of a key that is not less."""
        return b.counted_loop(aval.size.bit_length(), [b.scalar(0, INT32)], lambda k, at: b.traced(
            functools.partial(_halved, least), [k, key, *at], [NUMBER, keys, NUMBER]))[0]

    def in_their_order(x: IrValue, key: IrValue, out: IrValue) -> list[IrValue]:
        zero, nan = first(key, 1 << 63), first(key, (1 << 64) - 1)
        (count,) = b.traced(_count_to_look_at, [key, zero, nan], [keys, NUMBER, NUMBER])
        return b.while_loop(
            [b.constant(0, NUMBER), zero, nan, out],
            lambda i, *_: b.compare("LT", i, count, "SIGNED", flag),
            lambda *values: b.traced(_put_back, [x, *values], [
                flat, NUMBER, NUMBER, NUMBER, flat]))[-1:]

    (out,) = b.one_kernel([x, key, out], in_their_order)
    return [b.op("stablehlo.reshape", [out], None, aval)]


def _halved(least: int, k: Array, keys: Array, at: Array) -> list[Array]:
    """A place, further on by a power of 2, the k-th from above, if a lower key is before that."""
    n = typeof(keys).size
    step = shift_left(full((), 1, INT32), sub(n.bit_length() - 1, k))
    further = add(at, step)
    before = reshape(dynamic_slice(keys, [sub(further, 1)], (1,)), ())
    return [select(bitwise_and(le(further, n), lt(before, least)), further, at)]


def _count_to_look_at(keys: Array, zero: Array, nan: Array) -> list[Array]:
    """How many elements there are if some are zeros or NaN, else 0."""
    n = typeof(keys).size
    there = bitwise_or(eq(reshape(dynamic_slice(keys, [zero], (1,)), ()), 1 << 63), lt(nan, n))
    return [select(there, full((), n, INT32), full((), 0, INT32))]


def _put_back(x: Array, i: Array, zero: Array, nan: Array, out: Array) -> list[Array]:
    """An element at the next place of zeros or NaN, if it is one; others leave what is there."""
    here = dynamic_slice(x, [i], (1,))
    size = shift_left(_bits(here), 1)       # compared as floats, subnormal numbers were zeros
    is_zero, is_nan = [reshape(is_one, ()) for is_one in (
        eq(size, 0), gt(size, 2 * _infinity(FLOAT64)))]
    at = [select(is_zero, zero, nan)]
    here = select(reshape(bitwise_or(is_zero, is_nan), (1,)), here, dynamic_slice(out, at, (1,)))
    return [add(i, 1), add(zero, in_dtype(is_zero, INT32)), add(nan, in_dtype(is_nan, INT32)),
            dynamic_update_slice(out, here, at)]


KERNELS = {sort_p: (networks.KERNEL, Kernel("sort by counts", "XLA merges", _are_few, _by_counts),
                    Kernel("sort by digits", "XLA merges, or compares element by element", _is_long,
                           _by_digits),
                    Kernel("sort of rows by keys", "XLA sorts row by row, and mispredicts branches",
                           _are_float_rows, _rows_by_keys, 7.0),
                    Kernel("sort of float64 by keys", "XLA compares element by element, or sorts "
                           "words twice", _is_double, _by_keys),
                    Kernel("sort by halves of keys", "XLA merges words twice or more",
                           _have_halves, _by_halves))}
