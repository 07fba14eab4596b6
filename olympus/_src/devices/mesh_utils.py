"""Arrangements of devices for meshes, by process where there are many.

CPUs and GPUs tell of their connections only their process (and slice): devices of one are near each
other. Within one, their order is as in `devices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.typing import Device
from ..types.shape import canonical_shape, prod, sequence
from .devices import devices as all_devices


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Device] | None = None, *,
                       contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False
                       ) -> np.ndarray:
    """Devices as an array of a shape, in their order: neighbours are along the last axes.

    Args:
      mesh_shape: how many devices each axis has; axes along which programs communicate most come
        last.
      devices: what to arrange; all devices of the default backend if None.
      contiguous_submeshes: refuse an arrangement in which a process' devices are no block.
      allow_split_physical_axes: whether axes of a TPU's torus may be split; CPUs and GPUs have
        none.
    Returns: A NumPy array of devices of shape `mesh_shape`, for `Mesh`.

    ValueError unless it has as many places as there are devices.

    >>> devices = mesh_utils.create_device_mesh((1, 1), olympus.devices()[:1])
    >>> print(olympus.sharding.Mesh(devices, ("data", "model")))
    Mesh('data': 1, 'model': 1, axis_types=(Auto, Auto))
    """
    what = "create_device_mesh"
    shape = canonical_shape(sequence(mesh_shape, what, "mesh_shape"), what)
    mesh = _device_array(what, all_devices() if devices is None else devices, shape)
    if contiguous_submeshes:
        for process in sorted({d.process_index for d in mesh.flat}):
            where = np.argwhere([d.process_index == process for d in mesh.flat])
            coordinates = np.array(np.unravel_index(where[:, 0], shape)).reshape(len(shape), -1)
            extents = np.ptp(coordinates, axis=1) + 1
            if prod(map(int, extents)) != len(where):
                raise ValueError(f"{what}: mesh_shape {shape} and contiguous_submeshes=True given; "
                                 f"the {len(where)} devices of process {process} are no block of "
                                 "it; give another shape, or devices in another order.")
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
    parts[:] = [_device_array(f"{what}: {key} {i}", blocks[i], inner) for i in order]
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
