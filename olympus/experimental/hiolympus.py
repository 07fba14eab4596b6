"""Types of users and operations on them: names only."""

from .._src.base.util import publish as _publish
from .._src.core.primitive import Zero
from .._src.extend.tables import instantiate_zeros, is_undefined_primal
from .._src.extend.types import (
    GradAccum, HiPrim, HiPrimitive, NullAccum, RefAccum, ValAccum, register_hitype,
)
from .._src.extend.types import HiPrim as VJPHiPrimitive
from .._src.extend.derived_rules import (
    jvp_from_lin, linearize_from_jvp, vjp_from_jvp, vjp_from_lin,
)
from .._src.extend.mapped_rules import bdims_at_front, unmap_avals, vmap_rule
from .._src.numpy.refs import RefPart as TransformedRef
from .._src.types.refs import RefAval as AbstractRef
from .._src.types.avals import AbstractValue, MappingSpec, ShapedArray
from .._src.types.hi import (
    AvalMutableQDD, AvalQDD, HiPspec, HiType, MutableHiType, aval_method, aval_property,
    control_flow_allowed_effects,
)

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "GradAccum", "HiPrim",
    "HiPrimitive", "HiPspec", "HiType", "MappingSpec", "MutableHiType", "NullAccum", "RefAccum",
    "ShapedArray", "TransformedRef", "VJPHiPrimitive", "ValAccum", "Zero", "aval_method",
    "aval_property", "bdims_at_front", "control_flow_allowed_effects", "instantiate_zeros",
    "is_undefined_primal", "jvp_from_lin", "linearize_from_jvp", "register_hitype",
    "unmap_avals", "vjp_from_jvp", "vjp_from_lin", "vmap_rule",
]

_publish(__name__)
