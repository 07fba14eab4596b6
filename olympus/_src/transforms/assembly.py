"""Arrays of several devices from their parts: each process gives the parts of its own devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backend.array import HOLDERS, numpy_value, stored
from ..base import lib
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import Tracer
from ..lax.sharding import resolve_sharding
from ..types import dtypes
from ..types.avals import make_aval
from ..types.shape import Shape, canonical_shape, definitely_equal, floor_div, sequence
from ..types.sharding import (
    NamedSharding,
    Sharding,
    device_tuple,
    make_single_device_sharding,
)
from .device import device_put

__all__ = ["make_array_from_callback", "make_array_from_process_local_data",
           "make_array_from_single_device_arrays"]

Index = tuple[slice, ...]


@api_boundary
def make_array_from_callback(shape: Sequence[int], sharding: Sharding,
                             data_callback: Callable[[Index], ArrayLike],
                             dtype: DTypeLike | None = None) -> Array:
    """An array whose parts a function gives, each when it is put on its device.

    No process needs to hold the whole array: a part may be read from a file, say.

    Args:
      shape: of the whole array.
      sharding: how it is cut over devices; the numbers of parts must divide the sizes of axes.
      data_callback: takes a tuple of slices with start and stop, one per axis, and returns that
        part, of any dtype and the shape of the slices. It is called once for each different part
        on devices of this process; other devices with that part get copies.
      dtype: what the parts must have; that of the first one if None. It is needed where no device
        is of this process.

    Returns:
      An array of shape `shape` and sharding `sharding`.

    TypeError for what is no sharding of devices; ValueError for parts of wrong shapes or dtypes.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(olympus.make_mesh((1,), ("x",)), P("x"))
    >>> whole = np.arange(4)
    >>> olympus.make_array_from_callback((4,), sharding, lambda index: whole[index])
    Array([0, 1, 2, 3], dtype=int32)
    """
    what = "make_array_from_callback"
    shape = canonical_shape(sequence(shape, what, "shape"), what)
    sharding, indices = _own_parts(what, shape, sharding)
    kind, made, placed = sharding.memory_kind, {}, []
    for device, index in indices.items():
        key = tuple([(s.start, s.stop) for s in index])
        if key not in made:
            made[key] = data_callback(index)
        part = made[key]
        if isinstance(part, Tracer):
            raise TypeError(f"{what}: data_callback returned {part} for {index}; an array with a "
                            "value is required; call this outside of jit and other transforms.")
        if not isinstance(part, lib.Array) and type(part) not in HOLDERS:
            part = np.asarray(part)
            if part.dtype.kind in "OSUMm" or dtypes.is_float0(part.dtype):
                raise TypeError(f"{what}: data_callback returned {made[key]!r:.60} for {index}; "
                                "an array of numbers or bools, or of keys, is required.")
        placed.append(device_put(part, make_single_device_sharding(device, memory_kind=kind)))
    return _assembled(what, shape, sharding, placed, dtype)


@api_boundary
def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Sharding,
                                         arrays: Sequence[Array], *,
                                         dtype: DTypeLike | None = None) -> Array:
    """An array of several devices from those of one device each, without a copy.

    Args:
      shape: of the whole array.
      sharding: how it is cut over devices; the numbers of parts must divide the sizes of axes.
      arrays: one array on each of the sharding's devices that are of this process, in any order,
        all of the shape `sharding.shard_shape(shape)` and of one dtype.
      dtype: what the arrays must have; that of the first one if None. It is needed where there
        are none.

    Returns:
      An array of shape `shape` and sharding `sharding`, which shares the memory of `arrays`.

    TypeError for what is no array or no sharding of devices; ValueError for devices without an
    array, or with two, and for wrong shapes and dtypes. That devices which hold the same part were
    given equal values is not checked.

    >>> import olympus, olympus.numpy as onp
    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(olympus.make_mesh((1,), ("x",)), P("x"))
    >>> part = olympus.device_put(onp.arange(4), olympus.devices()[0])
    >>> x = olympus.make_array_from_single_device_arrays((4,), sharding, [part])
    >>> x.sharding == sharding
    True
    """
    what = "make_array_from_single_device_arrays"
    shape = canonical_shape(sequence(shape, what, "shape"), what)
    sharding, indices = _own_parts(what, shape, sharding)
    by_device: dict[Any, Any] = {}
    for i, x in enumerate(sequence(arrays, what, "arrays")):
        if type(stored(x)) is not lib.ArrayImpl:
            raise TypeError(f"{what}: arrays[{i}] is {x!r:.60} of type {type(x).__name__}; an "
                            "array on a device is required; put it there with device_put.")
        lib.check_alive(what, stored(x))
        found = list(device_tuple(stored(x).sharding))
        if len(found) > 1:
            raise ValueError(f"{what}: arrays[{i}] is on {len(found)} devices; one is required; "
                             "take the parts with addressable_shards.")
        if found[0] not in indices:
            raise ValueError(f"{what}: arrays[{i}] is on {found[0]}, which is no device of "
                             f"{sharding} in this process; move it with device_put.")
        if found[0] in by_device:
            raise ValueError(f"{what}: arrays[{i}] is the second one on {found[0]}; one for each "
                             "device is required; move it with device_put.")
        kind = stored(x).sharding.memory_kind
        if kind != sharding.memory_kind:
            raise ValueError(f"{what}: arrays[{i}] is in the memory {kind!r}, the sharding's is "
                             f"{sharding.memory_kind!r}; one memory is required; move it with "
                             "device_put.")
        by_device[found[0]] = x
    missing = [str(d) for d in indices if d not in by_device]
    if missing:
        raise ValueError(f"{what}: {len(by_device)} arrays given for the {len(indices)} devices of "
                         f"{sharding} in this process; one on each is required; there is none on "
                         f"{', '.join(missing[:8])}{', …' if len(missing) > 8 else ''}.")
    return _assembled(what, shape, sharding, [by_device[d] for d in indices], dtype)


@api_boundary
def make_array_from_process_local_data(sharding: Sharding, local_data: ArrayLike,
                                       global_shape: Sequence[int] | None = None) -> Array:
    """An array of the devices of all processes, of which each process gives its own rows.

    Args:
      sharding: how the whole array is cut over devices.
      local_data: this process' data, as a NumPy array, or an array that can be read here: the
        parts of its devices side by side, in their order in the whole array. Processes whose
        devices hold the same parts must give the same data.
      global_shape: of the whole array. Each size is that of `local_data`, which then has the whole
        axis, or as many times it as the axis has parts for each that this process holds. None is
        the latter for all axes.

    Returns:
      An array of sharding `sharding`. In a program of one process it has the shape of `local_data`.

    ValueError for sizes that are neither, for those that the parts do not divide, and, unless
    `local_data` has the whole axis, where the parts that processes hold along an axis overlap.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(olympus.make_mesh((1,), ("batch",)), P("batch"))
    >>> olympus.make_array_from_process_local_data(sharding, np.ones((4, 2), "float32")).shape
    (4, 2)
    """
    what = "make_array_from_process_local_data"
    if isinstance(local_data, Tracer):
        raise TypeError(f"{what}: local_data is {local_data}; an array with a value is required; "
                        "call this outside of jit and other transforms.")
    data = numpy_value(local_data) if type(local_data) is lib.ArrayImpl else np.asarray(local_data)
    sharding = resolve_sharding(what, sharding)
    if type(sharding) is NamedSharding and len(sharding.spec) > data.ndim:
        sharding.check_compatible_aval(data.shape)      # raises: it has too few axes
    counts = lib.tile_counts(sharding._to_xla_hlo_sharding(data.ndim), data.ndim)
    devices = device_tuple(sharding)
    places = [[s.start for s in where] for where in lib.shard_slices(sharding, counts)]
    owners = [d.process_index for d in devices]
    held = held_parts(places, owners, devices[0].client.process_index())
    whole = tuple([size * count // len(mine) if mine else -1
                   for size, count, mine in zip(data.shape, counts, held, strict=True)])
    shape = whole if global_shape is None else canonical_shape(
        sequence(global_shape, what, "global_shape"), what)
    if len(shape) != data.ndim or any(
            size not in allowed for size, allowed in zip(
                shape, zip(data.shape, whole, strict=True), strict=True)) or -1 in shape:
        raise ValueError(
            f"{what}: global_shape {global_shape}, local_data of shape {data.shape} and {sharding} "
            "given; along each axis the size of local_data is required, or the number of all parts "
            f"times that of one: {tuple(['unknown' if w == -1 else w for w in whole])}; give "
            "another global_shape, or the data of the whole axis.")

    def local(index: Index) -> np.ndarray:
        where = []
        for s, size, total, mine, count in zip(index, data.shape, shape, held, counts, strict=True):
            if not definitely_equal(size, total):
                part = floor_div(total, count)
                first = mine.index(s.start // part) * part
                s = slice(first, first + part)
            where.append(s)
        return data[tuple(where)]

    return make_array_from_callback(shape, sharding, local)


def held_parts(places: Sequence[Sequence[int]], owners: Sequence[int], process: int
               ) -> list[list[int]]:
    """The parts of each axis that a process holds, in order; none of an axis where they overlap.

    Args:
      places: per device, which part of each axis it holds.
      owners: per device, its process.
      process: whose parts.

    >>> held_parts([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1], 1)
    [[1], [0, 1]]
    """
    found = []
    for axis in zip(*places, strict=True):
        sets: dict[int, set[int]] = {}
        for owner, part in zip(owners, axis, strict=True):
            sets.setdefault(owner, set()).add(part)
        different = {frozenset(s) for s in sets.values()}
        disjoint = sum(map(len, different)) == len(frozenset().union(*different))
        even = len({len(s) for s in different}) == 1
        found.append(sorted(sets.get(process, ())) if disjoint and even else [])
    return found


def _own_parts(what: str, shape: Shape, sharding: Any) -> tuple[Any, dict[Any, Index]]:
    """The sharding with its devices, and which part each of those of this process holds."""
    sharding = resolve_sharding(what, sharding)
    try:
        if type(sharding) is NamedSharding:
            sharding.check_compatible_aval(shape)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    local = sharding.addressable_devices
    indices = sharding.devices_indices_map(shape)
    return sharding, {d: index for d, index in indices.items() if d in local}


def _assembled(what: str, shape: Shape, sharding: Any, parts: Sequence[Any],
               dtype: DTypeLike | None) -> Any:
    """The array of these parts, which are in the order of the sharding's own devices."""
    if not parts and dtype is None:
        raise ValueError(f"{what}: {sharding} given, of which no device is in this process, and no "
                         "dtype; a dtype is required.")
    wanted = parts[0].dtype if dtype is None else dtypes.requested_dtype(what, dtype, True)
    part_shape = sharding.shard_shape(shape)
    for x in parts:
        if x.shape != part_shape or x.dtype != wanted:
            (device,) = stored(x).devices()
            raise ValueError(f"{what}: the part for {device} is {dtypes.long_name(x.dtype)}"
                             f"{list(x.shape)}; {dtypes.long_name(wanted)}{list(part_shape)} is "
                             f"required, for an array of shape {shape} with {sharding}; convert "
                             "it, or give the shape and dtype that the parts have.")
    arrays = [lib.shards(stored(x))[0] for x in parts]
    held = arrays[0].aval if parts else make_aval(shape, wanted)
    inner = held.shape[len(shape):] if parts else ()
    aval = make_aval(shape + inner, held.dtype).update(sharding=sharding)
    whole = lib.make_array(aval, sharding, arrays)
    return parts[0]._with(whole) if parts and type(parts[0]) in HOLDERS else whole
