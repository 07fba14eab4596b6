"""`vmap`: a function of one example made into a function of many, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import index
from typing import Any

from ..base.source import filter_traceback
from ..base.typing import Array, ArrayLike, P, PyTree, R
from ..base.util import WithAux, name_of, wraps
from ..control.bodies import check_aliases
from ..core.context import under
from ..core.primitive import Axis
from ..core.trace import typeof
from ..interpreters.batching import batch_flat, to_axis
from ..jit.arguments import argument_name, check_callable, check_results, leaf_name, structure_path
from ..lax.shape import reduce_sum
from ..lax.sharding import reshard
from ..types.avals import MUTABLE, MappingSpec, ShapedArray
from ..types.shape import canonical_dim
from ..types.sharding import PartitionSpec, axes_of, entry_of, told_axes
from ..types.tree import (
    flatten_arguments, flatten_axes, keystr, tree_flatten, tree_flatten_with_path,
)
from ..types.tree_registry import PyTreeDef, registering

#: `vmappable.OnArrays`, once `batching.register_vmappable` was given a class.
ON_ARRAYS: list[Any] = []
_ENTRIES = ("{0}: {0} in_axes must be an int, None, or a tuple of entries corresponding to the "
            "positional arguments passed to the function")


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
    Returns: A function of the same arguments, each mapped array with one more axis.

    ValueError for sizes that differ, for axes that are out of range, and for axis specifications of
    another structure; TypeError for leaves that are not arrays.

    >>> olympus.vmap(lambda x, y: x * y, in_axes=(0, None))(onp.arange(3), 2)
    Array([0, 2, 4], dtype=int32)
    """
    check_callable("vmap", fun)
    # One entry for each argument, as in a tuple; as a pytree a list would be a prefix of nothing.
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (tuple, MappingSpec)) or is_axis(in_axes)):
        raise TypeError(f"{_ENTRIES.format('vmap')}, but got {in_axes!r}; write (spec,) for one "
                        "argument.")
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        check_axes("vmap", what, axes)
    for what, name in (("axis_name", axis_name), ("spmd_axis_name", spmd_axis_name)):
        if not isinstance(name, Hashable):
            raise TypeError(f"vmap: {what}={name!r} of type {type(name).__name__} given; a "
                            "hashable value is required; give a string.")
    if axis_size is not None:
        axis_size = canonical_dim(axis_size, "vmap axis_size")

    # A new Axis for each call: `_map` notes the size, and what cuts the axis, in it.
    @wraps(fun)
    def mapped(*args: ArrayLike, **kwargs: PyTree) -> object:
        try:
            axis = Axis(axis_size, axis_name, spmd_axis_name)
            if ON_ARRAYS:
                call = ON_ARRAYS[0](fun, args, kwargs, in_axes, out_axes)
                outs = _map(call.fun, call.args, call.kwargs, call.in_axes, call.out_axes, axis,
                            sum_match)
                return call.results(outs, axis.size)
            return _map(fun, args, kwargs, in_axes, out_axes, axis, sum_match)
        except Exception as error:
            filter_traceback(error)
            raise

    return mapped


def is_axis(x: Any) -> bool:
    """Whether it is an axis number; a bool is none."""
    # NumPy's integers are, too, hence `index`.
    try:
        return type(x) is not bool and index(x) == x
    except TypeError:
        return False


def check_axes(what: str, option: str, axes: PyTree) -> None:
    """TypeError unless the leaves of an option are axes."""
    for entry in tree_flatten(axes)[0]:
        if not (is_axis(entry) or isinstance(entry, MappingSpec)
                or any(kind.is_spec(entry) for kind in ON_ARRAYS)):
            raise TypeError(f"{what}: {what} {option} must be an int, None, or (nested) container "
                            f"with those types as leaves, but got {axes!r}, with the leaf "
                            f"{entry!r} of type {type(entry).__name__}.")


def _map(fun: Callable, args: tuple, kwargs: dict[str, PyTree], in_axes: PyTree, out_axes: PyTree,
         axis: Axis, sum_match: bool) -> PyTree:
    # All axes and sizes are checked before the function runs, so that messages name arguments.
    leaves, in_tree, dims, axis.size = mapped_arguments("vmap", fun, args, kwargs, in_axes,
                                                        axis.size)
    for x in leaves if MUTABLE else ():
        if type(getattr(x, "aval", None)) in MUTABLE:
            names = sorted(kwargs)
            tree = tree_flatten((*args, *[kwargs[name] for name in names]))[1]
            check_aliases("vmap", fun, (), leaves, tree, (), names)
            break
    axis.mesh_axis = _cut_along([(typeof(x), d) for x, d in zip(leaves, dims) if d is not None],
                                axis.mesh_axis)

    def flat(*xs: Array) -> tuple[list[Array], PyTreeDef]:
        full, named = in_tree.unflatten(xs)
        out = fun(*full, **named)
        outs, out_tree = tree_flatten(out)
        check_results("vmap", fun, out, outs)
        return outs, out_tree

    with_aux = WithAux(flat)
    outs, out_dims = batch_flat(under("vmap", with_aux), axis, leaves, dims)
    # Only now is the results' structure known; out_axes is a prefix of it.
    out_tree = with_aux.aux
    wanted = flatten_axes("vmap out_axes", out_tree, out_axes)

    def path(i: int) -> str:
        return structure_path(out_tree, i)

    return out_tree.unflatten([
        _place_axis(x, src, dst, axis, sum_match, path, name_of(fun), i)
        for i, (x, src, dst) in enumerate(zip(outs, out_dims, wanted))])


def mapped_arguments(what: str, fun: Callable, args: tuple, kwargs: dict[str, PyTree],
                     in_axes: int | Sequence[int | None], size: int | None,
                     positions: Sequence[int] | None = None
                     ) -> tuple[list[Any], PyTreeDef, list[int | None], int]:
    """The leaves of a call's arguments, their tree, the mapped axis of each, and its size.

    `positions`: the places of `args` among the arguments, if there are others.
    """
    if type(in_axes) is tuple and len(in_axes) != len(args):
        raise ValueError(f"{_ENTRIES.format(what)}, but got len(in_axes)={len(in_axes)}, "
                         f"len(args)={len(args)}; give one entry for each, or a single int or "
                         "None for all.")
    leaves, in_tree = flatten_arguments(what, (args, kwargs))
    # in_axes is about the positional arguments, which are the first child of that tree.
    if type(in_axes) is tuple:
        dims = flatten_axes(f"{what} in_axes", in_tree.children()[0], in_axes)
    else:
        dims = [in_axes] * in_tree.children()[0].num_leaves
    dims += [0] * (len(leaves) - len(dims))     # keyword arguments: along axis 0
    names = _Names(what, fun, range(len(args)) if positions is None else positions, args, kwargs)
    # An argument that is not mapped need not be an array.
    avals = [None if d is None else _aval(x, names, i)
             for i, (x, d) in enumerate(zip(leaves, dims))]
    dims = [d if d is None else _canonical(d, aval, names, i)
            for i, (d, aval) in enumerate(zip(dims, avals))]
    return leaves, in_tree, dims, _mapped_size(avals, dims, size, names)


class _Names:
    """Names of the leaves of a call, for messages of `what`."""

    __slots__ = ("what", "fun", "positions", "trees")

    def __init__(self, what: str, fun: Callable[..., PyTree], positions: Sequence[int], args: tuple,
                 kwargs: dict[str, PyTree]) -> None:
        keywords = sorted(kwargs)       # as the tree flattens a dict: leaves are counted below
        self.what, self.fun, self.positions = what, fun, [*positions, *keywords]
        self.trees = [*args, *[kwargs[k] for k in keywords]]

    def __call__(self, index: int) -> str:
        return leaf_name(self.fun, self.positions, self.trees, index)

    def where(self, index: int) -> str:
        """`argument x['k']`, or `kwargs['y']` for a keyword argument."""
        for position, tree in zip(self.positions, self.trees, strict=True):
            leaves = tree_flatten_with_path(tree)[0]
            if index < len(leaves):
                path = keystr(leaves[index][0])
                return (f"kwargs[{position!r}]{path}" if isinstance(position, str) else
                        f"argument {argument_name(self.fun, position)}{path}")
            index -= len(leaves)
        return f"leaf {index}"

    def given(self) -> str:
        """The arguments as Python gave them."""
        keywords = [p for p in self.positions if isinstance(p, str)]
        args = tuple(self.trees[:len(self.trees) - len(keywords)])
        return f"*args={args!r:.80} and **kwargs={dict.fromkeys(keywords)!r:.80}"


def _aval(x: ArrayLike, names: _Names, index: int) -> ShapedArray:
    """The aval of a mapped leaf."""
    try:
        return typeof(x)
    except TypeError:
        raise TypeError(
            f"{names.what}: argument {names(index)} of {name_of(names.fun)}: {x!r:.60} of type "
            f"{type(x)} is not a valid Olympus type, and in_axes maps it; an array is required; "
            f"{registering(x)}give None in in_axes for what is shared.") from None


def _canonical(axis: int, aval: Any, names: _Names, index: int) -> int:
    """A mapped axis counted from the front; for a user's type its own answer."""
    if aval.is_high or (aval.mutable and aval.inner.is_high):
        if isinstance(axis, MappingSpec):
            return axis
        raise ValueError(f"{names.what}: in_axes has {axis} for argument {names(index)} of "
                         f"{name_of(names.fun)}, which is of the non-array type {aval}; a "
                         "MappingSpec is required, which its type's dec_rank knows; give None to "
                         "share it.")
    if isinstance(axis, MappingSpec):
        raise TypeError(f"{names.what}: in_axes has {axis!r:.60} for argument {names(index)} of "
                        f"{name_of(names.fun)}, which is {aval}; an int is required; a MappingSpec "
                        "is for values of users' types.")
    if 0 <= axis < aval.ndim:
        return axis
    if -aval.ndim <= axis < 0:
        return axis + aval.ndim
    rank = axis + 1 if axis >= 0 else -axis
    raise ValueError(f"{names.what}: {names.what} was requested to map its argument along axis "
                     f"{axis}, which implies that its rank should be at least {rank}, but is only "
                     f"{aval.ndim} (its shape is {aval.shape}): argument {names(index)} of "
                     f"{name_of(names.fun)}; give another axis, or None to share it.")


def _mapped_size(avals: Sequence[Any], dims: Sequence[int | None], asked: int | None,
                 names: _Names) -> int:
    """The one size of all mapped axes."""
    sizes = {aval.shape[d] for aval, d in zip(avals, dims)
             if d is not None and aval.has_axes and not isinstance(d, MappingSpec)}
    # axis_size is one size more, so that an argument that contradicts it is an error.
    if asked is not None:
        sizes.add(asked)
    if len(sizes) == 1:
        return sizes.pop()
    if sizes:
        raise _sizes_error(avals, dims, asked, names)
    if not avals:
        raise ValueError(f"{names.what} wrapped function must be passed at least one argument "
                         "containing an array or axis_size must be specified, got empty "
                         f"{names.given()}: {name_of(names.fun)} is called without any array.")
    if any(d is not None for d in dims):
        raise ValueError(f"{names.what}: axis_size must be specified for {name_of(names.fun)}: its "
                         "mapped arguments are of users' types, which do not tell how many "
                         "elements they have.")
    raise ValueError(f"{names.what} must have at least one non-None value in in_axes or axis_size "
                     f"must be specified:\n  no argument of {name_of(names.fun)} is mapped; give 0 "
                     "for one, or call the function itself.")


def _sizes_error(avals: Sequence[Any], dims: Sequence[int | None], asked: int | None,
                 names: _Names) -> ValueError:
    """The error for sizes that differ: a line for each size, the most frequent first."""
    by_size: dict[int, list[str]] = {}
    for i, (aval, d) in enumerate(zip(avals, dims, strict=True)):
        if d is not None and aval.has_axes:
            by_size.setdefault(aval.shape[d], []).append(
                f"axis {d} of {names.where(i)} of type {aval}")
    # The most frequent size is most likely right: it comes first.
    ranked = sorted(by_size.items(), key=lambda item: -len(item[1]))
    lines = [] if asked is None else [f"  * the `axis_size` argument was {asked}"]
    for k, (size, axes) in enumerate(ranked[:8]):
        if len(axes) == 1:
            lines.append(f"  * one axis had size {size}: {axes[0]}")
            continue
        some = "most" if k == 0 and len(axes) > len(ranked[1:2] and ranked[1][1]) else "some"
        lines.append(f"  * {some} axes ({len(axes)} of them) had size {size}, e.g. {axes[0]}")
    listed = ";\n".join(lines)
    return ValueError(f"{names.what} got inconsistent sizes for array axes to be mapped:\n{listed}"
                      f"\nEqual sizes are required in a call of {name_of(names.fun)};\n  use None "
                      "in in_axes for arguments that are not mapped.")


def _cut_along(mapped: Sequence[tuple[ShapedArray, int]], asked: object) -> object | None:
    """The mesh axes over which the mapped axis is sharded: the types', or the given ones."""
    # Along explicit axes types say how the mapped axis is cut, and spmd_axis_name may but agree:
    # the axis has one sharding, which all batched results get.
    shardings = {a.sharding.spec[d] for a, d in mapped if a.tagged and a.explicit} - {None}
    told = asked
    if shardings and asked is not None:     # as far as types would name it
        mesh = next(a.sharding.mesh for a, _ in mapped if a.tagged and a.explicit)
        told = entry_of([n for n in axes_of(asked) if n not in mesh.explicit_axes
                         or n in told_axes(mesh)])
    if len(shardings | ({told} - {None})) > 1:
        avals, dims = zip(*mapped, strict=True)
        why = ("Mapped away dimension of inputs passed to vmap should be sharded the same"
               if len(shardings) > 1 else
               "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is "
               f"allowed, and spmd_axis_name={asked!r}")
        raise ValueError(f"vmap: arguments {', '.join(map(str, avals))} given, mapped along axes "
                         f"{list(dims)}. {why}; use olympus.reshard.")
    return shardings.pop() if shardings else asked


def _place_axis(x: Array, src: int | None, dst: int | None, axis: Axis, sum_match: bool,
                path: Callable[[int], str], fun_name: str, index: int) -> Array:
    """A result with its mapped axis where out_axes wants it."""
    if src == dst:
        return x
    if dst is None:     # but the result differs from example to example
        assert src is not None
        if sum_match and not typeof(x).is_high:
            return reduce_sum(x, (src,))
        mapped = ("" if axis.name is None else
                  f"vmap has mapped output (axis_name={axis.name!r}) but out_axes is None: ")
        raise ValueError(f"vmap: {mapped}at vmap out_axes{path(index)}, got axis spec None but "
                         f"output was batched on axis {src}; an int is required; None is for "
                         f"results of {fun_name} that are the same for all examples.")
    if typeof(x).is_high:
        if isinstance(dst, MappingSpec):
            return to_axis(x, src, dst, axis.size)
        if src is None:
            raise ValueError(
                f"vmap: out_axes of result{path(index)} of {fun_name} has {dst}, and the result is "
                f"{typeof(x)}, the same for all examples; None is required, or a value that an "
                "operation made of mapped ones.")
        return x
    if isinstance(dst, MappingSpec):
        raise TypeError(f"vmap: out_axes of result{path(index)} of {fun_name} has {dst!r:.60}, and "
                        f"the result is {typeof(x)}; an int is required; a MappingSpec is for "
                        "values of users' types.")
    ndim = typeof(x).ndim + (src is None)
    if not -ndim <= dst < ndim:
        raise ValueError(f"vmap: out_axes of result{path(index)} of {fun_name}: axis {dst} is out "
                         f"of bounds for array of dimension {ndim}, which counts the mapped axis; "
                         f"an axis in range({-ndim}, {ndim}) is required.")
    out = to_axis(x, src, dst % ndim, axis.size)
    aval = typeof(out)
    # A result that is the same for all was broadcast just now: cut it as mapped results are.
    if src is None and axis.mesh_axis is not None and aval.tagged and aval.explicit:
        spec = list(aval.sharding.spec)
        spec[dst % ndim] = axis.mesh_axis
        out = reshard(out, aval.sharding.update(spec=PartitionSpec(*spec)))
    return out
