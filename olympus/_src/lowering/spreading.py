"""Naming the compiler's choice: the specification that has an HloSharding's tiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base import lib
from ..base.typing import Device
from ..types.mesh import Mesh
from ..types.sharding import NamedSharding, PartitionSpec, Sharding, entry_of


def named(meshes: Iterable[Mesh], devices: tuple[Device, ...], tiling: object, ndim: int,
          memory_kind: str | None = None) -> Sharding:
    """The NamedSharding of what XLA chose for an array; a plain sharding where no mesh has one.

    Linear in the number of devices.
    """
    for mesh in meshes:
        if mesh.device_tuple == devices:    # results come in the order of the program's devices
            spec = _spec(mesh, tiling, ndim)
            if spec is not None:
                return NamedSharding(mesh, spec, memory_kind=memory_kind)
    return lib.GSPMDSharding(devices, tiling, memory_kind)


def _spec(mesh: Mesh, tiling: Any, ndim: int) -> PartitionSpec | None:
    """How axes of a mesh cut the axes of an array into such tiles, or None if they do not.

    A step along an axis of the mesh goes on by `weight` tiles along at most one axis of the array:
    by the product of the sizes of the axes of the mesh that come after it there.
    """
    # Types say of what there are terms; within shard_map a part is whole.
    if tiling.is_replicated() or tiling.is_unreduced() or tiling.is_manual():
        return PartitionSpec()
    # Each axis of the mesh is judged by one step along it from the first device. `expected` is the
    # tiling that these steps amount to; that it is the given one is then compared on all devices.
    tiles = _tiles(tiling, ndim)
    entries: list[list[tuple[int, Any]]] = [[] for _ in range(ndim)]
    expected = np.zeros((ndim, *mesh.axis_sizes), int)
    for i, (name, size) in enumerate(mesh.shape_tuple):
        if size == 1:
            continue
        weights = tiles[:, _distance(mesh.axis_sizes, i)] - tiles[:, 0]
        cut = np.flatnonzero(weights)
        if len(cut) > 1 or weights.min(initial=0) < 0:
            return None
        steps = np.arange(size).reshape(size, *[1] * (len(mesh.axis_names) - i - 1))
        for axis in cut:
            entries[axis].append((int(weights[axis]), name))
            expected[axis] += int(weights[axis]) * steps
    if not np.array_equal(expected.reshape(tiles.shape), tiles):
        return None
    parts = [entry_of([name for _, name in sorted(e, key=lambda pair: -pair[0])]) for e in entries]
    while parts and parts[-1] is None:
        parts.pop()
    return PartitionSpec(*parts)


def _distance(sizes: tuple[int, ...], i: int) -> int:
    """The distance, in a mesh's row-major order, of neighbours along axis `i`."""
    return int(np.prod(sizes[i + 1:], dtype=int))


def _tiles(tiling: Any, ndim: int) -> np.ndarray:
    """int[ndim, devices]: the tile of each device."""
    dims = tiling.tile_assignment_dimensions()
    order = np.asarray(tiling.tile_assignment_devices())
    where = np.empty(len(order), int)
    where[order] = np.arange(len(order))
    return np.array(np.unravel_index(where, dims)[:ndim]).reshape(ndim, len(order))
