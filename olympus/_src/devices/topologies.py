"""Topologies: devices to compile for, which need not be attached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base import lib
from ..base.typing import Device
from ..types.mesh import Mesh
from .chips import CHIPS, Target, parse_target
from .devices import PLATFORMS, client
from .mesh_utils import create_device_mesh


class TopologyDescription:
    """The devices of a topology; those that are not attached can be compiled for, and no more.

    Args: devices: a list of devices.

    >>> from olympus.experimental import topologies
    >>> len(topologies.get_attached_topology().devices)
    1
    """

    def __init__(self, devices: list[Device]) -> None:
        self.devices = devices

    def __repr__(self) -> str:
        kinds = sorted({d.device_kind for d in self.devices})
        return f"TopologyDescription({len(self.devices)} x {', '.join(kinds)})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there.

    Args: platform: its name; None is the default backend's.

    >>> topologies.get_attached_topology("cpu").devices[0].platform
    'cpu'
    """
    return TopologyDescription(client(platform).devices())


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: object
                      ) -> TopologyDescription:
    """The devices of a topology that need not be here, as the platform's plugin describes it.

    Args:
      topology_name: a chip and the numbers of them: "v5e:2x2" (v2, v3, v4, v5e, v5p, v6e, tpu7x),
        "h100:8", "h100:4x8" of four hosts (a100, h100, h200, b200, l4). Any other name is the
        plugin's own.
      platform: "tpu" or "cuda"; None is the chip's, else "tpu". The two may change places.
      **kwargs: the plugin's options: `num_slices` of TPUs; of GPUs `topology`, and
        `target_config` for one that is not in the list.
    Returns: A `TopologyDescription`, for whose devices programs can be compiled without them.

    NotImplementedError for platforms without a plugin that knows topologies: CPUs among them.
    RuntimeError, with the line that installs it, where the plugin is absent; ValueError for a
    topology that it does not know.

    >>> try:
    ...     topologies.get_topology_desc(platform="cpu")
    ... except NotImplementedError as error:
    ...     print(error)
    get_topology_desc: topology not implemented for cpu; ...
    """
    if topology_name in PLATFORMS and platform not in PLATFORMS:
        topology_name, platform = platform or "", topology_name
    target, name = _known(topology_name), topology_name
    plugin = platform or ("tpu" if target is None else target.chip.platform)
    plugin = {"gpu": "cuda"}.get(plugin, plugin)
    if plugin not in ("tpu", "cuda"):
        raise NotImplementedError(
            f"get_topology_desc: topology not implemented for {plugin}; a platform whose plugin "
            "describes topologies (tpu, cuda) is required; get_attached_topology gives the devices "
            "that are there.")
    options = dict(kwargs)
    if target is not None:
        if target.chip.platform != plugin:
            raise ValueError(f"get_topology_desc: {topology_name!r} given for {plugin}; {target} "
                             f"is of the platform {target.chip.platform}.")
        plugin, name, own = target.topology()
        options = {**own, **options}
    return TopologyDescription(_described(plugin, name, options))


def _described(plugin: str, name: str, options: Mapping[str, object]) -> list[Device]:
    try:
        return lib.plugins.topology(plugin, name, options)
    except lib.XlaRuntimeError as error:
        text = str(error).splitlines()[0]
        if plugin == "cuda" and "No visible GPU" in text:
            text = f"{name!r} is no known chip, and no target_config describes one"
        raise ValueError(
            f"get_topology_desc: the topology {name!r} given; {plugin} knows none of this name "
            f"({text}); give one as v5e:2x2 or h100:8: chips are {', '.join(CHIPS)}.") from None


def _known(name: str) -> Target | None:
    """The target of a name that begins with a chip's; None of a name that only a plugin knows."""
    try:
        return parse_target(name)
    except ValueError:
        return None


def target_devices(target: Target) -> list[Device]:
    """The devices of a target, which need not be here."""
    return _described(*target.topology())


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
              contiguous_submeshes: bool = False) -> Mesh:
    """A mesh of a topology's devices.

    Args:
      topo: the topology.
      mesh_shape: how many devices each axis has; all together, the topology's.
      axis_names: a name for each axis.
      contiguous_submeshes: as of `mesh_utils.create_device_mesh`.

    >>> print(topologies.make_mesh(topologies.get_attached_topology(), (1,), ("x",)))
    Mesh('x': 1, axis_types=(Auto,))
    """
    return Mesh(create_device_mesh(mesh_shape, list(topo.devices),
                                   contiguous_submeshes=contiguous_submeshes), axis_names)
