"""Device arrays at the level of C++: put, read, assemble, take apart, copy, exchange.

Avals here are any objects with `shape`, `dtype` and `weak_type`; C++ reads nothing else of them.
"""
# The stub of arrays has what other files read, and not all of C++'s private names.
# pyright: reportAttributeAccessIssue=false

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from olympus._src.base.lib.executables import XlaRuntimeError, is_absent
from olympus._src.base.lib.host import raised_by_host
from olympus._src.base.lib.loading import _jax, no_jax, xla_client
from olympus._src.base.lib.waiting import interruptible

if TYPE_CHECKING:
    from olympus._src.base.array_type import (
        Array, ArrayImpl, Device, GSPMDSharding, Sharding, SingleDeviceSharding,
    )
else:
    Array, ArrayImpl, Device = _jax.Array, _jax.ArrayImpl, _jax.Device
    Sharding, SingleDeviceSharding = _jax.Sharding, _jax.SingleDeviceSharding
    GSPMDSharding = _jax.GSPMDSharding

DeviceList: Any = _jax.DeviceList
HloSharding: Any = xla_client.HloSharding

_ZERO_COPY = _jax.HostBufferSemantics.ZERO_COPY
_COPY_NOW = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_REUSE = _jax.ArrayCopySemantics.REUSE_INPUT
# C++'s own, before `devices.array` puts the guarded ones over them.
_buffer_pointer: Callable[[Any], int] = ArrayImpl.unsafe_buffer_pointer
_platform: Callable[[Any], str] = ArrayImpl.platform
_is_ready: Callable[[Any], bool] = ArrayImpl.is_ready
_ALWAYS_COPY = _jax.ArrayCopySemantics.ALWAYS_COPY
# The abilities of this jaxlib; see the feature tests' reasons where they are used.
_HANDLER_KEYWORDS: dict[str, Any] = (
    {"_skip_checks": True}
    if "_skip_checks" in _jax.array_result_handler.__nb_signature__[0][0]
    else {}
)
_READS_ALL_TO_NUMPY = hasattr(ArrayImpl, "_to_np_array_did_copy")
_COPIES_BATCHES_TO_HOST = hasattr(_jax, "batched_copy_to_host_async")

# C++ asks shardings for their HLO form by this name; older versions ask even their own classes.
if not hasattr(SingleDeviceSharding, "_to_xla_hlo_sharding"):
    SingleDeviceSharding._to_xla_hlo_sharding = lambda self, ndim: HloSharding.replicate()
if not hasattr(GSPMDSharding, "_to_xla_hlo_sharding"):
    GSPMDSharding._to_xla_hlo_sharding = lambda self, ndim: self._hlo_sharding


class AvalLike(Protocol):
    """The attributes of an aval that C++ reads."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def weak_type(self) -> bool: ...


class ShardAval(NamedTuple):
    """The least aval that C++ accepts."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool = False


@functools.lru_cache(maxsize=4096)
def single_device_sharding(device: Device, memory_kind: str | None = None) -> Any:
    """Return the one SingleDeviceSharding of `device`, in its default memory if None."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def device_put(
    aval: AvalLike, value: np.ndarray | Array, device: Device, *, committed: bool = True,
    copy: bool = True,
) -> Array:
    """Put a NumPy array or an array of one device on `device` and return the new array.

    The dtype of `value` must be the aval's: C++ keeps the one it finds. With `copy`, later writes
    to a NumPy `value` do not show; without, the array may share its memory (aligned data on CPU).
    """
    semantics = _COPY_NOW if copy else _ZERO_COPY
    force = copy and type(value) is ArrayImpl
    # enable_x64=True: keep 64-bit values as they are; narrowing is decided above the seam.
    try:
        return _jax.batched_device_put(
            aval, single_device_sharding(device), [value], [device], committed, force, semantics,
            True)
    except XlaRuntimeError as error:
        raise _of_absent(error) from None


def _of_absent(error: Exception) -> Exception:
    """The error for an array on a device that programs are only compiled for; else the same."""
    text = str(error)
    return _absent() if "compile-only client" in text or "non-PjRt-compatible" in text else error


def _absent() -> RuntimeError:
    return RuntimeError(
        "devices: a device of a topology given for an array; programs are compiled for devices "
        "that are not attached, and arrays are on attached ones; pass a ShapeDtypeStruct to "
        "`lower`, or use one of olympus.devices().")


def default_memory_kind(device: Device) -> str:
    """The kind of a device's own memory."""
    # GPUs that are absent list no memories; the ones that are here have these.
    return "device" if _lists_none(device) else device.default_memory().kind


def memory_kinds(device: Device) -> Sequence[str]:
    """The kinds of memory that a device reads."""
    return ("device", "pinned_host") if _lists_none(device) else [
        m.kind for m in device.addressable_memories()]


def _lists_none(device: Device) -> bool:
    return is_absent(device) and not device.addressable_memories()


def device_put_parts(aval: AvalLike, parts: Sequence[np.ndarray | Array], sharding: object,
                     devices: Sequence[Device], *, copy: bool = True) -> Array:
    """Put a part on each of `devices`, committed: the addressable ones of `sharding`, in its order.

    The parts are NumPy arrays, or arrays of one device each. Without `copy`, NumPy arrays may be
    shared; with it, C++ fails on those that several devices are given, unless all are given one.
    """
    force = copy and len(parts) > 0 and type(parts[0]) is ArrayImpl
    semantics = _COPY_NOW if copy else _ZERO_COPY
    try:
        made = _jax.batched_device_put(aval, sharding, parts, devices, True, force, semantics, True)
    except XlaRuntimeError as error:
        raise _of_absent(error) from None
    return _sharing(made) if len(parts) > 0 and type(parts[0]) is ArrayImpl else made


def copy_to_sharding(array: Array, aval: AvalLike, sharding: Any) -> Array:
    """Return the parts of `array`, in their order, on the devices of a sharding with such parts."""
    check_alive("copy_to_sharding", array)
    if is_absent(sharding._internal_device_list[0]):    # where jaxlib ends the process
        raise _absent()
    return rewrap(_jax.batched_copy_array_to_devices_with_sharding(
        [array], [sharding._internal_device_list], [sharding], [_REUSE])[0], aval, sharding)


def make_array(aval: AvalLike, sharding: object, shards: Sequence[Array], committed: bool = True
               ) -> Array:
    """Assemble one array from its single-device shards, in the order of the sharding's devices."""
    return _sharing(
        ArrayImpl(aval, sharding, list(shards), committed=committed, _skip_checks=True)
    )


def result_handler(aval: AvalLike, sharding: object, committed: bool = True) -> object:
    """Return the C++ object that wraps one output of an executable as an array."""
    return _jax.array_result_handler(aval, sharding, committed, **_HANDLER_KEYWORDS)


def rewrap(array: Array, aval: AvalLike, sharding: object) -> Array:
    """Return `array`'s buffers under another aval and sharding, without a copy."""
    return _sharing(array._rewrap_with_aval_and_sharding(aval, sharding))


ArrayImpl._may_share = False  # whether another array may be of the same buffers


def _sharing(array: Any) -> Array:
    array._may_share = True
    return array


def may_share(arrays: Sequence[Array]) -> bool:
    """Whether two of `arrays` may have a buffer in common. Costs little where they do not."""
    return len({*map(id, arrays)}) < len(arrays) or True in [x._may_share for x in arrays]


def addresses(array: Array) -> list[int]:
    """Return one number per part of `array`; arrays that have one in common share a buffer."""
    if array.size == 0:
        return [id(array)]
    return [_buffer_pointer(part) for part in shards(array)]


def _all_devices(array: Array) -> Any:
    sharding = array._sharding
    if type(sharding) is SingleDeviceSharding:
        return DeviceList((sharding._device,))
    return sharding._internal_device_list


def _devices(array: Array) -> list[Device]:
    """Return the addressable devices of an array, in the order of its shards."""
    return list(_all_devices(array).addressable_device_list)


def is_readable(array: Array) -> bool:
    """Whether the parts in this process are the whole value of an array."""
    if _all_devices(array).is_fully_addressable:
        return True
    here = _slices_here(array)
    if not here:
        return False
    every = shard_slices(array._sharding, tuple(array.aval.shape))
    return len(set(map(_slice_starts, here))) == len(set(map(_slice_starts, every)))


def _slices_here(array: Array) -> list[tuple[slice, ...]]:
    """Which part of an array each of its devices in this process holds."""
    devices = _all_devices(array)
    here = set(devices.addressable_device_list)
    return [index for d, index in zip(
        devices, shard_slices(array._sharding, tuple(array.aval.shape)), strict=True) if d in here]


def _slice_starts(index: tuple[slice, ...]) -> tuple[int | None, ...]:
    return tuple([s.start for s in index])


def _shard_shape(shape: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(-(-size // count) for size, count in zip(shape, counts, strict=True))


def tile_counts(hlo_sharding: Any, ndim: int) -> list[int]:
    """Return into how many pieces each axis is cut."""
    if hlo_sharding.is_replicated():
        return [1] * ndim
    return list(hlo_sharding.tile_assignment_dimensions()[:ndim])


def tiled_sharding(counts: Sequence[int], mesh: Sequence[int], order: Sequence[int]) -> object:
    """Return the HloSharding that cuts axis i into `counts[i]` parts over an array of devices.

    `mesh` is the shape of that array, whose axes are taken in `order`: those that cut the first
    axis first, those that hold copies last.
    """
    copies = int(np.prod(mesh, dtype=int)) // int(np.prod(counts, dtype=int))
    if all(count == 1 for count in counts):
        return HloSharding.replicate()
    dims = [*counts, copies] if copies > 1 else list(counts)
    kinds = [xla_client.OpSharding.Type.REPLICATED] if copies > 1 else []
    return HloSharding.iota_tile(dims, list(mesh), list(order), kinds)


@functools.lru_cache(maxsize=1024)
def shard_slices(sharding: Any, shape: tuple[int, ...]) -> tuple[tuple[slice, ...], ...]:
    """Return which part of an array of `shape` each device of `sharding` holds, in device order."""
    count = len(sharding._internal_device_list)
    hlo_sharding = sharding._to_xla_hlo_sharding(len(shape))
    if hlo_sharding.is_replicated() or not shape:
        return (tuple(slice(0, size) for size in shape),) * count
    dims = hlo_sharding.tile_assignment_dimensions()
    order = np.asarray(hlo_sharding.tile_assignment_devices())
    tiles = np.empty((len(shape), count), int)
    tiles[:, order] = np.unravel_index(np.arange(count), dims)[: len(shape)]
    columns = []
    for size, parts, row in zip(shape, dims, tiles.tolist(), strict=False):
        part = -(-size // parts)
        cuts = [slice(min(i * part, size), min((i + 1) * part, size)) for i in range(parts)]
        columns.append([cuts[i] for i in row])
    return tuple(zip(*columns, strict=True))


def same_tiles(one: Any, two: Any, ndim: int) -> bool:
    """Whether two HloShardings cut arrays of `ndim` axes into the same parts in the same order."""
    if one.is_replicated() or two.is_replicated():
        return one.is_replicated() and two.is_replicated()
    return one == two or (
        tile_counts(one, ndim) == tile_counts(two, ndim)
        and _tiles_of_devices(one, ndim) == _tiles_of_devices(two, ndim)
    )


def _tiles_of_devices(tiling: Any, ndim: int) -> list[int]:
    dims = tiling.tile_assignment_dimensions()
    copies = int(np.prod(dims[ndim:], dtype=int))
    order = np.asarray(tiling.tile_assignment_devices())
    tiles = np.empty(len(order), int)
    tiles[order] = np.arange(len(order)) // copies
    return tiles.tolist()


def shards(array: Array, aval: AvalLike | None = None) -> list[Array]:
    """Return the parts of `array`, one per addressable device; `aval`, if given, is each part's."""
    if type(array._sharding) is SingleDeviceSharding:
        device = array._sharding._device
        return [array] if device.process_index == device.client.process_index() else []
    if aval is None:
        whole = array.aval
        hlo_sharding = array._sharding._to_xla_hlo_sharding(len(whole.shape))
        counts = tile_counts(hlo_sharding, len(whole.shape))
        aval = ShardAval(_shard_shape(whole.shape, counts), whole.dtype, whole.weak_type)
    with no_jax():
        parts = list(array._arrays)
    kind = array._sharding._memory_kind
    return [
        rewrap(part, aval, single_device_sharding(device, kind))
        for part, device in zip(parts, _devices(array), strict=True)
    ]


def check_alive(operation: str, array: Array) -> None:
    """Raise where C++ of some versions would crash: on the missing buffer of a deleted array."""
    if array.is_deleted():
        raise RuntimeError(
            f"{operation}: Array has been deleted with shape={array.aval}. By delete() or as a "
            "donated argument of a call; its value is gone; keep a copy, or do not donate it."
        )


def _single_to_numpy(array: Any) -> np.ndarray:
    if array.aval.dtype.isbuiltin == 1 and _platform(array) == "cpu":
        try:
            # The buffer protocol shares memory and meets no guard; it knows NumPy's own dtypes.
            return np.asarray(memoryview(array))
        except BufferError:  # another layout than by rows
            pass
    with no_jax():
        return array._single_device_array_to_np_array_did_copy()[0]


def _assemble_numpy(array: Array) -> np.ndarray:
    aval, sharding = array.aval, array._sharding
    if sharding._to_xla_hlo_sharding(len(aval.shape)).is_replicated():
        with no_jax():
            return array._single_device_array_to_np_array_did_copy()[0]
    parts = _parts_to_numpy(array)
    whole = np.empty(aval.shape, aval.dtype)
    for index, part in zip(_slices_here(array), parts, strict=True):
        whole[index] = part
    whole.flags.writeable = False
    return whole


def _parts_to_numpy(array: Array) -> list[np.ndarray]:
    if array.aval.dtype.isbuiltin == 1 and _platform(array) == "cpu":
        try:
            with no_jax():
                return [np.asarray(memoryview(part)) for part in array._arrays]
        except BufferError:  # another layout than by rows
            pass
    return list(map(_single_to_numpy, shards(array)))


def to_numpy(array: Array) -> np.ndarray:
    """Wait for `array` and return its value, read-only, sharing memory where that is possible."""
    try:
        return _to_numpy(array)
    except (_jax.JaxRuntimeError, BufferError, ValueError) as error:
        raise raised_by_host(error) from None


def _to_numpy(array: Array) -> np.ndarray:
    check_alive("to_numpy", array)
    single = type(array._sharding) is SingleDeviceSharding
    if not single and not is_readable(array):
        devices, local = len(_all_devices(array)), len(_devices(array))
        raise RuntimeError(
            "to_numpy: Fetching value for `olympus.Array` that spans non-addressable (non process "
            f"local) devices is not possible: of shape {tuple(array.aval.shape)}, on {devices} "
            f"devices, {local} of them here; "
            "gather it with experimental.multihost_utils.process_allgather, or read the parts that "
            "are here: x.addressable_shards."
        )
    if not _is_ready(array):
        block_until_ready([array])
    if _READS_ALL_TO_NUMPY:
        return array._to_np_array_did_copy()[0]
    cached = array._npy_value
    if cached is None:
        cached = _single_to_numpy(array) if single else _assemble_numpy(array)
        cached.flags.writeable = False
        if cached.base is None:     # else it refers to `array`: a cycle that is never collected
            array._npy_value = cached
    return cached


def copy_to_host_async(array: Array) -> None:
    """Start copying `array` to the host; `to_numpy` waits for it."""
    check_alive("copy_to_host_async", array)
    if _COPIES_BATCHES_TO_HOST:
        _jax.batched_copy_to_host_async([array])
        return
    for part in shards(array):
        with no_jax():
            part._copy_single_device_array_to_host_async()


def copy_to_device(array: Array, device: Device, *, copy: bool = False, kind: str | None = None
                   ) -> Array:
    """Return `array` on `device`, committed, in its default memory or one of a kind.

    One already there is shared unless `copy`.
    """
    check_alive("copy_to_device", array)
    semantics = _ALWAYS_COPY if copy else _REUSE
    devices = DeviceList((device,))
    sharding = single_device_sharding(device, kind)
    if is_absent(device):
        raise _absent()
    return _jax.batched_copy_array_to_devices_with_sharding(
        [array], [devices], [sharding], [semantics]
    )[0]


def copied(array: Array, sharding: Any = None) -> Array:
    """Return a copy of an array on its devices, under a sharding that differs in memory at most."""
    check_alive("copied", array)
    own = array._sharding
    single = type(own) is SingleDeviceSharding
    devices = DeviceList((own._device,)) if single else own._internal_device_list
    if not devices.is_fully_addressable:    # C++ copies an array that is wholly here
        wanted = own if sharding is None else sharding
        return make_array(array.aval, wanted, [
            copy_to_device(part, part._sharding._device, copy=True, kind=wanted.memory_kind)
            for part in shards(array)], array._committed)
    return _jax.batched_copy_array_to_devices_with_sharding(
        [array], [devices], [own if sharding is None else sharding], [_ALWAYS_COPY])[0]


def block_until_ready(arrays: Sequence[Array]) -> None:
    """Wait until all of `arrays` hold their values; errors of their computation are raised here."""
    try:
        if all(x.is_deleted() or _is_ready(x) for x in arrays):
            _jax.batched_block_until_ready(list(arrays))
        else:
            interruptible(lambda: _jax.batched_block_until_ready(list(arrays)))
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise raised_by_host(error) from None


def unready(arrays: Iterable[object]) -> list[Array]:
    """Return the arrays among some objects whose elements are not computed yet."""
    return [x for x in arrays if type(x) is ArrayImpl and not x.is_deleted() and not _is_ready(x)]


def wait_for(tokens: Sequence[Any]) -> None:
    """Wait until the programs of the tokens have ended; their errors are raised here."""
    for token in tokens:
        try:
            interruptible(token.block_until_ready)
        except _jax.JaxRuntimeError as error:
            raise raised_by_host(error) from None


def unsafe_buffer_pointer(array: object) -> int:
    """Return the address of a single-device array's data."""
    with no_jax():
        return _buffer_pointer(array)


