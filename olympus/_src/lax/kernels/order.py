"""Sorting of long vectors by the digits of their keys.

A pass puts each element behind those that have the same digit or a lower one. XLA:CPU (0.10.2,
0.12.0.1) makes its loop one kernel: some 5 ns an element and pass, where a merge sort
takes 2 ns for each time that the number of elements doubles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ..arithmetic import mul
from ..bits import bitwise_and, shift_right_logical
from ..convert import bitcast_convert_type_p, convert_element_type_p
from ..families import add
from ..indexing import take_along
from ..shape import reshape
from ..slicing import dynamic_index_in_dim, dynamic_slice, dynamic_update_slice
from ..sort import key_of_bits
from ..stack import stack

OfArray = Callable[[Array], Array]
OfTwo = Callable[[Array, Array], Array]
INT32, UINT32 = map(dtypes.as_dtype, ("int32", "uint32"))
# Found with tools/kernel_table.py: fewer elements a merge sort orders as fast, and so it does keys
# of 64 bits; and the loops take 0.2 s to compile.
LEAST, MOST, KEYS = 1 << 16, 2 ** 31 - 1, (16, 32)
GO_ALONG = 8, 16, 32        # bits
DIGIT = 11      # bits of a digit: its 2,048 counters are in the nearest cache


def _is_long(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    key = b.avals_in[0]
    n = key.shape[dimension]
    return (LEAST <= n <= MOST and key.size == n and num_keys == 1
            and dtypes.scalar_kind(key.dtype) in "iuf"
            and dtypes.itemsize_bits(key.dtype) in KEYS
            and all(a.memory_space is Space.Device for a in b.avals_in))


def _by_digits(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int
               ) -> Sequence[IrValue]:
    n = b.avals_in[0].size
    flat = [make_aval((n,), a.dtype) for a in b.avals_in]
    values = [b.op("stablehlo.reshape", [x], None, a) for x, a in zip(xs, flat, strict=True)]
    carried, places = flat[1:], make_aval((n,), UINT32)
    # One operand that is not wide goes along; for others, their places do.
    along = not carried or len(carried) == 1 and dtypes.itemsize_bits(carried[0].dtype) in GO_ALONG
    given = values if along else [values[0], b.op(
        "stablehlo.iota", [], {"iota_dimension": b.attr("0 : i64")}, places)]
    kinds = flat if along else [flat[0], places]
    # Works on bits: XLA would convert all of an array of narrow floats at each step.
    rows = [a.update(dtype=_bits_dtype(a.dtype)) for a in kinds]
    moved = [b.op("stablehlo.bitcast_convert", [x], None, r) if r.dtype != a.dtype else x
             for x, a, r in zip(given, kinds, rows, strict=True)]
    key = functools.partial(_key, kinds[0].dtype)
    shifts = range(0, dtypes.itemsize_bits(kinds[0].dtype), DIGIT)
    starts = make_aval((len(shifts), 1 << DIGIT), INT32)
    start, number = _starts(b, moved[0], rows[0], key, shifts, starts), make_aval((), INT32)

    # One loop over the digits: each written out would take as long again to compile.
    def by_digit(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        shift, first = b.traced(_of_digit, [i, start], [number, starts])
        return _pass(b, values, rows, first, shift, functools.partial(_digit, key))

    moved = b.counted_loop(len(shifts), moved, by_digit)
    moved = [b.op("stablehlo.bitcast_convert", [x], None, a) if r.dtype != a.dtype else x
             for x, a, r in zip(moved, kinds, rows, strict=True)]
    if not along:
        moved = [moved[0], *[b.traced(lambda x, i: take_along(x, i, 0), [x, moved[1]],
                                      [a, places])[0]
                             for x, a in zip(values[1:], carried, strict=True)]]
    return [b.op("stablehlo.reshape", [x], None, a)
            for x, a in zip(moved, b.avals_out, strict=True)]


def _bits_dtype(dtype: DType) -> DType:
    return dtypes.as_dtype(f"uint{dtypes.itemsize_bits(dtype)}") if (
        dtypes.scalar_kind(dtype) == "f") else dtype


def _starts(b: Builder, x: IrValue, aval: ShapedArray, key: OfArray, shifts: Sequence[int],
            starts: ShapedArray) -> IrValue:
    """For each digit of the keys, where the elements with each of its values begin."""
    counters, one, number = (make_aval((1 << DIGIT,), INT32), make_aval((1,), aval.dtype),
                             make_aval((), INT32))
    column = make_aval((len(shifts), 1), INT32)

    def count(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(functools.partial(_count, key, shifts), [_element(b, x, i, one), *values],
                        [one, *[counters] * len(shifts)])

    def place(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(_before, [i, counted, *values], [number, starts, column, starts])

    counts = b.counted_loop(aval.size, [b.full(counters, 0)] * len(shifts), count)
    (counted,) = b.traced(lambda *counts: stack(counts), counts, [counters] * len(shifts))
    return b.counted_loop(1 << DIGIT, [b.full(column, 0), b.full(starts, 0)], place)[1]


def _count(key: OfArray, shifts: Sequence[int], x: Array, *counts: Array) -> list[Array]:
    found = []
    for shift, count in zip(shifts, counts, strict=True):
        at = [_digit(key, x, literal(shift, INT32))]
        found.append(dynamic_update_slice(count, add(dynamic_slice(count, at, (1,)), 1), at))
    return found


def _before(i: Array, counts: Array, before: Array, found: Array) -> list[Array]:
    at = [literal(0, INT32), i]
    here = dynamic_slice(counts, at, typeof(before).shape)
    return [add(before, here), dynamic_update_slice(found, before, at)]


def _of_digit(i: Array, starts: Array) -> list[Array]:
    return [mul(i, DIGIT), dynamic_index_in_dim(starts, i, 0, False)]


def _pass(b: Builder, xs: Sequence[IrValue], avals: Sequence[ShapedArray], start: IrValue,
          shift: IrValue, digit: OfTwo) -> list[IrValue]:
    """The elements in the order of one digit; equal ones keep theirs."""
    counters, one = make_aval((1 << DIGIT,), INT32), make_aval((1,), INT32)
    ones, number = [make_aval((1,), a.dtype) for a in avals], make_aval((), INT32)

    def body(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        start, *outs = values
        row = [_element(b, x, i, kind) for x, kind in zip(xs, ones, strict=True)]
        (place,) = b.traced(lambda start, x, shift: dynamic_slice(start, [digit(x, shift)], (1,)),
                            [start, row[0], shift], [counters, ones[0], number])
        # Otherwise XLA copies the counters at each step.
        place = b.hold(place, one)
        return b.traced(functools.partial(_put, digit, len(row)),
                        [place, start, shift, *row, *outs],
                        [one, counters, number, *ones, *avals])

    return b.counted_loop(avals[0].size, [start, *[b.full(a, 0) for a in avals]], body)[1:]


def _put(digit: OfTwo, count: int, place: Array, start: Array,
         shift: Array, *values: Array) -> list[Array]:
    row, outs = values[:count], values[count:]
    at = [reshape(place, ())]
    return [dynamic_update_slice(start, add(place, 1), [digit(row[0], shift)]),
            *[dynamic_update_slice(out, x, at) for out, x in zip(outs, row, strict=True)]]


def _element(b: Builder, x: IrValue, i: IrValue, aval: ShapedArray) -> IrValue:
    return b.op("stablehlo.dynamic_slice", [x, i], {"slice_sizes": b.i64s((1,))}, aval)


def _digit(key: OfArray, x: Array, shift: Array) -> Array:
    """The bits of an element's key from `shift` on, as a scalar."""
    found = key(x)
    shift = convert_element_type_p.bind(shift, new_dtype=typeof(found).dtype, weak_type=False,
                                        sharding=None)
    digit = bitwise_and(shift_right_logical(found, reshape(shift, (1,))), (1 << DIGIT) - 1)
    return reshape(convert_element_type_p.bind(digit, new_dtype=INT32, weak_type=False,
                                               sharding=None), ())


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


KERNELS = {"sort": (Kernel("sort by digits", "XLA merges, or compares element by element", _is_long,
                           _by_digits),)}
