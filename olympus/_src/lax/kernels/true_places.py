"""Places of the true elements of a vector, eight elements a step.

Eight booleans are a word of 64 bits, and two products of it are the pattern of those that are true
and how many they are. A table says for each pattern where they are among the eight; all of its
entries are written behind the places so far, and the next step overwrites those that are none.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...base.typing import Array, DimSize, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ..arithmetic import mul
from ..bits import shift_right_logical
from ..convert import bitcast_convert_type_p, in_dtype
from ..creation import full
from ..families import add
from ..shape import broadcast_in_dim, reshape
from ..slicing import dynamic_slice, dynamic_update_slice, pad, slice_in_dim
from ..sort import true_places_p

INT32, UINT8, UINT64 = map(dtypes.as_dtype, ("int32", "uint8", "uint64"))
# Found with tools/kernel_table.py: fewer elements take as long; the loop compiles in half the time.
LEAST, MOST = 256, 2 ** 31 - 9
EIGHT = 8
UNROLL = 2      # words of a step: a third less time; more take longer to compile
BITS, ONES = 0x0102040810204080, 0x0101010101010101


def _is_long(b: Builder, x: IrValue, *, size: DimSize, dtype: DType) -> bool:
    aval = b.avals_in[0]
    return (LEAST <= aval.size <= MOST and 0 < b.avals_out[0].size <= MOST
            and aval.memory_space is Space.Device)


def _by_eights(b: Builder, x: IrValue, *, size: int, dtype: DType) -> IrValue:
    aval, out = b.avals_in[0], b.avals_out[0]
    count = -(-aval.size // EIGHT)
    words, table = make_aval((count,), UINT64), make_aval((1 << EIGHT, EIGHT), INT32)
    number, places = make_aval((), INT32), make_aval((size + EIGHT,), INT32)
    (x,) = b.traced(_words, [x], [aval])
    among = b.constant(_places_among_eight(), table)

    def step(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(_put, [i, x, among, *values], [number, words, table, number, places])

    known, found = b.counted_loop(count, [b.constant(0, number), b.full(places, aval.size)],
                                  step, UNROLL)
    return b.traced(functools.partial(_ended, aval.size, out), [known, found], [number, places])[0]


def _words(x: Array) -> Array:
    n, x = typeof(x).size, in_dtype(x, UINT8)
    if n % EIGHT:
        x = pad(x, literal(0, UINT8), [(0, -n % EIGHT, 0)])
    return bitcast_convert_type_p.bind(reshape(x, (-(-n // EIGHT), EIGHT)), new_dtype=UINT64)


def _put(i: Array, words: Array, among: Array, known: Array, places: Array) -> list[Array]:
    """Places after those known; behind the end, an update is moved back to the last eight."""
    word = dynamic_slice(words, [i], (1,))
    pattern, count = [reshape(in_dtype(shift_right_logical(mul(word, factor), 64 - EIGHT), INT32),
                              ()) for factor in (BITS, ONES)]
    here = reshape(dynamic_slice(among, [pattern, 0], (1, EIGHT)), (EIGHT,))
    here = add(here, broadcast_in_dim(mul(i, EIGHT), (EIGHT,), ()))
    return [add(known, count), dynamic_update_slice(places, here, [known])]


def _ended(n: int, out: ShapedArray, known: Array, places: Array) -> Array:
    """The places known, and n behind them, where the last word may have put others."""
    places = dynamic_update_slice(places, full((EIGHT,), n, INT32), [known])
    return in_dtype(slice_in_dim(places, 0, *out.shape), out.dtype)


def _places_among_eight() -> np.ndarray:
    """int32[256, 8]: of each pattern, the places of its bits that are set, and then others."""
    patterns = np.arange(1 << EIGHT)[:, None] >> np.arange(EIGHT) & 1
    return np.argsort(1 - patterns, 1, kind="stable").astype(np.int32)


KERNELS = {true_places_p: (Kernel("eight places a step", "XLA scatters one by one, between two "
                                  "cumulative sums", _is_long, _by_eights, 2.5),)}
