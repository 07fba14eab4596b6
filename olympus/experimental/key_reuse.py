"""Finding random keys that are used twice; the option `olympus_debug_key_reuse` does it always."""

from .._src.base.util import publish as _publish
from .._src.random.checking import check_key_reuse

__all__ = ["check_key_reuse"]

_publish(__name__)
