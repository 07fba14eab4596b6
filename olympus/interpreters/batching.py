"""vmap: the tables of rules, and what rules are written with."""

from .._src.base.util import publish as _publish
from .._src.extend.batching import (
    batch_olympuspr_axes, batch_subtrace, register_vmappable, unregister_vmappable, zero_if_mapped,
)
from .._src.extend.tables import (
    axis_primitive_batchers, bdim_at_front, broadcast, defbroadcasting, defreducer, defvectorized,
    fancy_primitive_batchers, primitive_batchers,
)

__all__ = [
    "axis_primitive_batchers", "batch_olympuspr_axes", "batch_subtrace", "bdim_at_front",
    "broadcast", "defbroadcasting", "defreducer", "defvectorized", "fancy_primitive_batchers",
    "primitive_batchers", "register_vmappable", "unregister_vmappable", "zero_if_mapped",
]

_publish(__name__)
