"""Operations that run on the host beside the device: names only."""

from .._src.base.util import publish as _publish
from .._src.control_flow.compute_on import compute_on, compute_on2

__all__ = ["compute_on", "compute_on2"]

_publish(__name__)
