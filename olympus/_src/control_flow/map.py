"""map: a function applied to one slice of its argument after the other, as a scan."""

from __future__ import annotations

from collections.abc import Callable

from ..base.source import api_boundary
from ..base.typing import PyTree
from ..base.util import WithAux
from ..control.bodies import Derived, check_callable, flatten, leaf_names
from ..core.primitive import Axis
from ..core.trace import typeof
from ..interpreters.batching import batch_flat, to_axis
from ..lax.shape import reshape
from ..lax.slicing import concatenate, slice_in_dim
from ..types.shape import definitely_equal, floor_div
from ..types.tree import tree_flatten, tree_map, tree_unflatten
from .scan import scan


@api_boundary
def map(f: Callable[[PyTree], PyTree], xs: PyTree, *, batch_size: int | None = None) -> PyTree:
    """Apply `f` to each slice of `xs` along axis 0, in order, and stack the results.

    Unlike `vmap` it uses memory for one element (or `batch_size` elements) at a time.

    Args:
      f: a function of one slice.
      xs: a pytree of arrays of one leading size.
      batch_size: apply `vmap(f)` to this many slices at once.
    Returns: A pytree of arrays with the leading size of `xs`.

    >>> print(olympus.lax.map(lambda x: x * x, onp.arange(3)))
    [0 1 4]
    """
    check_callable("map", f=f)
    leaves, avals, tree = flatten("map: xs", xs)
    if not leaves or any(not a.shape for a in avals):
        shown = ", ".join(str(a) for a in avals) or "empty"
        raise ValueError(f"map: scan got value with no leading axis to scan over: xs is {shown}; "
                         "arrays with a leading axis are required; add an axis, or close over the "
                         "arrays without one.")
    size = avals[0].shape[0]
    if not all(definitely_equal(a.shape[0], size) for a in avals):
        shown = ", ".join(f"{n}: {a.shape[0]}"
                          for n, a in zip(leaf_names(tree, "xs"), avals, strict=True))
        raise ValueError("map: scan got values with different leading axis sizes: leading sizes "
                         f"differ ({shown}); they must be equal.")
    if batch_size is None or (type(batch_size) is int and batch_size == 0):
        # `Derived`: a lambda made anew for each call would be staged anew for each.
        return scan(Derived(lambda _, x: ((), f(x)), f, "map", "map"), (), xs)[1]
    if (isinstance(batch_size, bool) or getattr(batch_size, "ndim", 0)
            or not hasattr(batch_size, "__index__") or batch_size < 0):
        raise ValueError(f"map: batch_size is {batch_size!r}; a positive int is required, or None "
                         "or 0 for single elements.")
    # Whole batches are a loop over [number of batches, batch_size]; the rest is one smaller batch.
    batches = floor_div(size, batch_size)
    whole = batches * batch_size
    parts = []
    if whole or not size:   # with no slices the loop still says what types results have
        chunks = [reshape(slice_in_dim(x, 0, whole), (batches, batch_size,
                                                      *typeof(x).shape[1:])) for x in leaves]
        body = Derived(lambda _, x: ((), _vmapped(f, x)), f, "map in batches", "map")
        out = scan(body, (), tree_unflatten(tree, chunks))[1]
        parts.append(tree_map(lambda y: reshape(y, (whole, *typeof(y).shape[2:])), out))
    if not definitely_equal(whole, size):
        rest = [slice_in_dim(x, whole, size) for x in leaves]
        parts.append(_vmapped(f, tree_unflatten(tree, rest)))
    if len(parts) == 1:
        return parts[0]
    return tree_map(lambda a, b: concatenate([a, b], 0), *parts)


def _vmapped(f: Callable[[PyTree], PyTree], xs: PyTree) -> PyTree:
    """`vmap(f)(xs)` along axis 0."""
    leaves, tree = tree_flatten(xs)
    flat = WithAux(lambda *slices: tree_flatten(f(tree_unflatten(tree, slices))))
    axis = Axis(typeof(leaves[0]).shape[0])
    outs, dims = batch_flat(flat, axis, leaves, [0] * len(leaves))
    return tree_unflatten(flat.aux, [to_axis(x, d, 0, axis.size)
                                     for x, d in zip(outs, dims, strict=True)])
