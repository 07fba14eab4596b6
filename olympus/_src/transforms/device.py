"""Moving arrays between devices and host, and waiting for them; each takes any pytree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backend.array import HOLDERS, array_from_numpy, numpy_value, put_parts, stored
from ..backend.compile import drop_programs
from ..backend.devices import client
from ..backend.eager import argument_array
from ..base import lib
from ..base.source import api_boundary
from ..base.typing import Array, Device, PyTree, T
from ..core.trace import Tracer, typeof
from ..lax.sharding import constrain, move, resolve_sharding
from ..types.memory import Space
from ..types.mesh import AxisType, Mesh
from ..types.shape import canonical_shape, prod, sequence
from ..types.sharding import DeviceLike, NamedSharding, PartitionSpec, make_single_device_sharding
from ..types.tree import flatten_axes, tree_flatten, tree_map
from .arguments import leaf_path

__all__ = ["block_until_ready", "clear_caches", "copy_to_host_async", "device_get", "device_put",
           "live_arrays", "make_mesh"]

ArrayImpl = lib.ArrayImpl


@api_boundary
def device_put(x: PyTree, device: DeviceLike = None, *, src: DeviceLike = None,
               donate: bool = False, may_alias: bool | None = None) -> PyTree:
    """Put arrays on a device; returns at once.

    Args:
      x: a pytree of arrays, NumPy arrays and Python numbers.
      device: a device or sharding, to which the results are committed, a `PartitionSpec` of the
        mesh around, a `memory.Space` of the device where they are, or a pytree of those that is a
        prefix of the structure of `x`; None leaves arrays where they are and puts other values on
        the default device, uncommitted. A sharding's memory kind is where on the device they are.
      src: where `x` is now; not needed.
      donate: give up the arrays in `x`.
      may_alias: whether results may share memory with `x`; the default is that they may, for arrays
        that are on the device already.

    Returns:
      A pytree of arrays of the structure of `x`.

    Within a compiled program, the program runs on the devices named; the values may be in the
    memories "device" and "pinned_host" of those.
    TypeError for leaves that are not arrays, ValueError for what is not a device, for shapes that
    do not fit the sharding, and for `donate` together with `may_alias=True`.

    >>> import olympus
    >>> olympus.device_put({"a": 1.0}, olympus.devices()[0])
    {'a': Array(1., dtype=float32, weak_type=True)}
    """
    if may_alias and not (donate is False or donate is None):
        raise ValueError(f"device_put: may_alias=True and donate={donate!r} given; an array that "
                         "is given up has no second owner; leave one of them out.")
    leaves, tree = tree_flatten(x)
    targets = map(_target, flatten_axes("device_put device", tree, device))
    copy = donate is False and may_alias is False
    with lib.explicit_transfers():
        return tree.unflatten([_put(x, leaf, i, target, donate, copy)
                               for i, (leaf, target) in enumerate(zip(leaves, targets))])


class _Target(NamedTuple):
    """Where to put an array: None stands for what is so already."""

    device: Any
    memory: str | None
    parts: NamedSharding | None = None


_ANYWHERE = _Target(None, None)


def _target(where: Any) -> _Target:
    """What a device, a sharding, a memory space or None stands for."""
    if where is None:
        return _ANYWHERE
    if isinstance(where, (NamedSharding, PartitionSpec)):
        return _Target(None, None, resolve_sharding("device_put", where))
    if isinstance(where, lib.Device):
        return _Target(where, None)
    if type(where) is lib.SingleDeviceSharding:
        return _Target(where._device, where._memory_kind)
    if isinstance(where, Space):
        return _Target(None, None if where is Space.Any else where.value)
    raise ValueError(f"device_put: device {where!r} of type {type(where).__name__} given; a "
                     "device, a sharding, a PartitionSpec, a memory space or None is required; see "
                     "olympus.devices().")


def _put(tree: Any, x: Any, index: int, target: _Target, donate: bool, copy: bool) -> Any:
    device, memory, parts = target
    if parts is not None:
        return _spread(x, parts, donate, copy)
    if isinstance(x, Tracer):
        if device is not None:
            x = constrain("device_put", x, make_single_device_sharding(device))
        if memory is None:
            return x
        return move(x, Space.Host if memory == "device" else Space.Device, Space.of(memory))
    if type(x) in HOLDERS:
        return x._with(_put(tree, stored(x), index, target, donate, copy))
    if type(x) is not ArrayImpl:
        try:
            aval: Any = None if device is None else typeof(x)
            found = (array_from_numpy(x, aval.weak_type, device) if hasattr(aval, "dtype")
                     else argument_array(x))
        except TypeError:
            raise TypeError(f"device_put: x{leaf_path(tree, index)} is {x!r:.60} of type "
                            f"{type(x).__name__}; an array or a Python number is required."
                            ) from None
        return _in_memory(found, memory)
    if device is None:
        moved = _in_memory(lib.copied(x) if copy else x, memory)
    elif x.sharding.num_devices > 1:
        moved = _in_memory(array_from_numpy(numpy_value(x), x.aval.weak_type, device), memory)
    else:
        moved = lib.copy_to_device(x, device, copy=copy)
        if not moved._committed or x.aval.sharded:      # a mesh of one device
            moved = lib.make_array(x.aval.update(sharding=None), moved._sharding, [moved])
        moved = _in_memory(moved, memory)
    if donate and (moved.device, moved.sharding.memory_kind) != (x.device, x.sharding.memory_kind):
        x.delete()
    return moved


def _spread(x: Any, sharding: NamedSharding, donate: bool, copy: bool) -> Any:
    """An array cut over the devices of a mesh."""
    if isinstance(x, Tracer):
        return constrain("device_put", x, sharding)
    x = argument_array(x)
    if type(x) in HOLDERS:
        return x._with(_spread(stored(x), sharding, donate, copy))
    try:
        sharding.check_compatible_aval(x.aval.shape)
    except ValueError as error:
        raise ValueError(f"device_put: {error}") from None
    if x._sharding == sharding and x._committed:
        return lib.copied(x) if copy else x
    moved = put_parts(x, sharding)
    if donate:
        x.delete()
    return moved


def _in_memory(x: Any, memory: str | None) -> Any:
    """The array in a memory of the device where it is."""
    if memory is None or type(x) is not ArrayImpl or x.sharding.memory_kind == memory:
        return x
    return lib.copied(x, x.sharding.with_memory_kind(memory))


@api_boundary
def device_get(x: PyTree) -> PyTree:
    """The arrays of a pytree as NumPy arrays; waits for them. Other leaves stay as they are.

    Args:
      x: a pytree.

    Returns:
      The same structure; several copies run at once.

    >>> import olympus, olympus.numpy as onp
    >>> olympus.device_get({"a": onp.arange(2)})
    {'a': array([0, 1], dtype=int32)}
    """
    with lib.explicit_transfers():
        copy_to_host_async(x)       # all copies run while the first is waited for
        return tree_map(lambda leaf: numpy_value(leaf) if type(leaf) is ArrayImpl else leaf, x)


@api_boundary
def block_until_ready(x: T) -> T:
    """Wait until the arrays of a pytree are computed, and return it; errors of theirs come here.

    Args:
      x: a pytree; leaves that are not arrays are ignored.

    Returns:
      The same pytree.

    >>> import olympus, olympus.numpy as onp
    >>> olympus.block_until_ready(onp.arange(2))
    Array([0, 1], dtype=int32)
    """
    arrays = _arrays(x)
    if arrays:
        lib.block_until_ready(arrays)
    return x


@api_boundary
def copy_to_host_async(x: T) -> T:
    """Start copying the arrays of a pytree to the host, so that reading them later need not wait.

    Args:
      x: a pytree; leaves that are not arrays are ignored.

    Returns:
      The same pytree.

    >>> import olympus
    >>> x = olympus.copy_to_host_async(olympus.numpy.arange(2))
    >>> x.tolist()
    [0, 1]
    """
    for array in _arrays(x):
        lib.copy_to_host_async(array)
    return x


def _arrays(x: Any) -> list[Any]:
    leaves = [stored(leaf) for leaf in tree_flatten(x)[0]]
    return [leaf for leaf in leaves if type(leaf) is ArrayImpl]


def make_mesh(axis_sizes: Sequence[int], axis_names: Sequence[Hashable],
              axis_types: Sequence[AxisType] | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh of the first devices, as many as it takes.

    Args:
      axis_sizes: how many devices each axis has.
      axis_names: a name for each axis.
      axis_types: as `Mesh` takes them.
      devices: what to take them from, in this order; all devices of the default backend if None.

    Returns:
      A `Mesh`.

    ValueError if there are not enough.

    >>> import olympus
    >>> print(olympus.make_mesh((1, 1), ("data", "model")))
    Mesh('data': 1, 'model': 1, axis_types=(Auto, Auto))
    """
    sizes = canonical_shape(sequence(axis_sizes, "make_mesh", "axis_sizes"), "make_mesh")
    found = client().devices() if devices is None else sequence(devices, "make_mesh", "devices")
    if prod(sizes) > len(found):
        raise ValueError(f"make_mesh: axis_sizes {sizes} given; that takes {prod(sizes)} devices "
                         f"of {len(found)}; use fewer, or start with more (num_cpu_devices).")
    array = np.empty(prod(sizes), object)
    array[:] = found[:prod(sizes)]
    return Mesh(array.reshape(sizes), axis_names, axis_types)


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays of a platform that are not deleted yet, those kept by Olympus itself included.

    Args:
      platform: its name; None is the default backend's.

    Returns:
      A list of arrays, to look for what holds memory.

    >>> import olympus
    >>> x = olympus.numpy.arange(3)
    >>> any(y is x for y in olympus.live_arrays())
    True
    """
    return list(client(platform).live_arrays())


def clear_caches() -> None:
    """Drop every traced and compiled program; they are made anew when next needed.

    >>> import olympus
    >>> olympus.clear_caches()
    """
    drop_programs()
