"""Parts of references read and written under a mask.

`ref[pl.ds(…)]` moves a window that leaves the content back inside; here it stays: outside, reads
give NaN or the least integer and writes are dropped. So each element of a mask belongs to the
element that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, Reference
from ..base.util import clipped
from ..core.cells import is_ref
from ..core.trace import literal, typeof
from ..lax.arithmetic import max, min, sub
from ..lax.creation import full
from ..lax.families import add
from ..lax.refs import View, Viewed, Window, get_p, swap_p
from ..lax.slicing import dynamic_slice, dynamic_update_slice, pad
from ..numpy.creation import asarray
from ..numpy.indexing import write
from ..numpy.manipulation import broadcast_to
from ..numpy.refs import At, RefPart
from ..numpy.selection import where
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import minimum
from .blocks import blank
from .specs import INT32

BOOL = dtypes.as_dtype("bool")


class Unmoved(Window):
    """A window that is not moved inside of the content."""

    __slots__ = ()

    def _inside(self, x: Array, ops: Sequence[ArrayLike]
                ) -> tuple[list[Array], list[Array], list[int]]:
        """The start of the window's inner part, its distance from the window's start, its size."""
        sizes = list(map(minimum, self.sizes, typeof(x).shape))
        lasts = [m - n for n, m in zip(sizes, typeof(x).shape, strict=True)]
        starts = [min(max(op, literal(0, INT32)), literal(last, INT32))
                  for op, last in zip(ops, lasts, strict=True)]
        return starts, [sub(s, op) for s, op in zip(starts, ops, strict=True)], sizes

    @staticmethod
    def _moved(x: Array, by: Sequence[Array], sizes: Sequence[int], fill: Array) -> Array:
        """An array of `sizes` that has `x` from the index `by` on, and `fill` around it."""
        margins = [(n, n, 0) for n in sizes]
        starts = [sub(literal(n, INT32), min(max(b, literal(-m, INT32)), literal(n, INT32)))
                  for n, b, m in zip(sizes, by, typeof(x).shape, strict=True)]
        return dynamic_slice(pad(x, fill, margins), starts, sizes, allow_negative_indices=False)

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        starts, by, sizes = self._inside(x, ops)
        part = dynamic_slice(x, starts, sizes, allow_negative_indices=False)
        return self._moved(part, by, self.sizes, blank((), typeof(x).dtype))

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        starts, by, sizes = self._inside(x, ops)
        part = dynamic_slice(x, starts, sizes, allow_negative_indices=False)
        back = [sub(literal(0, INT32), b) for b in by]
        meant = self._moved(full(self.sizes, True, BOOL), back, sizes, full((), False, BOOL))
        new = where(meant, self._moved(v, back, sizes, full((), 0, typeof(v).dtype)), part)
        return dynamic_update_slice(x, new, starts, allow_negative_indices=False)

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self.write(x, add(self.read(x, *ops), v), *ops)


class Dropping(View):
    """A view of elements at arrays of indices; writes outside of the content are dropped."""

    __slots__ = ("view",)

    def __init__(self, view: At) -> None:
        self.view = view

    def _key(self) -> tuple[object, ...]:
        return (self.view,)

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return self.view.aval(inner, *ops)

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return x.at[self.view.filled(ops)].get(mode="clip")

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return write("set", x, self.view.filled(ops), v, mode="drop")


def _unmoved(view: View) -> View:
    if type(view) is Window:
        return Unmoved(dict(view.params))
    if type(view) is Viewed:
        return Viewed([_unmoved(v) for v in view.views], view.counts)
    return view


def part_of(name: str, ref: Reference, idx: object) -> RefPart:
    """The part of a reference, or of a part of one, whose windows are not moved."""
    if not (is_ref(ref) or type(ref) is RefPart):
        raise TypeError(f"{name}: {clipped(ref)} given; a reference is required.")
    whole: Reference = ref
    part = whole.at[Ellipsis if idx is None else idx]
    return RefPart(part.ref, _unmoved(part.view), part.ops)


def _mask(name: str, mask: ArrayLike, part: RefPart) -> Array:
    mask = asarray(mask)
    if not dtypes.is_bool(mask.dtype):
        raise TypeError(f"{name}: a mask of type {typeof(mask)} given; bools are required; compare "
                        "it with something.")
    return broadcast_to(mask, part.shape)


@api_boundary
def load(ref: Reference, idx: object = None, *, mask: ArrayLike | None = None,
         other: ArrayLike | None = None) -> Array:
    """The elements at an index of a reference; `other` where a mask is false.

    Args:
      ref: a reference, or a part of one.
      idx: an index; None is all.
      mask: bools that broadcast to the part.
      other: the result where the mask is false; unspecified if left out.
    Returns: An array of the part's shape.

    >>> import olympus, olympus.numpy as onp
    >>> from olympus._src.kernels.masked import load
    >>> from olympus.experimental import pallas as pl
    >>> ref, i = olympus.new_ref(onp.arange(5)), onp.arange(4)
    >>> print(load(ref, pl.ds(3, 2), mask=onp.array([True, False]), other=-1))
    [ 3 -1]
    """
    part = part_of("load", ref, idx)
    content = get_p.bind(part.ref, *part.ops, view=part.view)
    if mask is None or other is None:
        return content
    return where(_mask("load", mask, part), content, asarray(other).astype(content.dtype))


@api_boundary
def swap(ref: Reference, idx: object, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Write where a mask is true, and return the old part.

    Args:
      ref: a reference, or a part of one.
      idx: an index; None is all.
      val: array or number that broadcasts to the part.
      mask: bools that broadcast to the part; None is all.
    Returns: An array of the part's shape.

    >>> import olympus, olympus.numpy as onp
    >>> from olympus._src.kernels.masked import swap
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(swap(ref, None, 9, mask=onp.array([True, False, True])), ref[...])
    [0 1 2] [9 1 9]
    """
    part = part_of("swap", ref, idx)
    new = broadcast_to(asarray(val).astype(part.dtype), part.shape)
    if mask is None:
        return swap_p.bind(part.ref, new, *part.ops, view=part.view)
    mask = _mask("swap", mask, part)
    old = get_p.bind(part.ref, *part.ops, view=part.view)
    ops, view = list(part.ops), part.view
    if type(view) is At:
        # Masked elements get an index out of bounds: at their own they could overwrite each other.
        k = next((k for k, op in enumerate(ops) if typeof(op).shape == part.shape != ()), None)
        if k is not None:
            ops[k] = where(mask, ops[k], dtypes.integer_range(typeof(ops[k]).dtype)[1])
            view = Dropping(view)
    swap_p.bind(part.ref, where(mask, new, old), *ops, view=view)
    return old


@api_boundary
def store(ref: Reference, idx: object, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Write to a reference where a mask is true.

    Args: ref, idx, val, mask: as for `swap`.

    >>> import olympus, olympus.numpy as onp
    >>> from olympus._src.kernels.masked import store
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> store(ref, slice(0, 2), 9, mask=onp.array([False, True]))
    >>> print(ref[...])
    [0 9 2]
    """
    swap(ref, idx, val, mask=mask)
