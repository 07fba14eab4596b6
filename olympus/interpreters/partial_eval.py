"""Programs as the interpreters pass them on: recorded, closed, cut."""

from .._src.base.util import publish as _publish
from .._src.core.staging import JitTracer as DynamicOlympusprTracer
from .._src.extend.partial_eval import (
    PartialVal, Val, abstract_eval_fun, lower_olympuspr, move_binders_to_back, new_eqn_recipe,
    partial_eval_olympuspr_nounits, prune_closed_olympuspr_outputs, trace_to_olympuspr_dynamic,
    trace_to_olympuspr_nounits,
)
from .._src.extend.partial_eval import lower_olympuspr as lower_olympuspr2
from .._src.interpreters.partial_eval import TapeTracer as OlympusprTracer
from .._src.extend.tables import (
    close_olympuspr, convert_constvars_olympuspr, custom_partial_eval_rules, dce_olympuspr,
    dce_olympuspr_call_rule, dce_olympuspr_consts, dce_rules, partial_eval_olympuspr_custom_rules,
)
from .._src.extend.tables import dce_olympuspr_call_rule as dce_olympuspr_closed_call_rule

__all__ = [
    "DynamicOlympusprTracer", "OlympusprTracer", "PartialVal", "Val", "abstract_eval_fun",
    "close_olympuspr", "convert_constvars_olympuspr", "custom_partial_eval_rules",
    "dce_olympuspr", "dce_olympuspr_call_rule", "dce_olympuspr_closed_call_rule",
    "dce_olympuspr_consts", "dce_rules", "lower_olympuspr", "lower_olympuspr2",
    "move_binders_to_back", "new_eqn_recipe", "partial_eval_olympuspr_custom_rules",
    "partial_eval_olympuspr_nounits", "prune_closed_olympuspr_outputs",
    "trace_to_olympuspr_dynamic", "trace_to_olympuspr_nounits",
]

_publish(__name__)
