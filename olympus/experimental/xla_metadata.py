"""Metadata of operations for XLA: names only."""

from .._src.base.util import publish as _publish
from .._src.jit.xla_metadata import set_xla_metadata, xla_metadata_call

__all__ = ["set_xla_metadata", "xla_metadata_call"]

_publish(__name__)
