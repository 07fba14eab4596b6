"""Arrays from Python data and from shapes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..arrays.device import device_put
from ..base import lib
from ..base.docstrings import complete_docstrings, described_like
from ..base.source import api_boundary
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike, Device, DType, DTypeLike, DuckTypedArray, PyTree, Shape
from ..core import tags, templates
from ..core.context import ThreadState, ctx
from ..core.ir import Literal
from ..core.trace import SCALAR_TYPES, Tracer, typeof
from ..devices.array import WRAPPERS, array_from_numpy, share_numpy
from ..jit.fused import begin_with, named
from ..jit.jit import JitOptions, make_jit
from ..lax import arithmetic, creation as lax_creation, shape as lax_shape, slicing
from ..lax.sharding import constrain, move, sharding_like
from ..lax.stack import stack_p
from ..runtime.eager import BASE, FAILURES, MANY, in_groups, number_array
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.mesh import mesh_around
from ..types.shape import canonical_shape, static_int
from ..types.sharding import DeviceLike, NamedSharding, PartitionSpec, ShardingLike
from .array_api import dlpack_array
from .promote import (
    BOOL, PYTHON_NUMBERS, array_args, convert, operand, plain, to_array, warn_complex,
)

ArrayImpl = lib.ArrayImpl
_ARRAYS = frozenset((ArrayImpl,))
_SINGLE = SCALAR_TYPES | {ArrayImpl}    # not sequences: asking an abstract class costs 0.5 us
_WITHOUT_METHOD = _SINGLE | {list, tuple, np.ndarray}    # without a method that gives an array


# From data ---------------------------------------------------------------------------------------

def array(object: object, dtype: DTypeLike | None = None, *, copy: bool | None = True,
          order: str | None = "K", ndmin: int = 0, device: DeviceLike = None,
          out_sharding: ShardingLike = None, subok: bool = False, ndmax: int = 64,
          like: ArrayLike | None = None) -> Array:
    """An array of nested lists of numbers and arrays, of one array, or of a scalar.

    Without `dtype`, Python numbers give int32, float32 or complex64 (64-bit ones with x64 on); a
    single Python number stays weakly typed. 64-bit NumPy data is narrowed unless x64 is on.

    Args:
      object: the data. NumPy arrays, buffers and other array types are read as one array.
      dtype: of the result; that which holds all of the data by default.
      copy: whether the result must have memory of its own. The default copies.
      ndmin: how many axes there are at least; those missing are put in front.
      ndmax: how many axes there may be at most.
    Returns: An array.

    Raises TypeError for values that are not numeric and for Python's complex numbers at a real
    dtype (arrays lose their imaginary part with a warning), ValueError for ragged lists, None and
    NaN at an integer dtype, OverflowError for Python numbers outside an integer dtype.

    >>> onp.array([[1, 2.5]])
    Array([[1. , 2.5]], dtype=float32)
    """
    try:
        check_layout("array", order, like)
        dtype = None if dtype is None else dtypes.requested_dtype("array", dtype, True)
        x = _to_array(object, dtype, copy, device if isinstance(device, lib.Device) else None)
        if x.ndim > (ndmax if type(ndmax) is int else static_int(ndmax, "array", "ndmax")):
            raise ValueError(f"array: data of {x.ndim} dimensions given; at most ndmax = {ndmax} "
                             "are allowed.")
        missing = static_int(ndmin, "array", "ndmin") - x.ndim
        if missing > 64:
            raise ValueError(f"array: ndmin {ndmin} given; at most 64 dimensions are possible.")
        x = lax_shape.reshape(x, (1,) * missing + x.shape) if missing > 0 else x
        return placed("array", x, device, out_sharding)
    except FAILURES as error:
        begin_with(array, error)
        raise


@described_like(array)
def asarray(a: object, dtype: DTypeLike | None = None, order: str | None = None, *,
            copy: bool | None = None, device: DeviceLike = None, out_sharding: ShardingLike = None,
            like: ArrayLike | None = None) -> Array:
    """The same as `array`, but copied only where it has to be: arrays that fit are returned
    themselves.

    Args:
      a: nested lists of numbers and arrays, an array, or a scalar.
      copy: whether the result must have memory of its own.

    Raises as `array` does.

    >>> x = onp.asarray([1, 2, 3])
    >>> onp.asarray(x) is x
    True
    """
    try:
        return array(a, dtype, copy=copy, order=order, device=device, out_sharding=out_sharding,
                     like=like)
    except FAILURES as error:
        begin_with(asarray, error)
        raise


@named
def copy(a: ArrayLike, order: str | None = None, subok: bool = False) -> Array:
    """A copy of the array, in memory of its own.

    Args: a: array.
    Returns: An array of the shape and dtype of `a`.

    >>> print(onp.copy(onp.arange(3)))
    [0 1 2]
    """
    return array(a, copy=True, order=order)


def check_order(name: str, order: str | None) -> None:
    """Accept the memory orders that arrays have anyway. ValueError for others."""
    if order not in (None, "K", "C", "A"):
        raise ValueError(f"{name}: order {order!r} given; programs see no memory order; leave it "
                         "out.")


def check_layout(name: str, order: str | None, like: object) -> None:
    """NumPy's options of making arrays: a memory order, and whose arrays are to be made."""
    check_order(name, order)
    if like is not None and not isinstance(like, Array):
        raise TypeError(f"{name}: like of type {type(like).__name__} given; None or an array of "
                        "olympus is required; convert the result.")


def _to_array(x: Any, dtype: DType | None, copy: bool | None, device: Device | None) -> Array:
    kind = type(x)
    if kind in SCALAR_TYPES:
        return _from_scalar(x, dtype, device)
    if kind is Literal:
        return to_array(convert(x, dtype) if dtype is not None else x)
    if isinstance(x, Tracer) or kind is ArrayImpl or kind in WRAPPERS:
        return _from_array(x, dtype, copy)
    if kind not in _WITHOUT_METHOD and (method := array_method(x)) is not None:
        return _to_array(method(), dtype, copy, device)
    if x is None:
        raise ValueError("array: None given; numbers or arrays are required; use nan for missing "
                         "numbers.")
    if not isinstance(x, (np.ndarray, np.generic)) and hasattr(x, "__dlpack__"):
        with contextlib.suppress(NotImplementedError):      # of a method that is there to say no
            return _from_array(dlpack_array(x, device, True if copy is None else copy), dtype, copy)
    if isinstance(x, (np.ndarray, np.generic)) or _is_numpy_data(x):
        return _from_numpy(np.asarray(x), dtype, device, copy)
    if is_sequence(x):
        return _from_list(x, dtype, device)
    for base in PYTHON_NUMBERS:
        if isinstance(x, base):
            return _from_scalar(base(x), dtype, device)
    if isinstance(x, (str, bytes)) and dtype is not None:
        return array_from_numpy(_cast(_parsed(x, dtype), x, dtype), False, device)
    raise TypeError(f"array: a value of type {kind.__name__} given; numbers, arrays or nested "
                    "lists of them are required; convert it first.")


def is_sequence(x: object) -> bool:
    """Whether the items of `x` are an array's elements: a list, tuple, range, deque …"""
    return type(x) not in _SINGLE and isinstance(x, Sequence) and not isinstance(
        x, (str, bytes, Tracer))


def data_arg(name: str, x: ArrayLike | Sequence[ArrayLike]) -> Array:
    """An operand as an array, a list too, of functions that have always taken lists."""
    return to_array(array_args(name, asarray(x) if is_sequence(x) else x)[0])


def _is_numpy_data(x: Any) -> bool:
    """Whether NumPy reads an object as one array: by its own protocols or as a buffer."""
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return True
    if isinstance(x, (list, tuple, bytes)):
        return False
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def _parsed(x: object, dtype: DType) -> np.ndarray:
    """Text, or a list with text in it, as numbers of the kind of a dtype. ValueError for others."""
    wide = {"i": np.int64, "u": np.uint64, "f": np.float64, "c": np.complex128}.get(
        dtypes.scalar_kind(dtype))
    if wide is None:
        raise TypeError(f"array: text given for dtype {dtype}; numbers are required.")
    try:
        return np.array(x).astype(wide)
    except ValueError as error:
        raise ValueError(f"array: {x!r:.60} given for dtype {dtype}; numbers are required: {error}."
                         ) from None


def _from_scalar(x: complex, dtype: DType | None, device: Device | None) -> Array:
    weak = dtype is None and type(x) is not bool
    target = dtypes.python_scalar_dtype(type(x)) if dtype is None else dtype
    return array_from_numpy(_cast(np.asarray(x), x, target), weak, device)


def _cast(value: np.ndarray, original: object, dtype: DType) -> np.ndarray:
    """NumPy data at a dtype. Python numbers that do not fit it are errors."""
    kind = value.dtype.kind
    if dtypes.is_integer(dtype) and value.size and (
            kind == "O" or (kind in "iuf" and not hasattr(original, "dtype"))):
        limits, whole = dtypes.iinfo(dtype), np.trunc(value) if kind == "f" else value
        if not (limits.min <= whole.min() and whole.max() <= limits.max):
            worst = whole.max() if whole.max() > limits.max else whole.min()
            error = ValueError if worst != worst else OverflowError
            what = (f"float {worst} given for dtype" if kind == "f" else
                    f"integer {worst} out of bounds for" if value.shape or dtype.itemsize < 4 else
                    f"int {worst} too large to convert to")
            raise error(f"array: Python {what} {dtype}; numbers in "
                        f"[{limits.min}, {limits.max}] are required; pass another dtype, or "
                        "enable x64.")
    if kind == "O" and dtypes.is_inexact(dtype):    # ints of any size, which only floats hold
        value = value.astype(np.complex128 if dtypes.is_complex(dtype) else np.float64)
    if kind == "c" and _drops_imaginary("array", original, value, dtype):
        value = np.real(value)
    return dtypes.converted(value, dtype)


def _drops_imaginary(name: str, value_in: object, value: object, dtype: DTypeLike) -> bool:
    """Whether complex values become real ones: arrays with a warning; Python's numbers may not."""
    aval = typeof(value)
    if not dtypes.is_complex(aval.dtype) or dtypes.is_complex(dtype) or dtype == BOOL:
        return False
    if not hasattr(value_in, "dtype"):
        raise TypeError(f"{name}: complex numbers given for dtype {dtype}; real ones are required; "
                        "take their real part, or ask for a complex dtype.")
    warn_complex(name, aval, dtype)
    return True


def _from_array(x: Array, dtype: DType | None, copy: bool | None) -> Array:
    if dtype is not None and (x.dtype != dtype or x.aval.weak_type):
        if copy is False and x.dtype != dtype:
            raise _needs_copy(x.dtype, dtype)
        x = convert(arithmetic.real(x) if _drops_imaginary("array", x, x, dtype) else x, dtype)
    elif copy and type(x) is ArrayImpl:
        return lib.copied(x)
    return x


def _needs_copy(own: object, dtype: DTypeLike) -> ValueError:
    return ValueError(f"array: dtype {own} as {dtype} and copy=False given; a conversion copies; "
                      "leave copy unset.")


def _from_numpy(x: np.ndarray, dtype: DType | None, device: Device | None, copy: bool | None
                ) -> Any:
    if copy is False:
        if dtype is not None and x.dtype != dtype:
            raise _needs_copy(x.dtype, dtype)
        typeof(x)
        return share_numpy("array", x, device)
    if dtype is None:
        typeof(x)       # raises for object, string and datetime arrays
        return array_from_numpy(np.asarray(x), False, device)
    return array_from_numpy(_cast(np.asarray(x), x, dtype), False, device)


def _nested(x: PyTree, leaves: list[ArrayLike]) -> PyTree:
    """A sequence as nested lists; their elements, which are no sequences, go to `leaves`."""
    if type(x) not in _WITHOUT_METHOD and (method := array_method(x)) is not None:
        x = method()
    if type(x) in SCALAR_TYPES:
        pass
    elif is_sequence(x) and not _is_numpy_data(x):
        return [_nested(item, leaves) for item in x]
    elif not hasattr(x, "aval") and not isinstance(getattr(x, "dtype", None), np.dtype):
        x = _of_another_library(x)
    leaves.append(x)
    return x


def _of_another_library(x: PyTree) -> PyTree:
    """An element without a dtype of NumPy's: as NumPy reads it, or by DLPack; itself if neither."""
    exported = hasattr(x, "__dlpack__")
    try:
        if _is_numpy_data(x):
            return np.asarray(x)
    except TypeError:
        if not exported:        # PyTorch's bfloat16 is, which NumPy has not
            raise
    return dlpack_array(x, None, True) if exported else x


def _from_list(x: PyTree, dtype: DType | None, device: Device | None) -> Array:
    if (ctx.trace is BASE and x and type(x) in (list, tuple) and _ARRAYS.issuperset(map(type, x))
            and len({a.aval for a in x}) == 1):
        # Arrays of one type: none of them needs to be looked at.
        stacked = (stack_p.bind(*x, axis=0) if len(x) <= MANY else
                   stack_p.by_groups(in_groups(x), axis=0))
        return _from_array(stacked, dtype or dtypes.result_type(x[0]), None)
    array = from_sequence("array", x, dtype)
    return (array_from_numpy(array, False, device) if isinstance(array, np.ndarray) else array)


@contextlib.contextmanager
def finite_lists(name: str) -> Iterator[None]:
    """Within, a list that has itself in it is walked through."""
    try:
        yield
    except RecursionError:
        raise ValueError(f"{name}: a list that has itself in it, or is nested deeper than Python's "
                         "recursion limit, given; at most as many levels as arrays have axes are "
                         "required.") from None


def from_sequence(name: str, x: PyTree, dtype: Any = None) -> Array | np.ndarray:
    """A nested sequence of numbers and arrays as one array: NumPy's, unless it holds ours."""
    leaves: list[Any] = []
    with finite_lists(name):
        x = _nested(x, leaves)
    if any(leaf is None for leaf in leaves):
        raise ValueError(f"{name}: a list that holds None given; numbers or arrays are required; "
                         "use nan for missing numbers.")
    if any(hasattr(leaf, "aval") for leaf in leaves):
        return _stacked(x, dtype, leaves)
    if any(isinstance(leaf, (str, bytes)) for leaf in leaves):
        if dtype is None:
            raise TypeError(f"{name}: a list that holds text given; numbers or arrays are "
                            "required; pass a dtype to read numbers from text.")
        return _cast(_parsed(x, dtype), x, dtype)
    if dtype is None:
        dtype = dtypes.result_type(*leaves) if leaves else dtypes.default_float()
        if all(type(leaf) in SCALAR_TYPES for leaf in leaves) and leaves:
            dtype = dtypes.canonical_dtype(dtype)
    try:
        value = np.array(x, dtype=object) if _has_wide_ints(leaves) else np.array(x)
    except ValueError as error:
        raise ValueError(f"{name}: nested lists of different lengths given: {error} Equal lengths "
                         "are required; pad them, or keep a list of arrays.") from None
    if value.dtype.kind in "OSUMmV" and not _has_wide_ints(leaves) and value.dtype not in _KNOWN:
        raise TypeError(f"{name}: a list of dtype {value.dtype} given; numbers are required.")
    return _cast(value, x, dtype)


_KNOWN = frozenset((np.dtype("V2"),))


def _has_wide_ints(leaves: Sequence[float]) -> bool:
    return any(type(leaf) is int and not -2**63 <= leaf < 2**63 for leaf in leaves)


def _stacked(x: Sequence[Array | Sequence[Array]], dtype: DType | None, leaves: Sequence[Array]
             ) -> Array:
    """A nested list with arrays in it, concatenated level by level."""
    if dtype is None:
        dtype = dtypes.result_type(*leaves)

    def build(item: Array | Sequence[Array | Sequence[Array]]) -> Array:
        if not isinstance(item, (list, tuple)):
            return _to_array(item, dtype, None, None)
        if not item:
            return _to_array(np.zeros((0,)), dtype, None, None)
        parts = [build(i) for i in item]
        if any(p.shape != parts[0].shape for p in parts):
            raise ValueError(f"array: a list of arrays of shapes {[p.shape for p in parts]} given; "
                             "equal shapes are required.")
        if ctx.trace is BASE and _ARRAYS.issuperset(map(type, parts)):
            return stack_p.bind(*parts, axis=0)
        return slicing.concatenate([lax_shape.expand_dims(p, (0,)) for p in parts], 0)

    return build(x)


def scalar_constructor(x: float, dtype: DType) -> Array:
    """The call of a scalar type: `jnp.float32(72)`."""
    return asarray(x, dtype)


dtypes.set_scalar_constructor(scalar_constructor)


@api_boundary
def frombuffer(buffer: bytes | bytearray | memoryview | np.ndarray, dtype: DTypeLike = float,
               count: int = -1, offset: int = 0, *, like: ArrayLike | None = None) -> Array:
    r"""A vector of the bytes of a buffer read as a dtype; the bytes are copied.

    Args:
      buffer: bytes or an object with the buffer protocol.
      dtype: of the elements; 64-bit ones are narrowed afterwards unless x64 is on.
      count: how many elements are read; all if negative.
      offset: how many bytes are skipped first.

    Raises ValueError for bytes that do not hold so many elements, TypeError for anything but a
    buffer.

    >>> print(onp.frombuffer(b"\x01\x00\x02\x00", onp.int16))
    [1 2]
    """
    check_layout("frombuffer", None, like)
    dtypes.requested_dtype("frombuffer", dtype)     # warns; the bytes are read at their own width
    dtype = np.dtype(dtypes.as_dtype(dtype))
    count = static_int(count, "frombuffer", "count")
    offset = static_int(offset, "frombuffer", "offset")
    try:
        array = np.frombuffer(buffer, dtype=dtype, count=count, offset=offset)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        kind = ValueError if isinstance(buffer, (bytes, bytearray, memoryview)) else TypeError
        raise kind(f"frombuffer: buffer of type {type(buffer).__name__}, dtype {dtype}, count "
                   f"{count}, offset {offset} given; {error}; bytes that hold so many elements "
                   "are required.") from None
    return asarray(array)


# From shapes -------------------------------------------------------------------------------------

def placed(name: str, x: Array, device: DeviceLike, out_sharding: ShardingLike) -> Array:
    """The array where it was asked for: on a device (or cut by a sharding), or as in a program."""
    if device is None and out_sharding is None and ctx.trace is ThreadState.trace:
        mesh = mesh_around()
        if mesh is not None and type(x) is lib.ArrayImpl and not x._committed:
            device = NamedSharding(mesh, PartitionSpec())
    if device is not None:
        try:
            x = device_put(x, device)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return constrain(name, x, out_sharding)


@api_boundary
def zeros(shape: int | Shape, dtype: DTypeLike | None = None, order: str = "C", *,
          device: DeviceLike = None, out_sharding: ShardingLike = None,
          like: ArrayLike | None = None) -> Array:
    """An array of zeros.

    Raises ValueError for negative sizes, TypeError for traced ones.

    >>> onp.zeros(2)
    Array([0., 0.], dtype=float32)
    """
    if order != "C" or like is not None:
        check_layout("zeros", order, like)
    return _filled("zeros", shape, 0, float if dtype is None else dtype, device, out_sharding)


@api_boundary
def ones(shape: int | Shape, dtype: DTypeLike | None = None, order: str = "C", *,
         device: DeviceLike = None, out_sharding: ShardingLike = None,
         like: ArrayLike | None = None) -> Array:
    """An array of ones.

    Raises ValueError for negative sizes, TypeError for traced ones.

    >>> onp.ones((2, 2), onp.int32)
    Array([[1, 1],
           [1, 1]], dtype=int32)
    """
    if order != "C" or like is not None:
        check_layout("ones", order, like)
    return _filled("ones", shape, 1, float if dtype is None else dtype, device, out_sharding)


@api_boundary
def empty(shape: int | Shape, dtype: DTypeLike | None = None, order: str = "C", *,
          device: DeviceLike = None, out_sharding: ShardingLike = None,
          like: ArrayLike | None = None) -> Array:
    """An array with unspecified elements: zeros, since memory is always set.

    >>> onp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    if order != "C" or like is not None:
        check_layout("empty", order, like)
    return _filled("empty", shape, 0, float if dtype is None else dtype, device, out_sharding)


@api_boundary
def full(shape: int | Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None,
         order: str = "C", *, device: DeviceLike = None, out_sharding: ShardingLike = None,
         like: ArrayLike | None = None) -> Array:
    """An array filled with a value that broadcasts to its shape.

    Args:
      fill_value: number or array, which may be traced.
      dtype: of the result; by default the value's, weakly typed for a Python number.

    Raises ValueError where the value does not broadcast to the shape.

    >>> onp.full((2, 2), onp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if order != "C" or like is not None:
        check_layout("full", order, like)
    return _filled("full", shape, fill_value, dtype, device, out_sharding)


def _filled(name: str, shape: int | Shape, fill_value: ArrayLike, dtype: DTypeLike | None,
            device: DeviceLike, out_sharding: ShardingLike) -> Array:
    shape = canonical_shape(shape, name)
    if type(dtype) is int and name in ("zeros", "ones", "empty"):
        sizes = (*shape, dtype)
        raise TypeError(f"{name}: shape {shape} and dtype {dtype} given; the shape is one int or "
                        f"one tuple of them, and {dtype} cannot be interpreted as a data type; "
                        f"Did you mean {name}({sizes})?")
    dtype = None if dtype is None else dtypes.requested_dtype(name, dtype, True)
    if (device is None and out_sharding is None and shape and type(fill_value) in _REAL
            and (dtype is None or (fill_value in (0, 1) and isinstance(dtype, np.dtype)))
            and ctx.trace is BASE and mesh_around() is None):
        number = number_array(fill_value)
        if type(number) is ArrayImpl:
            return _constant(number, shape, dtype)
    trace, args = ctx.trace, (name, shape, fill_value, dtype, device, out_sharding)
    return templates.call(trace, _repeated, args, {}) if trace.recorded else _repeated(*args)


def _repeated(name: str, shape: tuple[int, ...], fill_value: ArrayLike, dtype: DType | None,
              device: DeviceLike, out_sharding: ShardingLike) -> Array:
    """The value, converted and broadcast, by operations."""
    if is_sequence(fill_value):
        fill_value = asarray(fill_value)
    value = operand(name, fill_value)
    if dtypes.is_extended(dtype) and not value.aval.shape:
        return placed(name, lax_creation.full(shape, plain(value), dtype), device, out_sharding)
    if dtype is None:
        value = plain(value)
    else:
        _drops_imaginary(name, fill_value, value, dtype)
        value = convert(value, dtype)
    own = value.shape
    dims = tuple(range(len(shape) - len(own), len(shape)))
    if own and (len(own) > len(shape) or any(n not in (1, shape[d]) for n, d in zip(own, dims))):
        raise ValueError(f"{name}: fill_value {value.aval} and shape {shape} given; the value must "
                         "broadcast to the shape.")
    if shape == own:
        return placed(name, to_array(value), device, out_sharding)
    repeated = lax_shape.broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=dims,
                                                 sharding=None)
    return placed(name, repeated, device, out_sharding)


def _broadcast_in_dim(number: Array, shape: tuple[int, ...], dtype: DType | None) -> Array:
    value = number if dtype is None else convert(number, dtype)
    return lax_shape.broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=(),
                                             sharding=None)


_REAL = frozenset((int, float))
_constant = make_jit(_broadcast_in_dim, JitOptions(
    static_argnums=(1, 2), static_argnames=("shape", "dtype")), library=True)


def aval_like(name: str, a: Any) -> ShapedArray:
    """The aval of data, or of an object with a shape and a dtype, which need not be an array."""
    if hasattr(a, "shape") and hasattr(a, "dtype"):
        aval = getattr(a, "aval", a)
        try:
            dtype = dtypes.canonical_dtype(a.dtype)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        return make_aval(canonical_shape(a.shape, name), dtype,
                         bool(getattr(a, "weak_type", False)),
                         vma=getattr(aval, "vma", frozenset()),
                         memory_space=getattr(aval, "memory_space", None))
    return operand(name, from_sequence(name, a) if is_sequence(a) else a).aval


def _like(name: str, a: object, fill_value: ArrayLike, dtype: DTypeLike | None,
          shape: int | Shape | None, device: DeviceLike, out_sharding: ShardingLike) -> Array:
    like, placed = aval_like(name, a), device is not None or out_sharding is not None
    if shape is None and not placed:
        out_sharding = sharding_like(a)
    out = _filled(name, like.shape if shape is None else shape, fill_value,
                  like.dtype if dtype is None else dtype, device, out_sharding)
    out = tags.pvary(out, like.vma)
    if like.tagged and not placed:
        out = move(out, like.memory_space)
    return convert(out, like.dtype, True) if dtype is None and like.weak_type else out


@api_boundary
def zeros_like(a: ArrayLike | DuckTypedArray, dtype: DTypeLike | None = None,
               shape: int | Shape | None = None, *, device: DeviceLike = None,
               out_sharding: ShardingLike = None, order: str = "K", subok: bool = True) -> Array:
    """Zeros of the shape and dtype of another array.

    Args: dtype, shape: the result's where they are to differ.
    Returns: An array, cut over devices as `a` is.

    >>> onp.zeros_like(onp.array([1, 2], onp.int8))
    Array([0, 0], dtype=int8)
    """
    if order != "K":
        check_order("zeros_like", order)
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


@api_boundary
@described_like(zeros_like)
def ones_like(a: ArrayLike | DuckTypedArray, dtype: DTypeLike | None = None,
              shape: int | Shape | None = None, *, device: DeviceLike = None,
              out_sharding: ShardingLike = None, order: str = "K", subok: bool = True) -> Array:
    """Ones of the shape and dtype of another array.

    >>> onp.ones_like(onp.array([1.5, 2.5]))
    Array([1., 1.], dtype=float32)
    """
    if order != "K":
        check_order("ones_like", order)
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


@api_boundary
def empty_like(prototype: ArrayLike | DuckTypedArray, dtype: DTypeLike | None = None,
               shape: int | Shape | None = None, *, device: DeviceLike = None, order: str = "K",
               subok: bool = True) -> Array:
    """An array with unspecified elements (zeros), and the shape and dtype of another array.

    Args:
      prototype: array, or an object with a shape and a dtype; its values are not read.
      dtype, shape: the result's where they are to differ.
    Returns: An array, cut over devices as `prototype` is.

    >>> print(onp.empty_like(onp.array([1, 2])))
    [0 0]
    """
    if order != "K":
        check_order("empty_like", order)
    return _like("empty_like", prototype, 0, dtype, shape, device, None)


@named
@described_like(zeros_like)
def full_like(a: ArrayLike | DuckTypedArray, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: int | Shape | None = None, *, device: DeviceLike = None,
              out_sharding: ShardingLike = None, order: str = "K", subok: bool = True) -> Array:
    """An array filled with a value, of the shape and dtype of another.

    Args: fill_value: number or array that broadcasts to the shape; converted to the dtype.

    >>> onp.full_like(onp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    check_order("full_like", order)
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)


complete_docstrings(globals(), {
    "order": "None, \"K\", \"C\" or \"A\", since programs see no memory order.",
    "shape": "an int or ints.",
    "dtype": "of the result; float32 (float64 with x64) by default.",
    "a": "array, or what has a shape and a dtype; its values are not read.",
}, returns="An array of that shape.")
