"""The words of kernels for GPUs by Triton: options, masked loads and stores, atomic operations.

Steps run in turn, so every operation is atomic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from ..base.docstrings import complete_docstrings
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, Reference
from ..control_flow.scan import scan
from ..core.trace import typeof
from ..numpy import arithmetic as uf, logic, trigonometry
from ..numpy.creation import asarray
from ..numpy.grids import arange
from ..numpy.manipulation import broadcast_to
from ..numpy.refs import RefPart, get, set
from ..numpy.selection import where
from . import masked


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of the compiler for GPUs, Triton; they have no effect in interpret mode.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> plgpu.CompilerParams(num_warps=4).num_warps
    4
    """

    num_warps: int | None = None
    num_stages: int | None = None


@api_boundary
def load(ref: Reference, *, mask: ArrayLike | None = None, other: ArrayLike | None = None,
         cache_modifier: str | None = None, eviction_policy: str | None = None,
         volatile: bool = False) -> Array:
    """The elements of a reference; `other` where a mask is false.

    Args:
      ref: a reference, or a part of one, which may leave it where the mask is false.
      mask: bools that broadcast to the part.
      other: the result where the mask is false; unspecified if left out.
      cache_modifier, eviction_policy, volatile: have no effect in interpret mode.
    Returns: An array of the part's shape.

    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.load(ref, mask=onp.array([True, False, True]), other=-1))
    [ 0 -1  2]
    """
    return masked.load(ref, mask=mask, other=other)


@api_boundary
def store(ref: Reference, val: ArrayLike, *, mask: ArrayLike | None = None,
          eviction_policy: str | None = None) -> None:
    """Write to a reference where a mask is true.

    Args: eviction_policy: has no effect in interpret mode.

    >>> ref = olympus.new_ref(onp.arange(3))
    >>> plgpu.store(ref, 9, mask=onp.array([True, False, True]))
    >>> print(ref[...])
    [9 1 9]
    """
    masked.store(ref, None, val, mask=mask)


class Atomic(Protocol):
    """An operation that replaces a part of a reference, and returns the old part."""

    def __call__(self, x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
                 mask: ArrayLike | None = None) -> Array: ...


def _atomic(name: str, op: Callable[[Array, Array], Array], what: str, shown: str) -> Atomic:
    """The function `atomic_…`, which writes `op(part, value)`; `shown`: the example's content."""
    def atomic(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
               mask: ArrayLike | None = None) -> Array:
        part = masked.part_of(name, x_ref_or_view, idx)
        if any(typeof(x).shape for x in part.ops):      # several elements may have one place
            return _one_by_one(op, part, val, mask)
        old = masked.load(x_ref_or_view, idx, mask=mask, other=0)
        new = op(old, uf.add(val, 0))
        return masked.swap(x_ref_or_view, idx, new, mask=mask)

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"""Replace a part of a reference by {what} where a mask is true.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.{name}(ref, slice(0, 3), 1), ref[...])
    [0 1 2] {shown}
    """
    return api_boundary(atomic)


def _one_by_one(op: Callable[[Array, Array], Array], part: RefPart, val: ArrayLike,
                mask: ArrayLike | None) -> Array:
    """`op` of the elements of a part and of a value, one after the other, in row-major order.

    Each operation sees the results of those before it at its place.
    """
    content: Array = get(part.ref)
    indices = part.view.read(arange(content.size).reshape(content.shape), *part.ops)
    val = broadcast_to(asarray(val).astype(content.dtype), indices.shape)
    mask = broadcast_to(asarray(True if mask is None else mask), indices.shape)
    flat = content.ravel()

    def step(flat: Array, element: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        place, x, here = element
        old = flat[place]
        return flat.at[place].set(where(here, op(old, x), old)), old

    end, old = scan(step, flat, (indices.ravel(), val.ravel(), mask.ravel()))
    if op is uf.add:        # without a loop, where nobody reads the old part
        end = flat.at[indices].add(where(mask, val, 0))
    set(part.ref, ..., end.reshape(content.shape))
    return old.reshape(indices.shape)


atomic_add = _atomic("atomic_add", uf.add, "its sum with a value", "[1 2 3]")
atomic_max = _atomic("atomic_max", uf.maximum, "the larger of it and a value", "[1 1 2]")
atomic_min = _atomic("atomic_min", uf.minimum, "the smaller of it and a value", "[0 1 1]")
atomic_and = _atomic("atomic_and", logic.bitwise_and, "its bits that a value has, too", "[0 1 0]")
atomic_or = _atomic("atomic_or", logic.bitwise_or, "the bits that it or a value has", "[1 1 3]")
atomic_xor = _atomic("atomic_xor", logic.bitwise_xor, "the bits that it or a value has, not both",
                     "[1 0 3]")
atomic_xchg = _atomic("atomic_xchg", lambda old, new: new, "a value", "[1 1 1]")


@api_boundary
def atomic_cas(ref: Reference, cmp: ArrayLike, val: ArrayLike) -> Array:
    """Write a value where a reference equals another, and return the old content.

    Args: cmp: the value to compare with.

    >>> ref = olympus.new_ref(onp.array(1))
    >>> print(plgpu.atomic_cas(ref, 1, 7), ref[...])
    1 7
    """
    old = masked.load(ref)
    masked.store(ref, None, where(uf.subtract(old, cmp) == 0, val, old))
    return old


def approx_tanh(x: Array) -> Array:
    """The hyperbolic tangent, which a GPU rounds more coarsely.

    Returns: An array like x.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> float(plgpu.approx_tanh(onp.array(0.)))
    0.0
    """
    return trigonometry.tanh(x)


def debug_barrier() -> None:
    """Let the threads of a step wait for one another; here is one thread.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> plgpu.debug_barrier()
    """


def max_contiguous(x: Array, values: int | Sequence[int]) -> Array:
    """Promise the compiler that runs of indices follow one another; the result is x.

    Args: values: how many indices follow one another, one number for each axis.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> print(plgpu.max_contiguous(onp.arange(2), 2))
    [0 1]
    """
    return x


complete_docstrings(globals(), {
    "ref": "a reference.",
    "x_ref_or_view": "a reference, or a part of one.",
    "idx": "an index, as for arrays.",
    "val": "the value to write or to combine, broadcast to the part.",
    "mask": "bools that broadcast to the part, or None for all of it.",
    "x": "an array.",
}, returns="The old part, an array.")
