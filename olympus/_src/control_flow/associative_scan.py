"""associative_scan: all prefixes of an associative operation in a logarithmic number of steps.

Neighbours are combined in pairs, the half as long problem is solved, and the prefixes in between
are filled in (Blelloch, "Prefix sums and their applications", 1990).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree
from ..control.bodies import (
    aval_error, check_callable, flatten, leaf_names, same_type, structure_error,
)
from ..core.trace import typeof
from ..lax.cumulative import interleave, scanned_size
from ..lax.shape import rev
from ..lax.slicing import concatenate, slice_in_dim
from ..types.shape import canonical_axis
from ..types.tree import tree_flatten, tree_unflatten


@api_boundary
def associative_scan(fn: Callable[[PyTree, PyTree], PyTree], elems: PyTree, reverse: bool = False,
                     axis: int = 0) -> PyTree:
    """All prefixes of `elems` along `axis` under an associative function.

    Args:
      fn: `(a, b) -> c` on slices of `elems` with that axis still there; it must work elementwise
        along the axis and be associative.
      elems: pytree of arrays of equal size along `axis`.
      reverse: combine from the end: suffixes in place of prefixes.
      axis: the axis.
    Returns: A pytree like `elems`: entry i combines the entries 0 … i (i … n-1 if `reverse`). About
      2n applications of `fn`, in log n rounds.

    >>> print(olympus.lax.associative_scan(onp.add, onp.arange(4)))
    [0 1 3 6]
    """
    check_callable("lax.associative_scan", fn=fn)
    leaves, avals, tree = flatten("associative_scan: elems", elems)
    axes = [canonical_axis(axis, a.ndim, "associative_scan: axis") for a in avals]
    sizes = [a.shape[k] for a, k in zip(avals, axes, strict=True)]
    if not sizes:
        raise ValueError("associative_scan: elems has no leaves; arrays are required.")
    if len(set(sizes)) > 1:
        shown = ", ".join(f"{n}: {s}"
                          for n, s in zip(leaf_names(tree, "elems"), sizes, strict=True))
        raise ValueError("associative_scan: Array inputs to associative_scan must have the same "
                         f"first dimension: sizes along axis {axis} differ ({shown}).")

    def combine(xs: Sequence[ArrayLike], ys: Sequence[ArrayLike]) -> list[Array]:
        out, out_tree = tree_flatten(fn(tree_unflatten(tree, xs), tree_unflatten(tree, ys)))
        if out_tree != tree:
            raise structure_error("associative_scan", tree, out_tree,
                                  "fn returned another structure than elems have")
        want, have = list(map(typeof, xs)), list(map(typeof, out))
        if not all(map(same_type, want, have)):
            raise aval_error("associative_scan", leaf_names(tree, "the result"), want, have,
                             "fn returned other types than its arguments have")
        return out

    if reverse:
        leaves = [rev(x, (k,)) for x, k in zip(leaves, axes, strict=True)]
    out = _prefixes(combine, leaves, axes)
    if reverse:
        out = [rev(x, (k,)) for x, k in zip(out, axes, strict=True)]
    return tree_unflatten(tree, out)


def _prefixes(combine: Callable[[Sequence[ArrayLike], Sequence[ArrayLike]], list[Array]],
              xs: Sequence[ArrayLike], axes: list[int]) -> Sequence[ArrayLike]:
    n = scanned_size(typeof(xs[0]).shape[axes[0]])
    if n < 2:
        return xs

    def cut(values: Sequence[ArrayLike], start: int, stop: int | None = None, step: int = 1
            ) -> list[Array]:
        return [slice_in_dim(x, start, stop, step, k) for x, k in zip(values, axes, strict=True)]

    #   xs      x0   x1   x2   x3   x4
    #   pairs      x0 x1     x2 x3          half as many: their prefixes are the results 1, 3, …
    #   even    x0, then each of those with the element after it: the results 0, 2, 4, …
    pairs = combine(cut(xs, 0, n - 1, 2), cut(xs, 1, None, 2))
    odd = _prefixes(combine, pairs, axes)
    if n % 2 == 0:
        even = combine(cut(odd, 0, n // 2 - 1), cut(xs, 2, None, 2)) if n > 2 else []
    else:
        even = combine(odd, cut(xs, 2, None, 2))
    first = cut(xs, 0, 1)
    if even:
        even = [concatenate([a, b], k) for a, b, k in zip(first, even, axes, strict=True)]
    else:
        even = first
    return [interleave(a, b, k) for a, b, k in zip(even, odd, axes, strict=True)]
