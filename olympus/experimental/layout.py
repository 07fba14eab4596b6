"""Layouts of arrays in memory."""

from .._src.types.layout import Format, Layout

__all__ = ["Format", "Layout"]
