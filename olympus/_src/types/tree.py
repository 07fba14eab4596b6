"""The pytree verbs: flatten, rebuild, map, reduce, transpose and broadcast trees of leaves.

`tree_flatten` is one call into jaxlib's C++ registry, and everything else is made of it. Where
structures must agree the check is C++'s too; only when it fails are the trees compared in Python,
to name the place. The registry and its registrations are in `tree_registry`, key paths and
explanations in `tree_paths`.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, overload

from ..base import lib
from ..base.config import compatible
from ..base.docstrings import complete_docstrings
from ..base.typing import PyTree, T
from .tree_paths import (
    IsLeaf, explain_mismatch, flatten_error, keystr, mismatch_error, prefix_errors,
)
from .tree_registry import PyTreeDef, is_tree_node, registry

PathLeaf = tuple[tuple[Any, ...], Any]

_flatten: Any = registry.flatten
_REFUSED = (ValueError, TypeError, SystemError, RecursionError)

_LEVELS: Any = functools.reduce(lambda inner, _: (inner,), range(64), int)
_CALLS = 32     # between two looks whether half as many levels of recursion as these are left


def _flatten_to(tree: PyTree, is_leaf: Callable[..., bool] | None, flatten: Any = _flatten) -> Any:
    """The result of `flatten`; an exception of `is_leaf` does not pass through C++.

    That would not give back the levels of Python's recursion that it has taken: a list that has
    itself in it would leave the process none.
    """
    if is_leaf is None:
        return flatten(tree, None)
    raised: list[BaseException] = []
    calls = 0

    def asked(*x: object) -> bool:
        nonlocal calls
        try:
            calls += 1
            if calls % _CALLS == 0 and not raised:  # C++ is deeper by one level at most for each
                isinstance(0, _LEVELS)      # a RecursionError of a call would pass through C++
            return bool(raised) or is_leaf(*x)
        except BaseException as error:
            raised.append(error)
            return True

    flat = flatten(tree, asked)
    if raised:
        del raised[1:]
        raise raised.pop()      # a frame that kept it would be one of a cycle
    return flat


class Unspecified:
    """The class of the mark for an argument that was not given, where None is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED: Final = Unspecified()
_PREFIX_RULES = "a prefix is required: the full tree's structure, cut off at the prefix's leaves"
_TRANSPOSE_RULES = (
    "the tree to transpose must be the outer structure with the inner one at each leaf"
)
_FIRST_RULES = (
    "every further tree must have the first tree's structure, "
    "and may be deeper where that has a leaf"
)


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of `tree`, dicts in key order, and its structure.

    Returns: (leaves, treedef), from which `tree_unflatten(treedef, leaves)` makes the tree again.

    ValueError for a dict whose keys cannot be sorted, RecursionError for a tree that contains
    itself.

    >>> tree_flatten({"b": [1, 2], "a": None})
    ([1, 2], PyTreeDef({'a': None, 'b': [*, *]}))
    """
    try:
        return _flatten_to(tree, is_leaf)
    except _REFUSED as error:
        raise flatten_error("tree_flatten", tree, error, is_leaf) from None


def flatten_arguments(what: str, arguments: PyTree, function: str = ""
                      ) -> tuple[list[PyTree], PyTreeDef]:
    """`tree_flatten` of a call's arguments; its errors name the transformation and the function."""
    try:
        return _flatten(arguments, None)
    except _REFUSED as error:
        named = f"{what}: {function}" if function else what
        raise flatten_error(named, arguments, error) from None


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree`, in the order of `tree_flatten`.

    Args: tree: any pytree; None and empty containers have no leaves.

    >>> tree_leaves([1, (2, 3), ()])
    [1, 2, 3]
    """
    try:
        return _flatten_to(tree, is_leaf)[0]
    except _REFUSED as error:
        raise flatten_error("tree_leaves", tree, error, is_leaf) from None


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of `tree`, without its leaves.

    Returns: A `PyTreeDef`, hashable and comparable.

    >>> tree_structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """
    try:
        return _flatten_to(tree, is_leaf)[1]
    except _REFUSED as error:
        raise flatten_error("tree_structure", tree, error, is_leaf) from None


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[PyTree]) -> PyTree:
    """The tree of structure `treedef` with these leaves.

    ValueError unless there are `treedef.num_leaves` of them.

    Args:
      treedef: a structure, as `tree_flatten` returns it.
      leaves: an iterable of any values.
    Returns: A pytree.

    >>> tree_unflatten(tree_structure([0, {"k": 0}]), "xy")
    ['x', {'k': 'y'}]
    """
    try:
        return treedef.unflatten(leaves)
    except (ValueError, TypeError, AttributeError) as error:
        raise _unflatten_error(treedef, leaves, error) from None


def _unflatten_error(treedef: object, leaves: object, error: Exception) -> Exception:
    """Why C++ refused the leaves; an error of the user's function or iterator as it is."""
    if not isinstance(treedef, PyTreeDef):
        return _not_a_treedef("tree_unflatten", treedef)
    if not isinstance(leaves, Iterable):
        return TypeError(
            f"tree_unflatten: leaves is of type {type(leaves).__name__}; an iterable is required"
        )
    counted = len(leaves) if isinstance(leaves, Sequence) else treedef.num_leaves
    if counted == treedef.num_leaves:
        return error
    return ValueError(
        f"tree_unflatten: Too {'few' if counted < treedef.num_leaves else 'many'} leaves for "
        f"PyTreeDef; expected {treedef.num_leaves}, got {counted}: give one for each * of {treedef}"
    )


def _not_a_treedef(what: str, value: object) -> TypeError:
    return TypeError(
        f"{what}: got a value of type {type(value).__name__} as tree structure; "
        "a PyTreeDef is required; get it with tree_structure(tree)"
    )


@overload
def tree_map(f: Callable[[Any], PyTree], tree: PyTree, *, is_leaf: IsLeaf = None) -> PyTree: ...


@overload
def tree_map(f: Callable[[Any, PyTree], PyTree], tree: PyTree, second: PyTree, /, *,
             is_leaf: IsLeaf = None) -> PyTree: ...


@overload
def tree_map(f: Callable[..., PyTree], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None
             ) -> PyTree: ...


def tree_map(f: Callable[..., PyTree], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None
             ) -> PyTree:
    """Apply `f` to every leaf of `tree`, in the same structure.

    With further trees, of the same structure or deeper where `tree` has a leaf, `f` also takes
    their subtrees there. ValueError with the key path where the structures differ.

    Args:
      f: a function of as many values as there are trees.
      tree: the pytree whose structure counts.
      *rest: further trees.
      is_leaf: `is_leaf(subtree)` stops above a node of `tree`.
    Returns: A pytree of the structure of `tree`.

    >>> tree_map(lambda x, y: x + y, [1, {"k": 2}], [10, {"k": 20}])
    [11, {'k': 22}]
    """
    try:
        leaves, treedef = _flatten_to(tree, is_leaf)
    except _REFUSED as error:
        raise flatten_error("tree_map", tree, error, is_leaf) from None
    if not rest:
        return treedef.unflatten(map(f, leaves))
    return treedef.unflatten(map(f, leaves, *_subtrees_at_leaves("tree_map", treedef, rest)))


def _subtrees_at_leaves(what: str, treedef: PyTreeDef,
                        rest: tuple[PyTree, ...]) -> list[list[PyTree]]:
    """The subtrees of each further tree at the leaves of the first."""
    columns: list[list[PyTree]] = []
    for index, other in enumerate(rest, 2):
        try:
            columns.append(treedef.flatten_up_to(other))
        except _REFUSED as error:
            explain = functools.partial(explain_mismatch, treedef, other, prefix=True)
            raise _misfit(f"{what}, tree {index}", _FIRST_RULES, other, error, explain) from None
    return columns


def _misfit(what: str, advice: str, full: PyTree, error: Exception, explain: Callable[[], list[str]]
            ) -> Exception:
    """The exception where C++ could not lay a prefix over `full`: the places, else the cause."""
    try:
        differences = explain()
    except Exception:  # a node of `full` cannot be opened
        differences = []
    if differences:
        return mismatch_error(what, advice, differences)
    return flatten_error(what, full, error)


def _path_predicate(is_leaf: Callable[..., bool] | None, takes_path: bool
                    ) -> Callable[..., bool] | None:
    """C++ asks `(path, subtree)`; the user's predicate takes the subtree alone by default."""
    if is_leaf is None or takes_path:
        return is_leaf
    return lambda _path, subtree: is_leaf(subtree)


def _flatten_with_path(
    what: str, tree: PyTree, is_leaf: Callable[..., bool] | None, takes_path: bool
) -> tuple[list[PathLeaf], PyTreeDef]:
    try:
        return _flatten_to(tree, _path_predicate(is_leaf, takes_path), registry.flatten_with_path)
    except _REFUSED as error:
        raise flatten_error(what, tree, error, None if takes_path else is_leaf) from None


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[PathLeaf], PyTreeDef]:
    """`(key path, leaf)` of every leaf, and the structure.

    With `is_leaf_takes_path` the predicate is called `is_leaf(path, subtree)`.

    Args:
      is_leaf: a predicate of subtrees, or of their paths and them.
      is_leaf_takes_path: which of both.
    Returns: (pairs, treedef); paths are tuples of keys, which `keystr` prints.

    >>> tree_flatten_with_path([1, {"k": 2}])[0]
    [((SequenceKey(idx=0),), 1), ((SequenceKey(idx=1), DictKey(key='k')), 2)]
    """
    return _flatten_with_path("tree_flatten_with_path", tree, is_leaf, is_leaf_takes_path)


def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[PathLeaf]:
    """`(key path, leaf)` of every leaf; see `tree_flatten_with_path`.

    Args: tree, is_leaf, is_leaf_takes_path: as for `tree_flatten_with_path`.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"k": (1, 2)})]
    [("['k'][0]", 1), ("['k'][1]", 2)]
    """
    return _flatten_with_path("tree_leaves_with_path", tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., PyTree], tree: PyTree, *rest: PyTree,
                       is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
                       ) -> PyTree:
    """Like `tree_map`, with `f(path, leaf, *subtrees of rest)`.

    Args:
      f: a function of a key path and as many values as there are trees.
      tree: the pytree whose structure counts.
      *rest: further trees.
      is_leaf, is_leaf_takes_path: as for `tree_flatten_with_path`.
    Returns: A pytree of the structure of `tree`.

    >>> tree_map_with_path(lambda path, x: keystr(path) + "=" + str(x), {"k": [1, 2]})
    {'k': ["['k'][0]=1", "['k'][1]=2"]}
    """
    what = "tree_map_with_path"
    pairs, treedef = _flatten_with_path(what, tree, is_leaf, is_leaf_takes_path)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    return treedef.unflatten(map(f, paths, leaves, *_subtrees_at_leaves(what, treedef, rest)))


def tree_reduce(function: Callable[[T, Any], T], tree: PyTree,
                initializer: PyTree = UNSPECIFIED, is_leaf: IsLeaf = None) -> T:
    """`functools.reduce` over the leaves, from `initializer` where it is given.

    TypeError for a tree without leaves where it is not.

    Args:
      function: of the value so far and a leaf.
      initializer: what comes before the first leaf.
    Returns: The last value of `function`.

    >>> tree_reduce(lambda x, y: x - y, [10, (3, 2)])
    5
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not UNSPECIFIED:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError(
            "tree_reduce: the tree has no leaves; at least one is required; give an initializer"
        )
    return functools.reduce(function, leaves)


def tree_reduce_associative(operation: Callable[[T, T], T], tree: PyTree, *,
                            identity: PyTree = UNSPECIFIED, is_leaf: IsLeaf = None) -> T:
    """Combine the leaves pairwise by an associative operation, to a depth of log2 of their number.

    `identity` is the result for a tree without leaves; TypeError for such a tree when it is not
    given.

    Args:
      operation: an associative function of two values.
      identity: the result without leaves.
    Returns: One value.

    >>> tree_reduce_associative(lambda x, y: (x, y), [1, 2, 3])
    (1, (2, 3))
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _combine(operation, leaves)
    if identity is UNSPECIFIED:
        raise TypeError(
            "tree_reduce_associative: the tree has no leaves; at least one is required; "
            "give identity"
        )
    return identity


def _combine(operation: Callable[[T, T], T], leaves: list[T]) -> T:
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    return operation(_combine(operation, leaves[:half]), _combine(operation, leaves[half:]))


def tree_all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true; True for a tree without leaves.

    Args: tree: a pytree of values with a truth.

    >>> tree_all([True, {"k": 1}]), tree_all([0])
    (True, False)
    """
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[object], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf, in itself or by `is_leaf`. None is a node.

    Args:
      iterable: any values.
      is_leaf: makes leaves of nodes for which it holds.
    Returns: A bool; True of no values.

    >>> all_leaves([1, "a"]), all_leaves([1, None])
    (True, False)
    """
    if is_leaf is None:
        return lib.all_leaves(registry, iterable)
    return all(is_leaf(x) or not is_tree_node(type(x)) for x in iterable)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures one level down.

    Returns: A list of structures, none of a leaf.

    >>> treedef_children(tree_structure([1, (2,)]))
    [PyTreeDef(*), PyTreeDef((*,))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is a single leaf or a node without children.

    >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of these structures.

    Args: treedefs: an iterable of structures.

    >>> treedef_tuple([tree_structure(1), tree_structure([1])])
    PyTreeDef((*, [*]))
    """
    members = list(treedefs)
    for member in members:
        if not isinstance(member, PyTreeDef):
            raise _not_a_treedef("treedef_tuple", member)
    return lib.treedef_tuple(registry, members)


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> PyTree:
    """Turn a tree of trees inside out: outer of inner structure becomes inner of outer structure.

    With None the inner structure is the first inner tree's. ValueError unless the tree is exactly
    outer of inner.

    Args:
      outer_treedef, inner_treedef: the structures outside and inside.
      pytree_to_transpose: the tree, of outer structure with trees of inner structure as leaves.
    Returns: A tree of inner structure with trees of outer structure as leaves.

    >>> tree_transpose(tree_structure([0, 0]), tree_structure((0, 0, 0)), [(1, 2, 3), (4, 5, 6)])
    ([1, 4], [2, 5], [3, 6])
    """
    what = "tree_transpose"
    for treedef in (outer_treedef, inner_treedef):
        if treedef is not None and not isinstance(treedef, PyTreeDef):
            raise _not_a_treedef(what, treedef)
    leaves, tree = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = _first_inner(what, outer_treedef, pytree_to_transpose)
    required = outer_treedef.compose(inner_treedef)
    alike = tree == required or (compatible.value and tree.num_leaves == required.num_leaves)
    if not alike:
        raise _cannot_transpose(explain_mismatch(required, pytree_to_transpose))
    size = inner_treedef.num_leaves
    return inner_treedef.unflatten(outer_treedef.unflatten(leaves[i::size]) for i in range(size))


def _first_inner(what: str, outer: PyTreeDef, tree: PyTree) -> PyTreeDef:
    if not outer.num_leaves:
        raise ValueError(
            f"{what}: {outer} has no leaves; at least one is required to infer the inner "
            "structure; give inner_treedef"
        )
    try:
        return tree_structure(outer.flatten_up_to(tree)[0])
    except ValueError:
        raise _cannot_transpose(explain_mismatch(outer, tree, prefix=True)) from None


def _cannot_transpose(differences: list[str]) -> TypeError:
    return TypeError(f"Mismatch: {mismatch_error('tree_transpose', _TRANSPOSE_RULES, differences)}")


def broadcast_prefix(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Each leaf of `prefix_tree` as often as its place in `full_tree` has leaves, in their order.

    `is_leaf` is asked about the nodes of the prefix. ValueError with the key path where it is no
    prefix.

    >>> broadcast_prefix([1, 2], [("a", "b"), "c"])
    [1, 1, 2]
    """
    return _broadcast_prefix("broadcast_prefix", prefix_tree, full_tree, is_leaf)


def _broadcast_prefix(what: str, prefix_tree: bool | Sequence[bool], full_tree: PyTree,
                      is_leaf: IsLeaf
                      ) -> list[bool]:
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
        return [leaf for leaf, sub in zip(leaves, subtrees, strict=True) for _ in _flatten(sub)[0]]
    except _REFUSED as error:
        explain = functools.partial(prefix_errors, prefix_tree, full_tree, is_leaf)
        raise _misfit(what, _PREFIX_RULES, full_tree, error, explain) from None


def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`prefix_tree` spread over the structure of `full_tree`: each leaf repeated over its subtree.

    Args:
      prefix_tree: a pytree that ends where `full_tree` may go on.
      full_tree: the pytree with the structure.
      is_leaf: `is_leaf(subtree)` stops above a node of either.
    Returns: A pytree of the structure of `full_tree`.

    ValueError with the key path where it is no prefix.

    >>> tree_broadcast([1, 2], [("a", "b"), "c"])
    [(1, 1), 2]
    """
    leaves = _broadcast_prefix("tree_broadcast", prefix_tree, full_tree, is_leaf)
    return tree_unflatten(tree_structure(full_tree), leaves)


def argument_path(treedef: PyTreeDef, i: int) -> str:
    """The name of a leaf of (args, kwargs) in messages: `args[0]['x']`, `kwargs['y']`."""
    path = tree_flatten_with_path(treedef.unflatten(range(treedef.num_leaves)))[0][i][0]
    return ("args", "kwargs")[path[0].idx] + keystr(path[1:])


def _is_none(x: int | Sequence[int | None] | None) -> bool:
    return x is None


def flatten_axes(what: str, treedef: PyTreeDef, axes_tree: PyTree) -> list[Any]:
    """One entry of `axes_tree`, a prefix of `treedef` in which None is a leaf, for each leaf of
    `treedef`.

    `what` names the operation and argument in the ValueError, which tells the key path of each
    misfit. No value of the full structure is made: custom nodes are not rebuilt around dummies.

    >>> args = (1, {"k": 2, "l": [3, 4]})
    >>> flatten_axes("vmap in_axes", tree_structure(args), (None, {"k": 0, "l": 1}))
    [None, 0, 1, 1]
    """
    if axes_tree is None or not is_tree_node(type(axes_tree)):
        return [axes_tree] * treedef.num_leaves
    axes, prefix = tree_flatten(axes_tree, _is_none)
    counts = _leaf_counts(prefix, treedef)
    if counts is None:
        differences = prefix_errors(axes_tree, treedef, _is_none)
        raise mismatch_error(f"{what} specification must be a tree prefix of the corresponding "
                             "value", _PREFIX_RULES, differences)
    return [axis for axis, count in zip(axes, counts, strict=True) for _ in range(count)]


def _leaf_counts(prefix: PyTreeDef, full: PyTreeDef) -> list[int] | None:
    """The number of leaves of `full` at each leaf of `prefix`; None where it is no prefix."""
    counts: list[int] = []
    stack = [(prefix, full)]
    while stack:
        part, whole = stack.pop()
        data = part.node_data()
        if data is None:
            counts.append(whole.num_leaves)
            continue
        parts, wholes = part.children(), whole.children()
        if data != whole.node_data() or len(parts) != len(wholes):
            return None
        stack += reversed(list(zip(parts, wholes, strict=True)))
    return counts


complete_docstrings(globals(), {
    "tree": "any pytree.",
    "is_leaf": "`is_leaf(subtree)` stops above a node.",
    "treedef": "a structure.",
})
