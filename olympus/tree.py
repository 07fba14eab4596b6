"""The pytree functions under short names (`olympus.tree.map`): names only."""

from ._src.base.util import publish as _publish
from ._src.types.tree_registry import static as static
from ._src.types.tree import tree_all as all
from ._src.types.tree import tree_broadcast as broadcast
from ._src.types.tree import tree_flatten as flatten
from ._src.types.tree import tree_flatten_with_path as flatten_with_path
from ._src.types.tree import tree_leaves as leaves
from ._src.types.tree import tree_leaves_with_path as leaves_with_path
from ._src.types.tree import tree_map as map
from ._src.types.tree import tree_map_with_path as map_with_path
from ._src.types.tree import tree_reduce as reduce
from ._src.types.tree import tree_reduce_associative as reduce_associative
from ._src.types.tree import tree_structure as structure
from ._src.types.tree import tree_transpose as transpose
from ._src.types.tree import tree_unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]

_publish(__name__)
