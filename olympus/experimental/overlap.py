"""The order in which operations run: names only."""

from .._src.base.util import publish as _publish
from .._src.jit.program_order import program_order

__all__ = ["program_order"]

_publish(__name__)
