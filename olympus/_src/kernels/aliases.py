"""Inputs that share one memory with an output: aliases, as `InterpretParams` simulate them.

With `interpret=True` an input stays as it was, and its alias begins as a copy. In shared memory a
step reads what earlier steps have written. A block of an input is read when the steps come to it,
and kept for the next steps at the same place; an input without a block is the memory itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..base.typing import Array
from ..core.trace import literal, typeof
from ..lax.bits import bitwise_and
from ..lax.comparison import eq, select_n
from ..lax.creation import full
from ..lax.reduce import reduce_and
from ..lax.shape import as_array, broadcast_in_dim
from .blocks import BlockMapping, blank
from .specs import INT32

_OF_ARRAYS = ("any", "host", "hbm")     # memories in which a kernel sees arrays themselves
_NOWHERE = literal(np.iinfo(np.int32).min, INT32)


class Shared:
    """An input and its alias.

    source, target: their numbers among a kernel's references.
    """

    __slots__ = ("source", "target", "reads", "writes")

    def __init__(self, source: int, target: int, reads: BlockMapping, writes: BlockMapping) -> None:
        self.source, self.target, self.reads, self.writes = source, target, reads, writes

    @property
    def whole(self) -> bool:
        """Whether the kernel sees whole arrays, no blocks, for both the input and its alias."""
        return is_array(self.reads) and is_array(self.writes)

    @property
    def stays(self) -> bool:
        """Whether steps at the same place keep the block that was read first."""
        return self.reads.program is not None

    def first(self) -> list[Array]:
        """The initial carry: a block, and a place at which no step reads."""
        if not self.stays:
            return []
        block = self.reads.block
        return [blank(block.shape, self.reads.aval.dtype),
                *[full(a.shape, _NOWHERE.raw, INT32) for a in self.reads.op_avals]]

    def read(self, memory: Array, ops: Sequence[Array], last: Sequence[Array]) -> list[Array]:
        """The carry for a place of the output's memory: the last block if it was read there."""
        memory = _repadded(memory, self.writes, self.reads)
        block = self.reads.block.read(memory, *ops)
        if not self.stays:
            return [block]
        here = list(map(as_array, ops))
        same = as_array(literal(True, np.dtype(bool)))
        for x, y in zip(here, last[1:], strict=True):
            equal = eq(x, y)
            same = bitwise_and(same, reduce_and(equal, tuple(range(typeof(equal).ndim))))
        wide = broadcast_in_dim(same, typeof(block).shape, ())
        return [select_n(wide, block, last[0]), *here]

    def written(self, x: Array) -> Array:
        """The output's memory after the kernel has written the input's reference."""
        return _repadded(x, self.reads, self.writes)


def _repadded(x: Array, before: BlockMapping, after: BlockMapping) -> Array:
    """An array, padded as `before` has it, with the padding of `after`."""
    return x if before.padding == after.padding else after.pad(before.cut(x))


def shared(aliases: Mapping[int, int], scalars: int, mappings: Sequence[BlockMapping],
           inputs: int) -> list[Shared]:
    """The aliased inputs that outputs change while the kernel runs; prefetched scalars never do.

    `mappings`: of inputs, then outputs. A whole array that is read as one block is read once.
    """
    pairs = [Shared(i, scalars + inputs + o, mappings[i - scalars], mappings[inputs + o])
             for i, o in aliases.items() if i >= scalars]
    return [x for x in pairs if x.stays or is_array(x.reads)]


def is_array(m: BlockMapping) -> bool:
    """Whether a kernel sees an operand's array itself, and no block of it."""
    return m.program is None and getattr(m.memory_space, "value", None) in _OF_ARRAYS
