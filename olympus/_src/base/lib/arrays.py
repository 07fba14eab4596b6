"""Device arrays at the level of C++: put, read, assemble, take apart, copy, exchange.

Avals here are any objects with `shape`, `dtype` and `weak_type`; C++ reads nothing else of them.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from olympus._src.base.lib.host import raised_by_host
from olympus._src.base.lib.loading import _jax, no_jax, xla_client

Array: Any = _jax.Array
ArrayImpl: Any = _jax.ArrayImpl
Device: Any = _jax.Device
DeviceList: Any = _jax.DeviceList
Sharding: Any = _jax.Sharding
SingleDeviceSharding: Any = _jax.SingleDeviceSharding
GSPMDSharding: Any = _jax.GSPMDSharding
HloSharding: Any = xla_client.HloSharding

_ZERO_COPY = _jax.HostBufferSemantics.ZERO_COPY
_COPY_NOW = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_REUSE = _jax.ArrayCopySemantics.REUSE_INPUT
# C++'s own, before `backend.array` puts the guarded ones over them.
_buffer_pointer, _platform = ArrayImpl.unsafe_buffer_pointer, ArrayImpl.platform
_ALWAYS_COPY = _jax.ArrayCopySemantics.ALWAYS_COPY
# What this jaxlib can do; see the feature tests' reasons where they are used.
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
    """What C++ reads of an aval."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def weak_type(self) -> bool: ...


class ShardAval(NamedTuple):
    """The least aval that C++ accepts."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool = False


@functools.lru_cache(maxsize=4096)
def single_device_sharding(device: Any, memory_kind: str | None = None) -> Any:
    """Return the one SingleDeviceSharding of `device`, in its default memory if None."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def device_put(
    aval: AvalLike, value: Any, device: Any, *, committed: bool = True, copy: bool = True
) -> Any:
    """Put a NumPy array or an array of one device on `device` and return the new array.

    The dtype of `value` must be the aval's: C++ keeps the one it finds. With `copy`, later writes
    to a NumPy `value` do not show; without, the array may share its memory (aligned data on CPU).
    """
    semantics = _COPY_NOW if copy else _ZERO_COPY
    force = copy and type(value) is ArrayImpl
    # enable_x64=True: keep 64-bit values as they are; narrowing is decided above the seam.
    return _jax.batched_device_put(
        aval, single_device_sharding(device), [value], [device], committed, force, semantics, True
    )


def device_put_parts(
    aval: AvalLike, value: np.ndarray[Any, Any], sharding: Any, *, copy: bool = True
) -> Any:
    """Cut a NumPy array as `sharding` says and put the parts on its devices, committed."""
    parts = [value[index] for index in shard_slices(sharding, value.shape)]
    devices = sharding._internal_device_list
    placed = [
        device_put(ShardAval(part.shape, part.dtype, aval.weak_type), part, device, copy=copy)
        for part, device in zip(parts, devices, strict=True)
    ]
    kind = sharding._memory_kind
    if kind is not None and kind != devices[0].default_memory().kind:
        placed = [copied(part, single_device_sharding(device, kind))
                  for part, device in zip(placed, devices, strict=True)]
    return make_array(aval, sharding, placed)


def make_array(aval: AvalLike, sharding: Any, shards: Sequence[Any], committed: bool = True) -> Any:
    """Assemble one array from its single-device shards, in the order of the sharding's devices."""
    return ArrayImpl(aval, sharding, list(shards), committed=committed, _skip_checks=True)


def result_handler(aval: AvalLike, sharding: Any, committed: bool = True) -> Any:
    """Return the C++ object that wraps one output of an executable as an array."""
    return _jax.array_result_handler(aval, sharding, committed, **_HANDLER_KEYWORDS)


def rewrap(array: Any, aval: AvalLike, sharding: Any) -> Any:
    """Return `array`'s buffers under another aval and sharding, without a copy."""
    return array._rewrap_with_aval_and_sharding(aval, sharding)


def _devices(array: Any) -> list[Any]:
    """Return the addressable devices of an array, in the order of its shards."""
    sharding = array._sharding
    if type(sharding) is SingleDeviceSharding:
        return [sharding._device]
    return list(sharding._internal_device_list.addressable_device_list)


def _shard_shape(shape: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(-(-size // count) for size, count in zip(shape, counts, strict=True))


def tile_counts(hlo_sharding: Any, ndim: int) -> list[int]:
    """Return into how many pieces each axis is cut."""
    if hlo_sharding.is_replicated():
        return [1] * ndim
    return list(hlo_sharding.tile_assignment_dimensions()[:ndim])


def tiled_sharding(counts: Sequence[int], mesh: Sequence[int], order: Sequence[int]) -> Any:
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


def shard_slices(sharding: Any, shape: Sequence[int]) -> list[tuple[slice, ...]]:
    """Return which part of an array of `shape` each device of `sharding` holds, in device order."""
    count = len(sharding._internal_device_list)
    hlo_sharding = sharding._to_xla_hlo_sharding(len(shape))
    if hlo_sharding.is_replicated():
        return [tuple(slice(0, size) for size in shape)] * count
    dims = hlo_sharding.tile_assignment_dimensions()
    local = _shard_shape(shape, dims[: len(shape)])
    slices: list[tuple[slice, ...]] = [()] * count
    for position, device in enumerate(hlo_sharding.tile_assignment_devices()):
        coordinates = np.unravel_index(position, dims)[: len(shape)]
        slices[device] = tuple(
            slice(min(int(c) * n, size), min((int(c) + 1) * n, size))
            for c, n, size in zip(coordinates, local, shape, strict=True)
        )
    return slices


def shards(array: Any, aval: AvalLike | None = None) -> list[Any]:
    """Return the parts of `array`, one per addressable device; `aval`, if given, is each part's."""
    if type(array._sharding) is SingleDeviceSharding:
        return [array]
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


def check_alive(operation: str, array: Any) -> None:
    """Raise where C++ of some versions would crash: on the missing buffer of a deleted array."""
    if array.is_deleted():
        raise RuntimeError(
            f"{operation}: the array was deleted, by delete() or as a donated argument of a call; "
            "its value is gone; keep a copy, or do not donate it."
        )


def _single_to_numpy(array: Any) -> np.ndarray[Any, Any]:
    if array.aval.dtype.isbuiltin == 1 and _platform(array) == "cpu":
        # The buffer protocol shares memory and meets no guard; it knows NumPy's own dtypes only.
        return np.asarray(memoryview(array))
    with no_jax():
        return array._single_device_array_to_np_array_did_copy()[0]


def _assemble_numpy(array: Any) -> np.ndarray[Any, Any]:
    aval, sharding = array.aval, array._sharding
    parts = shards(array)
    if sharding._to_xla_hlo_sharding(len(aval.shape)).is_replicated():
        return _single_to_numpy(parts[0])
    if len(parts) != len(sharding._internal_device_list):
        raise RuntimeError(
            f"to_numpy: the array spans {len(sharding._internal_device_list)} devices of which "
            f"this process sees {len(parts)}; gather it first."
        )
    whole = np.empty(aval.shape, aval.dtype)
    for index, part in zip(shard_slices(sharding, aval.shape), parts, strict=True):
        whole[index] = _single_to_numpy(part)
    whole.flags.writeable = False
    return whole


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """Wait for `array` and return its value, read-only, sharing memory where that is possible."""
    try:
        return _to_numpy(array)
    except _jax.JaxRuntimeError as error:
        raise raised_by_host(error) from None


def _to_numpy(array: Any) -> np.ndarray[Any, Any]:
    check_alive("to_numpy", array)
    if _READS_ALL_TO_NUMPY:
        return array._to_np_array_did_copy()[0]
    cached = array._npy_value
    if cached is None:
        single = type(array._sharding) is SingleDeviceSharding
        cached = _single_to_numpy(array) if single else _assemble_numpy(array)
        cached.flags.writeable = False
        if cached.base is None:     # else it refers to `array`: a cycle that is never collected
            array._npy_value = cached
    return cached


def copy_to_host_async(array: Any) -> None:
    """Start copying `array` to the host; `to_numpy` waits for it."""
    if _COPIES_BATCHES_TO_HOST:
        _jax.batched_copy_to_host_async([array])
        return
    for part in shards(array):
        with no_jax():
            part._copy_single_device_array_to_host_async()


def copy_to_device(array: Any, device: Any, *, copy: bool = False) -> Any:
    """Return `array` on `device`, committed; one already there is shared unless `copy`."""
    check_alive("copy_to_device", array)
    semantics = _ALWAYS_COPY if copy else _REUSE
    devices = DeviceList((device,))
    sharding = single_device_sharding(device)
    return _jax.batched_copy_array_to_devices_with_sharding(
        [array], [devices], [sharding], [semantics]
    )[0]


def copied(array: Any, sharding: Any = None) -> Any:
    """Return a copy of an array on its devices, under a sharding that differs in memory at most."""
    check_alive("copied", array)
    kept = array._sharding
    single = type(kept) is SingleDeviceSharding
    devices = DeviceList((kept._device,)) if single else kept._internal_device_list
    return _jax.batched_copy_array_to_devices_with_sharding(
        [array], [devices], [kept if sharding is None else sharding], [_ALWAYS_COPY])[0]


def block_until_ready(arrays: Sequence[Any]) -> None:
    """Wait until all of `arrays` hold their values; errors of their computation are raised here."""
    try:
        _jax.batched_block_until_ready(list(arrays))
    except _jax.JaxRuntimeError as error:
        raise raised_by_host(error) from None


def wait_for(tokens: Sequence[Any]) -> None:
    """Wait until the programs of the tokens have ended; their errors are raised here."""
    for token in tokens:
        try:
            token.block_until_ready()
        except _jax.JaxRuntimeError as error:
            raise raised_by_host(error) from None


def unsafe_buffer_pointer(array: Any) -> int:
    """Return the address of a single-device array's data."""
    with no_jax():
        return _buffer_pointer(array)


