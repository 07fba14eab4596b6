"""Places of extrema: rows in chunks, in one loop; along other axes the extrema first.

XLA:CPU (0.10.2, 0.12.0.1) makes no vectors of pairs of an element and its place. The loop is one
kernel of its own: slices of a chunk are combined element by element, which are vectors, and the
chunk with the first extremum is searched while it is in the nearest cache.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import prod
from ..bits import bitwise_and, bitwise_or, shift_left
from ..comparison import eq, ne, select
from ..convert import bitcast_convert_type_p, in_dtype
from ..creation import broadcasted_iota, full, iota
from ..families import Combine, add
from ..reduce import Reduction, argmax_p, argmin_p, reduce_max_p, reduce_min_p, smallest
from ..shape import Dims, broadcast_in_dim, reshape
from ..slicing import dynamic_slice, dynamic_update_slice, pad, slice_in_dim
from .blocks import MOST
from .reductions import FEW, WHOLE, by_pieces, run_of_axes, tree

BFLOAT16, FLOAT16, FLOAT32, INT32, UINT16, UINT32 = map(dtypes.as_dtype, (
    "bfloat16", "float16", "float32", "int32", "uint16", "uint32"))
NUMBER, ENTRY = make_aval((), INT32), make_aval((1,), INT32)
# Found with tools/kernel_table.py: elements, and of a row in a loop, or else along the axis: floats
# that XLA converts, other floats, and integers. Shorter ones XLA writes out, along the last axis
# somewhat longer ones.
LEAST_IN_LOOP, LEAST_ROW = 8192, 128
LEAST, LEAST_AXIS, LEAST_LAST = 16384, (13, 20, 32), (17, 22, 36)
# Bytes of a chunk, the slices that are combined at once, and the least elements of a slice.
CHUNK, SLICES, LANES = 16384, 8, 16


# Rows in a loop

def _is_row(b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType) -> bool:
    aval = b.avals_in[0]
    n = aval.shape[axes[0]]
    return (prod(aval.shape[axes[0] + 1:]) == 1 and n >= LEAST_ROW
            and (n == aval.size or aval.dtype != BFLOAT16)      # rows of it take as long
            and LEAST_IN_LOOP <= aval.size <= MOST and dtypes.itemsize_bits(aval.dtype) >= 8)


def _place_in_rows(b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType) -> IrValue:
    aval, out = b.avals_in[0], b.avals_out[0]
    if aval.dtype == BFLOAT16:
        # XLA would convert them for each operation.
        aval = aval.update(dtype=UINT16)
        x = b.op("stablehlo.bitcast_convert", [x], None, aval)
    elif dtypes.scalar_kind(aval.dtype) == "f" and aval.dtype.itemsize < 2:
        aval = aval.update(dtype=FLOAT32)
        x = b.convert(x, aval)
    n = aval.shape[axes[0]]
    rows, places = make_aval((aval.size // n, n), aval.dtype), make_aval((aval.size // n,), INT32)
    x = b.op("stablehlo.reshape", [x], None, rows)

    def search(x: IrValue) -> list[IrValue]:
        def of_row(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
            (at,) = _place_in_row(b, x, i, rows)
            return b.traced(lambda i, at, places: dynamic_update_slice(places, at, [i]), [
                i, at, *values], [NUMBER, ENTRY, places])

        return b.counted_loop(rows.shape[0], [b.full(places, 0)], of_row)

    (at,) = b.one_kernel([x], search)
    at = b.op("stablehlo.reshape", [at], None, out.update(dtype=INT32))
    return at if index_dtype == INT32 else b.convert(at, out)


def _place_in_row(b: Builder, x: IrValue, i: IrValue, rows: ShapedArray) -> Sequence[IrValue]:
    """int32[1]: the place in row i. The last chunk overlaps the one before it."""
    n, dtype, prim = rows.shape[1], rows.dtype, b.eqn.primitive
    dtype = FLOAT32 if b.avals_in[0].dtype in (BFLOAT16, FLOAT16) else dtype
    size = builtins.min(n, CHUNK // builtins.max(dtype.itemsize, 4))
    chunk, number = make_aval((size,), dtype), make_aval((), dtype)

    def read(start: IrValue) -> IrValue:
        return b.traced(functools.partial(_chunk, size, b.avals_in[0].dtype), [x, i, start], [
            rows, NUMBER, NUMBER])[0]

    def better(k: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        at = b.op("stablehlo.multiply", [k, b.scalar(size, INT32)], None, NUMBER)
        at = b.op("stablehlo.minimum", [at, b.scalar(n - size, INT32)], None, NUMBER)
        (best,) = b.traced(functools.partial(_best, prim.better), [read(at)], [chunk])
        return b.traced(functools.partial(_better, prim.better), [at, best, *values],
                        [NUMBER, number] * 2)

    start, best = b.counted_loop(-(-n // size), [
        b.scalar(0, INT32), b.scalar(prim.identity(dtype), dtype)], better)
    here = read(start)

    def place() -> list[IrValue]:
        return b.traced(_first, [here, best, start], [chunk, number, NUMBER])

    def place_of_nan() -> list[IrValue]:
        return b.traced(lambda i, start: reshape(add(i, start), (1,)), [*b.while_loop(
            [b.constant(0, NUMBER)],
            lambda i: b.traced(_is_number, [here, i], [chunk, NUMBER])[0],
            lambda i: [b.op("stablehlo.add", [i, b.scalar(1, INT32)], None, NUMBER)]), start],
            [NUMBER, NUMBER])

    if dtypes.scalar_kind(dtype) != "f":
        return place()
    (is_nan,) = b.traced(lambda x: in_dtype(ne(x, x), INT32), [best], [number])
    return b.case(is_nan, [place, place_of_nan], [b.type(ENTRY)])


def _chunk(size: int, dtype: DType, x: Array, i: Array, start: Array) -> Array:
    """Elements of a row, floats of 16 bits as wider ones."""
    x = reshape(dynamic_slice(x, [i, start], (1, size)), (size,))
    if dtype == BFLOAT16:
        return bitcast_convert_type_p.bind(shift_left(in_dtype(x, UINT32), 16), new_dtype=FLOAT32)
    return in_dtype(x, FLOAT32) if dtype == FLOAT16 else x


def _slices(x: Array) -> tuple[list[int], list[Array]]:
    """Where up to SLICES slices of a vector begin, and they; they may overlap."""
    n = typeof(x).size
    if n <= LANES:
        width = 1
    else:
        width = -(-n // builtins.min(SLICES, -(-n // LANES)))
        width = builtins.min(-(-width // LANES) * LANES, n)
    starts = [*range(0, n - width, width), n - width]
    return starts, [slice_in_dim(x, i, i + width) for i in starts]


def _best(better: Combine, x: Array) -> Array:
    """The extremum of a vector, or NaN if there is one."""
    while typeof(x).size > 1:
        _, parts = _slices(x)
        # An instruction, which loses NaN. Each pair is looked at for NaN by another one.
        x = tree(lambda x, y: select(better(x, y), x, y), parts)
        if dtypes.scalar_kind(typeof(x).dtype) == "f":
            nans = tree(bitwise_or, [ne(part, part) for part in parts])
            x = select(nans, full(typeof(x).shape, float("nan"), typeof(x).dtype), x)
    return reshape(x, ())


def _better(better: Combine, at: Array, here: Array, start: Array, best: Array) -> list[Array]:
    """The first chunk with NaN, or else the better extremum, and the extremum."""
    is_better = better(here, best)
    if dtypes.scalar_kind(typeof(here).dtype) == "f":
        is_better = bitwise_or(is_better, bitwise_and(ne(here, here), eq(best, best)))
    return [select(is_better, at, start), select(is_better, here, best)]


def _first(x: Array, best: Array, start: Array) -> Array:
    """int32[1]: the first place of an extremum, from the start of the row."""
    starts, parts = _slices(x)
    shape, n = typeof(parts[0]).shape, typeof(x).size
    best, at = broadcast_in_dim(best, shape, ()), full(shape, n, INT32)
    for first, part in reversed([*zip(starts, parts, strict=True)]):
        at = select(eq(part, best), full(shape, first, INT32), at)
    at = add(at, iota(INT32, *shape))
    while typeof(at).size > 1:
        at = tree(smallest, _slices(at)[1])
    return add(at, reshape(start, (1,)))


def _is_number(x: Array, i: Array) -> Array:
    here = reshape(dynamic_slice(x, [i], (1,)), ())
    return eq(here, here)


# Along other axes, and in short rows

def _is_searched(b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType) -> bool:
    aval = b.avals_in[0]
    is_last, is_float = prod(aval.shape[axes[0] + 1:]) == 1, dtypes.scalar_kind(aval.dtype) == "f"
    is_converted = is_float and aval.dtype.itemsize < 4 and aval.dtype != FLOAT16
    least = (LEAST_LAST if is_last else LEAST_AXIS)[0 if is_converted else 1 if is_float else 2]
    return aval.size >= LEAST and aval.shape[axes[0]] >= least and (
        dtypes.itemsize_bits(aval.dtype) >= 8)


def _place(extremum: Reduction, b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType
           ) -> IrValue:
    """The extremum first, then the least index where it is, or where a NaN is."""
    aval, out = b.avals_in[0], b.avals_out[0]
    best = out.update(dtype=aval.dtype)
    (found,) = b.by_rule(lambda x: extremum.bind(x, axes=axes), [x], [aval])
    found = b.hold(found, best) if best.shape else found
    before, n, behind = sizes = run_of_axes(aval.shape, axes) or (1, 1, 1)
    x = b.op("stablehlo.reshape", [x], None, make_aval(sizes, aval.dtype))
    found = b.op("stablehlo.reshape", [found], None, make_aval((before, behind), aval.dtype))
    q = -(-n // FEW)
    (at,) = b.traced(functools.partial(_places, q), [x, found], [
        make_aval(sizes, aval.dtype), make_aval((before, behind), aval.dtype)])
    if q > 1:
        left = make_aval((before, q, behind), INT32)
        at, q = by_pieces(b, smallest, b.hold(at, left), left.shape, INT32, WHOLE)
    (at,) = b.traced(lambda x: reduce_min_p.bind(x, axes=(1,)), [at],
                     [make_aval((before, q, behind), INT32)])
    at = b.op("stablehlo.reshape", [at], None, out.update(dtype=INT32))
    return at if index_dtype == INT32 else b.convert(at, out)


def _places(q: int, x: Array, found: Array) -> Array:
    """For each of q groups of elements, the least index at which one is `found` or NaN; else the
    last index."""
    n = typeof(x).shape[1]
    terms = []
    for start in range(0, n, q):
        stop = builtins.min(start + q, n)
        part = slice_in_dim(x, start, stop, 1, 1)
        shape = typeof(part).shape
        here = eq(part, broadcast_in_dim(found, shape, (0, 2)))
        if dtypes.scalar_kind(typeof(x).dtype) == "f":
            here = bitwise_or(here, ne(part, part))
        place = add(broadcasted_iota(INT32, shape, 1), start)
        term = select(here, place, full(shape, n - 1, INT32))
        if stop - start < q:
            # An element that stands for none, behind all.
            term = pad(term, literal(n - 1, INT32), [(0, 0, 0), (0, q - stop + start, 0),
                                                     (0, 0, 0)])
        terms.append(term)
    return tree(smallest, terms)


def _searches(what: str, extremum: Reduction) -> tuple[Kernel, ...]:
    why = "XLA makes no vectors of pairs"
    return (Kernel(f"{what} of chunks, then its place", why, _is_row, _place_in_rows, 4.0),
            Kernel(f"{what}, then its place", why, _is_searched,
                   functools.partial(_place, extremum), 4.0))


KERNELS = {argmax_p: _searches("maximum", reduce_max_p),
           argmin_p: _searches("minimum", reduce_min_p)}
