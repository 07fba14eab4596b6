"""`jax._src.tree_util`: Flax's nnx asks what is a node, Orbax flattens one level."""

from __future__ import annotations

from ....types.tree_registry import is_tree_node

__all__ = ["_registry"]
HOMES = ("olympus.tree_util",)


class Registry:
    """The classes that are nodes of pytrees."""

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and is_tree_node(kind)


_registry = Registry()
