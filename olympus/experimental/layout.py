"""Layouts of arrays in memory."""

from .._src.base.util import publish as _publish
from .._src.lax.layout import explicit_layout, with_layout_constraint
from .._src.types.layout import Format, Layout

__all__ = ["Format", "Layout", "explicit_layout", "with_layout_constraint"]

_publish(__name__)
