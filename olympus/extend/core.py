"""What programs are made of, and `Primitive("name")`, an operation of one's own."""

from .._src.base.util import publish as _publish
from .._src.base.errors import InconclusiveDimensionOperation, OlympusprTypeError
from .._src.core.check import check_olympuspr
from .._src.core.effects import Effect
from .._src.core.introspection import (
    Effects,
    concrete_or_error,
    find_top_trace,
    get_opaque_trace_state,
    mapped_aval,
    new_olympuspr_eqn,
    olympuspr_as_fun,
    olympusprs_in_params,
    primal_dtype_to_tangent_dtype,
    subolympusprs,
    unmapped_aval,
    valid_olympustype,
)
from .._src.core.ir import NO_EFFECTS as no_effects
from .._src.core.ir import ClosedOlympuspr, DropVar, Literal, Olympuspr, OlympusprEqn, Var
from .._src.core.primitive import Primitive

__all__ = [
    "ClosedOlympuspr", "DropVar", "Effect", "Effects", "InconclusiveDimensionOperation", "Literal",
    "Olympuspr", "OlympusprEqn", "OlympusprTypeError", "Primitive", "Var", "check_olympuspr",
    "concrete_or_error", "find_top_trace", "get_opaque_trace_state", "mapped_aval",
    "new_olympuspr_eqn", "no_effects", "olympuspr_as_fun", "olympusprs_in_params",
    "primal_dtype_to_tangent_dtype", "subolympusprs", "unmapped_aval", "valid_olympustype",
]

_publish(__name__)
