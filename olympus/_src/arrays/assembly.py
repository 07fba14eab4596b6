"""Arrays of several devices from their parts: each process gives the parts of its own devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import errors, lib
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, Device, DTypeLike, PyTree
from ..core.trace import Tracer, typeof
from ..devices.array import WRAPPERS, numpy_value, stored
from ..lax.sharding import resolve_sharding
from ..types import dtypes
from ..types.avals import make_aval, physical_aval
from ..types.layout import AUTO, Format
from ..types.shape import Shape, canonical_shape, definitely_equal, entries, floor_div, sequence
from ..types.sharding import (
    NamedSharding, Sharding, ShardingLike, device_tuple, make_single_device_sharding,
)
from ..types.tree import flatten_axes, tree_flatten
from .device import device_put

Index = tuple[slice, ...]


@api_boundary
def make_array_from_callback(shape: Sequence[int], sharding: Sharding | Format,
                             data_callback: Callable[[Index], ArrayLike],
                             dtype: DTypeLike | None = None) -> Array:
    """Make an array of the parts that a function returns, one for each device.

    No process needs to hold the whole array: a part may be read from a file, say.

    Args:
      shape: of the whole array.
      sharding: how it is cut over devices; the numbers of parts must divide the sizes of axes. Or
        a `Format`, for parts of another layout.
      data_callback: takes a tuple of slices, one per axis (with start and stop where the axis is
        cut, else `slice(None)`), and returns that part, of any dtype and the shape of the slices.
        It is called once for each different part on devices of this process; other devices with
        that part get copies.
      dtype: the parts' dtype; the first one's if None. It is needed where this process has no
        device.
    Returns: An array of shape `shape` and sharding `sharding`.

    TypeError for anything but a sharding of devices; ValueError for parts of wrong shapes or
    dtypes.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(olympus.make_mesh((1,), ("x",)), P("x"))
    >>> whole = np.arange(4)
    >>> olympus.make_array_from_callback((4,), sharding, lambda index: whole[index])
    Array([0, 1, 2, 3], dtype=int32)
    """
    what = "make_array_from_callback"
    shape = canonical_shape(sequence(shape, what, "shape"), what)
    layout = None
    if isinstance(sharding, Format):
        if sharding.layout is AUTO:
            raise TypeError(f"{what}: {sharding} given; `Layout.AUTO` cannot be used in place of a "
                            "device-local layout here; give a Layout, or none.")
        if sharding.sharding is None:
            raise TypeError(f"{what}: {sharding} given; sharding should be an instance of "
                            "`olympus.sharding`: where each part is; give one.")
        sharding, layout = sharding.sharding, sharding.layout
    sharding, devices = _own_devices(what, shape, sharding)
    everywhere = sharding.devices_indices_map(shape)
    kind, made, placed = sharding.memory_kind, {}, []
    for device in devices:
        index = everywhere[device]
        key = tuple([(s.start, s.stop) for s in index])
        if key not in made:
            made[key] = data_callback(index)
        part = made[key]
        if isinstance(part, Tracer):
            raise errors.UnexpectedTracerError(
                f"olympus.{what} cannot be called within a traced context: data_callback returned "
                f"{part} for {index}; an array with a value is required; call this outside of jit "
                "and other transforms.")
        if not isinstance(part, lib.Array) and type(part) not in WRAPPERS:
            part = np.asarray(part)
            if part.dtype.kind in "OSUMm" or dtypes.is_float0(part.dtype):
                raise TypeError(f"{what}: data_callback returned {made[key]!r:.60} for {index}; "
                                "an array of numbers or bools, or of keys, is required.")
        placed.append(device_put(part, Format(
            layout, make_single_device_sharding(device, memory_kind=kind))))
    return _assembled(what, shape, sharding, placed, dtype)


@api_boundary
def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Sharding,
                                         arrays: Sequence[Array], *,
                                         dtype: DTypeLike | None = None) -> Array:
    """Join arrays on one device each to an array over several devices, without a copy.

    Args:
      shape: of the whole array.
      sharding: how it is cut over devices; the numbers of parts must divide the sizes of axes.
      arrays: one array on each of the sharding's devices that this process has, in any order, all
        of the shape `sharding.shard_shape(shape)` and of one dtype.
      dtype: the arrays' dtype; the first one's if None. It is needed where there
        are none.
    Returns: An array of shape `shape` and sharding `sharding`, which shares the memory of `arrays`.

    TypeError for other objects than arrays or a sharding of devices; ValueError for devices without
    an array, or with two, and for wrong shapes and dtypes. That devices which hold the same part
    were given equal values is not checked.

    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(olympus.make_mesh((1,), ("x",)), P("x"))
    >>> part = olympus.device_put(onp.arange(4), olympus.devices()[0])
    >>> x = olympus.make_array_from_single_device_arrays((4,), sharding, [part])
    >>> x.sharding == sharding
    True
    """
    what = "make_array_from_single_device_arrays"
    shape = canonical_shape(sequence(shape, what, "shape"), what)
    sharding, devices = _own_devices(what, shape, sharding)
    by_device: dict[Any, Any] = {}
    if isinstance(arrays, lib.Array):
        raise TypeError(f"{what}: olympus.{what} `arrays` argument must be a list or tuple; "
                        f"{typeof(arrays)} given; write [x].")
    for i, x in enumerate(sequence(arrays, what, "arrays")):
        if isinstance(x, Tracer):
            raise ValueError(f"{what}: olympus.{what} requires a list of concrete arrays; "
                             f"arrays[{i}] is {x}; call this outside of jit and other transforms.")
        if type(stored(x)) is not lib.ArrayImpl:
            raise TypeError(f"{what}: arrays[{i}] is {x!r:.60} of type {type(x).__name__}; an "
                            "array on a device is required; put it there with device_put.")
        lib.check_alive(what, stored(x))
        of_part = list(device_tuple(stored(x).sharding))
        if len(of_part) > 1:
            raise ValueError(f"{what}: When making an array from single-device arrays the input "
                             "arrays must have one shard each. An argument array had "
                             f"{len(of_part)} shard(s): arrays[{i}]; take the parts with "
                             "addressable_shards.")
        if of_part[0] not in devices:
            raise ValueError(f"{what}: arrays[{i}] is on {of_part[0]}, which is no device of "
                             f"{sharding} in this process; move it with device_put.")
        if of_part[0] in by_device:
            raise ValueError(f"{what}: arrays[{i}] is the second one on {of_part[0]}; the input "
                             "arrays must be from distinct devices; move it with device_put.")
        kind = stored(x).sharding.memory_kind
        if kind != sharding.memory_kind:
            raise ValueError(f"{what}: arrays[{i}] is in the memory {kind!r}, the sharding's is "
                             f"{sharding.memory_kind!r}; one memory is required; move it with "
                             "device_put.")
        by_device[of_part[0]] = x
    missing = [str(d) for d in devices if d not in by_device]
    if missing:
        raise ValueError(f"{what}: Expected {len(devices)} per-device arrays (this is how many "
                         f"devices are addressable by the sharding), but got {len(by_device)}, and "
                         f"none on {', '.join(missing[:8])}{', …' if len(missing) > 8 else ''}; "
                         f"one on each device of {sharding} is required.")
    return _assembled(what, shape, sharding, [by_device[d] for d in devices], dtype)


@api_boundary
def make_array_from_process_local_data(sharding: Sharding | Device, local_data: PyTree,
                                       global_shape: PyTree = None) -> PyTree:
    """Make an array over the devices of all processes; each process gives its own rows.

    Args:
      sharding: how the whole array is cut over devices, or one device.
      local_data: this process' data, as a NumPy array, or an array that can be read here: the
        parts of its devices side by side, in their order in the whole array. Processes whose
        devices hold the same parts must give the same data. Or a pytree of such.
      global_shape: of the whole array. Each size is `local_data`'s, which then has the whole axis,
        or as many times it as the axis has parts for each that this process holds. None is the
        latter for all axes. One for all arrays of a pytree, or a pytree of them.
    Returns: An array of sharding `sharding`, or a pytree of them. In a program of one process it
      has the shape of `local_data`.

    ValueError for sizes that are neither, for those that the parts do not divide, and, unless
    `local_data` has the whole axis, where the parts that processes hold along an axis overlap.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(olympus.make_mesh((1,), ("batch",)), P("batch"))
    >>> print(olympus.make_array_from_process_local_data(sharding, np.arange(4.0)))
    [0. 1. 2. 3.]
    """
    what = "make_array_from_process_local_data"
    leaves, tree = tree_flatten(local_data)
    if not (len(leaves) == 1 and leaves[0] is local_data):
        whole_shapes = isinstance(global_shape, tuple) or global_shape is None
        shapes = [global_shape] * len(leaves) if whole_shapes else tree.flatten_up_to(global_shape)
        return tree.unflatten([
            make_array_from_process_local_data(s, x, shape) for x, s, shape in zip(
                leaves, flatten_axes(f"{what} sharding", tree, sharding), shapes, strict=True)])
    if global_shape is not None and None in entries(global_shape):
        raise ValueError(f"{what}: global_shape={global_shape} has Nones. This is not supported; "
                         "an int is required for each axis, or None for all.")
    if isinstance(local_data, Tracer):
        raise TypeError(f"{what}: local_data is {local_data}; an array with a value is required; "
                        "call this outside of jit and other transforms.")
    data = numpy_value(local_data) if type(local_data) is lib.ArrayImpl else np.asarray(local_data)
    sharding = (make_single_device_sharding(sharding) if isinstance(sharding, lib.Device) else
                resolve_sharding(what, sharding))
    if type(sharding) is NamedSharding and len(sharding.spec) > data.ndim:
        sharding.check_compatible_aval(data.shape)      # raises: it has too few axes
    counts = lib.tile_counts(sharding._to_xla_hlo_sharding(data.ndim), data.ndim)
    devices = device_tuple(sharding)
    starts = [[s.start for s in where] for where in lib.shard_slices(
        sharding, tuple(counts))]
    owners = [d.process_index for d in devices]
    own = parts_of_process(starts, owners, devices[0].client.process_index())
    whole = tuple([size * count // len(mine) if mine else -1
                   for size, count, mine in zip(data.shape, counts, own, strict=True)])
    shape = whole if global_shape is None else canonical_shape(
        sequence(global_shape, what, "global_shape"), what)
    if len(shape) != data.ndim or any(
            size not in allowed for size, allowed in zip(
                shape, zip(data.shape, whole, strict=True), strict=True)) or -1 in shape:
        raise ValueError(
            f"{what}: global_shape {global_shape}, local_data of shape {data.shape} and {sharding} "
            "given; along each axis the size of local_data is required, or the parts' number times "
            f"their size: {tuple(['unknown' if w == -1 else w for w in whole])}; give "
            "another global_shape, or the data of the whole axis.")

    def local(index: Index) -> np.ndarray:
        where = []
        for s, size, total, mine, count in zip(index, data.shape, shape, own, counts, strict=True):
            if not definitely_equal(size, total):
                part = floor_div(total, count)
                first = mine.index(s.start // part) * part
                s = slice(first, first + part)
            where.append(s)
        return data[tuple(where)]

    return make_array_from_callback(shape, sharding, local)


def parts_of_process(starts: Sequence[Sequence[int]], owners: Sequence[int], process: int
                     ) -> list[list[int]]:
    """The parts of each axis that a process holds, in order; none of an axis where they overlap.

    Args:
      places: per device, which part of each axis it holds.
      owners: per device, its process.
      process: whose parts.

    >>> parts_of_process([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1], 1)
    [[1], [0, 1]]
    """
    parts = []
    for axis in zip(*starts, strict=True):
        sets: dict[int, set[int]] = {}
        for owner, part in zip(owners, axis, strict=True):
            sets.setdefault(owner, set()).add(part)
        different = {frozenset(s) for s in sets.values()}
        disjoint = sum(map(len, different)) == len(frozenset().union(*different))
        even = len({len(s) for s in different}) == 1
        parts.append(sorted(sets.get(process, ())) if disjoint and even else [])
    return parts


def _own_devices(what: str, shape: Shape, sharding: ShardingLike
                 ) -> tuple[Sharding, list[Device]]:
    """The sharding with its devices, and this process's among them, in its order."""
    sharding = resolve_sharding(what, sharding)
    try:
        if type(sharding) is NamedSharding:
            sharding.check_compatible_aval(shape)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    local = sharding.addressable_devices
    return sharding, [d for d in device_tuple(sharding) if d in local]


def _assembled(what: str, shape: Shape, sharding: Sharding, parts: Sequence[Array],
               dtype: DTypeLike | None) -> Array:
    """The array of these parts, which are in the order of the sharding's own devices."""
    if not parts and dtype is None:
        raise ValueError(f"{what}: {sharding} given, none of whose devices is in this process, and "
                         "no dtype; a dtype is required.")
    wanted = parts[0].dtype if dtype is None else dtypes.requested_dtype(what, dtype, True)
    part_shape = sharding.shard_shape(shape)
    for x in parts:
        if x.shape != part_shape or x.dtype != wanted:
            (device,) = stored(x).devices()
            wrong = (f"Expected shard shape {part_shape} doesn't match the single device array "
                     f"shape {x.shape}" if x.shape != part_shape else
                     "Input buffers to `Array` must have matching dtypes. Got "
                     f"{dtypes.long_name(x.dtype)}, expected {dtypes.long_name(wanted)}")
            raise ValueError(f"{what}: {wrong}, for {device}; Shape of Array is {shape} with "
                             f"sharding {sharding}; convert it, or give the shape and dtype that "
                             "the parts have.")
    arrays = [lib.shards(stored(x))[0] for x in parts]
    whole = lib.make_array(physical_aval(make_aval(shape, wanted)).at(sharding), sharding, arrays)
    return wanted.wrap(whole) if isinstance(wanted, dtypes.ExtendedDType) else whole
