"""Functions with their own rule under vmap: names only."""

from ._src.control.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
