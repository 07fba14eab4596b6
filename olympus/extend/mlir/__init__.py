"""MLIR's own Python bindings, as jaxlib ships them: what lowering rules are written with."""

from ..._src.base.util import publish as _publish
from ..._src.base.lib.mlir import ir, passmanager
from . import dialects

__all__ = ["dialects", "ir", "passmanager"]

_publish(__name__)
