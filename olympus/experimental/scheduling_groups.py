"""Groups of operations that XLA schedules together: names only."""

from .._src.base.util import publish as _publish
from .._src.jit.xla_metadata import scheduling_group, xla_metadata_call, xla_metadata_call_p

__all__ = ["scheduling_group", "xla_metadata_call", "xla_metadata_call_p"]

_publish(__name__)
