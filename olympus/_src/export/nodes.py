"""Containers of users in artifacts: the name of the class, and its auxiliary data."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..jit.checked import Error
from ..types.tree import tree_structure
from ..types.tree_paths import is_namedtuple
from ..types.tree_registry import PyTreeDef, is_tree_node, registry
from .checks import decode_sites, encode_sites

Typ = TypeVar("Typ", bound=type)


class _Node(NamedTuple):
    """How the nodes of one class are written and read."""

    type: type
    name: str
    serialize_auxdata: Callable[[Any], bytes]
    deserialize_auxdata: Callable[[bytes], object]
    from_children: Callable[[Any, Sequence[Any]], object] | None


_by_type: dict[type, _Node] = {}
_by_name: dict[str, _Node] = {}
_SEQUENCES = {"tuple": tuple, "list": list}
_LEAF, _NONE = tree_structure(0), tree_structure(None)


class Unregistered(ValueError):
    """An artifact has a container that is not registered here."""


def register_pytree_node_serialization(
        nodetype: Typ, *, serialized_name: str, serialize_auxdata: Callable[[Any], bytes],
        deserialize_auxdata: Callable[[bytes], object],
        from_children: Callable[[Any, Sequence[Any]], object] | None = None) -> Typ:
    """Let arguments and results of exported functions contain a class of containers.

    Args:
      nodetype: the class, a pytree node already (`register_pytree_node`), or a named tuple.
      serialized_name: its name in artifacts; a process that reads one registers the same name.
      serialize_auxdata: makes bytes of the auxiliary data that flattening a node gives.
      deserialize_auxdata: its inverse.
      from_children: makes a node from (auxiliary data, children); the class's own unflattening by
        default. Only the structure of its result is used.
    Returns: The class. ValueError if the class or the name is registered already.

    >>> @olympus.tree_util.register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, *xs): self.xs = xs
    ...     def tree_flatten(self): return self.xs, None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, xs): return cls(*xs)
    >>> _ = export.register_pytree_node_serialization(
    ...     Pair, serialized_name="docs.Pair", serialize_auxdata=lambda aux: b"",
    ...     deserialize_auxdata=lambda data: None)
    >>> exported = export.export(olympus.jit(lambda p: p.xs[0] - p.xs[1]))(Pair(1.0, 2.0))
    >>> print(export.deserialize(exported.serialize()).call(Pair(5.0, 3.0)))
    2.0
    """
    what = "register_pytree_node_serialization"
    if nodetype in _by_type:
        raise ValueError(
            f"{what}: Duplicate serialization registration for type `{nodetype}`. Previous "
            f"registration was with serialized_name `{_by_type[nodetype].name}`; a class is "
            "registered once.")
    if serialized_name in _by_name:
        raise ValueError(
            f"{what}: Duplicate serialization registration for serialized_name "
            f"`{serialized_name}`. Previous registration was for type "
            f"`{_by_name[serialized_name].type}`; choose another name.")
    if from_children is None and (is_namedtuple(nodetype) or not is_tree_node(nodetype)):
        raise ValueError(
            f"{what}: If `from_children` is not present, you must call first "
            f"`olympus.tree_util.register_pytree_node` for `{nodetype}`.")
    node = _Node(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = node
    return nodetype


def register_namedtuple_serialization(nodetype: Typ, *, serialized_name: str) -> Typ:
    """Let arguments and results of exported functions contain a class of named tuples.

    Args:
      nodetype: the class; when an artifact is read it must have the fields that it had when that
        was written.
      serialized_name: its name in artifacts.

    Returns:
      The class. ValueError if it is no named tuple, or if it or the name is registered already.

    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float
    >>> _ = export.register_namedtuple_serialization(Point, serialized_name="docs.Point")
    >>> exported = export.export(olympus.jit(lambda p: Point(p.y, p.x)))(Point(1.0, 2.0))
    >>> print(export.deserialize(exported.serialize()).call(Point(1.0, 2.0)).x)
    2.0
    """
    if not is_namedtuple(nodetype):
        raise ValueError(
            f"register_namedtuple_serialization: {nodetype} given; a named tuple is required; Use "
            "`olympus.export.register_pytree_node_serialization` for types other than "
            "`collections.namedtuple`.")

    def from_children(fields: Sequence[str], children: Sequence[object]) -> object:
        return nodetype(**dict(zip(fields, children, strict=True)))

    return register_pytree_node_serialization(
        nodetype, serialized_name=serialized_name,
        serialize_auxdata=lambda aux: json.dumps(nodetype._fields).encode(),
        deserialize_auxdata=json.loads, from_children=from_children)


def _ordered_keys(keys: Iterable[object]) -> bytes:
    if not all(isinstance(k, str) for k in keys):
        raise NotImplementedError(
            "Serialization of collections.OrderedDict is supported only when the keys are strings. "
            f"Found keys: {keys}.")
    return json.dumps(list(keys)).encode()


register_pytree_node_serialization(
    OrderedDict, serialized_name="collections.OrderedDict", serialize_auxdata=_ordered_keys,
    deserialize_auxdata=lambda data: tuple(json.loads(data)))


def encode_tree(tree: PyTreeDef) -> object:
    """A PyTreeDef as JSON."""
    data, children = tree.node_data(), tree.children()
    if data is None:
        return "leaf"
    kind, aux = data
    inner = list(map(encode_tree, children))
    if kind is type(None):
        return None
    if kind in (tuple, list):
        return {kind.__name__: inner}
    if kind is dict:
        for key in aux:
            if not isinstance(key, str):
                raise TypeError("Serialization is supported only for dictionaries with string "
                                f"keys. Found key {key!r} of type {type(key)}.")
        return {"dict": inner, "keys": list(aux)}
    node = _by_type.get(kind)
    if node is None:
        raise ValueError(
            f"serialize: Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`.")
    written = node.serialize_auxdata(aux)
    if not isinstance(written, (bytes, bytearray)):
        raise ValueError(f"The custom serialization function for `{kind}` must return a `bytes` "
                         f"object. It returned a {type(written)}.")
    return {"node": node.name, "aux": bytes(written).hex(), "children": inner}


def decode_tree(written: object, leaves: Sequence[object]) -> PyTreeDef:
    """The PyTreeDef that `encode_tree` wrote; some containers look at their children, `leaves`."""
    tree = _decode(written, leaves)
    if tree.num_leaves != len(leaves):
        raise ValueError(f"a tree of {tree.num_leaves} leaves for {len(leaves)} values")
    return tree


def _decode(written: Any, leaves: Sequence[object]) -> PyTreeDef:
    if written == "leaf":
        return _LEAF
    if written is None:
        return _NONE
    node, aux = None, None
    if "node" in written:
        node = _by_name.get(written["node"])
        if node is None:
            raise Unregistered(
                "deserialize: Cannot deserialize a PyTreeDef containing an unregistered type "
                f"`{written['node']}`. Use `export.register_pytree_node_serialization` or "
                "`export.register_namedtuple_serialization`.")
        kind, inner = node.type, written["children"]
        aux = node.deserialize_auxdata(bytes.fromhex(written["aux"]))
    elif "dict" in written:
        kind, inner, aux = dict, written["dict"], list(written["keys"])
        if len(inner) != len(aux) or not all(isinstance(key, str) for key in aux):
            raise ValueError("a dict without a string for each of its values")
    else:
        (name, inner), = written.items()
        kind = _SEQUENCES[name]
    children, values, at = [], [], 0
    for x in inner:
        child = _decode(x, leaves[at:])
        children.append(child)
        if node is not None and node.from_children is not None:
            values.append(child.unflatten(leaves[at:at + child.num_leaves]))
        at += child.num_leaves
    if node is not None and node.from_children is not None:
        return tree_structure(node.from_children(aux, values))
    return PyTreeDef.from_node_data_and_children(registry, (kind, aux), children)


register_pytree_node_serialization(
    Error, serialized_name="olympus.experimental.checkify.Error", serialize_auxdata=encode_sites,
    deserialize_auxdata=decode_sites)
