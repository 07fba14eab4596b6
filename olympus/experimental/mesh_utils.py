"""Devices arranged for meshes."""

from .._src.base.util import publish as _publish
from .._src.devices.mesh_utils import create_device_mesh, create_hybrid_device_mesh

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]

_publish(__name__)
