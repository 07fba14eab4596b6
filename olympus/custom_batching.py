"""Functions with their own rule under vmap: names only."""

from ._src.base.util import publish as _publish
from ._src.custom.vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

_publish(__name__)
