"""Arrays from Python data, shapes and ranges, and the triangular and diagonal constructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backend.array import HOLDERS, array_from_numpy
from ..base import lib
from ..base.errors import ConcretizationTypeError
from ..base.typing import Array, ArrayLike, DTypeLike, DuckTypedArray, Shape
from ..core import tags
from ..core.ir import Literal
from ..core.trace import SCALAR_TYPES, Tracer, describe, literal, typeof
from ..lax import arithmetic, slicing, transcendental
from ..lax import creation as lax_creation
from ..lax import shape as lax_shape
from ..lax.arithmetic import div, floor, integer_pow, mul, sub
from ..lax.bits import bitwise_and
from ..lax.comparison import eq, ge, lt
from ..lax.families import add
from ..lax.sharding import constrain, sharding_like
from ..lax.transcendental import exp, log
from ..transforms.device import device_put
from ..transforms.fused import fused
from ..types import dtypes
from ..types.avals import make_aval
from ..types.shape import (
    SymbolicDim,
    broadcast_shapes,
    canonical_axis,
    canonical_dim,
    canonical_shape,
    definitely_equal,
    maximum,
    minimum,
    prod,
    static_int,
    strided_size,
)
from ..types.sharding import DeviceLike, ShardingLike
from .promote import (
    BOOL,
    array_args,
    choose,
    convert,
    operand,
    plain,
    promote,
    to_array,
    warn_complex,
)

__all__ = [
    "arange", "array", "asarray", "copy", "diag", "diag_indices", "diag_indices_from", "diagflat",
    "empty", "empty_like", "eye", "frombuffer", "fromfunction", "full", "full_like", "geomspace",
    "identity", "indices", "ix_", "linspace", "logspace", "meshgrid", "ones", "ones_like", "tri",
    "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from",
    "vander", "zeros", "zeros_like",
]

ArrayImpl = lib.ArrayImpl


# From data ---------------------------------------------------------------------------------------

def array(object: Any, dtype: DTypeLike | None = None, *, copy: bool | None = True,
          order: str | None = "K", ndmin: int = 0, device: DeviceLike = None,
          out_sharding: ShardingLike = None, subok: bool = False, ndmax: int = 64,
          like: Any = None) -> Array:
    """An array of nested lists of numbers and arrays, of one array, or of a scalar.

    Without `dtype`, Python numbers give int32, float32 or complex64 (64-bit ones with x64 on); a
    single Python number stays weakly typed. 64-bit NumPy data is narrowed unless x64 is on.

    Raises TypeError for what is not numeric and for Python's complex numbers at a real dtype
    (arrays lose their imaginary part with a warning), ValueError for ragged lists, None and NaN at
    an integer dtype, OverflowError for Python numbers outside an integer dtype.

    >>> import olympus.numpy as jnp
    >>> jnp.array([[1, 2.5]])
    Array([[1. , 2.5]], dtype=float32)
    """
    _check_layout("array", order, like)
    dtype = None if dtype is None else dtypes.requested_dtype("array", dtype, True)
    x = _to_array(object, dtype, copy, device if isinstance(device, lib.Device) else None)
    if ndmax != 64 and x.ndim > static_int(ndmax, "array", "ndmax"):
        raise ValueError(f"array: data of {x.ndim} dimensions given; at most ndmax = {ndmax} are "
                         "allowed.")
    missing = static_int(ndmin, "array", "ndmin") - x.ndim
    if missing > 64:
        raise ValueError(f"array: ndmin {ndmin} given; at most 64 dimensions are possible.")
    x = lax_shape.reshape(x, (1,) * missing + x.shape) if missing > 0 else x
    return _place("array", x, device, out_sharding)


def asarray(a: Any, dtype: DTypeLike | None = None, order: str | None = None, *,
            copy: bool | None = None, device: DeviceLike = None, out_sharding: ShardingLike = None,
            like: Any = None) -> Array:
    """`array`, which copies only where it has to."""
    return array(a, dtype, copy=copy, order=order, device=device, out_sharding=out_sharding,
                 like=like)


def copy(a: ArrayLike, order: str | None = None, subok: bool = False) -> Array:
    """A copy of the array."""
    return array(a, copy=True, order=order)


def check_order(name: str, order: str | None) -> None:
    """Accept the memory orders that arrays have anyway. ValueError for others."""
    if order not in (None, "K", "C", "A"):
        raise ValueError(f"{name}: order {order!r} given; programs see no memory order; leave it "
                         "out.")


def _check_layout(name: str, order: str | None, like: Any) -> None:
    """NumPy's options of making arrays: a memory order, and whose arrays are to be made."""
    check_order(name, order)
    if like is not None and not isinstance(like, Array):
        raise TypeError(f"{name}: like of type {type(like).__name__} given; None or an array of "
                        "olympus is required; convert the result.")


def _to_array(x: Any, dtype: Any, copy: bool | None, device: Any) -> Any:
    kind = type(x)
    if kind in SCALAR_TYPES:
        return _from_scalar(x, dtype, device)
    if kind is Literal:
        return to_array(convert(x, dtype) if dtype is not None else x)
    if isinstance(x, Tracer) or kind is ArrayImpl or kind in HOLDERS:
        return _from_array(x, dtype, copy)
    if hasattr(x, "__olympus_array__"):
        return _to_array(x.__olympus_array__(), dtype, copy, device)
    if x is None:
        raise ValueError("array: None given; numbers or arrays are required; use nan for missing "
                         "numbers.")
    if isinstance(x, (np.ndarray, np.generic)) or _is_numpy_data(x):
        return _from_numpy(np.asarray(x), dtype, device)
    if is_sequence(x):
        return _from_list(x, dtype, device)
    for base in (bool, int, float, complex):
        if isinstance(x, base):
            return _from_scalar(base(x), dtype, device)
    if isinstance(x, (str, bytes)) and dtype is not None:
        return array_from_numpy(_cast(_parsed(x, dtype), x, dtype), False, device)
    raise TypeError(f"array: a value of type {kind.__name__} given; numbers, arrays or nested "
                    "lists of them are required; convert it first.")


def is_sequence(x: Any) -> bool:
    """Whether the elements of `x` are those of an array: a list, tuple, range, deque …"""
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes, Tracer))


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


def _parsed(x: Any, dtype: Any) -> np.ndarray:
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


def _from_scalar(x: Any, dtype: Any, device: Any) -> Any:
    weak = dtype is None and type(x) is not bool
    target = dtypes.python_scalar_dtype(type(x)) if dtype is None else dtype
    return array_from_numpy(_cast(np.asarray(x), x, target), weak, device)


def _cast(value: np.ndarray, original: Any, dtype: Any) -> np.ndarray:
    """NumPy data at a dtype. Python numbers that do not fit it are errors."""
    kind = value.dtype.kind
    if dtypes.is_integer(dtype) and value.size and (
            kind == "O" or (kind in "iuf" and not hasattr(original, "dtype"))):
        limits, whole = dtypes.iinfo(dtype), np.trunc(value) if kind == "f" else value
        if not (limits.min <= whole.min() and whole.max() <= limits.max):
            worst = whole.max() if whole.max() > limits.max else whole.min()
            error = ValueError if worst != worst else OverflowError
            what = "float" if kind == "f" else "int"
            raise error(f"array: Python {what} {worst} given for dtype {dtype}; numbers in "
                        f"[{limits.min}, {limits.max}] are required; pass another dtype, or "
                        "enable x64.")
    if kind == "O" and dtypes.is_inexact(dtype):    # ints of any size, which only floats hold
        value = value.astype(np.complex128 if dtypes.is_complex(dtype) else np.float64)
    if kind == "c" and _drops_imaginary("array", original, value, dtype):
        value = value.real
    return value.astype(dtype)


def _drops_imaginary(name: str, given: Any, value: Any, dtype: Any) -> bool:
    """Whether complex values become real ones: arrays with a warning; Python's numbers may not."""
    aval = typeof(value)
    if not dtypes.is_complex(aval.dtype) or dtypes.is_complex(dtype) or dtype == BOOL:
        return False
    if not hasattr(given, "dtype"):
        raise TypeError(f"{name}: complex numbers given for dtype {dtype}; real ones are required; "
                        "take their real part, or ask for a complex dtype.")
    warn_complex(name, aval, dtype)
    return True


def _from_array(x: Any, dtype: Any, copy: bool | None) -> Any:
    if dtype is not None and (x.dtype != dtype or x.aval.weak_type):
        x = convert(arithmetic.real(x) if _drops_imaginary("array", x, x, dtype) else x, dtype)
    elif copy and type(x) is ArrayImpl:
        return lib.copied(x)
    return x


def _from_numpy(x: Any, dtype: Any, device: Any) -> Any:
    if dtype is None:
        typeof(x)       # raises for object, string and datetime arrays
        return array_from_numpy(np.asarray(x), False, device)
    return array_from_numpy(_cast(np.asarray(x), x, dtype), False, device)


def _nested(x: Any, leaves: list[Any]) -> Any:
    """A sequence as nested lists; their elements, which are no sequences, go to `leaves`."""
    if hasattr(type(x), "__olympus_array__"):
        x = x.__olympus_array__()
    if type(x) in SCALAR_TYPES:
        pass
    elif is_sequence(x) and not _is_numpy_data(x):
        return [_nested(item, leaves) for item in x]
    elif not hasattr(x, "dtype") and _is_numpy_data(x):
        x = np.asarray(x)
    leaves.append(x)
    return x


def _from_list(x: Any, dtype: Any, device: Any) -> Any:
    found = from_sequence("array", x, dtype)
    return (array_from_numpy(found, False, device) if isinstance(found, np.ndarray) else found)


def from_sequence(name: str, x: Any, dtype: Any = None) -> Any:
    """A nested sequence of numbers and arrays as one array: NumPy's, unless it holds ours."""
    leaves: list[Any] = []
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
    value = np.array(x, dtype=object) if _has_wide_ints(leaves) else np.array(x)
    if value.dtype.kind in "OSUMmV" and not _has_wide_ints(leaves) and value.dtype not in _KNOWN:
        raise TypeError(f"{name}: a list of dtype {value.dtype} given; numbers are required.")
    return _cast(value, x, dtype)


_KNOWN = frozenset((np.dtype("V2"),))


def _has_wide_ints(leaves: Sequence[Any]) -> bool:
    return any(type(leaf) is int and not -2**63 <= leaf < 2**63 for leaf in leaves)


def _stacked(x: Any, dtype: Any, leaves: Sequence[Any]) -> Any:
    """A nested list with arrays in it, concatenated level by level."""
    if dtype is None:
        dtype = dtypes.result_type(*leaves)

    def build(item: Any) -> Any:
        if not isinstance(item, (list, tuple)):
            return _to_array(item, dtype, None, None)
        if not item:
            return _to_array(np.zeros((0,)), dtype, None, None)
        parts = [build(i) for i in item]
        if any(p.shape != parts[0].shape for p in parts):
            raise ValueError(f"array: a list of arrays of shapes {[p.shape for p in parts]} given; "
                             "equal shapes are required.")
        return slicing.concatenate([lax_shape.expand_dims(p, (0,)) for p in parts], 0)

    return build(x)


def scalar_constructor(x: Any, dtype: Any) -> Any:
    """What calling a scalar type does: `jnp.float32(72)`."""
    return asarray(x, dtype)


dtypes.set_scalar_constructor(scalar_constructor)


def frombuffer(buffer: bytes | bytearray | memoryview | ArrayLike, dtype: DTypeLike = float,
               count: int = -1, offset: int = 0, *, like: Any = None) -> Array:
    """A vector of the bytes of a buffer read as `dtype`."""
    _check_layout("frombuffer", None, like)
    dtype = np.dtype(dtypes.as_dtype(dtype))
    count = static_int(count, "frombuffer", "count")
    offset = static_int(offset, "frombuffer", "offset")
    try:
        found = np.frombuffer(buffer, dtype=dtype, count=count, offset=offset)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        kind = ValueError if isinstance(buffer, (bytes, bytearray, memoryview)) else TypeError
        raise kind(f"frombuffer: buffer of type {type(buffer).__name__}, dtype {dtype}, count "
                   f"{count}, offset {offset} given; {error}; bytes that hold so many elements "
                   "are required.") from None
    return asarray(found)


# From shapes -------------------------------------------------------------------------------------

def _place(name: str, x: Any, device: Any, out_sharding: Any) -> Any:
    """The array where it was asked for: on a device (or cut by a sharding), or as in a program."""
    return constrain(name, x if device is None else device_put(x, device), out_sharding)


def zeros(shape: int | Shape, dtype: DTypeLike | None = None, order: str = "C", *,
          device: DeviceLike = None, out_sharding: ShardingLike = None, like: Any = None) -> Array:
    """An array of zeros, float32 unless given.

    >>> import olympus.numpy as jnp
    >>> jnp.zeros(2)
    Array([0., 0.], dtype=float32)
    """
    _check_layout("zeros", order, like)
    return _filled("zeros", shape, 0, float if dtype is None else dtype, device, out_sharding)


def ones(shape: int | Shape, dtype: DTypeLike | None = None, order: str = "C", *,
         device: DeviceLike = None, out_sharding: ShardingLike = None, like: Any = None) -> Array:
    """An array of ones, float32 unless given."""
    _check_layout("ones", order, like)
    return _filled("ones", shape, 1, float if dtype is None else dtype, device, out_sharding)


def empty(shape: int | Shape, dtype: DTypeLike | None = None, order: str = "C", *,
          device: DeviceLike = None, out_sharding: ShardingLike = None, like: Any = None) -> Array:
    """An array whose elements do not matter: zeros, since memory is always set."""
    _check_layout("empty", order, like)
    return _filled("empty", shape, 0, float if dtype is None else dtype, device, out_sharding)


def full(shape: int | Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None,
         order: str = "C", *, device: DeviceLike = None, out_sharding: ShardingLike = None,
         like: Any = None) -> Array:
    """An array filled with a value that broadcasts to its shape.

    Without `dtype`, a Python number gives a weakly typed array.
    """
    _check_layout("full", order, like)
    return _filled("full", shape, fill_value, dtype, device, out_sharding)


def _filled(name: str, shape: Any, fill_value: Any, dtype: Any, device: Any, out_sharding: Any
            ) -> Any:
    shape = canonical_shape(shape, name)
    dtype = None if dtype is None else dtypes.requested_dtype(name, dtype, True)
    if is_sequence(fill_value):
        fill_value = asarray(fill_value)
    value = operand(name, fill_value)
    if dtypes.is_extended(dtype) and not value.aval.shape:
        return _place(name, lax_creation.full(shape, plain(value), dtype), device, out_sharding)
    if dtype is None:
        value = plain(value)
    else:
        _drops_imaginary(name, fill_value, value, dtype)
        value = convert(value, dtype)
    ndim = len(value.shape)
    dims = tuple(range(len(shape) - ndim, len(shape)))
    if ndim > len(shape) or any(n not in (1, shape[d]) for n, d in zip(value.shape, dims)):
        raise ValueError(f"{name}: fill_value {value.aval} and shape {shape} given; the value must "
                         "broadcast to the shape.")
    if shape == value.shape:
        return _place(name, to_array(value), device, out_sharding)
    found = lax_shape.broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=dims,
                                              sharding=None)
    return _place(name, found, device, out_sharding)


def _shaped(name: str, a: Any) -> Any:
    """The aval of what has a shape and a dtype, which need not be an array, or of data."""
    if hasattr(a, "shape") and hasattr(a, "dtype"):
        return make_aval(canonical_shape(a.shape, name), dtypes.canonical_dtype(a.dtype),
                         bool(getattr(a, "weak_type", False)),
                         vma=getattr(getattr(a, "aval", a), "vma", frozenset()))
    return operand(name, asarray(a) if is_sequence(a) else a).aval


def _like(name: str, a: Any, fill_value: Any, dtype: Any, shape: Any, device: Any,
          out_sharding: Any) -> Any:
    like = _shaped(name, a)
    if shape is None and device is None and out_sharding is None:
        out_sharding = sharding_like(a)
    found = _filled(name, like.shape if shape is None else shape, fill_value,
                    like.dtype if dtype is None else dtype, device, out_sharding)
    found = tags.pvary(found, like.vma)
    return convert(found, like.dtype, True) if dtype is None and like.weak_type else found


def zeros_like(a: ArrayLike | DuckTypedArray, dtype: DTypeLike | None = None,
               shape: int | Shape | None = None, *, device: DeviceLike = None,
               out_sharding: ShardingLike = None, order: str = "K", subok: bool = True) -> Array:
    """Zeros of the shape and dtype of another array."""
    check_order("zeros_like", order)
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(a: ArrayLike | DuckTypedArray, dtype: DTypeLike | None = None,
              shape: int | Shape | None = None, *, device: DeviceLike = None,
              out_sharding: ShardingLike = None, order: str = "K", subok: bool = True) -> Array:
    """Ones of the shape and dtype of another array."""
    check_order("ones_like", order)
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(prototype: ArrayLike | DuckTypedArray, dtype: DTypeLike | None = None,
               shape: int | Shape | None = None, *, device: DeviceLike = None, order: str = "K",
               subok: bool = True) -> Array:
    """Zeros of the shape and dtype of another array, whose elements do not matter."""
    check_order("empty_like", order)
    return _like("empty_like", prototype, 0, dtype, shape, device, None)


def full_like(a: ArrayLike | DuckTypedArray, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: int | Shape | None = None, *, device: DeviceLike = None,
              out_sharding: ShardingLike = None, order: str = "K", subok: bool = True) -> Array:
    """`fill_value` in the shape and dtype of another array."""
    check_order("full_like", order)
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, order: str = "C",
        *, device: DeviceLike = None, like: Any = None) -> Array:
    """float32[N, M] (M = N unless given) with ones on diagonal `k`."""
    _check_layout("eye", order, like)
    dtype = dtypes.requested_dtype("eye", float if dtype is None else dtype)
    return _place("eye", _eye(N, M, k, dtype), device, None)


def _one_dim(given: Any) -> int:
    """A number of rows or columns, as an int or the one entry of a shape."""
    shape = canonical_shape(given, "eye")
    if len(shape) != 1:
        raise TypeError(f"eye: N or M {given} given; an int is required.")
    return shape[0]


@fused(static=("N", "M", "k", "dtype"))
def _eye(N: Any, M: Any, k: int, dtype: Any) -> Any:
    n, m = [_one_dim(d) for d in (N, N if M is None else M)]
    return convert(eq(*_shifted("eye", (n, m), k)), dtype)


def identity(n: int, dtype: DTypeLike | None = None, *, like: Any = None) -> Array:
    """float32[n, n] with ones on the diagonal."""
    return eye(n, dtype=dtype, like=like)


# Ranges ------------------------------------------------------------------------------------------

def arange(start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike | None = None,
           dtype: DTypeLike | None = None, *, device: DeviceLike = None,
           out_sharding: ShardingLike = None, like: Any = None) -> Array:
    """The numbers from `start` (0 if only one argument is given) up to, not including, `stop`.

    All bounds must be concrete. Raises TypeError for traced values, ValueError for complex ones.

    >>> import olympus.numpy as jnp
    >>> jnp.arange(2, 5)
    Array([2, 3, 4], dtype=int32)
    """
    _check_layout("arange", None, like)
    if any(isinstance(x, SymbolicDim) for x in (start, stop, step)):
        return _place("arange", _symbolic_range(start, stop, step, dtype), device, out_sharding)
    bounds = [_concrete("arange", x) for x in (start, stop, step) if x is not None]
    if start is None:
        raise TypeError("arange: start is None; a number is required.")
    if any(isinstance(x, complex) for x in bounds):
        raise ValueError("arange: complex bounds given; real numbers are required.")
    dtype = (dtypes.result_type(int, *[x for x in (start, stop, step) if x is not None])
             if dtype is None else dtypes.requested_dtype("arange", dtype))
    first, last = (0, bounds[0]) if stop is None else (bounds[0], bounds[1])
    by = 1 if step is None else bounds[-1]
    if by == 0:
        raise ValueError("arange: step 0 given; another number is required.")
    try:
        count = max(0, math.ceil((last - first) / by))
    except (ValueError, OverflowError):
        raise ValueError(f"arange: bounds {first} and {last}, step {by} given; finite numbers are "
                         "required.") from None
    if dtypes.is_bool(dtype) and count > 2:
        raise TypeError(f"arange: dtype bool given for {count} numbers; a numeric dtype is "
                        "required; compare the numbers with something.")
    if first == 0 and by == 1 and dtypes.is_numeric(dtype):
        return _place("arange", lax_creation.iota(dtype, count), device, out_sharding)
    wide = np.float64 if isinstance(first + by, float) else np.int64
    values = first + np.arange(count, dtype=wide) * by
    return _place("arange", array_from_numpy(values.astype(dtype)), device, out_sharding)


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """`arange` where a bound is a symbolic dimension, and none is a float."""
    first, last = (0, start) if stop is None else (start, stop)
    by = static_int(1 if step is None else step, "arange", "step")
    if by == 0:
        raise ValueError("arange: step 0 given; another number is required.")
    dtype = dtypes.default_int() if dtype is None else dtypes.requested_dtype("arange", dtype)
    found = lax_creation.iota(dtype, strided_size(first, last, by))
    return found if by == 1 and definitely_equal(first, 0) else found * by + first


def _concrete(name: str, x: Any) -> Any:
    """A bound as a Python number."""
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            f"{name}: {describe(x)} given; the number of elements must be known while tracing; "
            "mark the argument static, or use lax.iota with a fixed size.")
    value = np.asarray(x)
    if value.ndim or value.dtype.kind not in "biufcV":
        raise TypeError(f"{name}: {x!r} given; a number is required.")
    return value.item() if value.dtype.kind != "V" else float(value)


def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             retstep: bool = False, dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike = None) -> Array:
    """`num` numbers from `start` to `stop`, evenly spaced; both may be arrays, also traced.

    Args:
      endpoint: whether `stop` is the last number.
      retstep: whether to return the spacing too.
      axis: the result's axis along which the numbers lie.
      device: a device or sharding to put the numbers on.
    """
    dtype = None if dtype is None else dtypes.requested_dtype("linspace", dtype)
    found, step = _linspace(start, stop, num, endpoint, dtype, axis)
    found = _place("linspace", found, device, None)
    return (found, step) if retstep else found


@fused(static=("num", "endpoint", "dtype", "axis"))
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int
              ) -> tuple[Any, Any]:
    num = static_int(num, "linspace", "num")
    if num < 0:
        raise ValueError(f"linspace: num {num} given; it is not negative.")
    first, last = promote("linspace", start, stop, inexact=True)
    computed = first.dtype
    dtype = computed if dtype is None else dtype
    first, last = (_strong(x) for x in (first, last))
    shape = broadcast_shapes(first.shape, last.shape)
    first, last = (_lead(x, shape) for x in (first, last))
    divisions = num - 1 if endpoint else num
    gap = sub(last, first)
    step = (div(gap, literal(divisions, gap.dtype)) if divisions > 0
            else full_like(gap, np.nan))
    real = dtypes.to_real_dtype(computed)
    weights = convert(lax_creation.broadcasted_iota(real, (num, *shape), 0), computed)
    if divisions > 0:
        weights = div(weights, literal(divisions, computed))
    found = add(mul(_lead(first, (num, *shape)), sub(literal(1, computed), weights)),
                mul(_lead(last, (num, *shape)), weights))
    if endpoint and num > 1:
        found = slicing.concatenate([slicing.slice_in_dim(found, 0, num - 1),
                                     lax_shape.expand_dims(last, (0,))], 0)
    elif num == 1:
        found = lax_shape.expand_dims(first, (0,))
    if dtypes.is_integer(dtype) and dtypes.is_floating(computed):
        found = floor(found)
    found = lax_shape.move_axis(convert(found, dtype), 0, canonical_axis(axis, len(shape) + 1))
    return found, step


def _strong(x: Any) -> Any:
    return convert(x, x.dtype, False)


def _lead(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to a shape that its own ends; literals become arrays."""
    if x.shape == shape and type(x) is not Literal:
        return x
    offset = len(shape) - len(x.shape)
    return lax_shape.broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(range(offset, len(shape))), sharding=None)


@fused(static=("num", "endpoint", "dtype", "axis"))
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             base: ArrayLike = 10.0, dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`base` to the powers `linspace(start, stop)`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    found = transcendental.pow(*promote("logspace", base, exponents, inexact=True))
    found = _strong(found)
    return found if dtype is None else convert(found, dtypes.requested_dtype("logspace", dtype))


@fused(static=("num", "endpoint", "dtype", "axis"))
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
              dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`num` numbers from `start` to `stop` with a constant ratio."""
    first, last = (_strong(x) for x in promote("geomspace", start, stop, inexact=True))
    if dtypes.is_complex(first.dtype):
        sign: Any = arithmetic.sign(first)
    else:
        zero = literal(0, first.dtype)
        both = bitwise_and(lt(first, zero), lt(last, zero))
        sign = sub(literal(1, first.dtype),
                   mul(literal(2, first.dtype), convert(both, first.dtype)))
    steps = linspace(log(div(first, sign)), log(div(last, sign)), num, endpoint)
    found = mul(exp(steps), _lead(sign, steps.shape))
    ends = [lax_shape.expand_dims(_lead(x, steps.shape[1:]), (0,)) for x in (first, last)]
    if num > 0:
        tail = 1 if endpoint and num > 1 else 0
        parts = [ends[0], slicing.slice_in_dim(found, 1, max(num - tail, 1))]
        found = slicing.concatenate([*parts, ends[1]] if tail else parts, 0)
    found = lax_shape.move_axis(found, 0, canonical_axis(axis, found.ndim))
    return found if dtype is None else convert(found, dtypes.requested_dtype("geomspace", dtype))


# Grids -------------------------------------------------------------------------------------------

def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False,
             indexing: str = "xy") -> list[Array]:
    """Coordinate arrays of the grid that vectors span; "xy" exchanges the first two axes."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing {indexing!r} given; 'xy' or 'ij' is required.")
    if not copy:
        raise ValueError("meshgrid: copy=False given; arrays are never views; leave it out.")
    xs = array_args("meshgrid", *xi)
    xs = [x if x.ndim == 1 else lax_shape.reshape(_lead(x, x.shape), (prod(x.shape),))
          for x in xs]
    axes = list(range(len(xs)))
    if indexing == "xy" and len(xs) >= 2:
        axes[:2] = [1, 0]
    shape = tuple([xs[axes.index(i)].shape[0] for i in range(len(xs))])
    found = []
    for x, axis in zip(xs, axes):
        size = tuple([n if i == axis else 1 for i, n in enumerate(shape)]) if sparse else shape
        found.append(lax_shape.broadcast_in_dim(x, size, (axis,)))
    return found


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None,
            sparse: bool = False) -> Array | tuple[Array, ...]:
    """The index of every element of a grid: int32[ndim, *dimensions]; a tuple if `sparse`."""
    shape = canonical_shape(dimensions, "indices")
    dtype = dtypes.requested_dtype("indices", int if dtype is None else dtype)
    if sparse:
        return tuple([lax_creation.broadcasted_iota(
            dtype, tuple([n if i == axis else 1 for i, n in enumerate(shape)]), axis)
            for axis in range(len(shape))])
    if not shape:
        return zeros((0,), dtype)
    return slicing.concatenate(
        [lax_shape.expand_dims(lax_creation.broadcasted_iota(dtype, shape, axis), (0,))
         for axis in range(len(shape))], 0)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors reshaped so that indexing with all of them picks the rectangle they span.

    A boolean vector, which must not be traced, stands for the places where it is true.
    """
    xs = array_args("ix_", *[asarray(a) if isinstance(a, (list, tuple)) else a for a in args])
    xs = [asarray(np.flatnonzero(np.asarray(x))) if x.dtype == BOOL else x for x in xs]
    for x in xs:
        if len(x.shape) != 1:
            raise ValueError(f"ix_: {x.aval} given; vectors are required.")
    return tuple([lax_shape.reshape(x, (1,) * i + x.shape + (1,) * (len(xs) - i - 1))
                  for i, x in enumerate(xs)])


def fromfunction(function: Callable[..., Any], shape: int | Shape, *, dtype: DTypeLike = float,
                 **kwargs: Any) -> Array:
    """`function` called once with the coordinate arrays of a grid (unlike JAX's, not vmapped)."""
    shape = canonical_shape(shape, "fromfunction")
    return function(*indices(shape, dtype, sparse=False), **kwargs)


# Triangles and diagonals -------------------------------------------------------------------------

def _shifted(name: str, shape: tuple[int, int], k: int) -> tuple[Any, Any]:
    """int32[n, m], twice: row + k, and column; they are equal on diagonal `k`.

    A diagonal outside of the matrix is moved next to it, so that no sum is beyond int32.
    """
    low, high = [n if type(n) is int else 2**30 for n in shape]
    k = max(-low, min(static_int(k, name, "k"), high))
    rows = lax_creation.broadcasted_iota("int32", shape, 0)
    columns = lax_creation.broadcasted_iota("int32", shape, 1)
    return add(rows, literal(k, rows.dtype)), columns


@fused(static=("N", "M", "k", "dtype"))
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """float32[N, M] with ones on diagonal `k` and below."""
    shape = canonical_shape((N, N if M is None else M), "tri")
    return convert(ge(*_shifted("tri", shape, k)),  # type: ignore[arg-type]
                   dtypes.requested_dtype("tri", float if dtype is None else dtype))


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    (x,) = array_args(name, m)
    if len(x.shape) < 2:
        raise ValueError(f"{name}: {x.aval} given; at least two axes are required.")
    k = static_int(k, name, "k")
    mask = _lead(ge(*_shifted(name, x.shape[-2:], k if lower else k - 1)), x.shape)
    zero = full(x.shape, 0, x.dtype)
    return choose(mask, x, zero) if lower else choose(mask, zero, x)


@fused(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The matrices m[..., n, m] with zeros above diagonal `k`."""
    return _triangle("tril", m, k, True)


@fused(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The matrices m[..., n, m] with zeros below diagonal `k`."""
    return _triangle("triu", m, k, False)


def _index_pair(pair: Sequence[np.ndarray]) -> tuple[Any, ...]:
    return tuple([asarray(i) for i in pair])


def _sizes(name: str, n: Any, k: Any, m: Any) -> tuple[int, int, int | None]:
    """Rows, diagonal and columns as ints. ValueError for more elements than an array can have."""
    found = (canonical_dim(n, name), static_int(k, name, "k"),
             None if m is None else canonical_dim(m, name))
    if any(abs(i or 0) >= 2**31 for i in found):
        raise ValueError(f"{name}: n {n}, k {k}, m {m} given; numbers below 2**31 are required.")
    return found


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column indices of the lower triangle of an n by m matrix."""
    n, k, m = _sizes("tril_indices", n, k, m)
    return _index_pair(np.tril_indices(n, k, m))  # type: ignore[return-value]


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column indices of the upper triangle of an n by m matrix."""
    n, k, m = _sizes("triu_indices", n, k, m)
    return _index_pair(np.triu_indices(n, k, m))  # type: ignore[return-value]


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = _shaped(name, arr).shape
    if len(shape) != 2:
        raise ValueError(f"{name}: an array of shape {shape} given; a matrix is required.")
    return shape


def tril_indices_from(arr: ArrayLike | DuckTypedArray, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` of the shape of a matrix."""
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike | DuckTypedArray, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` of the shape of a matrix."""
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """`ndim` index vectors of the main diagonal of an array whose axes have size `n`."""
    n, ndim = canonical_dim(n, "diag_indices"), canonical_dim(ndim, "diag_indices")
    if ndim > 64:
        raise ValueError(f"diag_indices: ndim {ndim} given; at most 64 is possible.")
    return (lax_creation.iota(dtypes.default_int(), n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """`diag_indices` of an array with at least two axes of one size."""
    shape = _shaped("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: shape {shape} given; at least two axes, of one size, "
                         "are required.")
    return diag_indices(shape[0], len(shape))


@fused(static=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with vector `v` on diagonal `k`, or diagonal `k` of matrix `v`."""
    (x,) = array_args("diag", v)
    if len(x.shape) == 2:
        return diagonal_of(x, static_int(k, "diag", "k"), 0, 1)
    if len(x.shape) != 1:
        raise ValueError(f"diag: {x.aval} given; a vector or a matrix is required.")
    k = static_int(k, "diag", "k")
    n = x.shape[0] + abs(k)
    padded = slicing.pad(x, literal(0, x.dtype), [(max(0, k), max(0, -k), 0)])
    columns = lax_shape.broadcast_in_dim(padded, (n, n), (1,))
    return choose(eq(*_shifted("diag", (n, n), k)), columns, full((n, n), 0, x.dtype))


@fused(static=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with all elements of `v`, in row-major order, on diagonal `k`."""
    (x,) = array_args("diagflat", v)
    return diag(lax_shape.reshape(_lead(x, x.shape), (prod(x.shape),)), k)


def diagonal_of(x: Any, offset: int, axis1: int, axis2: int) -> Any:
    """Diagonal `offset` over two axes, as the last axis: one slice of the flattened pair.

    In row-major order the elements of a diagonal lie `columns + 1` apart.
    """
    axes = [i for i in range(x.ndim) if i not in (axis1, axis2)]
    x = lax_shape.transpose(x, (*axes, axis1, axis2))
    n, m = x.shape[-2:]
    top, left = max(0, -offset), max(0, offset)
    size = maximum(0, minimum(n - top, m - left))
    batch = x.shape[:-2]
    if size == 0:
        return full((*batch, 0), 0, x.dtype)
    x = slicing.slice(x, (0,) * len(batch) + (top, left), (*batch, top + size, left + size))
    flat = lax_shape.reshape(x, (*batch, size * size))
    return slicing.slice_in_dim(flat, 0, size * size, size + 1, len(batch))


@fused(static=("N", "increasing",))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """x[n] -> [n, N]: the powers N-1 … 0 (0 … N-1 if increasing) of each element."""
    (x,) = array_args("vander", x)
    if len(x.shape) != 1:
        raise ValueError(f"vander: {x.aval} given; a vector is required.")
    columns = x.shape[0] if N is None else static_int(N, "vander", "N")
    if not 0 <= columns < 2**31:
        raise ValueError(f"vander: N {columns} given; a number in [0, 2**31) is required.")
    powers = range(columns) if increasing else range(columns - 1, -1, -1)
    if not columns:
        return full((x.shape[0], 0), 0, x.dtype)
    return slicing.concatenate([lax_shape.expand_dims(integer_pow(x, p), (1,))
                                for p in powers], 1)
