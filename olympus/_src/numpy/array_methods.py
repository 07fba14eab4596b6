"""Operators and methods of arrays and tracers: the one table of them.

A method is the function of `olympus.numpy` of the same name wherever their arguments agree. The
tables are installed on two classes: `core.trace.Tracer` and the array class of jaxlib.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..arrays.device import device_put
from ..base import lib, spelling
from ..base.docstrings import unfolded
from ..base.source import api_boundary, filter_traceback
from ..base.typing import Array, ArrayLike, DTypeLike, Value
from ..base.util import KnownTypes, clipped
from ..core.ir import Literal
from ..core.trace import FOREIGN_AVALS, SCALAR_TYPES, Tracer, typeof
from ..jit.fused import begin_with
from ..lax import arithmetic as lax_arithmetic, convert as lax_convert
from ..lax.sharding import reshard
from ..runtime.eager import FAILURES
from ..types import dtypes
from ..types.avals import HIGH
from ..types.shape import SymbolicDim, exceeds, floor_div, static_int
from ..types.sharding import DeviceLike, NamedSharding, ShardingLike
from . import (
    arithmetic, array_memory, logic, manipulation, products, reductions, selection, sorting,
    statistics,
)
from .array_api import VERSIONS
from .conditions import clip as limit
from .creation import check_order, copy
from .eager import array_operator
from .elementary import round as rounded
from .indexing import getitem, nonzero, take
from .joining import repeat, stack, unstack
from .manipulation import reshape, transpose
from .promote import refuse_option
from .updates import at, delitem, setitem

# Types that operators take; every other operand may have an operator of its own, or is refused by
# Python. Subclasses and tracers are added as they are met.
_accepted = KnownTypes(lib.ArrayImpl, Literal, np.ndarray, *SCALAR_TYPES)


# No operators of these take arrays; Python repeats sequences by an integer.
_REFUSED = frozenset((str, bytes, list, tuple, dict, set, type(None)))
_EQUALITIES = frozenset(("equal", "not_equal"))


def _meet(kind: type) -> bool:
    """Whether operators take a type that was not met before."""
    if (issubclass(kind, (Tracer, np.ndarray, np.generic, SymbolicDim, *SCALAR_TYPES))
            or kind in FOREIGN_AVALS or spelling.array_method(kind) is not None):
        _accepted.meet(kind)
        return True
    return False


def _binary(fun: Any, public: Any, swapped: bool, name: str = "") -> Any:
    def method(self: Array, other: ArrayLike) -> object:
        kind = type(other)
        try:
            if kind in _accepted or _meet(kind):
                return fun(other, self) if swapped else fun(self, other)
            if kind in _REFUSED and public.__name__ not in _EQUALITIES and not (
                    self.aval.shape == () and dtypes.is_integer(self.aval.dtype)):
                raise TypeError(
                    f"{public.__name__}: unsupported operand: {self.aval} and {clipped(other)}, of "
                    f"type {kind.__name__}, given; arrays and numbers are required; convert it "
                    "with float or olympus.numpy.asarray.")
        except FAILURES as error:
            # Users' types are looked for after a failure: operations on arrays pay nothing.
            if HIGH and (by_type := _by_type(self, other, name)) is not None:
                return by_type
            begin_with(public, error)
            raise
        return NotImplemented
    return method


def _by_type(self: Value, other: Value, name: str) -> Value:
    """The result of an operator that an operand's type, of a user, defines; None if none does."""
    reflected = f"__{name[3:]}" if name.startswith("__r") and name != "__rshift__" else (
        f"__r{name[2:]}")
    for x, y, method in ((self, other, name), (other, self, reflected)):
        if isinstance(x, Tracer) and x.aval.is_high:
            operator = getattr(type(x.aval), method, None)
            if operator is not None and hasattr(operator, "fun"):
                return operator.fun(x, y)
        elif type(x) in FOREIGN_AVALS and typeof(x).is_high:
            return NotImplemented       # an object has operators of its own
    return None


def _operator(fun: Any, swapped: bool = False, name: str = "") -> Any:
    """The method of tracers; its `of_arrays` is the arrays' method, which has less to do.
    """
    method = _binary(getattr(fun, "while_tracing", fun), fun, swapped, name)
    of_arrays = _binary(fun, fun, swapped, name)
    if hasattr(fun, "wraps"):
        of_arrays = array_operator(fun, of_arrays, swapped)
    method.of_arrays = of_arrays
    for made in (method, of_arrays):
        made.__doc__, made.__name__ = fun.__doc__, fun.__name__
    return method


_UNROLLED = 32      # elements that iteration reads by one compiled program


# Methods whose arguments differ from the function's ----------------------------------------------

def _iterate(self: Array) -> Iterator[Array]:
    """The slices along the first axis. TypeError for scalars."""
    try:
        if self.aval.mutable:
            raise TypeError(f"iter(): a reference {self.aval} given; an array is required; iterate "
                            "over ref[...], its content.")
        if not self.aval.shape:
            raise TypeError(f"iter(): {self.aval} given; iteration over a 0-d array has no "
                            "meaning; use x.item(), or x[None].")
        self = _with_whole_rows(self)
        if type(self) is lib.ArrayImpl and not exceeds(self.aval.shape[0], _UNROLLED):
            return iter(unstack(self))      # one program
        size = static_int(self.aval.shape[0], "iteration", "size")
    except FAILURES as error:
        filter_traceback(error)
        raise
    return (getitem(self, i) for i in range(size))


@api_boundary
def _reversed(self: Array) -> Iterator[Array]:
    """The slices along the first axis from the last to the first."""
    if not self.aval.shape:
        raise TypeError(f"reversed(): {self.aval} given; an array with an axis is required.")
    size = static_int(self.aval.shape[0], "reversed()", "size")
    self = _with_whole_rows(self)
    return (getitem(self, i) for i in range(size - 1, -1, -1))


def _with_whole_rows(self: Array) -> Array:
    """An array with a part of all slices along the first axis on each device."""
    if not self.aval.tagged or self.aval.sharding.spec[0] is None:
        return self
    where = self.aval.sharding
    mesh = self._sharding.mesh if type(self) is lib.ArrayImpl else where.mesh
    spec = where.spec.update(partitions=(None, *where.spec[1:]))
    return reshard(self, NamedSharding(mesh, spec))


@api_boundary
def _contains(self: Array, item: ArrayLike) -> bool:
    """Whether any element equals the item."""
    return bool(reductions.any(arithmetic.equal(self, item)))


@api_boundary
def _round(self: Array, ndigits: int | None = None) -> Array:
    """`round(x, ndigits)`; integers without `ndigits`, as Python's own."""
    out = rounded(self, 0 if ndigits is None else ndigits)
    return _astype(out, int) if ndigits is None else out


def _astype(self: Array, dtype: DTypeLike, copy: bool = False, device: DeviceLike = None, *,
            order: str = "K", casting: str = "unsafe", subok: bool = True) -> Array:
    """The elements converted to another dtype, if `casting` allows it: see `olympus.numpy.astype`.

    Args:
      dtype: anything that names a dtype; None is the default float dtype.
      copy: whether the result must have memory of its own.
      device: a device or sharding to put the result on.
      order: "K", "C" or "A", since programs see no memory order.
      casting: "no", "equiv", "safe", "same_kind" or "unsafe", NumPy's rules.
      subok: has no effect, since arrays have no subclasses.
    Returns: An array of the same shape.

    Raises TypeError for a conversion that `casting` does not allow.

    >>> import olympus.numpy as onp
    >>> onp.array([1.7, -1.7]).astype(onp.int32)
    Array([ 1, -1], dtype=int32)
    """
    try:
        check_order("astype", order)
        dtypes.check_casting("astype", casting)
        if casting != "unsafe" and not dtypes.can_cast(self.dtype, dtypes.as_dtype(dtype), casting):
            raise TypeError(f"astype: {self.aval} to {dtypes.long_name(dtypes.as_dtype(dtype))} "
                            f"given; a conversion that casting {casting!r} allows is required.")
        return manipulation.astype(self, dtype, copy=copy, device=device)
    except FAILURES as error:
        filter_traceback(error)
        raise


def _reshape(self: Array, *args: Any, order: str = "C", copy: bool | None = None,
             out_sharding: ShardingLike = None) -> Array:
    """The same elements in another shape, given as ints or as a tuple; one may be -1.

    Args:
      args: ints, or one tuple of them.
      order: "C" (last axis fastest) or "F" (first axis fastest).
      copy: accepted; no result shares memory that could be written to.
      out_sharding: how the result is cut over devices; see `lax.with_sharding_constraint`.

    Raises TypeError where the sizes do not fit.

    >>> import olympus.numpy as onp
    >>> onp.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    if type(self) is not lib.ArrayImpl and self.aval.mutable:
        return self.aval.methods["reshape"](self, *args)
    try:
        shape = args[0] if len(args) == 1 else args
        return reshape(self, shape, order, copy=copy, out_sharding=out_sharding)
    except FAILURES as error:
        filter_traceback(error)
        raise


def _transpose(self: Array, *args: Any) -> Array:
    """The axes in another order: reversed without arguments.

    Args: args: each axis once, as ints or as one tuple.

    >>> import olympus.numpy as onp
    >>> onp.ones((2, 3, 4)).transpose(1, 0, 2).shape
    (3, 2, 4)
    """
    if type(self) is not lib.ArrayImpl and self.aval.mutable:
        return self.aval.methods["transpose"](self, *args)
    try:
        if not args or (len(args) == 1 and args[0] is None):
            return transpose(self)
        return transpose(self, args[0] if len(args) == 1 and not isinstance(args[0], int) else args)
    except (*FAILURES, IndexError) as error:
        filter_traceback(error)
        raise


@api_boundary
def _compress(self: Array, condition: ArrayLike, axis: int | None = None, *, out: None = None,
              size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements along an axis where the condition holds: `olympus.numpy.compress`.

    Args:
      condition: a vector of booleans, concrete unless `size` is given.
      axis: the axis; the flattened array if None.
      out: must be None; arrays cannot be written to.
      size: how many elements to return.
      fill_value: fills the result where there are fewer.
    Returns: An array of the same dtype.

    >>> import olympus.numpy as onp
    >>> print(onp.array([5, 6, 7]).compress(onp.array([True, False, True])))
    [5 7]
    """
    return selection.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _flatten(self: Array, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """The elements as a vector.

    Args:
      order: "C" (last axis fastest) or "F" (first axis fastest).
      out_sharding: how the result is cut over devices; see `lax.with_sharding_constraint`.
    Returns: A vector of the same dtype.

    >>> import olympus.numpy as onp
    >>> print(onp.array([[1, 2], [3, 4]]).flatten("F"))
    [1 3 2 4]
    """
    return manipulation.ravel(self, order, out_sharding=out_sharding)


def _clip(self: Array, min: int | None = None, max: int | None = None, out: None = None) -> Array:
    """The elements limited to [min, max].

    Args:
      min, max: arrays or numbers that broadcast; None is no limit.
      out: must be None; arrays cannot be written to.
    Returns: An array of the promoted dtype.

    >>> import olympus.numpy as onp
    >>> print(onp.array([1, 5, 9]).clip(2, 6))
    [2 5 6]
    """
    refuse_option("clip", out=out)
    return limit(self, min, max)


def _conjugate(self: Array) -> Array:
    """The complex conjugate; real numbers themselves.

    Returns: An array of the same shape and dtype.

    >>> import olympus.numpy as onp
    >>> print(onp.array([1 + 2j]).conj())
    [1.-2.j]
    """
    return arithmetic.conjugate(self)


def _copy(self: Array, order: str = "C") -> Array:
    """The same elements in memory of their own; since arrays are immutable, only donation shows it.

    Args: order: "K", "C" or "A", since programs see no memory order.
    Returns: An array of the same shape and dtype, where the array is.

    >>> import olympus.numpy as onp
    >>> print(onp.array([1, 2]).copy())
    [1 2]
    """
    return copy(self, order)


def _deepcopy(self: Array, memo: object) -> Array:
    """The same array."""
    return copy(self)


@api_boundary
def _to_device(self: Array, device: DeviceLike, *, stream: None = None) -> Array:
    """The array on a device, or cut over several by a sharding (array API standard).

    Args:
      device: a device or a sharding.
      stream: must be None: the runtime orders transfers itself.
    Returns: An array of the same elements.

    Raises TypeError for a stream.

    >>> import olympus
    >>> import olympus.numpy as onp
    >>> print(onp.ones(2).to_device(olympus.devices()[0]))
    [1. 1.]
    """
    if stream is not None:
        raise TypeError("to_device: stream given; only None is accepted; the runtime orders "
                        "transfers itself.")
    return device_put(self, device)


@api_boundary
def _byteswap(self: Array, inplace: bool = False) -> Array:
    """The bytes of each element reversed, in a new array; complex numbers are two elements.

    Args: inplace: must be False.
    Returns: An array of the same shape and dtype.

    >>> import olympus.numpy as onp
    >>> onp.array([1, 256], onp.int16).byteswap()
    Array([256,   1], dtype=int16)
    """
    if inplace:
        raise ValueError("byteswap: inplace=True given; arrays are immutable; use the result.")
    if self.dtype.itemsize == 1 or dtypes.is_bool(self.dtype):
        return self
    if dtypes.is_complex(self.dtype):
        return lax_arithmetic.complex(self.real.byteswap(), self.imag.byteswap())
    pieces = lax_convert.bitcast_convert_type(self, np.uint8)
    return lax_convert.bitcast_convert_type(manipulation.flip(pieces, -1), self.dtype)


@api_boundary
def _view(self: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """The bits read as another dtype; of another width, the last axis shrinks or grows.

    Booleans are bytes of 0 and 1; every byte but 0 is read as True; complex numbers are pairs. The
    result is a new array, not NumPy's second name of the same memory.

    Args:
      dtype: the dtype to read the bits as.
      type: must be None: arrays have no subclasses.

    Raises ValueError where the last axis is not whole in items of the new width.

    >>> import olympus.numpy as onp
    >>> onp.array([1.0]).view(onp.int32)
    Array([1065353216], dtype=int32)
    """
    if type is not None:
        raise TypeError(f"view: type={type!r} given; None is required, since arrays have no "
                        "subclasses; for another shape use reshape.")
    to = self.dtype if dtype is None else dtypes.requested_dtype("view", dtype)
    if to == self.dtype:
        return self
    old, new = dtypes.itemsize_bits(self.dtype), dtypes.itemsize_bits(to)
    if dtypes.is_bool(self.dtype):
        return _view(lax_convert.convert_element_type(self, np.uint8), to)
    if dtypes.is_bool(to):
        return arithmetic.not_equal(_view(self, np.uint8), 0)
    if dtypes.is_complex(self.dtype) and self.shape:
        pairs = stack([self.real, self.imag], -1)
        return _view(reshape(pairs, (*self.shape[:-1], -1)), to)
    if dtypes.is_complex(to) and self.shape and self.shape[-1] * old % new == 0:
        pairs = _view(self, dtypes.to_real_dtype(to))
        return lax_arithmetic.complex(pairs[..., ::2], pairs[..., 1::2])
    if old == new and not dtypes.is_complex(self.dtype):
        return lax_convert.bitcast_convert_type(self, to)
    shape = self.shape
    if not shape or (new > old and shape[-1] * old % new):
        raise ValueError(f"view: {self.aval} as {dtypes.long_name(to)} given; a last axis that "
                         f"is whole in items of {new} bits is required.")
    if new < old:
        out = lax_convert.bitcast_convert_type(self, to)
        return reshape(out, (*shape[:-1], shape[-1] * (old // new)))
    ratio = new // old
    return lax_convert.bitcast_convert_type(
        reshape(self, (*shape[:-1], floor_div(shape[-1], ratio), ratio)), to)


@api_boundary
def _getfield(self: Array, dtype: DTypeLike, offset: int = 0) -> Array:
    """Some of the bytes of each element read as another dtype.

    Args:
      dtype: the dtype to read them as.
      offset: the first of the bytes, the least significant one being 0.

    Returns:
      A new array of that dtype and the same shape, not NumPy's second name of the same memory.

    Raises ValueError where the bytes are not inside of the element, and for narrower dtypes.

    >>> import olympus.numpy as onp
    >>> print(onp.array([1 + 2j]).getfield(onp.float32, 4))
    [2.]
    """
    to, offset = dtypes.requested_dtype("getfield", dtype), static_int(offset, "getfield", "offset")
    old, new = dtypes.itemsize_bits(self.dtype), dtypes.itemsize_bits(to)
    if old < 8 or new < 8 or offset < 0 or 8 * offset + new > old:
        raise ValueError(f"getfield: {self.aval} as {dtypes.long_name(to)} from byte {offset} on "
                         f"given; bytes of an element are required, which has {old} bits.")
    data = _view(reshape(self, (*self.shape, 1)), np.uint8)
    return reshape(_view(data[..., offset:offset + new // 8], to), self.shape)


@api_boundary
def _namespace(self: Array, /, *, api_version: str | None = None) -> ModuleType:
    """The module with the functions of the array API standard."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"__array_namespace__: api_version {api_version!r} given; None or one of "
                         f"{', '.join(VERSIONS)} is required.")
    return importlib.import_module(spelling.namespace)


# Python asks the second operand for these, too, where the first one does not know it.
_REFLECTED = {
    "add": arithmetic.add, "sub": arithmetic.subtract, "mul": arithmetic.multiply,
    "truediv": arithmetic.divide, "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder, "divmod": arithmetic.divmod, "pow": arithmetic.power,
    "matmul": products.matmul, "and": logic.bitwise_and, "or": logic.bitwise_or,
    "xor": logic.bitwise_xor, "lshift": logic.left_shift, "rshift": logic.right_shift,
}
OPERATORS: dict[str, Callable[..., Any]] = {
    **{f"__{name}__": _operator(fun, False, f"__{name}__") for name, fun in _REFLECTED.items()},
    **{f"__r{name}__": _operator(fun, True, f"__r{name}__") for name, fun in _REFLECTED.items()},
    "__eq__": _operator(arithmetic.equal), "__ne__": _operator(arithmetic.not_equal),
    "__lt__": _operator(arithmetic.less), "__le__": _operator(arithmetic.less_equal),
    "__gt__": _operator(arithmetic.greater), "__ge__": _operator(arithmetic.greater_equal),
    "__neg__": arithmetic.negative, "__pos__": arithmetic.positive, "__abs__": arithmetic.absolute,
    "__invert__": logic.bitwise_not, "__round__": _round,
    "__getitem__": getitem, "__setitem__": setitem, "__delitem__": delitem, "__iter__": _iterate,
    "__reversed__": _reversed, "__contains__": _contains,
    "__copy__": _copy, "__deepcopy__": _deepcopy, "__array_namespace__": _namespace,
}

METHODS: dict[str, Callable[..., Any]] = {
    "all": reductions.all, "any": reductions.any,
    "argmax": reductions.argmax, "argmin": reductions.argmin,
    "argpartition": sorting.argpartition, "argsort": sorting.argsort,
    "astype": _astype, "byteswap": _byteswap, "choose": selection.choose,
    "clip": _clip, "compress": _compress,
    "conj": _conjugate, "conjugate": _conjugate,
    "copy": _copy, "cumprod": reductions.cumprod,
    "cumsum": reductions.cumsum, "diagonal": products.diagonal,
    "dot": products.dot, "flatten": _flatten,
    "max": reductions.max, "mean": statistics.mean,
    "min": reductions.min, "nonzero": nonzero,
    "prod": reductions.prod, "ptp": statistics.ptp,
    "ravel": manipulation.ravel, "repeat": repeat,
    "reshape": _reshape, "round": rounded,
    "searchsorted": sorting.searchsorted, "sort": sorting.sort,
    "squeeze": manipulation.squeeze, "std": statistics.std,
    "sum": reductions.sum, "swapaxes": manipulation.swapaxes,
    "take": take, "to_device": _to_device, "trace": products.trace,
    "transpose": _transpose, "var": statistics.var,
    "view": _view, "getfield": _getfield,
}

PROPERTIES: dict[str, property] = {
    "T": property(transpose, doc="The axes in reverse order."),
    "mT": property(manipulation.matrix_transpose, doc="The last two axes exchanged."),
    "real": property(arithmetic.real, doc="The real part."),
    "imag": property(arithmetic.imag, doc="The imaginary part."),
    "at": property(at, doc=at.__doc__),
    "flat": property(manipulation.ravel, doc="The elements as a vector, to read and iterate."),
}


def _reversed_axes(self: Array) -> Array:
    return self.aval.methods["T"].fget(self) if self.aval.mutable else transpose(self)


def install() -> None:
    """Put the tables on arrays and tracers."""
    tables = (OPERATORS, METHODS, PROPERTIES, array_memory.METHODS, array_memory.PROPERTIES)
    for name, value in itertools.chain.from_iterable(table.items() for table in tables):
        setattr(Tracer, name, value)
        setattr(lib.ArrayImpl, name, getattr(value, "of_arrays", value))
    Tracer.T = property(_reversed_axes, doc=PROPERTIES["T"].__doc__)
    # The type that users name holds the same, for help and for completion in editors.
    for name in {name for name in dir(lib.ArrayImpl) if not name.startswith("_")}:
        value = getattr(lib.ArrayImpl, name)
        setattr(lib.Array, name, value)
        if isinstance(value, FunctionType) and value.__doc__:
            value.__doc__ = unfolded(value.__doc__)


install()
