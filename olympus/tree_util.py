"""Functions on pytrees, the nested containers that every transformation takes and returns: names
only.
"""

from ._src.base.util import publish as _publish
from ._src.base.lib import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from ._src.types.tree_paths import KeyEntry, KeyPath, flatten_one_level, flatten_one_level_with_keys
from ._src.types.tree_registry import (
    Partial, register_dataclass, register_pytree_node, register_pytree_node_class,
    register_pytree_with_keys, register_pytree_with_keys_class, register_static,
)
from ._src.types.tree import (
    PyTreeDef, all_leaves, is_tree_node, keystr, tree_all, tree_broadcast, tree_flatten,
    tree_flatten_with_path, tree_leaves, tree_leaves_with_path, tree_map, tree_map_with_path,
    tree_reduce, tree_reduce_associative, tree_structure, tree_transpose, tree_unflatten,
    treedef_children, treedef_is_leaf, treedef_tuple,
)
from ._src.types.tree import registry as default_registry

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]

_publish(__name__)
