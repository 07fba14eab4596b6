"""`vmap`: a function of one example made into a function of many, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import index
from typing import Any

from ..base.source import filter_traceback
from ..base.typing import P, PyTree, R
from ..base.util import name_of, wraps
from ..core.context import under
from ..core.primitive import Axis
from ..core.trace import typeof
from ..interpreters.batching import batch_flat, to_axis
from ..lax.shape import reduce_sum
from ..types.shape import canonical_dim
from ..types.tree import flatten_axes, tree_flatten
from .arguments import check_callable, check_results, leaf_name, structure_path

__all__ = ["vmap"]


def vmap(fun: Callable[P, R], in_axes: int | None | Sequence[PyTree] = 0, out_axes: PyTree = 0,
         axis_name: Hashable | None = None, axis_size: int | None = None,
         spmd_axis_name: Hashable | None = None, sum_match: bool = False) -> Callable[P, R]:
    """Map a function over an axis of its arguments.

    Args:
      fun: a function of pytrees of arrays.
      in_axes: per positional argument the axis to map over: an int (negative counts from the end),
        None for an argument that all calls share, or a pytree of those that is a prefix of the
        argument's. One int serves all arguments. Keyword arguments are mapped along axis 0.
      out_axes: where the mapped axis is in the results: likewise, a prefix of the result's
        structure; None for a result that does not depend on mapped arguments.
      axis_name: what collectives (`lax.psum`) inside the function call the axis.
      axis_size: the number of examples; needed only where no argument is mapped.
      spmd_axis_name: a mesh axis, or a tuple of those, along which values with a sharding
        constraint are cut at the mapped axis.
      sum_match: add up a mapped result whose out_axes entry is None.

    Returns:
      A function of the same arguments, each mapped array with one more axis.

    ValueError for sizes that differ, for axes that are out of range, and for axis specifications of
    another structure; TypeError for leaves that are not arrays.

    >>> import olympus, olympus.numpy as onp
    >>> olympus.vmap(lambda x, y: x * y, in_axes=(0, None))(onp.arange(3), 2)
    Array([0, 2, 4], dtype=int32)
    """
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, tuple) or is_axis(in_axes)):
        raise TypeError(f"vmap: in_axes={in_axes!r} given; an int, None, or a tuple with one entry "
                        "per positional argument is required; write (spec,) for one argument.")
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        _check_axes(what, axes)
    for what, name in (("axis_name", axis_name), ("spmd_axis_name", spmd_axis_name)):
        if not isinstance(name, Hashable):
            raise TypeError(f"vmap: {what}={name!r} of type {type(name).__name__} given; a "
                            "hashable value is required; give a string.")
    if axis_size is not None:
        axis_size = canonical_dim(axis_size, "vmap axis_size")

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return _map(fun, args, kwargs, in_axes, out_axes,
                        Axis(axis_size, axis_name, spmd_axis_name), sum_match)
        except Exception as error:
            filter_traceback(error)
            raise

    return mapped


def is_axis(x: Any) -> bool:
    """Whether it is an axis number; a bool is none."""
    try:
        return type(x) is not bool and index(x) == x
    except TypeError:
        return False


def _check_axes(what: str, axes: Any) -> None:
    for entry in tree_flatten(axes)[0]:
        if not is_axis(entry):
            raise TypeError(f"vmap: {what} has the entry {entry!r} of type {type(entry).__name__}; "
                            "ints and None are required.")


def _map(fun: Callable, args: tuple, kwargs: dict[str, Any], in_axes: Any, out_axes: Any,
         axis: Axis, sum_match: bool) -> Any:
    if type(in_axes) is tuple and len(in_axes) != len(args):
        raise ValueError(f"vmap: in_axes has {len(in_axes)} entries, and {name_of(fun)} is called "
                         f"with {len(args)} positional arguments; one entry per argument is "
                         "required; a single int or None serves all.")
    leaves, in_tree = tree_flatten((args, kwargs))
    if type(in_axes) is tuple:
        dims = flatten_axes("vmap in_axes", in_tree.children()[0], in_axes)
    else:
        dims = [in_axes] * in_tree.children()[0].num_leaves
    dims += [0] * (len(leaves) - len(dims))
    names = _Names(fun, args, kwargs)
    # What is not mapped need not be an array.
    avals = [None if d is None else _aval(x, names, i)
             for i, (x, d) in enumerate(zip(leaves, dims))]
    dims = [d if d is None else _canonical(d, aval, names, i)
            for i, (d, aval) in enumerate(zip(dims, avals))]
    axis.size = _mapped_size(avals, dims, axis.size, names)
    out_tree: Any = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        full, named = in_tree.unflatten(xs)
        out = fun(*full, **named)
        outs, out_tree = tree_flatten(out)
        check_results("vmap", fun, out, outs)
        return outs

    outs, found = batch_flat(under("vmap", flat), axis, leaves, dims)
    wanted = flatten_axes("vmap out_axes", out_tree, out_axes)

    def name(i: int) -> str:
        return f"result{structure_path(out_tree, i)} of {name_of(fun)}"

    return out_tree.unflatten([
        _place(x, src, dst, axis.size, sum_match, name, i)
        for i, (x, src, dst) in enumerate(zip(outs, found, wanted))])


class _Names:
    """Names of the leaves of a call, for messages."""

    __slots__ = ("fun", "positions", "trees")

    def __init__(self, fun: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        keywords = sorted(kwargs)
        self.fun, self.positions = fun, [*range(len(args)), *keywords]
        self.trees = [*args, *[kwargs[k] for k in keywords]]

    def __call__(self, index: int) -> str:
        return leaf_name(self.fun, self.positions, self.trees, index)


def _aval(x: Any, names: _Names, index: int) -> Any:
    """The aval of a mapped leaf."""
    try:
        return typeof(x)
    except TypeError:
        raise TypeError(
            f"vmap: argument {names(index)} of {name_of(names.fun)} is {x!r:.60} of type "
            f"{type(x).__name__}, and in_axes maps it; an array is required; give None in in_axes "
            "for what is shared.") from None


def _canonical(axis: Any, aval: Any, names: _Names, index: int) -> int:
    """A mapped axis counted from the front."""
    if 0 <= axis < aval.ndim:
        return axis
    if -aval.ndim <= axis < 0:
        return axis + aval.ndim
    rank = axis + 1 if axis >= 0 else -axis
    raise ValueError(f"vmap: argument {names(index)} is {aval} of rank {aval.ndim}, and in_axes "
                     f"asks for axis {axis}; a rank of at least {rank} is required; give another "
                     "axis, or None to share the argument.")


def _mapped_size(avals: Sequence[Any], dims: Sequence[int | None], given: int | None,
                 names: _Names) -> int:
    """The one size of all mapped axes."""
    sizes = {aval.shape[d] for aval, d in zip(avals, dims) if d is not None}
    if given is not None:
        sizes.add(given)
    if len(sizes) == 1:
        return sizes.pop()
    if sizes:
        found = [] if given is None else [f"axis_size is {given}"]
        found += [f"argument {names(i)} is {aval}, of size {aval.shape[d]} along axis {d}"
                  for i, (aval, d) in enumerate(zip(avals, dims)) if d is not None]
        shown = found if len(found) <= 8 else [*found[:8], f"and {len(found) - 8} more"]
        raise ValueError(f"vmap: arguments of {name_of(names.fun)} have different sizes along "
                         f"their mapped axes: {'; '.join(shown)}; equal sizes are required; use "
                         "None in in_axes for arguments that are not mapped.")
    if not avals:
        raise ValueError(f"vmap: {name_of(names.fun)} is called without any array; at least one "
                         "mapped argument, or axis_size, is required.")
    raise ValueError(f"vmap: in_axes maps no argument of {name_of(names.fun)}; at least one entry "
                     "that is not None, or axis_size, is required.")


def _place(x: Any, src: int | None, dst: Any, size: int, sum_match: bool,
           name: Callable[[int], str], index: int) -> Any:
    """A result with its mapped axis where out_axes wants it."""
    if dst is None:
        if src is None:
            return x
        if sum_match:
            return reduce_sum(x, (src,))
        raise ValueError(f"vmap: {name(index)} depends on mapped arguments, and its entry "
                         "in out_axes is None; an int is required; None is for results that "
                         "are the same for all examples.")
    ndim = typeof(x).ndim + (src is None)
    if not -ndim <= dst < ndim:
        raise ValueError(f"vmap: out_axes has {dst} for {name(index)}, which with the mapped "
                         f"axis has rank {ndim}; an axis in range({-ndim}, {ndim}) is "
                         "required.")
    return to_axis(x, src, dst % ndim, size)
