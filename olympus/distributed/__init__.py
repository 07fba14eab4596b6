"""One program on several processes: joining the job and leaving it."""

from .._src.base.util import publish as _publish
from .._src.job.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]

_publish(__name__)
