"""The mesh of this thread, where programs from before `get_mesh` look for it: names only."""

from .._src.types.mesh import Mesh, thread_resources

__all__ = ["Mesh", "thread_resources"]
