"""Programs as the interpreters pass them on: recorded, closed, cut."""

from .._src.core.staging import StagingTracer as DynamicOlympusprTracer
from .._src.interpreters.tables import (
    close_olympuspr,
    convert_constvars_olympuspr,
    dce_olympuspr,
    dce_olympuspr_consts,
)

__all__ = [
    "DynamicOlympusprTracer", "close_olympuspr", "convert_constvars_olympuspr", "dce_olympuspr",
    "dce_olympuspr_consts",
]
