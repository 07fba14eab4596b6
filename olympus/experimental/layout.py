"""Layouts of arrays in memory."""

from .._src.base.util import publish as _publish
from .._src.types.layout import Format, Layout

__all__ = ["Format", "Layout"]

_publish(__name__)
