"""Programs as the interpreters pass them on: recorded, closed, cut."""

from .._src.base.util import publish as _publish
from .._src.core.staging import JitTracer as DynamicOlympusprTracer
from .._src.extend.partial_eval import (
    PartialVal, trace_to_olympuspr_dynamic, trace_to_olympuspr_nounits,
)
from .._src.interpreters.partial_eval import TapeTracer as OlympusprTracer
from .._src.extend.tables import (
    close_olympuspr, convert_constvars_olympuspr, dce_olympuspr, dce_olympuspr_consts,
)

__all__ = [
    "DynamicOlympusprTracer", "OlympusprTracer", "PartialVal", "close_olympuspr",
    "convert_constvars_olympuspr", "dce_olympuspr", "dce_olympuspr_consts",
    "trace_to_olympuspr_dynamic", "trace_to_olympuspr_nounits",
]

_publish(__name__)
