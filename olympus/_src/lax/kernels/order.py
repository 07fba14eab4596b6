"""Sorting of long vectors: by the digits of their keys, or by counting.

A pass by a digit puts each element behind those that have the same digit or a lower one. XLA:CPU
(0.10.2, 0.12.0.1) makes its loop one kernel: some 5 ns an element and pass, where a merge sort
takes 2 ns for each time that the number of elements doubles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ..arithmetic import mul, sub
from ..bits import bitwise_and, bitwise_or, bitwise_xor, shift_left, shift_right_logical
from ..comparison import ge, gt, lt, ne
from ..convert import bitcast_convert_type_p, convert_element_type_p
from ..creation import full, iota
from ..cumulative import cumsum
from ..families import add
from ..indexing import ScatterDimensionNumbers, scatter_add, take_along
from ..reduce import reduce_or, reduce_sum
from ..shape import broadcast_in_dim, reshape
from ..slicing import dynamic_slice, dynamic_update_slice, slice_in_dim
from ..sort import key_of_bits, sort_p
from . import networks

OfArray = Callable[[Array], Array]
OfTwo = Callable[[Array, Array], Array]
BOOL, INT32, UINT8, UINT32 = map(dtypes.as_dtype, ("bool", "int32", "uint8", "uint32"))
# Found with tools/kernel_table.py: fewer elements a merge sort orders as fast, and so it does keys
# of 64 bits; and the loops take 0.2 s to compile.
LEAST, MOST = 1 << 16, 2 ** 31 - 1
KEYS = {"b": (8,), "i": (8, 16, 32), "u": (8, 16, 32), "f": (16, 32)}       # bits
GO_ALONG = 8, 16, 32        # bits
COUNTED = 8, 16             # bits
# Bits of a digit, for keys of 8, 16 and 32: at most 2,048 counters are in the nearest cache.
DIGITS = {8: 8, 16: 8, 32: 11}
UNROLL = 4      # steps of loops over elements, for 1.3 times the speed


def _is_long(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    key = b.avals_in[0]
    n = key.shape[dimension]
    return (LEAST <= n <= MOST and key.size == n and num_keys == 1
            and dtypes.itemsize_bits(key.dtype) in KEYS.get(dtypes.scalar_kind(key.dtype), ())
            and all(a.memory_space is Space.Device for a in b.avals_in))


def _are_few(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    """Whether equal elements are alike, and there are few different ones."""
    dtype = b.avals_in[0].dtype
    return (len(xs) == 1 and dtypes.scalar_kind(dtype) in "biu"
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
    counts = tally(1 << bits, _converted(_key(dtype, _bits(x)), INT32))
    ends = slice_in_dim(cumsum(counts), 0, (1 << bits) - 1)
    keys = _converted(cumsum(tally(n, ends)), dtypes.as_dtype(f"uint{bits}"))
    if dtypes.scalar_kind(dtype) == "i":
        keys = bitwise_xor(keys, 1 << (bits - 1))
    return _of_bits(keys, dtype)


def tally(size: int, places: Array) -> Array:
    """int32[size]: how often each place occurs; those beyond the end count nowhere."""
    shape = typeof(places).shape
    return scatter_add(full((size,), 0, INT32), reshape(places, (*shape, 1)),
                       full(shape, 1, INT32), ScatterDimensionNumbers((), (0,), (0,)), mode="drop")


def _counted_booleans(x: Array) -> Array:
    count = reduce_sum(_converted(x, INT32), (0,))
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
    which a pass moves in one write."""
    dtype, n = avals[0].dtype, avals[0].size
    bits = dtypes.itemsize_bits(dtype)
    below = dtypes.itemsize_bits(avals[1].dtype) if avals[1:] else 0
    word = make_aval((n,), dtypes.as_dtype(f"uint{_word_bits(bits + below)}"))
    (x,) = b.traced(functools.partial(_packed, word.dtype), xs, avals)
    x = b.hold(x, word)
    key = functools.partial(_key_of_word, dtype, below)
    size, count = DIGITS[bits], -(-bits // DIGITS[bits])
    starts, number = make_aval((count << size,), INT32), make_aval((), INT32)
    start = _starts(b, x, word, functools.partial(_digit, key, size), count, size)

    # One loop over the digits: each written out would take as long again to compile. Signed
    # integers are often small: a digit that all elements share leaves them as they are.
    def by_digit(i: IrValue, values: Sequence[IrValue]) -> Sequence[IrValue]:
        shift, first, several = b.traced(
            functools.partial(_of_digit, n, size), [i, start], [number, starts])

        def one_pass() -> list[IrValue]:
            return _pass(b, values[0], word, first, shift, functools.partial(_digit, key, size),
                         size)

        return one_pass() if dtypes.scalar_kind(dtype) != "i" else b.case(
            several, [lambda: values, one_pass], [b.type(word)])

    (x,) = b.counted_loop(count, [x], by_digit)
    return b.traced(functools.partial(_unpacked, [a.dtype for a in avals]), [x], [word])


def _word_bits(bits: int) -> int:
    return next(size for size in (8, 16, 32, 64) if size >= bits)


def _packed(word: DType, *xs: Array) -> Array:
    """The bits of keys, and of what goes along below them, as words."""
    key, *rest = [_converted(_bits(x), word) for x in xs]
    if not rest:
        return key
    return bitwise_or(shift_left(key, dtypes.itemsize_bits(typeof(xs[1]).dtype)), rest[0])


def _unpacked(kinds: Sequence[DType], x: Array) -> list[Array]:
    below = dtypes.itemsize_bits(kinds[1]) if kinds[1:] else 0
    return [_of_bits(shift_right_logical(x, below) if below else x, kinds[0]),
            *[_of_bits(x, dtype) for dtype in kinds[1:]]]


def _key_of_word(dtype: DType, below: int, x: Array) -> Array:
    bits = dtypes.as_dtype(f"uint{dtypes.itemsize_bits(dtype)}")
    return _key(dtype, _converted(shift_right_logical(x, below) if below else x, bits))


def _bits(x: Array) -> Array:
    """The bits of elements of at least 8 bits as unsigned integers."""
    dtype = typeof(x).dtype
    if dtype == BOOL:
        return _converted(x, UINT8)
    return bitcast_convert_type_p.bind(x, new_dtype=dtypes.as_dtype(
        f"uint{dtypes.itemsize_bits(dtype)}"))


def _of_bits(x: Array, dtype: DType) -> Array:
    """The elements with the low bits of x."""
    x = _converted(x, UINT8 if dtype == BOOL else dtypes.as_dtype(
        f"uint{dtypes.itemsize_bits(dtype)}"))
    return ne(x, 0) if dtype == BOOL else bitcast_convert_type_p.bind(x, new_dtype=dtype)


def _converted(x: Array, dtype: DType) -> Array:
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False, sharding=None)


def _starts(b: Builder, x: IrValue, word: ShapedArray, digit: OfTwo, count: int, size: int
            ) -> IrValue:
    """int32[count * 2^size]: the numbers of elements with lower values of a digit; each digit also
    counts all elements once for every digit before it."""
    counters = make_aval((count << size,), INT32)
    one, number, entry = make_aval((1,), word.dtype), make_aval((), INT32), make_aval((1,), INT32)

    def tally(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(functools.partial(_count, digit, count, size), [
            _element(b, x, i, one), *values], [one, counters])

    def place(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(_before, [i, _element(b, counts, i, entry), *values],
                        [number, entry, entry, counters])

    zeros = b.full(counters, 0)
    (counts,) = b.counted_loop(word.size, [zeros], tally, UNROLL)
    return b.counted_loop(counters.size, [b.full(entry, 0), zeros], place)[1]


def _count(digit: OfTwo, count: int, size: int, x: Array, counts: Array) -> Array:
    for i in range(count):
        at = [add(digit(x, literal(i * size, INT32)), i << size)]
        counts = dynamic_update_slice(counts, add(dynamic_slice(counts, at, (1,)), 1), at)
    return counts


def _before(i: Array, here: Array, before: Array, found: Array) -> list[Array]:
    return [add(before, here), dynamic_update_slice(found, before, [i])]


def _of_digit(n: int, size: int, i: Array, starts: Array) -> list[Array]:
    """The digit's first bit, where the elements with each of its values begin, and 1 if there are
    elements with several values."""
    start = dynamic_slice(starts, [mul(i, 1 << size)], (1 << size,))
    start = sub(start, broadcast_in_dim(mul(i, n), (1 << size,), ()))
    within = bitwise_and(gt(start, 0), lt(start, n))
    return [mul(i, size), start, _converted(reduce_or(within, (0,)), INT32)]


def _pass(b: Builder, x: IrValue, word: ShapedArray, start: IrValue, shift: IrValue,
          digit: OfTwo, size: int) -> list[IrValue]:
    """The words in the order of one digit; equal ones keep theirs."""
    counters, place = make_aval((1 << size,), INT32), make_aval((1,), INT32)
    one, number = make_aval((1,), word.dtype), make_aval((), INT32)

    def body(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        start, out = values
        here = _element(b, x, i, one)
        (at,) = b.traced(lambda start, x, shift: dynamic_slice(start, [digit(x, shift)], (1,)),
                         [start, here, shift], [counters, one, number])
        # Otherwise XLA copies the counters at each step.
        return b.traced(functools.partial(_put, digit), [
            b.hold(at, place), start, shift, here, out], [place, counters, number, one, word])

    return b.counted_loop(word.size, [start, b.full(word, 0)], body, UNROLL)[1:]


def _put(digit: OfTwo, place: Array, start: Array, shift: Array, x: Array, out: Array
         ) -> list[Array]:
    return [dynamic_update_slice(start, add(place, 1), [digit(x, shift)]),
            dynamic_update_slice(out, x, [reshape(place, ())])]


def _element(b: Builder, x: IrValue, i: IrValue, aval: ShapedArray) -> IrValue:
    return b.op("stablehlo.dynamic_slice", [x, i], {"slice_sizes": b.i64s((1,))}, aval)


def _digit(key: OfArray, size: int, x: Array, shift: Array) -> Array:
    """`size` bits of a word's key from `shift` on, as a scalar."""
    found = key(x)
    shift = reshape(_converted(shift, typeof(found).dtype), (1,))
    digit = bitwise_and(shift_right_logical(found, shift), (1 << size) - 1)
    return reshape(_converted(digit, INT32), ())


def _key(dtype: DType, x: Array) -> Array:
    """Unsigned integers in the order of the elements, from their bits x."""
    kind = dtypes.scalar_kind(dtype)
    if kind == "f":
        return key_of_bits(x, dtype)
    if kind == "i":
        bits = dtypes.itemsize_bits(dtype)
        x = bitcast_convert_type_p.bind(x, new_dtype=dtypes.as_dtype(f"uint{bits}"))
        return add(x, 1 << (bits - 1))
    return x


KERNELS = {sort_p: (networks.KERNEL, Kernel("sort by counts", "XLA merges", _are_few, _by_counts),
                    Kernel("sort by digits", "XLA merges, or compares element by element", _is_long,
                           _by_digits))}
