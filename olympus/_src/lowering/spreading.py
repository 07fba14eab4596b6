"""Names for shardings that XLA chose: the spec with the tiles of an HloSharding."""

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
    """The NamedSharding with XLA's tiles; a GSPMDSharding if no mesh has such a spec.

    Linear in the number of devices.
    """
    for mesh in meshes:
        if mesh.device_tuple == devices:    # results come in the order of the program's devices
            spec = _spec(mesh, tiling, ndim)
            if spec is not None:
                return NamedSharding(mesh, spec, memory_kind=memory_kind)
    return lib.GSPMDSharding(devices, tiling, memory_kind)


def _spec(mesh: Mesh, tiling: Any, ndim: int) -> PartitionSpec | None:
    """The spec by which a mesh shards an array into these tiles, or None.

    A step along a mesh axis advances by `weight` tiles along at most one axis of the array: the
    product of the sizes of the mesh axes that follow it there.
    """
    # Types have the unreduced axes; within shard_map a part counts as unsharded.
    if tiling.is_replicated() or tiling.is_unreduced() or tiling.is_manual():
        return PartitionSpec()
    # One step along each mesh axis from the first device gives the axis's weight. `expected` is the
    # tiling by these weights, which is then compared with the given one on all devices.
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
