"""Vector quantisation, as scipy.cluster.vq has it."""

from ..._src.base.util import publish_bounded as _publish
from ..._src.scipy.vq import vq

__all__ = ["vq"]

_publish(__name__)
