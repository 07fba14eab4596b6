"""Moving arrays between devices and host, and waiting for them; each takes any pytree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import lib
from ..base.config import transfer_guard
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, Device, PyTree, T
from ..base.util import lazy_imports
from ..core.trace import FOREIGN_AVALS, SCALAR_TYPES, Tracer, typeof
from ..devices.array import WRAPPERS, array_from_numpy, numpy_value, parts_of, put_numpy, stored
from ..devices.devices import client
from ..jit.arguments import leaf_path
from ..job.state import current
from ..lax.layout import lay_out
from ..lax.sharding import constrain, deal_p, move, reshard_p, resolve_sharding
from ..lax.slicing import slice as slice_of
from ..runtime.compile import drop_programs, relaid
from ..runtime.eager import argument_array
from ..types.avals import HIGH, make_aval
from ..types.dtypes import is_float0
from ..types.layout import AUTO, Format, Layout, demanded_layout
from ..types.memory import Space
from ..types.mesh import AxisType, Mesh
from ..types.shape import canonical_shape, prod, sequence
from ..types.sharding import (
    DeviceLike, NamedSharding, PartitionSpec, Sharding, device_tuple, make_single_device_sharding,
    unreduced,
)
from ..types.tree import flatten_axes, tree_flatten, tree_map

ArrayImpl = lib.ArrayImpl

with lazy_imports(__name__):       # of TPUs; of jobs
    from ..devices import mesh_utils as _mesh_utils
    from . import multihost as _multihost


@api_boundary
def device_put(x: PyTree, device: DeviceLike | Format | PartitionSpec | Space | PyTree = None, *,
               src: DeviceLike = None, donate: bool | PyTree = False,
               may_alias: bool | None | PyTree = None) -> PyTree:
    """Put arrays on a device, and return without waiting for the transfer.

    Args:
      x: a pytree of arrays, NumPy arrays and Python numbers.
      device: a device, a sharding or a `Format`, to which the results are committed; a
        `PartitionSpec` of the ambient mesh; a `memory.Space` of the arrays' own device; or a pytree
        of those that is a prefix of the structure of `x`. None leaves arrays where they are, and
        puts other values on the default device, uncommitted. The memory kind of a sharding names
        the memory of the device.
      src: where `x` is now; not needed.
      donate: give up the arrays in `x`: a bool, or a pytree of those that is a prefix of `x`.
      may_alias: whether results may share memory with `x`, as `donate` is given; the default is
        that they may, for arrays that are on the device already.
    Returns: A pytree of arrays of the structure of `x`.

    A compiled program with `device_put` inside runs on the devices named; values may be in their
    memories "device" and "pinned_host". If a sharding is over all processes of a job, all must call
    this, with the same values.

    TypeError for leaves that are not arrays; ValueError for a wrong device, for shapes that do not
    fit the sharding, and for `donate` together with `may_alias=True`; AssertionError for values
    that differ from process to process.

    >>> olympus.device_put({"a": 1.0}, olympus.devices()[0])
    {'a': Array(1., dtype=float32, weak_type=True)}
    """
    leaves, tree = tree_flatten(x)
    targets = map(_target, flatten_axes("device_put device", tree, device))
    given_up, shared = [
        [flag] * len(leaves) if flag is None or isinstance(flag, bool) else
        flatten_axes(f"device_put {what}", tree, flag)
        for what, flag in (("donate", donate), ("may_alias", may_alias))]
    if any(a and d for a, d in zip(shared, given_up, strict=True)):
        raise ValueError("device_put: may_alias and donate cannot be True at the same time: an "
                         "array that is given up has no second owner; leave one of them out.")
    with lib.explicit_transfers():
        return tree.unflatten([
            _put_leaf(x, leaf, i, target, bool(d), d is False and a is False)
            for i, (leaf, target, d, a) in enumerate(zip(leaves, targets, given_up, shared))])


class _Target(NamedTuple):
    """Where to put an array: None where nothing changes."""

    device: Any
    memory: str | None
    parts: Any = None       # a sharding over a mesh, or one of XLA's
    layout: Layout | None = None


_ANYWHERE = _Target(None, None)


def _target(where: object) -> _Target:
    """The target of a copy, given as a device, a sharding, a memory space or None."""
    if where is None:
        return _ANYWHERE
    if isinstance(where, Format):
        if where.layout is AUTO:
            raise ValueError(f"device_put: {where} given; sharding and layout should be concrete: "
                             "no compiler is to choose here; give a Layout, or none.")
        return _target(where.sharding)._replace(layout=where.layout)
    if isinstance(where, (lib.GSPMDSharding, PartitionSpec)):
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


def _put_leaf(tree: PyTree, x: PyTree, index: int, target: _Target, donate: bool,
              copy: bool) -> PyTree:
    device, memory, parts, layout = target
    if HIGH and not isinstance(x, Tracer) and type(x) in FOREIGN_AVALS and typeof(x).is_high:
        aval: Any = typeof(x)       # of a user's type: its parts
        return aval.raise_val(*[_put_leaf(tree, part, index, target, donate, copy)
                                for part in aval.lower_val(x)])
    if layout is not None:
        moved = _put_leaf(tree, x, index, target._replace(layout=None), donate, copy)
        if isinstance(moved, Tracer):
            return lay_out("device_put", moved, layout)
        layout.check_compatible_aval(moved.shape)
        return relaid(moved, demanded_layout(layout))
    if parts is not None:
        return _sharded(x, parts, donate, copy)
    if isinstance(x, Tracer):
        if device is not None:
            x = constrain("device_put", x, make_single_device_sharding(device))
        if memory is None:
            return x
        return move(x, Space.Host if memory == Space.Host.value else Space.Device)
    if type(x) in WRAPPERS:
        return x._with(_put_leaf(tree, stored(x), index, target, donate, copy))
    if (current.num_processes > 1 and device is not None and not getattr(x, "_committed", False)
            and device.process_index != current.process_id):    # no part of it is here
        aval = typeof(x)
        where = lib.single_device_sharding(device)
        return lib.make_array(make_aval(aval.shape, aval.dtype, aval.weak_type), where, [])
    if type(x) is not ArrayImpl:
        return _in_memory(_array_of_foreign(tree, x, index, device), memory)
    return _transferred(x, device, memory, donate, copy)


def _array_of_foreign(tree: PyTree, x: PyTree, index: int, device: Device | None) -> Array:
    """An array of a value that is none of ours."""
    try:
        aval: Any = None if device is None else typeof(x)
        return (array_from_numpy(x, aval.weak_type, device) if hasattr(aval, "dtype")
                else argument_array(x))
    except TypeError:
        if getattr(getattr(x, "aval", None), "mutable", False):
            raise TypeError(f"device_put: x{leaf_path(tree, index)} is a reference {x.aval}; an "
                            "array is required; move ref[...], its content, and make a reference "
                            "of that.") from None
        raise TypeError(f"device_put: x{leaf_path(tree, index)} is {x!r:.60} of type "
                        f"{type(x).__name__}; an array or a Python number is required.") from None


def _transferred(x: Array, device: Device | None, memory: str | None, donate: bool, copy: bool
                 ) -> Array:
    """A concrete array on a device and in a memory, where one is named."""
    if device is None:
        moved = _in_memory(lib.copied(x) if copy else x, memory)
    elif x.sharding.num_devices > 1:
        x = _summed(x, None)
        moved = _in_memory(array_from_numpy(numpy_value(x), x.aval.weak_type, device), memory)
    else:
        moved = lib.copy_to_device(x, device, copy=copy, kind=memory)
        if not moved._committed or x.aval.tagged:       # a mesh of one device, another memory
            moved = lib.make_array(x.aval.at(moved._sharding), moved._sharding, [moved])
    if donate and (moved.device, moved.sharding.memory_kind) != (x.device, x.sharding.memory_kind):
        x.delete()
    return moved


def _sharded(x: ArrayLike, sharding: NamedSharding, donate: bool, copy: bool) -> object:
    """An array cut over devices."""
    if isinstance(x, Tracer):
        return constrain("device_put", x, sharding)
    if unreduced(sharding) and getattr(x, "_sharding", None) != sharding:
        # The value is one term, the others are 0.
        there = _sharded(x, sharding.update(spec=sharding.spec.update(unreduced=frozenset())),
                         donate, copy)
        terms = reshard_p.bind(there, sharding=sharding)
        return lib.rewrap(terms, terms.aval, sharding)
    if type(x) in SCALAR_TYPES:
        aval = typeof(x)
        return _put_in_job(np.asarray(x, aval.dtype), sharding, aval.weak_type)
    try:
        if type(x) is np.ndarray and not is_float0(x.dtype):
            return _put_in_job(x, sharding)
        array = argument_array(x)
        if type(array) in WRAPPERS:
            return array._with(_sharded(stored(array), sharding, donate, copy))
        moved = _resharded(_summed(array, sharding), sharding, copy, donate)
    except ValueError as error:
        raise ValueError(f"device_put: {error}") from None
    if donate and moved is not array:
        array.delete()
    return moved


def _summed(x: Array, sharding: object) -> Array:
    """An array whose terms are added up, if devices hold terms, and are to hold something else."""
    present = x._sharding
    if not unreduced(present) or present == sharding:
        return x
    return reshard_p.bind(x, sharding=present.update(
        spec=present.spec.update(unreduced=frozenset())))


def _resharded(x: Array, sharding: Sharding, copy: bool, donate: bool) -> object:
    """An array under another sharding; through the host only where that is a CPU's own memory."""
    present = x._sharding
    if present == sharding and x._committed:
        return lib.copied(x) if copy else x
    if current.num_processes > 1 and not sharding.is_fully_addressable:
        return _moved_in_job(x, sharding)
    if present.num_devices > 1 and present.device_set == sharding.device_set:
        with transfer_guard("allow"):       # devices deal parts out anew among themselves
            return _dealt(x, sharding, copy, donate)
    return _dealt(x, sharding, copy, donate)


def _moved_in_job(x: Array, sharding: Sharding) -> object:
    """An array under a sharding over devices of several processes, or of another one."""
    present = x._sharding
    if present.device_set == sharding.device_set:
        with transfer_guard("allow"):
            moved = deal_p.bind(x, sharding=sharding)
        # The program has its parts in the order of the devices of `x`.
        part_on = {part.device: part for part in lib.shards(moved)}
        return lib.make_array(x.aval.at(sharding), sharding, [
            part_on[d] for d in sharding._internal_device_list.addressable_device_list])
    if not present.is_fully_addressable:
        raise ValueError(
            "For a cross-host reshard in multi-controller programs, input and target sharding "
            f"should have the same set of devices: {present} and {sharding} given.")
    if x._committed:
        raise ValueError(
            "device_put's second argument must be a Device or a Sharding which represents "
            f"addressable devices, but got {sharding} for an array that is committed to {present}; "
            "give a NumPy array that is the same in all processes, or use "
            "make_array_from_process_local_data.")
    return _put_in_job(numpy_value(x), sharding, x.aval.weak_type)


def _put_in_job(value: np.ndarray, sharding: Sharding, weak_type: bool = False) -> object:
    """A NumPy array cut over devices; AssertionError unless all processes give the same."""
    if current.num_processes > 1 and {d.process_index for d in device_tuple(sharding)} == set(
            range(current.num_processes)):
        _multihost.check_same("device_put", value)
    return put_numpy(value, sharding, weak_type)


def _dealt(x: Array, sharding: Sharding, copy: bool, donate: bool) -> object:
    present = x._sharding
    aval = parts_of(x.aval, sharding).aval
    if lib.same_tiles(present._to_xla_hlo_sharding(x.ndim), sharding._to_xla_hlo_sharding(x.ndim),
                      x.ndim) and present.num_devices == sharding.num_devices:
        # Parts that stay on a device are shared, and would go with `x`.
        copy = copy or (donate and not present.device_set.isdisjoint(sharding.device_set))
        return lib.copy_to_sharding(lib.copied(x) if copy else x, aval, sharding)
    if present.is_fully_addressable and x.platform() == "cpu":
        return put_numpy(numpy_value(x), sharding, x.aval.weak_type)
    return moved_by_devices(x, sharding)


def moved_by_devices(x: Array, sharding: Sharding) -> object:
    """An array under a sharding of other tiles, without the host where devices can do it."""
    aval, indices, devices, _ = parts_of(x.aval, sharding)
    here = device_tuple(x._sharding)
    if len(here) == 1:
        parts = [x if sharding.is_fully_replicated else slice_of(
            x, [s.start for s in index[:-1]], [s.stop for s in index[:-1]]) for index in indices]
        return lib.device_put_parts(aval, parts, sharding, devices)
    if len(here) == sharding.num_devices and type(sharding) is NamedSharding:
        # Cut as wanted where it is, by a compiled program, and then from device to device.
        like = np.empty(len(here), object)
        like[:] = here
        mesh = Mesh(like.reshape(sharding.mesh.axis_sizes), sharding.mesh.axis_names)
        staged = constrain("device_put", x, NamedSharding(mesh, sharding.spec))
        return lib.copy_to_sharding(staged, aval, sharding)
    return put_numpy(numpy_value(x), sharding, x.aval.weak_type)


def _in_memory(x: Array, memory: str | None) -> Array:
    """The array in a memory of the device where it is."""
    if memory is None or type(x) is not ArrayImpl or x.sharding.memory_kind == memory:
        return x
    sharding = x.sharding.with_memory_kind(memory)
    return lib.rewrap(lib.copied(x, sharding), x.aval.at(sharding), sharding)


@api_boundary
def device_get(x: PyTree) -> PyTree:
    """Wait for the arrays of a pytree, and return NumPy arrays; other leaves stay as they are.

    Args: x: a pytree.
    Returns: The same structure; several copies run at once.

    >>> olympus.device_get({"a": onp.arange(2)})
    {'a': array([0, 1], dtype=int32)}
    """
    with lib.explicit_transfers():
        copy_to_host_async(x)       # all copies run while the first is waited for
        return tree_map(lambda leaf: numpy_value(leaf) if type(leaf) is ArrayImpl else leaf, x)


@api_boundary
def block_until_ready(x: T) -> T:
    """Wait until the arrays of a pytree are computed, and return it; raise their errors.

    Args: x: a pytree; leaves that are not arrays are ignored.
    Returns: The same pytree.

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
      x: a pytree; of leaves that are not arrays, a method `copy_to_host_async` is called, if any.
    Returns: The same pytree.

    >>> x = olympus.copy_to_host_async(olympus.numpy.arange(2))
    >>> x.tolist()
    [0, 1]
    """
    for leaf in map(stored, tree_flatten(x)[0]):
        if type(leaf) is ArrayImpl:
            lib.copy_to_host_async(leaf)
        elif hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def _arrays(x: object) -> list[Array]:
    leaves = [stored(leaf) for leaf in tree_flatten(x)[0]]
    return [leaf for leaf in leaves if type(leaf) is ArrayImpl]


def make_mesh(axis_sizes: Sequence[int], axis_names: Sequence[Hashable],
              axis_types: Sequence[AxisType] | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """Make a mesh of the first devices, as many as its shape needs.

    TPUs are arranged along their torus, as by `mesh_utils.create_device_mesh`.

    Args:
      axis_sizes: how many devices each axis has.
      axis_names: a name for each axis.
      axis_types: as `Mesh` takes them; explicit if None.
      devices: what to take them from, the first ones first; all devices of the default backend if
        None.

    ValueError if there are not enough.

    >>> print(olympus.make_mesh((1, 1), ("data", "model")))
    Mesh('data': 1, 'model': 1, axis_types=(Explicit, Explicit))
    """
    try:
        sizes = canonical_shape(sequence(axis_sizes, "make_mesh", "axis_sizes"), "make_mesh")
    except TypeError as error:
        raise ValueError("make_mesh: `axis_shapes` passed to `make_mesh` should be a sequence of "
                         f"ints: {error}") from None
    available = client().devices() if devices is None else sequence(devices, "make_mesh", "devices")
    if prod(sizes) > len(available):
        raise ValueError(f"make_mesh: axis_sizes {sizes} given; that takes {prod(sizes)} devices "
                         f"of {len(available)}; use fewer, or start with more (num_cpu_devices).")
    array = np.empty(prod(sizes), object)
    array[:] = available[:prod(sizes)]
    array = array.reshape(sizes)
    if array.size and getattr(array.flat[0], "platform", None) == "tpu":
        array = _mesh_utils.along_torus(array)
    return Mesh(array, axis_names,
                AxisType.Explicit if axis_types is None else axis_types)


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays of a platform that are not deleted yet, including those that Olympus keeps.

    Args: platform: its name; None is the default backend's.
    Returns: A list of arrays, to look for what holds memory.

    >>> x = olympus.numpy.arange(3)
    >>> any(y is x for y in olympus.live_arrays())
    True
    """
    return list(client(platform).live_arrays())


def clear_caches() -> None:
    """Drop every traced and compiled program; they are made anew when next needed.

    Memory that was kept for new arrays goes back to the system.

    >>> olympus.clear_caches()
    """
    drop_programs()
    lib.allocator.give_memory_back()
