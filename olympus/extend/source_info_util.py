"""Where operations come from: names only."""

from .._src.base.util import publish as _publish
from .._src.extend.source_info import (
    NameStack, SourceInfo, current, current_name_stack, extend_name_stack, new_name_stack,
    new_source_info, register_exclusion, reset_name_stack, set_name_stack, summarize,
    transform_name_stack, user_context,
)

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack",
    "set_name_stack", "summarize", "transform_name_stack", "user_context",
]

_publish(__name__)
