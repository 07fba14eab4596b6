"""Profiles of compiled instructions: names only."""

from .._src.runtime.profiler import get_profiled_instructions_proto
from .._src.base.util import publish as _publish

__all__ = ["get_profiled_instructions_proto"]

_publish(__name__)
