"""Programs as the interpreters pass them on: recorded, closed, cut."""

from .._src.base.util import publish as _publish
from .._src.core.staging import JitTracer as DynamicOlympusprTracer
from .._src.extend.partial_eval import (
    PartialVal, abstract_eval_fun, move_binders_to_back, partial_eval_olympuspr_nounits,
    prune_closed_olympuspr_outputs, trace_to_olympuspr_dynamic, trace_to_olympuspr_nounits,
)
from .._src.interpreters.partial_eval import TapeTracer as OlympusprTracer
from .._src.extend.tables import (
    close_olympuspr, convert_constvars_olympuspr, dce_olympuspr, dce_olympuspr_consts,
)

__all__ = [
    "DynamicOlympusprTracer", "OlympusprTracer", "PartialVal", "abstract_eval_fun",
    "close_olympuspr", "convert_constvars_olympuspr", "dce_olympuspr", "dce_olympuspr_consts",
    "move_binders_to_back", "partial_eval_olympuspr_nounits", "prune_closed_olympuspr_outputs",
    "trace_to_olympuspr_dynamic", "trace_to_olympuspr_nounits",
]

_publish(__name__)
