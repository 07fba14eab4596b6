"""Rotations of space, as scipy.spatial.transform has them."""

from ..._src.base.util import publish_bounded as _publish
from ..._src.scipy.rotations import Rotation, Slerp

__all__ = ["Rotation", "Slerp"]

_publish(__name__)
