"""The dialects that programs are lowered to."""

from ..._src.base.util import publish as _publish
from ..._src.base.lib.mlir import chlo, func, sdy
from ..._src.base.lib.mlir import hlo as stablehlo

__all__ = ["chlo", "func", "sdy", "stablehlo"]

_publish(__name__)
