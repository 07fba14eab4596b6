"""The demands of programs on a machine: names only."""

from .roofline import (
    RooflineResult, RooflineRuleContext, RooflineShape, register_roofline,
    register_standard_roofline, roofline, roofline_and_grad,
)
from ..._src.base.util import publish as _publish

__all__ = [
    "RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
    "register_standard_roofline", "roofline", "roofline_and_grad",
]

_publish(__name__)
