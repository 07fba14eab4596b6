"""Where something is in a pytree: key paths, opening one level, and what differs between two trees.

Flattening runs in C++ and reports little; when it fails, the functions here walk the trees once
more in Python (with a stack: no depth limit) and name the path, the structure found and the
structure required.
"""

import reprlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

from ..base.lib import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from ..base.messages import in_lines
from ..base.typing import PyTree
from .tree_registry import PyTreeDef, registered_field_names, registry

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]
IsLeaf = Callable[[Any], bool] | None

SHOWN_DIFFERENCES = 5
SHOWN_KEYS = 8


def _key_name(key: Any) -> str:
    if isinstance(key, SequenceKey):
        return str(key.idx)
    if isinstance(key, DictKey | FlattenedIndexKey):
        return str(key.key)
    return str(key.name) if isinstance(key, GetAttrKey) else str(key)


def keystr(keys: Iterable[object], *, simple: bool = False, separator: str = "") -> str:
    """The key path as text: as Python would index, or with `simple` the bare names.

    Args:
      keys: a key path, as `tree_flatten_with_path` gives it.
      simple: whether to leave out brackets, quotes and dots.
      separator: what to put between keys.

    >>> path = (SequenceKey(1), DictKey("k"), GetAttrKey("name"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("[1]['k'].name", '1/k/name')
    """
    if type(keys) is tuple and not (simple or separator):
        return "%s" * len(keys) % keys      # half the cost: programs name each argument so
    return separator.join(map(_key_name if simple else str, keys))


def is_namedtuple(kind: type) -> bool:
    """Whether a class is one of named tuples."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _opened(tree: PyTree) -> tuple[Iterable[tuple[Hashable, PyTree]], Hashable] | None:
    """`((key, child) pairs, aux)` of a node, None of a leaf."""
    opened = registry.flatten_one_level_with_keys(tree)
    if opened is not None and registry.is_node(type(tree)) and opened[1] is type(tree):
        # jaxlib 0.10.2 gives every child of a namedtuple the name of its first field.
        if is_namedtuple(type(tree)):
            return tuple(
                (GetAttrKey(n), c) for n, c in zip(tree._fields, tree, strict=True)
            ), opened[1]
    return opened


def _not_a_node(what: str, tree: PyTree) -> ValueError:
    return ValueError(
        f"{what}: can't open a leaf of type {type(tree).__name__}; "
        "a registered container is required; see tree_util.register_pytree_node"
    )


def flatten_one_level(tree: PyTree) -> tuple[Iterable[PyTree], Hashable]:
    """`(children, aux)` of the outermost node of `tree`; ValueError for a leaf.

    Args: tree: a node.
    Returns: Its children, and what else is needed to build it again.

    >>> flatten_one_level({"b": [1], "a": 2})
    ((2, [1]), ('a', 'b'))
    """
    opened = registry.flatten_one_level(tree)
    if opened is None:
        raise _not_a_node("flatten_one_level", tree)
    return opened


def flatten_one_level_with_keys(tree: PyTree
                                ) -> tuple[Iterable[tuple[Hashable, PyTree]], Hashable]:
    """`((key, child) pairs, aux)` of the outermost node of `tree`; ValueError for a leaf.

    Args: tree: a node.
    Returns: Its children, each with its key, and what else is needed to build it again.

    >>> flatten_one_level_with_keys([5])
    (((SequenceKey(idx=0), 5),), None)
    """
    opened = _opened(tree)
    if opened is None:
        raise _not_a_node("flatten_one_level_with_keys", tree)
    return opened


class _Node(NamedTuple):
    """One opened level; of a value or, equal to it, of a PyTreeDef."""

    kind: type
    aux: Any
    keys: tuple[Hashable, ...]
    children: tuple[Any, ...]


def _open_value(tree: PyTree, is_leaf: IsLeaf) -> _Node | None:
    if is_leaf is not None and is_leaf(tree):
        return None
    opened = _opened(tree)
    if opened is None:
        return None
    pairs = tuple(opened[0])
    return _Node(type(tree), opened[1], tuple(k for k, _ in pairs), tuple(c for _, c in pairs))


def _open_treedef(treedef: PyTreeDef, is_leaf: IsLeaf) -> _Node | None:
    data = treedef.node_data()
    if data is None:
        return None
    kind, aux = data
    children = tuple(treedef.children())
    if kind is dict:
        aux = tuple(aux)
    elif is_namedtuple(kind) and aux is None:
        aux = kind
    return _Node(kind, aux, _treedef_keys(kind, aux, len(children)), children)


def _treedef_keys(kind: type, aux: Any, size: int) -> tuple[Hashable, ...]:
    if kind is dict or kind is OrderedDict:
        return tuple(map(DictKey, aux))
    if kind is defaultdict:
        return tuple(map(DictKey, aux[1]))
    if kind is list or kind is tuple:
        return tuple(map(SequenceKey, range(size)))
    names = registered_field_names.get(kind) or getattr(kind, "_fields", ())
    if len(names) == size:
        return tuple(map(GetAttrKey, names))
    return tuple(map(FlattenedIndexKey, range(size)))


def _opener(tree: PyTree) -> Callable[[PyTree, IsLeaf], _Node | None]:
    return _open_treedef if isinstance(tree, PyTreeDef) else _open_value


def _same_aux(a: object, b: object) -> bool:
    """Equality of aux data; what refuses to be compared counts as different."""
    try:
        return a is b or bool(a == b)
    except Exception:
        return False


def _describe(node: _Node | None, value: object) -> str:
    """A few words for a subtree: its container and size, or the class of a leaf."""
    if node is None:
        known = not isinstance(value, PyTreeDef)
        return f"a leaf of type {type(value).__name__}" if known else "a leaf"
    if node.kind is type(None):
        return "None"
    name, size = node.kind.__name__, len(node.children)
    if issubclass(node.kind, dict):
        factory = f" of {node.aux[0]!r}" if node.kind is defaultdict else ""
        return f"{name}{factory} with keys {_few_words(map(repr, _dict_keys(node)))}"
    if node.kind is list or node.kind is tuple or is_namedtuple(node.kind):
        return f"{name} of length {size}"
    return f"{name} with {size} children and aux data {reprlib.repr(node.aux)}"


def _dict_keys(node: _Node) -> list[Hashable]:
    return [getattr(key, "key", key) for key in node.keys]


def _few_words(words: Iterable[str]) -> str:
    """The first few words in brackets."""
    shown = list(words)
    more = [f"... {len(shown) - SHOWN_KEYS} more"] if len(shown) > SHOWN_KEYS else []
    return f"[{', '.join(shown[:SHOWN_KEYS] + more)}]"


def _key_changes(want: _Node, have: _Node) -> str:
    """Which dict keys are missing or too many, in parentheses; empty for other nodes."""
    if not (issubclass(want.kind, dict) and issubclass(have.kind, dict)):
        return ""
    required, present = set(_dict_keys(want)), set(_dict_keys(have))
    pairs = (("missing", required - present), ("unexpected", present - required))
    changes = [f"{word} keys {_few_words(sorted(map(repr, keys)))}" for word, keys in pairs if keys]
    if not changes and _dict_keys(want) != _dict_keys(have):
        changes = ["the same keys in another order"]
    return f" ({', '.join(changes)})" if changes else ""


def _matches(a: _Node, b: _Node) -> bool:
    same_shape = a.kind is b.kind and len(a.children) == len(b.children)
    return same_shape and _same_aux(a.aux, b.aux)


_Place = tuple[_Node | None, Any]      # a subtree, opened (None of a leaf), and as it is


class _Difference(NamedTuple):
    """A place where trees `a` and `b` differ: their subtrees there, opened (None for a leaf)."""

    path: tuple[Any, ...]
    a: _Place
    b: _Place


def _differences(a: object, b: object, prefix: bool, is_leaf: IsLeaf) -> list[_Difference]:
    """The outermost differing places, in leaf order; with `prefix` a leaf of `a` fits anything."""
    open_a, open_b = _opener(a), _opener(b)
    differences: list[_Difference] = []
    stack: list[tuple[tuple[Any, ...], Any, Any]] = [((), a, b)]
    while stack:
        path, sub_a, sub_b = stack.pop()
        node_a = open_a(sub_a, is_leaf)
        if node_a is None and prefix:
            continue
        node_b = open_b(sub_b, None if prefix else is_leaf)
        if node_a is None and node_b is None:
            continue
        if node_a is None or node_b is None or not _matches(node_a, node_b):
            differences.append(_Difference(path, (node_a, sub_a), (node_b, sub_b)))
            continue
        # A PyTreeDef does not know the keys of custom nodes; a value does.
        keys = node_b.keys if isinstance(a, PyTreeDef) else node_a.keys
        children = zip(keys, node_a.children, node_b.children, strict=True)
        stack += reversed([((*path, key), x, y) for key, x, y in children])
    return differences


def _sentence(path: tuple[object, ...], required: _Place, found: _Place) -> str:
    want, have = _describe(*required), _describe(*found)
    remark = ""
    if required[0] is not None and found[0] is not None:
        remark = _key_changes(required[0], found[0])
        if required[0].kind is not found[0].kind and want == have:
            remark = " (a class of the same name, defined elsewhere)"
    where = f"at {keystr(path)}" if path else "at the root"
    return f"{where}: found {have}; required {want}{remark}"


def explain_mismatch(required: object, found: object, *, prefix: bool = False,
                     is_leaf: IsLeaf = None) -> list[str]:
    """Every place where the structures of `found` and `required` differ; empty where they agree.

    Each is a pytree or a PyTreeDef. With `prefix` a leaf of `required` stands for any subtree;
    `is_leaf` is asked about the nodes of `required` (and of `found` unless `prefix`).

    >>> explain_mismatch([1, {"k": (1, 2)}], [1, {"k": (1, 2, 3)}])
    ["at [1]['k']: found tuple of length 3; required tuple of length 2"]
    """
    differences = _differences(required, found, prefix, is_leaf)
    return [_sentence(place.path, place.a, place.b) for place in differences]


def prefix_errors(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> list[str]:
    """Every place where `prefix_tree` is not a prefix of `full_tree`; empty where it is.

    The found structure is the prefix's, the required one the full tree's.

    >>> prefix_errors((1, None), ([2, 3], None)), prefix_errors([1], (1,))
    ([], ['at the root: found list of length 1; required tuple of length 1'])
    """
    differences = _differences(prefix_tree, full_tree, True, is_leaf)
    return [_sentence(place.path, place.b, place.a) for place in differences]


def mismatch_error(what: str, advice: str, differences: list[str]) -> ValueError:
    """The error for trees whose structures differ: operation, the first differences, what to do."""
    shown = differences[:SHOWN_DIFFERENCES]
    what += ": pytree structure error: tree structures differ"
    if len(differences) == 1:
        return ValueError(in_lines(f"{what} {shown[0]}; {advice}"))
    if len(differences) > len(shown):
        shown.append(f"and in {len(differences) - len(shown)} more places")
    return ValueError(
        "\n  ".join(
            [f"{what} in {len(differences)} places:", *shown, advice]
        )
    )


def flatten_error(what: str, tree: PyTree, error: Exception, is_leaf: IsLeaf = None) -> Exception:
    """The error where C++ could not flatten `tree`: clearer where the cause is known."""
    if isinstance(error, SystemError | RecursionError):
        return RecursionError(
            f"{what}: the tree is nested deeper than Python's recursion limit, or contains itself; "
            "a finite tree of moderate depth is required; break the cycle"
        )
    stack: list[tuple[tuple[Any, ...], Any]] = [((), tree)]
    try:
        while stack:
            path, subtree = stack.pop()
            if is_leaf is not None and is_leaf(subtree):
                continue
            if type(subtree) in (dict, defaultdict) and not _sortable(subtree):
                return _unsortable_error(what, path, subtree)
            node = _open_value(subtree, None)
            if node is not None:
                stack += reversed(
                    [((*path, k), c) for k, c in zip(node.keys, node.children, strict=True)]
                )
    except Exception:  # a node that cannot be opened: the first error is the one to show
        return error
    return error


def _sortable(keys: Iterable[Any]) -> bool:
    try:
        sorted(keys)
    except Exception:
        return False
    return True


def _unsortable_error(what: str, path: tuple[object, ...], keys: Iterable[object]) -> ValueError:
    where = f"at {keystr(path)}" if path else "at the root"
    types = sorted({type(key).__name__ for key in keys})
    shown = _few_words(map(repr, keys))
    return ValueError(
        f"{what}: {where}: found a dict with keys {shown} of types {', '.join(types)}, "
        "which cannot be sorted: Comparator raised exception while sorting pytree dictionary keys; "
        "use keys of one type, comparable with <, or an OrderedDict"
    )
