"""The demands of programs on a machine: names only."""

from ..._src.base.util import publish as _publish
from ..._src.mapping.roofline import (
    RooflineResult, RooflineRuleContext, RooflineShape, ValidRooflineDtype, register_roofline,
    register_standard_roofline, roofline, roofline_and_grad,
)

__all__ = [
    "RooflineResult", "RooflineRuleContext", "RooflineShape", "ValidRooflineDtype",
    "register_roofline", "register_standard_roofline", "roofline", "roofline_and_grad",
]

_publish(__name__)
