"""Compiling by hand, and the mesh of this thread, as programs from before `get_mesh` ask for it."""

from .._src.base.util import publish as _publish
from .._src.extend.compile_options import create_compile_options
from .._src.types.mesh import Mesh, thread_resources

__all__ = ["Mesh", "create_compile_options", "thread_resources"]

_publish(__name__)
