"""The parts of programs, and `Primitive("name")`, an operation of one's own."""

from ..._src.base.util import publish as _publish
from ..._src.base.errors import InconclusiveDimensionOperation, OlympusprTypeError
from ..._src.core.check import check_olympuspr
from ..._src.core.effects import Effect
from ..._src.extend.call_primitives import (
    CallPrimitive, call_impl, create_call_primitive, eval_olympuspr_transpose,
    register_call_primitive_rules,
)
from ..._src.extend.introspection import (
    Effects, TraceTag, array_types, concrete_or_error, find_top_trace, gensym,
    get_opaque_trace_state, mapped_aval, new_olympuspr_eqn, olympuspr_as_fun,
    primal_dtype_to_tangent_dtype, set_current_trace, take_current_trace, unmapped_aval,
)
from ..._src.extend.introspection import nonempty_axis_env as nonempty_axis_env_DO_NOT_USE
from ..._src.extend.introspection import (
    unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
)
from ..._src.extend.introspection import (
    unsafe_am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE,
)
from ..._src.extend.introspection import unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE
from ..._src.core.ir import NO_EFFECTS as no_effects
from ..._src.core.ir import (
    ClosedOlympuspr, DebugInfo, DropVar, Literal, Olympuspr, OlympusprEqn, Var,
)
from ..._src.core.primitive import Primitive, olympusprs_in_params, subolympusprs
from ..._src.core.trace import valid_olympustype
from ..._src.types.avals import AbstractToken, Token
from . import primitives

__all__ = [
    "AbstractToken", "CallPrimitive", "ClosedOlympuspr", "DebugInfo", "DropVar", "Effect",
    "Effects", "InconclusiveDimensionOperation", "Literal", "Olympuspr", "OlympusprEqn",
    "OlympusprTypeError", "Primitive", "Token", "TraceTag", "Var", "array_types", "call_impl",
    "check_olympuspr", "concrete_or_error", "create_call_primitive", "eval_olympuspr_transpose",
    "find_top_trace", "gensym", "get_opaque_trace_state", "mapped_aval", "new_olympuspr_eqn",
    "no_effects", "nonempty_axis_env_DO_NOT_USE", "olympuspr_as_fun", "olympusprs_in_params",
    "primal_dtype_to_tangent_dtype", "primitives", "register_call_primitive_rules",
    "set_current_trace", "subolympusprs", "take_current_trace", "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE", "valid_olympustype",
]

_publish(__name__)
