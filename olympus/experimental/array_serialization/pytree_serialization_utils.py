"""The structures of pytrees on disk."""

from ..._src.base.util import publish as _publish
from ..._src.checkpoint.trees import deserialize_pytreedef, serialize_pytreedef
from ...export import register_pytree_node_serialization

__all__ = [
    "deserialize_pytreedef", "register_pytree_node_serialization", "serialize_pytreedef",
]

_publish(__name__)
