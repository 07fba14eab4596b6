"""Frozen dataclasses as pytrees: names only."""

from ._src.base.util import publish as _publish
from ._src.types.struct import dataclass, field

__all__ = ["dataclass", "field"]

_publish(__name__)
