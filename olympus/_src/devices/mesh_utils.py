"""Arrangements of devices for meshes: along the torus of TPUs, by process where there are many.

TPUs tell their coordinates. Axes of a mesh follow axes of the torus, so that rings of devices use
links of their own. `devices` lists TPUs by host, each a square of the torus, so rows of that list
would share links. CPUs and GPUs tell of their connections only their process (and slice): devices
of one are near each other, and within one their order is as in `devices`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..base.typing import Device
from ..types.shape import canonical_shape, prod, sequence
from .devices import devices as all_devices


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Device] | None = None, *,
                       contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False
                       ) -> np.ndarray:
    """Devices as an array of a shape: neighbours in the array are near each other.

    TPUs that fill a block of a torus are arranged along its axes: an axis of the array takes whole
    axes of the block where sizes allow it, the last one the most, and goes round several as a ring.
    Other devices keep their order, and neighbours are along the last axes.

    Args:
      mesh_shape: how many devices each axis has; axes along which programs communicate most come
        last.
      devices: what to arrange; all devices of the default backend if None.
      contiguous_submeshes: refuse an arrangement in which a process' devices are no block.
      allow_split_physical_axes: accepted, as in JAX. An axis of the torus is split where sizes
        leave no other way; JAX refuses such shapes by default.
    Returns: A NumPy array of devices of shape `mesh_shape`, for `Mesh`.

    ValueError unless it has as many places as there are devices.

    >>> devices = mesh_utils.create_device_mesh((1, 1), olympus.devices()[:1])
    >>> print(olympus.sharding.Mesh(devices, ("data", "model")))
    Mesh('data': 1, 'model': 1, axis_types=(Auto, Auto))
    """
    what = "create_device_mesh"
    shape = canonical_shape(sequence(mesh_shape, what, "mesh_shape"), what)
    mesh = _device_array(what, all_devices() if devices is None else devices, shape)
    arranged = along_torus(mesh)
    if not contiguous_submeshes or _torn_process(arranged) is None:
        return arranged
    process = _torn_process(mesh)
    if process is not None:
        count = sum(d.process_index == process for d in mesh.flat)
        raise ValueError(f"{what}: mesh_shape {shape} and contiguous_submeshes=True given; the "
                         f"{count} devices of process {process} are no block of it; give another "
                         "shape, or devices in another order.")
    return mesh


def create_hybrid_device_mesh(mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int],
                              devices: Sequence[Device] | None = None, *,
                              process_is_granule: bool = False,
                              should_sort_granules_by_key: bool = True,
                              allow_split_physical_axes: bool = False) -> np.ndarray:
    """Devices as an array of blocks: a fast network within each, a slow one between them.

    Args:
      mesh_shape: how many devices of one block each axis has.
      dcn_mesh_shape: how many blocks each axis has.
      devices: what to arrange; all devices of the default backend if None.
      process_is_granule: whether a block is the devices of one process; otherwise it is the devices
        of one `slice_index`, which TPUs and some GPUs have.
      should_sort_granules_by_key: order blocks by their process or slice; else as they first come
        in `devices`.
      allow_split_physical_axes: as for `create_device_mesh`.
    Returns: A NumPy array of devices whose axis i is `dcn_mesh_shape[i] * mesh_shape[i]` long,
      blocks one after another, for `Mesh`.

    ValueError where devices have no slice, and where the numbers of blocks, or of a block's
    devices, are others than the shapes say.

    >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), olympus.devices()[:1],
    ...                                      process_is_granule=True).shape
    (1, 1)
    """
    what = "create_hybrid_device_mesh"
    inner = canonical_shape(sequence(mesh_shape, what, "mesh_shape"), what)
    outer = canonical_shape(sequence(dcn_mesh_shape, what, "dcn_mesh_shape"), what)
    if len(inner) != len(outer):
        raise ValueError(f"{what}: mesh_shape {inner} and dcn_mesh_shape {outer} given; as many "
                         "axes of both are required; a 1 leaves an axis to the other.")
    key = "process_index" if process_is_granule else "slice_index"
    blocks: dict[int, list[Any]] = {}
    for device in all_devices() if devices is None else devices:
        if not hasattr(device, key):
            raise ValueError(f"{what}: {device} given, which has no {key}; devices of slices are "
                             "required; give process_is_granule=True to take processes instead.")
        blocks.setdefault(getattr(device, key), []).append(device)
    order = sorted(blocks) if should_sort_granules_by_key else list(blocks)
    if len(order) != prod(outer):
        raise ValueError(f"{what}: dcn_mesh_shape {outer} and devices of {len(order)} different "
                         f"{key} given; {prod(outer)} are required; give another dcn_mesh_shape.")
    parts = np.empty(len(order), object)
    parts[:] = [along_torus(_device_array(f"{what}: {key} {i}", blocks[i], inner)) for i in order]
    return np.block(parts.reshape(outer).tolist())


def _device_array(what: str, devices: Sequence[object], shape: tuple[int, ...]) -> np.ndarray:
    """Devices as an array of a shape."""
    if len(devices) != prod(shape):
        raise ValueError(f"{what}: mesh_shape {shape} and {len(devices)} devices given; "
                         f"{prod(shape)} are required; give another mesh_shape, or fewer devices "
                         "(make_mesh takes the first ones).")
    array = np.empty(len(devices), object)
    array[:] = list(devices)
    return array.reshape(shape)


def along_torus(mesh: np.ndarray) -> np.ndarray:
    """TPUs that fill a block of a torus, arranged in the mesh's shape along the block's axes; the
    mesh as it is if they do not, and for other devices.
    """
    devices: list[Any] = list(mesh.flat)
    if len(devices) < 2 or any(getattr(d, "platform", None) != "tpu" for d in devices):
        return mesh
    places = np.array([(*d.coords[::-1], d.core_on_chip) for d in devices])
    places = (places - places.min(0))[:, np.ptp(places, axis=0) > 0]
    sizes = tuple(map(int, places.max(0) + 1))
    if not len({*map(tuple, places.tolist())}) == len(devices) == prod(sizes):
        return mesh
    block = np.empty(sizes, object)
    for place, device in zip(places, devices, strict=True):
        block[tuple(place)] = device
    order: list[int] = []       # of the block's axes, by the mesh's
    cut, factors = _factors(sizes, mesh.shape)
    for mine in factors:
        order += mine
    block = block.reshape(cut).transpose(order)
    # Each axis of the mesh has several of the block's, whose places it visits as a ring.
    for at, mine in enumerate(factors):
        ring = _ring([cut[i] for i in mine])
        shape = block.shape
        block = block.reshape(*shape[:at], len(ring), *shape[at + len(mine):])
        block = np.take(block, ring, at)
    return block


def _factors(sizes: tuple[int, ...], wanted: tuple[int, ...]
             ) -> tuple[tuple[int, ...], list[list[int]]]:
    """Sizes of the block's axes, some split, and which of them each axis of the mesh has."""
    whole = next(_whole_axes(sizes, wanted), None)
    if whole is not None:
        return sizes, whole
    parts: list[list[int]] = [[] for _ in sizes]        # from the inside
    owners: list[list[int]] = [[] for _ in sizes]
    rest = list(sizes)
    for axis in reversed(range(len(wanted))):
        needed = wanted[axis]
        while needed > 1:
            # The rest of an axis as a whole if it fits, or else the largest common factor.
            common = [int(np.gcd(needed, size)) for size in rest]
            at = max(range(len(rest)), key=lambda i: (common[i], common[i] == rest[i], i))
            parts[at].append(common[at])
            owners[at].append(axis)
            needed, rest[at] = needed // common[at], rest[at] // common[at]
    cut = [size for mine in parts for size in mine[::-1]]
    owner = [axis for mine in owners for axis in mine[::-1]]
    return tuple(cut), [[i for i, own in enumerate(owner) if own == axis]
                        for axis in range(len(wanted))]


def _whole_axes(sizes: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[list[list[int]]]:
    """The ways to give each axis of a mesh whole axes of a block, those first in which the last
    axes have many.
    """
    def ways(axis: int, free: tuple[int, ...]) -> Iterator[list[list[int]]]:
        if axis < 0:
            if not free:
                yield []
            return
        for count in range(len(free), -1, -1):
            for mine in itertools.combinations(free[::-1], count):
                if prod([sizes[i] for i in mine]) == wanted[axis]:
                    for before in ways(axis - 1, tuple([i for i in free if i not in mine])):
                        yield [*before, sorted(mine)]

    return ways(len(wanted) - 1, tuple(range(len(sizes))))


def _ring(sizes: Sequence[int]) -> np.ndarray:
    """Row-major numbers of the places of a grid, such that neighbours in this order are neighbours
    in the grid, and the last one the first one's if some size is even.
    """
    numbers = np.arange(prod(sizes)).reshape(sizes)
    if len(sizes) < 2:
        return numbers.reshape(-1)
    even = next((i for i, size in enumerate(sizes) if size % 2 == 0), None)
    if even is None:
        return _back_and_forth(numbers)
    # The first column is the way back; the other places are visited row by row.
    rows = np.array([_back_and_forth(row) for row in np.moveaxis(numbers, even, 0)])
    return np.concatenate([rows[:1, 0], _back_and_forth(rows[:, 1:]), rows[:0:-1, 0]])


def _back_and_forth(numbers: np.ndarray) -> np.ndarray:
    """The numbers of a grid, every other row backwards."""
    if numbers.ndim < 2:
        return numbers
    rows = [_back_and_forth(row) for row in numbers]
    return np.concatenate([row if i % 2 == 0 else row[::-1] for i, row in enumerate(rows)])


def _torn_process(mesh: np.ndarray) -> int | None:
    """A process whose devices are no block of the mesh."""
    for process in sorted({d.process_index for d in mesh.flat}):
        where = np.argwhere([d.process_index == process for d in mesh.flat])
        coordinates = np.array(np.unravel_index(where[:, 0], mesh.shape)).reshape(mesh.ndim, -1)
        if prod(map(int, np.ptp(coordinates, axis=1) + 1)) != len(where):
            return process
    return None
