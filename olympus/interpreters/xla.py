"""Evaluation: operations compiled by XLA and run."""

from .._src.base.util import publish as _publish
from .._src.extend.compile_options import canonicalize_dtype_handlers
from .._src.runtime.eager import apply_primitive
from .._src.base.lib import Client as Backend

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]

_publish(__name__)
