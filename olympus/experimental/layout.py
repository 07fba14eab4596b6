"""Layouts of arrays in memory."""

from .._src.base.util import publish
from .._src.types.layout import Format, Layout

__all__ = ["Format", "Layout"]

publish(__name__)
