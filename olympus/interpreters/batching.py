"""vmap: the tables of rules, and what rules are written with."""

from .._src.base.util import publish as _publish
from .._src.extend.tables import (
    axis_primitive_batchers, bdim_at_front, broadcast, defbroadcasting, defreducer, defvectorized,
    fancy_primitive_batchers, primitive_batchers,
)

__all__ = [
    "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer",
    "defvectorized", "fancy_primitive_batchers", "primitive_batchers",
]

_publish(__name__)
