"""The directory of compiled programs: names only."""

from ..._src.runtime.disk_cache import reset_cache, set_cache_dir
from ..._src.base.util import publish as _publish

__all__ = ["reset_cache", "set_cache_dir"]

_publish(__name__)
