"""`Array`: jaxlib's C++ array class, given its attributes, conversions and text here.

Operators and NumPy methods come from `numpy.array_methods`. Everything here is at the level of one
device array: making one from NumPy, reading it back, printing it.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..base import errors, lib
from ..base.config import remove_size_one_mesh_axis_from_type
from ..base.source import filter_traceback
from ..base.typing import Array, Device, DTypeLike, T
from ..base.util import lazy_imports, memoize, short_number
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import (
    ShapedArray, ShapeDtypeStruct, check_index, check_scalar, check_truth, make_aval,
)
from ..types.layout import Format, Layout, demanded_layout
from ..types.sharding import NamedSharding, Sharding, check_reduced, replica_ids, unreduced
from ..types.tree_registry import dispatch_registry, register_dispatch_node
from . import devices, exchange

with lazy_imports(__name__):
    from ..base import markup as _markup
    from ..types import pictures as _pictures

ArrayImpl = lib.ArrayImpl


def array_from_numpy(value: np.ndarray, weak_type: bool = False, device: Device | None = None,
                     copy: bool = True, narrow: bool = True) -> Any:
    """Put a NumPy array on a device; its dtype is narrowed if x64 is off. float0 stays NumPy's.

    Args:
      value: a NumPy array or scalar of any supported dtype.
      weak_type: whether the result's dtype is weak.
      device: where to put it (then the array is committed there); the default device if None.
      copy: whether later writes to `value` must not show.
      narrow: False for operands of the library's own, such as indices of an axis beyond int32.
    """
    value = np.asarray(value)
    if dtypes.is_float0(value.dtype):
        return value        # no device has any
    dtype = dtypes.canonicalize_dtype(value.dtype) if narrow else value.dtype
    if dtype != value.dtype:
        # The conversion has made a copy, which nobody else refers to.
        value, copy = value.astype(dtype), False
    target = devices.default_device() if device is None else device
    aval = make_aval(value.shape, dtype, weak_type)
    return _with_room(value, target, lambda: lib.device_put(
        aval, value, target, committed=device is not None, copy=copy))


def _with_room(value: np.ndarray, target: object, put: Callable[[], T]) -> T:
    """The result of `put`; our error if there is no memory for it."""
    try:
        return put()
    except (lib.XlaRuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise errors.OlympusRuntimeError(
            f"array: {value.nbytes} bytes given; RESOURCE_EXHAUSTED: they do not fit on {target}; "
            "a smaller array is required.") from None


class Parts(NamedTuple):
    """How an array is cut: its type, and what each device of this process holds of it."""

    aval: ShapedArray
    indices: list[tuple[Any, ...]]
    devices: list[Device]
    copies: bool        # whether some devices here hold the same part, and not all anywhere


def parts_of(aval: ShapedArray, sharding: Sharding) -> Parts:
    """How an array of a type is cut by a sharding; ValueError if it cannot be.

    An index ends in an ellipsis, so that an element of an array is an array.
    """
    return _parts_of(aval, sharding, remove_size_one_mesh_axis_from_type.value)


@memoize(1024)
def _parts_of(aval: ShapedArray, sharding: Sharding, larger: bool) -> Parts:
    """`parts_of`; the array's type depends on `larger`, the option that types name no axes of size
    1."""
    if type(sharding) is NamedSharding:
        sharding.check_compatible_aval(aval.shape)
        if unreduced(sharding):
            raise ValueError(f"{sharding} given for an array that is put on devices; they hold "
                             "parts or copies of it then, and no terms of a sum; put it there "
                             "without unreduced, and use olympus.reshard.")
    listed = sharding._internal_device_list
    own = list(listed.addressable_device_list)
    slices = dict(zip(listed, lib.shard_slices(sharding, aval.shape), strict=True))
    indices = [(*slices[d], ...) for d in own]
    different = {tuple([s.start for s in index[:-1]]) for index in indices}
    copies = not aval.size or len(different) < len(own) and not sharding.is_fully_replicated
    return Parts(aval.at(sharding), indices, own, copies)


def put_numpy(value: np.ndarray, sharding: Sharding, weak_type: bool = False) -> Array:
    """A NumPy array cut as a sharding says, on its devices; its dtype is narrowed if x64 is off."""
    dtype = dtypes.canonicalize_dtype(value.dtype)
    if dtype != value.dtype:
        value = value.astype(dtype)
    aval, indices, where, copies = parts_of(make_aval(value.shape, dtype, weak_type), sharding)
    if copies:      # C++ fails to copy one part for several devices, and shares this with nobody
        value = value.copy()
    return _with_room(value, sharding, lambda: lib.device_put_parts(
        aval, [value[index] for index in indices], sharding, where, copy=not copies))


def put_array(x: Array, sharding: Sharding) -> Array:
    """An array on one device, as an argument of a program of several devices.

    A replicated array shares its memory, and donating the result gives up both.
    """
    if sharding.is_fully_replicated and x._sharding.num_devices == 1 and (
            x._sharding._memory_kind == sharding._memory_kind):
        aval, _, where, _ = parts_of(x.aval, sharding)
        if len(where) == sharding.num_devices:
            return lib.device_put_parts(aval, [x] * len(where), sharding, where, copy=False)
    return put_numpy(numpy_value(x), sharding, x.aval.weak_type)


def share_numpy(name: str, value: np.ndarray, device: Device | None = None) -> Array:
    """A NumPy array's memory as an array, or ValueError where that would take a copy."""
    shared = array_from_numpy(value, False, device, copy=False)
    if value.size and (shared.dtype != value.dtype
                       or lib.unsafe_buffer_pointer(shared) != value.ctypes.data):
        if shared.dtype != value.dtype:
            why = "64-bit dtypes become narrower unless x64 is on"
        elif not value.flags.c_contiguous:
            why = "only row-major data is shared"
        else:
            why = "only data at addresses that are multiples of 64, in a CPU's memory, is shared"
        raise ValueError(f"{name}: an array of dtype {value.dtype}, shape {value.shape}, strides "
                         f"{value.strides} at {value.ctypes.data:#x} and copy=False given; {why}; "
                         "leave copy unset.")
    return shared


WRAPPERS: set[type] = set()     # classes of values that wrap an array: keys, tokens


def register_wrapper(kind: type) -> None:
    """Let compiled calls take values of a class that has `dtype` and wraps a `_base_array`."""
    WRAPPERS.add(kind)
    register_dispatch_node(kind, lambda x: ((x._base_array,), x.dtype),
                           lambda dtype, arrays: dtype.wrap(arrays[0]))


# The NumPy arrays of a call are copied before it returns: the user may write into them while the
# program waits for its other arguments. C++ shares memory at multiples of 64 instead, and from
# 100 KiB on copies in a thread of its own. So it sees a copy of each small array, which costs 1 us
# in a call of 7, and has `shard_fallback` place the large ones, which takes 4 us and less CPU time
# than C++'s own way: 3,800 us for 6,800 in a sum of two arrays of 12 MB.
_LARGE = 16 << 10       # bytes
_COPIED = frozenset((np.ndarray, np.memmap, np.matrix, np.recarray))


class _Entering(np.ndarray):
    """A NumPy array as C++ sees it in a call; its class is no node."""


def _entering(x: np.ndarray) -> tuple[tuple[np.ndarray], None]:
    return ((x if x.nbytes >= _LARGE else x.copy()).view(_Entering),), None


for _kind in _COPIED:
    register_dispatch_node(_kind, _entering, lambda _, children: children[0])


def copied_by_us(arguments: Sequence[object]) -> list[bool] | None:
    """Which arguments of a call `shard_fallback` has to place; None if C++ may not make the call.

    C++ would share the memory of a subclass of NumPy's array, which is no node: users may make it
    one.
    """
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    if not set(map(type, arrays)) <= _COPIED:
        return None
    return [isinstance(x, np.ndarray) and x.nbytes >= _LARGE for x in arguments]


def placed_copy(x: np.ndarray, device: Device) -> Any:
    """A NumPy array of a call on a device; the memory of one of our own arrays is shared."""
    view: Any = x.base if type(x) is _Entering else x
    own = type(view.base) is memoryview and type(view.base.obj) is ArrayImpl
    return array_from_numpy(x, device=device, copy=not own)


def refuse_masked_arrays() -> None:
    """Let cached calls refuse NumPy's masked arrays, once there may be some.

    C++ takes what derives from `numpy.ndarray` for one. But it looks the exact class up among the
    nodes first, and the error of a node's function is the call's.
    """
    kind = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if kind is not None and not dispatch_registry.is_node(kind):
        register_dispatch_node(kind, typeof, lambda data, children: children)


def stored(x: Any) -> Any:
    """The array that a device holds for an array, key or token; bools for float0."""
    if type(x) in WRAPPERS:
        return x._base_array
    if isinstance(x, np.ndarray) and dtypes.is_float0(x.dtype):
        return array_from_numpy(np.zeros(x.shape, np.bool_))
    return x


def layout_of(x: Any) -> str | None:
    """How an argument lies in memory, as XLA writes it; None for by rows, as nearly all do."""
    if type(x) is not ArrayImpl:
        x = stored(x)
        if type(x) is ShapeDtypeStruct:
            return demanded_layout(x.layout)
    if type(x) is not ArrayImpl or x.aval.ndim < 2 or x.is_deleted():
        return None
    order = lib.layout_order(x)
    if order == (*range(len(order)),):
        return None
    return Layout.from_pjrt_layout(lib.array_layout(x)).text()


def numpy_value(self: Array) -> np.ndarray:
    """The elements as a read-only NumPy array; waits for them."""
    if self.aval.tagged:
        check_reduced("an array's value", self._sharding)
    return lib.to_numpy(self)


def _format(self: Array) -> str:
    dtype = self.aval.dtype
    name = dtypes.long_name(dtype)
    weak = ", weak_type=True" if self.aval.weak_type else ""
    if self.is_deleted():
        return f"Array(shape={self.aval.shape}, dtype={name}{weak}) with deleted buffer"
    if not lib.is_readable(self):
        return f"Array(shape={self.aval.shape}, dtype={name}{weak})"
    if unreduced(self._sharding):
        return f"Array(shape={self.aval.shape}, dtype={name}{weak}, sharding={self._sharding})"
    value, prefix = numpy_value(self), "Array("
    # Breaks and blanks are JAX's: the dtype stays on the last line, further off if it sticks out.
    text = (np.array2string(value, separator=", ", prefix=prefix, suffix=",") if value.size
            else f"[], shape={self.aval.shape}")
    suffix = f"dtype={name}{weak})"
    last = len(text) - text.rfind("\n") + 1
    gap = " " * (len(prefix) if last + len(suffix) + 1 > np.get_printoptions()["linewidth"] else 1)
    return f"{prefix}{text},{gap}{suffix}"


def _text(self: Array) -> str:
    return str(numpy_value(self)) if _is_printable(self) else _format(self)


def _html(self: Array) -> str:
    """For notebooks: where the array is, above what `repr` says."""
    if self.is_deleted():
        return _markup.preformatted(_format(self))
    sharding, owners = self._sharding, _devices(self)
    where = next(iter(owners)) if len(owners) == 1 else f"{len(owners)} devices"
    title = f"{self.aval}, {short_number(self.nbytes, 'B')} on {where}"
    picture = "" if len(owners) == 1 or unreduced(sharding) else (
        _pictures.sharding_html(str(sharding), self.aval.shape, sharding))
    return (f'<div style="{_markup.PAPER}"><code>{_markup.escape(title)}</code>{picture}'
            f"{_markup.preformatted(_format(self))}</div>")


def _is_printable(self: Array) -> bool:
    # Parts on other processes' devices cannot be shown, nor parts of a sum.
    return lib.is_readable(self) and not unreduced(self._sharding)


def _to_array(self: Array, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
    value = numpy_value(self)
    if dtype is not None and np.dtype(dtype) != value.dtype:
        if copy is False:
            raise ValueError("numpy.asarray: copy=False and another dtype given; a conversion "
                             "copies; leave copy unset.")
        return value.astype(dtype)
    return value.copy() if copy else value


def _number_method(kind: Callable[[Any], Any], check: Callable[[ShapedArray], None]) -> Any:
    """The method that makes a Python number of an array whose type passes the check."""
    def method(self: Array) -> Any:
        try:
            check(self.aval)
            return kind(numpy_value(self).reshape(())[()])
        except Exception as error:
            filter_traceback(error)
            raise
    return method


def _check_real(what: str, aval: ShapedArray) -> None:
    if dtypes.is_complex(aval.dtype):
        raise TypeError(f"{what}(): {aval} given; a real number is required; use x.real or "
                        "abs(x).")
    check_scalar(what, aval)


def _item(self: Array, *args: Any) -> object:
    """An element as a Python number; waits for it.

    Args:
      args: none, for an array of one element; a place in row-major order; or an index per axis.

    Returns:
      A bool, int, float or complex.

    >>> import olympus.numpy as onp
    >>> onp.array([[1, 2], [3, 4]]).item(1, 0)
    3
    """
    try:
        return numpy_value(self).item(*args)
    except Exception as error:
        filter_traceback(error)
        raise


def _len(self: Array) -> int:
    try:
        if not self.aval.shape:
            raise TypeError(f"len(): {self.aval} given; len() of unsized object; an axis is "
                            "required; use x.size, or x[None].")
        return self.aval.shape[0]
    except TypeError as error:
        filter_traceback(error)
        raise


def _devices(self: Array) -> set[Device]:
    """The devices that hold the array.

    >>> import olympus.numpy as onp
    >>> len(onp.ones(2).devices())
    1
    """
    sharding = self._sharding
    if type(sharding) is lib.SingleDeviceSharding:
        return {sharding._device}
    return set(sharding._internal_device_list)


def _device(self: Array) -> Device | Sharding:
    devices = _devices(self)
    return next(iter(devices)) if len(devices) == 1 else self._sharding


class Shard:
    """One device's part of an array.

    Args:
      device: the device.
      sharding, global_shape: of the whole array.
      data: the part, an array of one device.

    >>> import olympus
    >>> x = olympus.numpy.arange(3)
    >>> x.addressable_shards[0].data
    Array([0, 1, 2], dtype=int32)
    """

    __slots__ = ("device", "_sharding", "_shape", "data")

    def __init__(self, device: Device, sharding: Sharding, global_shape: tuple[int, ...],
                 data: Array | None = None) -> None:
        self.device, self._sharding, self._shape = device, sharding, global_shape
        self.data = data

    @property
    def index(self) -> tuple[slice, ...]:
        """Which part of the whole array it is."""
        return self._sharding.devices_indices_map(self._shape)[self.device]

    @property
    def replica_id(self) -> int:
        """How many devices before this one hold the same part."""
        return replica_ids(self._sharding, self._shape)[self.device]

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
                f"data={self.data})")


def _shards(self: Array) -> list[Shard]:
    """The parts on the devices of this process."""
    lib.check_alive("addressable_shards", self)
    shards = self.__dict__.get("_shards")
    if shards is None:
        whole, sharding = self.aval, self._sharding
        shards = [Shard(part.device, sharding, whole.shape, part) for part in lib.shards(
            self, whole.update(shape=sharding.shard_shape(whole.shape)))]
        if len(shards) > 1:      # the only part is the array itself: a cycle
            self.__dict__["_shards"] = shards
    return list(shards)


def _global_shards(self: Array) -> list[Shard]:
    """The parts on all devices, without data where another process has it."""
    here = {shard.device: shard for shard in _shards(self)}
    return [here.get(d) or Shard(d, self._sharding, self.aval.shape)
            for d in self._sharding.devices_indices_map(self.aval.shape)]


def _unpickle(value: np.ndarray, weak_type: bool) -> object:
    return array_from_numpy(value, weak_type)


# C++'s own methods, taken before `_install_methods` puts ours in their places.
_wait: Callable[[Any], Array] = ArrayImpl.block_until_ready
_is_ready: Callable[[Any], bool] = ArrayImpl.is_ready


def _block_until_ready(self: Array) -> Array:
    """Wait until the elements are computed.

    Returns:
      The array itself.
    """
    try:
        if self.is_deleted() or _is_ready(self):
            return _wait(self)
        return lib.interruptible(functools.partial(_wait, self))
    except (lib.XlaRuntimeError, ValueError) as error:
        raise lib.raised_by_host(error) from None


def _layout_and_sharding(self: Array) -> Format:
    lib.check_alive("format", self)
    return Format(Layout.from_pjrt_layout(lib.array_layout(self)), self._sharding)


def _guarded(name: str) -> Callable[[Array], object]:
    """A method of C++'s that ends the process if the array was deleted, and here raises."""
    own = getattr(ArrayImpl, name)

    def method(self: Array) -> object:
        lib.check_alive(name, self)
        return own(self)

    method.__name__, method.__doc__ = name, own.__doc__
    return method


def _removed(name: str, instead: str) -> Callable[[Array], NoReturn]:
    """A property's getter that raises where old programs of JAX ask for `name`."""
    def getter(self: Array) -> NoReturn:
        raise AttributeError(f"{name}: removed from arrays, here as in JAX; use {instead}.")

    return getter


# Results of compiled calls are instances of C++'s class itself, so methods are set on that: there
# is no subclass to put them in.
METHODS: dict[str, Callable[..., Any]] = {
    "__array__": _to_array, "__bool__": _number_method(bool, check_truth),
    "__int__": _number_method(int, functools.partial(_check_real, "int")),
    "__float__": _number_method(float, functools.partial(_check_real, "float")),
    "__complex__": _number_method(complex, functools.partial(check_scalar, "complex")),
    "__index__": _number_method(int, check_index), "__len__": _len, "__repr__": _format,
    "__str__": _text, "_repr_html_": _html,
    "__format__": lambda self, spec: (
        format(_text(self), spec) if not _is_printable(self) else
        format(numpy_value(self) if self.aval.ndim else numpy_value(self)[()], spec)),
    "__reduce__": lambda self: (_unpickle, (numpy_value(self), self.aval.weak_type)),
    "item": _item, "tolist": lambda self: numpy_value(self).tolist(),
    "tobytes": lambda self, order=None: numpy_value(self).tobytes(order),
    "block_until_ready": _block_until_ready, "devices": _devices,
    **{name: _guarded(name) for name in ("clone", "is_ready", "platform")},
    "copy_to_host_async": lib.copy_to_host_async,
    "addressable_data": lambda self, index: _shards(self)[index].data,
    "__dlpack__": exchange.dlpack, "__dlpack_device__": exchange.dlpack_device,
}
PROPERTIES: dict[str, Any] = {
    "shape": operator.attrgetter("aval.shape"), "dtype": operator.attrgetter("aval.dtype"),
    "ndim": operator.attrgetter("aval.ndim"), "size": operator.attrgetter("aval.size"),
    "weak_type": operator.attrgetter("aval.weak_type"), "_value": numpy_value,
    "sharding": operator.attrgetter("_sharding"), "device": _device,
    "format": _layout_and_sharding,
    "committed": operator.attrgetter("_committed"),
    "itemsize": operator.attrgetter("aval.dtype.itemsize"),
    "nbytes": lambda self: self.aval.size * self.aval.dtype.itemsize,
    "is_fully_addressable": operator.attrgetter("_sharding.is_fully_addressable"),
    "is_fully_replicated": operator.attrgetter("_sharding.is_fully_replicated"),
    "addressable_shards": _shards, "global_shards": _global_shards,
    "device_buffer": _removed("device_buffer", "x.addressable_data(0)"),
    "device_buffers": _removed("device_buffers", "[s.data for s in x.addressable_shards]"),
}


def _install_methods() -> None:
    for name, method in METHODS.items():
        setattr(ArrayImpl, name, method)
    for name, getter in PROPERTIES.items():
        setattr(ArrayImpl, name, property(getter))
    ArrayImpl.__array_priority__ = 100
    ArrayImpl.__hash__ = None       # as == is elementwise; `collections.abc.Hashable` says so
    Array.__module__ = "olympus"


_install_methods()
