"""Dependencies that tell XLA in which order to compute: names only."""

from .._src.base.util import publish as _publish
from .._src.jit.xla_metadata import control_dep, schedule

__all__ = ["control_dep", "schedule"]

_publish(__name__)
