"""Pytrees of arguments as flat ones, and back: what libraries with transformations of their own
write their front ends with.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base.typing import ArrayLike, PyTree
from ..core.ir import DebugInfo
from ..core.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2
from ..core.trace import typeof
from ..jit.arguments import argument_name, name_of
from ..types.avals import AbstractValue
from ..types.tree import (
    PyTreeDef, flatten_axes as axes_of_leaves, keystr, tree_flatten, tree_leaves_with_path,
    treedef_children,
)


@transformation_with_aux2
def flatten_fun(f: Callable[..., PyTree], store: Store, in_tree: PyTreeDef, *args_flat: PyTree
                ) -> list[Any]:
    """A function of flat arguments, of whose structure (args, kwargs) `in_tree` is; the thunk gives
    the structure of its results.
    """
    args, kwargs = in_tree.unflatten(args_flat)
    out, tree = tree_flatten(f(*args, **kwargs))
    store.store(tree)
    return out


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., PyTree], store: Store, in_tree: PyTreeDef,
                         *args_flat: PyTree) -> list[Any]:
    """`flatten_fun` of positional arguments alone: `in_tree` is the structure of `args`."""
    out, tree = tree_flatten(f(*in_tree.unflatten(args_flat)))
    store.store(tree)
    return out


class _Fixed:
    """An argument that is fixed: hashed and compared by type and value, or else by identity."""

    __slots__ = ("val", "by_value")

    def __init__(self, val: object, by_value: bool) -> None:
        self.val, self.by_value = val, by_value

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Fixed or type(other.val) is not type(self.val):
            return False
        return self.val == other.val if self.by_value else self.val is other.val

    def __hash__(self) -> int:
        return hash(self.val) if self.by_value else id(self.val)


def argnums_partial(f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[PyTree],
                    require_static_args_hashable: bool = True) -> tuple[WrappedFun, tuple]:
    """The function of some of the arguments, the others fixed; and those arguments.

    ValueError if an argument that is fixed is not hashable and must be.

    Args:
      f: the function, as `wrap_init` gives it.
      dyn_argnums: position, or positions, of the arguments that the new function takes.
      args: all arguments of `f`.
      require_static_args_hashable: whether fixed arguments are compared by value, so must be
        hashable, instead of by identity.
    Returns: The function of the arguments at `dyn_argnums`, and a tuple of these.

    >>> from olympus.api_util import argnums_partial
    >>> from olympus.extend.linear_util import wrap_init
    >>> fun, given = argnums_partial(wrap_init(lambda x, y: x - y), 1, (10, 3))
    >>> given, fun.call_wrapped(4)
    ((3,), 6)
    """
    nums = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    if any(not -len(args) <= n < len(args) for n in nums):
        raise ValueError(f"argnums_partial: dyn_argnums {nums} given for {len(args)} arguments; "
                         "positions within them are required.")
    dynamic = {n % len(args) for n in nums}
    fixed = [None if i in dynamic else _Fixed(a, require_static_args_hashable)
             for i, a in enumerate(args)]
    for i, a in enumerate(fixed):
        try:
            hash(a)
        except TypeError as error:
            raise ValueError(f"argnums_partial: argument {i} is {args[i]!r}, which is fixed; a "
                             "hashable value is required; make it one, or an argument that is "
                             "traced.") from error
    return _with_fixed(f, tuple(fixed)), tuple(args[i] for i in sorted(dynamic))


@transformation2
def _with_fixed(f: Callable[..., PyTree], fixed: tuple[_Fixed | None, ...], *dynamic: object,
                **kwargs: PyTree) -> object:
    rest = iter(dynamic)
    return f(*[next(rest) if x is None else x.val for x in fixed], **kwargs)


def donation_vector(donate_argnums: Sequence[int], donate_argnames: Sequence[str],
                    in_tree: PyTreeDef, kws: bool = True) -> tuple[bool, ...]:
    """Per leaf of the arguments, whether it is donated; `in_tree` describes (args, kwargs), or args
    alone without `kws`.

    Args:
      donate_argnums: positions of donated arguments.
      donate_argnames: names of donated keyword arguments.
      in_tree: the structure of the arguments.
      kws: whether `in_tree` describes the pair (args, kwargs).
    Returns: A tuple of bools, one per leaf.

    >>> from olympus.api_util import donation_vector
    >>> donation_vector((0,), (), olympus.tree.structure((([1, 2], 3), {"k": 4})))
    (True, True, False, False)
    """
    children = treedef_children(in_tree)
    args, kwargs = (children if kws else (in_tree, None))
    flags = [(i in donate_argnums, tree) for i, tree in enumerate(treedef_children(args))]
    if kwargs is not None:
        names = (kwargs.node_data() or (None, ()))[1]
        flags += [(name in donate_argnames, tree)
                  for name, tree in zip(names, treedef_children(kwargs), strict=True)]
    return tuple(flag for flag, tree in flags for _ in range(tree.num_leaves))


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]
                          ) -> tuple[int, ...]:
    """The donated positions, counted without the static ones.

    Args:
      donate_argnums: positions of donated arguments, none negative; one that is named twice counts
        once.
      static_argnums: positions of static arguments, none negative and none donated.
    Returns: A sorted tuple of positions among the arguments that are not static.

    >>> rebase_donate_argnums((3, 4), (0, 1))
    (1, 2)
    """
    if set(donate_argnums) & set(static_argnums):
        raise ValueError(f"rebase_donate_argnums: {tuple(donate_argnums)} and static "
                         f"{tuple(static_argnums)} given; no position may be in both.")
    static = set(static_argnums)
    return tuple(sorted({d - sum(s < d for s in static) for d in donate_argnums}))


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: PyTree, *, kws: bool = False,
                 tupled_args: bool = False) -> list[Any]:
    """One entry of `axis_tree`, a prefix of `treedef` in which None is a leaf, for each leaf.

    Args:
      name: what errors call the argument that `axis_tree` is.
      treedef: the structure to fill.
      axis_tree: the pytree of entries.
      kws, tupled_args: accepted; errors need no such hint here.
    Returns: A list with an entry per leaf of `treedef`.

    >>> from olympus.api_util import flatten_axes
    >>> flatten_axes("in_axes", olympus.tree.structure((1, [2, 3])), (0, None))
    [0, None, None]
    """
    return axes_of_leaves(name, treedef, axis_tree)


def shaped_abstractify(x: ArrayLike) -> AbstractValue:
    """The aval of an array or a Python number.

    Args: x: an array, a NumPy array, a tracer or a Python number.

    >>> from olympus.api_util import shaped_abstractify
    >>> shaped_abstractify(1)
    ShapedArray(int32[], weak_type=True)
    """
    return typeof(x)


def debug_info(traced_for: str, fun: Callable[..., PyTree], args: Sequence[PyTree],
               kwargs: Mapping[str, PyTree], *, static_argnums: Sequence[int] = (),
               static_argnames: Sequence[str] = (), result_paths_thunk: object = None,
               sourceinfo: str | None = None, signature: inspect.Signature | None = None
               ) -> DebugInfo:
    """The name of a program made of `fun(*args, **kwargs)`, and the names of its leaves.

    Args:
      traced_for: the transformation that traces.
      fun: the function; its name becomes the program's.
      args, kwargs: its arguments, in any pytrees.
      static_argnums, static_argnames: arguments that are not traced, so have no leaves here.
      sourceinfo: the function's name, with more about it; None: its name alone.
      result_paths_thunk, signature: accepted; nothing reads them.
    Returns: A record of the function's name and one name for each leaf of the traced arguments.

    >>> from olympus.api_util import debug_info
    >>> def area(side, n): return side["a"] * n
    >>> debug_info("jit", area, ({"a": 1.0}, 2), {}).arg_names
    ("side['a']", 'n')
    """
    named = [(argument_name(fun, i), a) for i, a in enumerate(args) if i not in static_argnums]
    named += [(argument_name(fun, k), v) for k, v in sorted(kwargs.items())
              if k not in static_argnames]
    names = [name + keystr(path) for name, a in named for path, _ in tree_leaves_with_path(a)]
    return DebugInfo(traced_for, sourceinfo or name_of(fun), tuple(names))
