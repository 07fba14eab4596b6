"""Devices to compile for that need not be attached: names only."""

from .._src.base.util import publish as _publish
from .._src.devices.topologies import (
    TopologyDescription, get_attached_topology, get_topology_desc, make_mesh,
)

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

_publish(__name__)
