"""Masks of attention, read block by block: which keys a query looks at.

    mask[rows, columns]     the bool array of two slices

Masks by a rule (causal, local, chunked) are never whole in memory; `mask_info.py` reads their
blocks. Masks are NumPy arrays, static and hashable: part of the key of a compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.docstrings import complete_docstrings
from ..base.util import ByKey
from ..types.shape import less, mod

BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
Index: TypeAlias = "slice | int | tuple[slice | int, ...]"
Rule: TypeAlias = "Callable[[IntArray, IntArray], BoolArray]"
Window: TypeAlias = tuple[int | None, int | None]


# Rules: from indices of queries [n, 1] and of keys [1, m] to bools [n, m] -------------------------

def _causal(q: IntArray, kv: IntArray, offset: int) -> BoolArray:
    return kv <= (q + offset if offset else q)


def _local(q: IntArray, kv: IntArray, window: Window, offset: int) -> BoolArray:
    at, (left, right) = (q + offset if offset else q), window
    sides = ([] if left is None else [kv >= at - left]) + ([] if right is None else
                                                           [kv <= at + right])
    if not sides:
        return np.ones(np.broadcast_shapes(q.shape, kv.shape), np.bool_)
    return sides[0] if len(sides) == 1 else sides[0] & sides[1]


def _chunked(q: IntArray, kv: IntArray, size: int) -> BoolArray:
    return (q // size == kv // size) & (kv <= q)


def _indices(shape: tuple[int, int]) -> tuple[IntArray, IntArray]:
    rows, columns = shape
    return np.arange(rows, dtype=np.int32)[:, None], np.arange(columns, dtype=np.int32)[None]


def _chunk(name: str, size: int) -> int:
    if size <= 0:
        raise ValueError(f"{name}: chunk_size must be positive; {size} given.")
    return size


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> BoolArray:
    """A dense causal mask: query i looks at keys up to i + offset.

    Args: offset: moves the diagonal up. If it is negative, the first queries look at nothing, and
        their softmax has no terms.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> print(splash.make_causal_mask((2, 3)).astype(int))
    [[1 0 0]
     [1 1 0]]
    """
    return _causal(*_indices(shape), offset)


def make_local_attention_mask(shape: tuple[int, int], window_size: Window, *, offset: int = 0
                              ) -> BoolArray:
    """A dense mask of a window: query i looks at keys from i + offset - left to i + offset + right.

    Args:
      window_size: (left, right); None has no limit on that side.
      offset: moves the diagonal up.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> print(splash.make_local_attention_mask((3, 3), (1, 0)).astype(int))
    [[1 0 0]
     [1 1 0]
     [0 1 1]]
    """
    return _local(*_indices(shape), window_size, offset)


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> BoolArray:
    """A dense mask that is causal within chunks of the sequence, and empty between them.

    Args: chunk_size: the length of a chunk.

    >>> from olympus.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask
    >>> print(splash_attention_mask.make_chunk_attention_mask((3, 3), 2).astype(int))
    [[1 0 0]
     [1 1 0]
     [0 0 1]]
    """
    return _chunked(*_indices(shape), _chunk("make_chunk_attention_mask", chunk_size))


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> BoolArray:
    """A dense mask of independent draws: each entry is False with probability `sparsity`.

    The draws are from `numpy.random.RandomState(seed)`; NumPy's global state stays as it is.

    Args:
      sparsity: the probability of False.
      seed: an int, the seed of the draws.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> bool(splash.make_random_mask((4, 4), 0.0, seed=0).all())
    True
    """
    draws = np.random.RandomState(seed).binomial(n=1, p=1.0 - sparsity, size=shape)
    return draws.astype(np.bool_)


# Masks -------------------------------------------------------------------------------------------

class Mask:
    """A mask of attention: `shape`, and `mask[rows, columns]` of slices. `|` and `&` join masks.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> both = splash.CausalMask((4, 4)) & splash.NumpyMask(onp.eye(4, dtype=bool).__array__())
    >>> print(both[1:3, 0:3].astype(int))
    [[0 1 0]
     [0 0 1]]
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(queries, keys); of several heads (heads, queries, keys)."""
        raise NotImplementedError

    def __getitem__(self, index: Index) -> BoolArray:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise NotImplementedError(
            "Mask: Conversion to bool is unsupported: a mask has many entries; join masks with `|` "
            "and `&`, not with `or` and `and`.")

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)


class _Joined(ByKey, Mask):
    """Two masks of one shape."""

    def __init__(self, left: Mask, right: Mask) -> None:
        if left.shape != right.shape:
            raise ValueError(f"{type(self).__name__}: Invalid shape for other: {right.shape}, "
                             f"expected: {left.shape}. Masks must have the same shape.")
        self.left, self.right = left, right

    @property
    def shape(self) -> tuple[int, ...]:
        return self.left.shape

    def _key(self) -> tuple[Hashable, ...]:
        return type(self), self.left, self.right

    def __repr__(self) -> str:
        return f"{type(self).__name__}(left={self.left!r}, right={self.right!r})"


class LogicalOr(_Joined):
    """The pairs that at least one of two masks lets through.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> mask = splash.CausalMask((2, 2)) | splash.FullMask((2, 2))
    >>> bool(mask[0:2, 0:2].all())
    True
    """

    def __getitem__(self, index: Index) -> BoolArray:
        return self.left[index] | self.right[index]


class LogicalAnd(_Joined):
    """The pairs that both of two masks let through.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> mask = splash.CausalMask((2, 2)) & splash.LocalMask((2, 2), (0, 0), 0)
    >>> print(mask[0:2, 0:2].astype(int))
    [[1 0]
     [0 1]]
    """

    def __getitem__(self, index: Index) -> BoolArray:
        return self.left[index] & self.right[index]


class MultiHeadMask(ByKey, Mask):
    """A mask for each head, all of one shape: [heads, queries, keys].

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> splash.MultiHeadMask([splash.CausalMask((4, 8)) for _ in range(2)]).shape
    (2, 4, 8)
    """

    def __init__(self, masks: Sequence[Mask]) -> None:
        self.masks = masks
        if not masks:
            raise ValueError("MultiHeadMask: Unsupported empty tuple of masks; give one for each "
                             "head.")
        for head, mask in enumerate(masks):
            if not isinstance(mask, Mask):
                raise ValueError(f"MultiHeadMask: masks should be of type Mask; masks[{head}] is a "
                                 f"{type(mask).__name__}; wrap an array in NumpyMask.")
            if isinstance(mask, MultiHeadMask):
                raise ValueError("MultiHeadMask: Nesting MultiHeadMasks is not supported; "
                                 f"masks[{head}] is one.")
            if mask.shape != masks[0].shape:
                raise ValueError(f"MultiHeadMask: Unexpected mask shape, got: {mask.shape}, "
                                 f"expected: {masks[0].shape} (masks[{head}]).")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.masks), *self.masks[0].shape)

    def __getitem__(self, index: Index) -> BoolArray:
        if not isinstance(index, tuple) or len(index) != 3:
            raise NotImplementedError(f"MultiHeadMask: Unsupported slice: {index}; a head (or a "
                                      "slice of heads) and two slices are required.")
        head, *block = index
        if isinstance(head, slice):
            return np.stack([mask[tuple(block)] for mask in self.masks[head]])
        return self.masks[head][tuple(block)]

    def _key(self) -> tuple[Hashable, ...]:
        return type(self), tuple(self.masks)

    def __repr__(self) -> str:
        return f"MultiHeadMask(masks={self.masks!r})"


class RuledMask(ByKey, Mask):
    """A mask by a rule of indices, which a kernel computes instead of reading blocks.

    `q_sequence` [queries] says which place in the sequence each row is: rows may be permuted.
    """

    q_sequence: IntArray
    mask_function: Rule

    def __init__(self, shape: tuple[int, int], mask_function: Rule,
                 shard_count: int = 1) -> None:
        if mod(shape[0], shard_count**2):
            raise ValueError(f"{type(self).__name__}: Shard count squared ({shard_count**2}) must "
                             f"divide Q seq_len ({shape[0]}) evenly.")
        self._shape, self.mask_function = shape, mask_function
        self.q_sequence = np.arange(shape[0], dtype=np.int32)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __getitem__(self, index: Index) -> BoolArray:
        rows, columns = _two_slices(self, index)
        return self.mask_function(self.q_sequence[rows][:, None],
                                  np.arange(columns.start, columns.stop)[None])

    def _rule(self) -> tuple[Hashable, ...]:
        raise NotImplementedError

    def _key(self) -> tuple[Hashable, ...]:
        return type(self), self.shape, self._rule(), self.q_sequence.tobytes()

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, (self._shape, *self._rule())))
        return f"{type(self).__name__}({parts})"


class CausalMask(RuledMask):
    """Query i looks at keys up to i + offset.

    Args:
      offset: moves the diagonal up. If it is negative, the first queries look at nothing, and their
        softmax has no terms.
      shard_count: over how many devices the queries are spread; its square divides them.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> print(splash.CausalMask((8, 8), offset=1)[0:2, 0:4].astype(int))
    [[1 1 0 0]
     [1 1 1 0]]
    """

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1) -> None:
        self.offset = offset
        super().__init__(shape, lambda q, kv: _causal(q, kv, self.offset), shard_count)

    def _rule(self) -> tuple[Hashable, ...]:
        return (self.offset,)


class LocalMask(RuledMask):
    """Query i looks at keys from i + offset - left to i + offset + right.

    Args:
      window_size: (left, right); None has no limit on that side.
      offset: moves the diagonal up.
      shard_count: over how many devices the queries are spread; its square divides them.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> print(splash.LocalMask((8, 8), (1, None), offset=0)[2:4, 0:4].astype(int))
    [[0 1 1 1]
     [0 0 1 1]]
    """

    def __init__(self, shape: tuple[int, int], window_size: Window, offset: int,
                 shard_count: int = 1) -> None:
        self.window_size, self.offset = window_size, offset
        super().__init__(shape, lambda q, kv: _local(q, kv, self.window_size, self.offset),
                         shard_count)

    def _rule(self) -> tuple[Hashable, ...]:
        return self.window_size, self.offset


class ChunkedCausalMask(RuledMask):
    """Causal within chunks of `chunk_size` places of the sequence, and empty between them.

    >>> from olympus.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask
    >>> print(splash_attention_mask.ChunkedCausalMask((4, 4), 2)[2:4, 0:4].astype(int))
    [[0 0 1 0]
     [0 0 1 1]]
    """

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1) -> None:
        self.chunk_size = _chunk("ChunkedCausalMask", chunk_size)
        super().__init__(shape, lambda q, kv: _chunked(q, kv, self.chunk_size), shard_count)

    def _rule(self) -> tuple[Hashable, ...]:
        return (self.chunk_size,)


class NumpyMask(ByKey, Mask):
    """A dense mask, a NumPy array of bools.

    >>> import numpy as np
    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> splash.NumpyMask(np.eye(4, dtype=bool)).shape
    (4, 4)
    """

    def __init__(self, array: BoolArray) -> None:
        if array.ndim != 2:
            raise ValueError(f"NumpyMask: Expected a 2-dim array; shape {array.shape} given.")
        if array.dtype != np.bool_:
            raise ValueError(f"NumpyMask: Mask must be a boolean array; {array.dtype} given; "
                             "compare it with 0.")
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __getitem__(self, index: Index) -> BoolArray:
        return self.array[index]

    def _key(self) -> tuple[Hashable, ...]:
        return type(self), self.array.shape, self.array.tobytes()

    def __repr__(self) -> str:
        return f"NumpyMask(array={self.array!r})"


class FullMask(ByKey, Mask):
    """Every query looks at every key.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> splash.FullMask((4, 8))[0:1, 0:2]
    array([[ True,  True]])
    """

    def __init__(self, _shape: tuple[int, int]) -> None:
        if not isinstance(_shape, tuple):
            raise ValueError(f"FullMask: Unsupported shape type: {type(_shape)}; a tuple is "
                             "required.")
        self._shape = _shape

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __getitem__(self, index: Index) -> BoolArray:
        rows, columns = _two_slices(self, index)
        return np.ones((rows.stop - rows.start, columns.stop - columns.start), np.bool_)

    def _key(self) -> tuple[Hashable, ...]:
        return type(self), self._shape

    def __repr__(self) -> str:
        return f"FullMask(_shape={self._shape})"


def _two_slices(mask: Mask, index: Index) -> tuple[slice, slice]:
    """Two slices of step 1 in bounds, with their ends."""
    name = type(mask).__name__
    parts = index if isinstance(index, tuple) else (index,)
    slices = [part for part in parts if isinstance(part, slice)]
    if len(parts) != 2 or len(slices) != 2:
        raise NotImplementedError(f"{name}: Unsupported slice: {index}; two slices are required.")
    checked: list[slice] = []
    for part, size in zip(slices, mask.shape, strict=True):
        start, stop = part.start or 0, size if part.stop is None else part.stop
        if part.step not in (None, 1) or start < 0 or less(size, stop):
            raise ValueError(f"{name}: Unsupported slice: {part} of an axis of {size} given; "
                             "slices of step 1 in bounds are required.")
        checked.append(slice(start, stop))
    return checked[0], checked[1]


complete_docstrings(globals(), {
    "shape": "(queries, keys).",
}, returns="A NumPy array, bool[queries, keys].")
