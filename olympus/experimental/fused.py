"""Functions that are called as one: names only."""

from .._src.base.util import publish as _publish
from .._src.jit.xla_metadata import fused
from .._src.jit.xla_metadata import xla_metadata_call_p as fused_p

__all__ = ["fused", "fused_p"]

_publish(__name__)
