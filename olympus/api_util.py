"""Pytrees of arguments as flat ones, and back, for transformations of one's own."""

from ._src.base.util import publish as _publish
from ._src.base.lib import safe_map
from ._src.extend.api_util import (
    argnums_partial, debug_info, donation_vector, flatten_axes, flatten_fun, flatten_fun_nokwargs,
    rebase_donate_argnums, shaped_abstractify,
)

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]

_publish(__name__)
