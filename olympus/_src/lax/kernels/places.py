"""Where the elements of a few ranks are in a vector of random words, without sorting all words.

The words are counted by their highest bits, which says in which groups of some 16 words the ranks
are. Only the words of these groups are sorted.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...base.typing import Array, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import make_aval
from ...types.memory import Space
from ..arithmetic import sub
from ..bits import bitwise_and, bitwise_or, shift_left, shift_right_logical
from ..comparison import gt, le, lt, select
from ..convert import in_dtype
from ..creation import full, iota
from ..cumulative import cumsum
from ..families import add
from ..indexing import ScatterDimensionNumbers, scatter, take_along
from ..reduce import smallest
from ..shape import broadcast_in_dim, reshape
from ..slicing import pad, slice_in_dim
from ..sort import placed_p, sort_p
from .order import tally

INT32, UINT32, UINT64 = map(dtypes.as_dtype, ("int32", "uint32", "uint64"))
# Found with tools/kernel_table.py: of fewer words, or for more ranks, sorting all is as fast.
LEAST, MOST, PART = 32768, 1 << 24, 64
GROUP = 16      # words of a group, at most on average
# Words that are sorted, for each rank and besides. Random words are hardly ever more; all are
# sorted if they are.
ROOM = 24, 256


def _are_few(b: Builder, x: IrValue, ranks: IrValue) -> bool:
    aval, wanted = b.avals_in
    return (aval.dtype == UINT32 and aval.ndim == 1 and LEAST <= aval.size <= MOST
            and 0 < wanted.size <= aval.size // PART
            and all(a.memory_space is Space.Device for a in b.avals_in))


def _by_groups(b: Builder, x: IrValue, ranks: IrValue) -> IrValue:
    aval, wanted = b.avals_in
    n, k = aval.size, wanted.size
    bits, room = (n - 1).bit_length() - (GROUP.bit_length() - 1), k * ROOM[0] + ROOM[1]
    counters, at, number = make_aval((1 << bits,), INT32), make_aval((k,), INT32), make_aval(
        (), INT32)
    ranks = b.convert(ranks, at)
    groups, ends = b.traced(functools.partial(_counted, bits), [x], [aval])
    held = make_aval((n,), INT32)
    groups, ends = b.hold(groups, held), b.hold(ends, counters)

    def halve(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(functools.partial(_halved, bits), [i, *values, ends, ranks], [
            number, at, counters, at])

    (group,) = b.counted_loop(bits, [b.full(at, 0)], halve)
    numbers, within, several = b.traced(functools.partial(_chosen, room), [
        groups, ends, group, ranks], [held, counters, at, at])

    def of_groups() -> list[IrValue]:
        return b.traced(functools.partial(_sorted_groups, room), [x, numbers, within], [
            aval, held, at])

    def of_all() -> list[IrValue]:
        return b.traced(_sorted_all, [x, ranks], [aval, at])

    return b.case(several, [of_groups, of_all], [b.type(at)])[0]


def _counted(bits: int, x: Array) -> list[Array]:
    """The group of each word, and how many words are in each group and those before it."""
    groups = in_dtype(shift_right_logical(x, 32 - bits), INT32)
    return [groups, cumsum(tally(1 << bits, groups))]


def _halved(bits: int, i: Array, low: Array, ends: Array, ranks: Array) -> Array:
    """One more bit, from above, of the number of groups that end at ranks or before."""
    step = shift_left(literal(1, INT32), sub(literal(bits - 1, INT32), i))
    tried = add(low, broadcast_in_dim(step, typeof(low).shape, ()))
    return select(le(take_along(ends, sub(tried, 1), 0), ranks), tried, low)


def _chosen(room: int, groups: Array, ends: Array, group: Array, ranks: Array) -> list[Array]:
    """By word, the number of words in wanted groups up to it, or `room` if it is in none; the ranks
    among these words; and 1 if they are more than `room`."""
    (size,), (n,) = typeof(ends).shape, typeof(groups).shape
    wanted = _put(full((size,), 0, INT32), group, full(typeof(group).shape, 1, INT32))
    here = take_along(wanted, groups, 0)
    numbers = cumsum(here)
    count = reshape(slice_in_dim(numbers, n - 1, n), ())
    sizes = sub(ends, _shifted(ends))
    before = _shifted(cumsum(select(gt(wanted, 0), sizes, full((size,), 0, INT32))))
    start = take_along(_shifted(ends), group, 0)
    within = add(sub(ranks, start), take_along(before, group, 0))
    numbers = select(gt(here, 0), sub(numbers, 1), full((n,), room, INT32))
    return [numbers, within, in_dtype(gt(count, room), INT32)]


def _shifted(ends: Array) -> Array:
    """Where groups begin that end there."""
    size = typeof(ends).size
    return pad(slice_in_dim(ends, 0, size - 1), literal(0, INT32), [(1, 0, 0)])


def _sorted_groups(room: int, x: Array, numbers: Array, within: Array) -> Array:
    n = typeof(x).size
    places = _put(full((room,), n, INT32), numbers, iota(INT32, n))
    words = take_along(x, smallest(places, full((room,), n - 1, INT32)), 0)
    words = select(lt(places, n), words, full((room,), 2 ** 32 - 1, UINT32))    # no word is last
    return _at(words, places, within)


def _sorted_all(x: Array, ranks: Array) -> Array:
    return _at(x, iota(INT32, typeof(x).size), ranks)


def _at(words: Array, places: Array, ranks: Array) -> Array:
    """The places at ranks, of words in order, equal ones by their places, as words of 64 bits."""
    packed = bitwise_or(shift_left(in_dtype(words, UINT64), 32), in_dtype(places, UINT64))
    (packed,) = sort_p.bind(packed, dimension=0, is_stable=True, num_keys=1)
    return in_dtype(bitwise_and(take_along(packed, ranks, 0), (1 << 32) - 1), INT32)


def _put(x: Array, places: Array, values: Array) -> Array:
    places = reshape(places, (*typeof(places).shape, 1))
    return scatter(x, places, values, ScatterDimensionNumbers((), (0,), (0,)), mode="drop")


KERNELS = {placed_p: (Kernel("groups of the ranks", "a sort orders all words", _are_few,
                             _by_groups),)}
