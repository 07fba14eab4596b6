"""Pytrees of arrays on disk."""

from ..._src.base.util import publish as _publish
from ..._src.checkpoint.trees import load, load_pytreedef, nonblocking_load, nonblocking_save, save

__all__ = ["load", "load_pytreedef", "nonblocking_load", "nonblocking_save", "save"]

_publish(__name__)
