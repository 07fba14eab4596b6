"""Differentiation: forward mode's trace, the marks that rules meet, and the tables of rules."""

from .._src.base.util import publish as _publish
from .._src.core.primitive import Linear as UndefinedPrimal
from .._src.core.primitive import Zero
from .._src.interpreters.jvp import JVPTrace, JVPTracer
from .._src.lax.families import add_p as add_olympusvals_p
from .._src.extend.partial_eval import backward_pass, jvp, jvp_olympuspr, linearize
from .._src.extend.tables import (
    add_tangents, defbilinear, defjvp, defjvp2, deflinear, deflinear2, get_primitive_transpose,
    instantiate_zeros, is_undefined_primal, primitive_jvps, primitive_transposes, zeros_like_aval,
)
from .._src.extend.tables import add_values as add_olympusvals

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_olympusvals", "add_olympusvals_p",
    "add_tangents", "backward_pass", "defbilinear", "defjvp", "defjvp2", "deflinear",
    "deflinear2", "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "jvp",
    "jvp_olympuspr", "linearize", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]

_publish(__name__)
