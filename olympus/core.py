"""Programs and their parts, for those who write transformations or read programs."""

from ._src.base.util import publish as _publish
from ._src.base.errors import InconclusiveDimensionOperation, OlympusprTypeError
from ._src.core.check import check_olympuspr
from ._src.core.effects import Effect
from ._src.core.evaluate import eval_olympuspr
from ._src.core.ir import NO_EFFECTS as no_effects
from ._src.extend.introspection import Effects, ParamDict, Value, eval_context, max_dim, min_dim
from ._src.core.ir import Atom, DropVar
from ._src.core.trace import Trace, Tracer
from ._src.jit.tracing import ensure_compile_time_eval
from ._src.types.avals import AbstractValue, ShapedArray, abstract_token

__all__ = [
    "AbstractValue", "Atom", "DropVar", "Effect", "Effects", "InconclusiveDimensionOperation",
    "OlympusprTypeError", "ParamDict", "ShapedArray", "Trace", "Tracer", "Value", "abstract_token",
    "check_olympuspr", "ensure_compile_time_eval", "eval_context", "eval_olympuspr", "max_dim",
    "min_dim", "no_effects",
]

_publish(__name__)
