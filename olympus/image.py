"""Images resized, stretched and moved."""

from ._src.base.util import publish_bounded as _publish
from ._src.nn.image import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

_publish(__name__)
