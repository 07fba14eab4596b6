"""`jit` by an older name: names only."""

from .._src.base.util import publish as _publish
from .._src.jit.jit import pjit

__all__ = ["pjit"]

_publish(__name__)
