"""Topologies: devices to compile for, which need not be attached."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import lib
from ..base.typing import Device
from ..types.mesh import Mesh
from .devices import client
from .mesh_utils import create_device_mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """The devices of a topology; those that are not attached can be compiled for, and no more.

    Args:
      devices: a list of devices.

    >>> from olympus.experimental import topologies
    >>> len(topologies.get_attached_topology().devices)
    1
    """

    def __init__(self, devices: list[Device]) -> None:
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there.

    Args:
      platform: its name; None is the default backend's.

    Returns:
      A `TopologyDescription`.

    >>> topologies.get_attached_topology("cpu").devices[0].platform
    'cpu'
    """
    return TopologyDescription(client(platform).devices())


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: object
                      ) -> TopologyDescription:
    """The devices of a topology that need not be there, as the platform's plugin describes it.

    Args:
      topology_name: as the plugin calls it, "v5e:2x2" of TPUs.
      platform: its name; None stands for "tpu".
      **kwargs: the plugin's options.

    Returns:
      A `TopologyDescription`, for whose devices programs can be compiled.

    NotImplementedError for platforms without a plugin that knows topologies: CPUs among them.

    >>> try:
    ...     topologies.get_topology_desc(platform="cpu")
    ... except NotImplementedError as error:
    ...     print(error)
    get_topology_desc: topology not implemented for cpu; ...
    """
    name = "tpu" if platform is None else platform
    try:
        found = lib.topology(name, topology_name, kwargs)
    except lib.XlaRuntimeError as error:
        if not str(error).startswith(("UNIMPLEMENTED", "NOT_FOUND")):
            raise
        found = None
    if found is None:
        raise NotImplementedError(
            f"get_topology_desc: topology not implemented for {name}; a platform whose plugin is "
            "installed, and describes topologies, is required; get_attached_topology gives the "
            "devices that are there.")
    return TopologyDescription(found)


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
              contiguous_submeshes: bool = False) -> Mesh:
    """A mesh of a topology's devices.

    Args:
      topo: the topology.
      mesh_shape: how many devices each axis has; all together, the topology's.
      axis_names: a name for each axis.
      contiguous_submeshes: as of `mesh_utils.create_device_mesh`.

    Returns:
      A `Mesh`.

    >>> print(topologies.make_mesh(topologies.get_attached_topology(), (1,), ("x",)))
    Mesh('x': 1, axis_types=(Auto,))
    """
    return Mesh(create_device_mesh(mesh_shape, list(topo.devices),
                                   contiguous_submeshes=contiguous_submeshes), axis_names)
