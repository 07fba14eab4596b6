"""NumPy's promotion: operands of any dtypes and shapes become operands that lax accepts.

`binary` is the hot path of every operator. Avals are interned, so operands that need nothing are
found by one identity test; everything else follows a plan memoised per tuple of avals. Python and
NumPy scalars become literals of the result dtype, never recorded conversions or broadcasts.
"""
# Operands are tried for an aval rather than asked for their type: it is faster.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn, TypeAlias, final

import numpy as np

from ..base import config, lib, source
from ..base.errors import said
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike, DType, DTypeLike, T
from ..base.util import Memo, memoize
from ..core import tags, templates
from ..core.ir import Literal
from ..core.primitive import Primitive
from ..core.trace import SCALAR_TYPES, Tracer, ctx, describe, literal, typeof
from ..devices.array import array_from_numpy
from ..lax import comparison
from ..lax.comparison import select_n_p
from ..lax.convert import convert_element_type_p
from ..lax.shape import broadcast_in_dim_p, broadcast_scalar
from ..runtime.eager import result_array
from ..types import dtypes
from ..types.avals import AbstractValue, ShapedArray, ShapeDtypeStruct, make_aval, scalar_aval
from ..types.memory import Space
from ..types.shape import SymbolicDim, broadcast_shapes

BOOL = dtypes.as_dtype(bool)
_WIDE = make_aval((), dtypes.as_dtype("int64"), True)   # of Python ints, where int64 is no dtype

_x64, _mode = config.enable_x64, config.numpy_dtype_promotion
_rank_mode = config.numpy_rank_promotion
_plans: Memo = Memo(16384)
_ARRAY_TYPES = Tracer, lib.ArrayImpl

PYTHON_NUMBERS: tuple[type[Any], ...] = (bool, int, float, complex)
_PYTHON_CAST: dict[str, Callable[[Any], Any]] = {
    "b": bool, "i": int, "u": int, "f": float, "c": complex, "float0": bool}


# The hot path ------------------------------------------------------------------------------------

def binary(prim: Primitive, x: ArrayLike, y: ArrayLike,
           special: tuple[str, Any] | None = None) -> Array:
    """Bind a two-operand primitive after promotion.

    `special` is (kind of dtype, the primitive bound instead of `prim` for that kind): booleans add
    by `or`, complex numbers compare in lexicographic order.
    """
    # `type(x) is type(y)` (30 ns) keeps Python scalars from raising AttributeError (400 ns).
    if type(x) is type(y):
        try:
            if x.aval is y.aval and type(x).aval:
                if special is not None and x.aval.dtype.kind == special[0]:
                    prim = special[1]
                return prim.bind(x, y)
        except AttributeError:
            pass
    elif type(y) in SCALAR_TYPES:
        z = literal_for(x, y)
        if z is not None and (special is None or z.aval.dtype.kind != special[0]):
            return prim.bind(x, z)
    elif type(x) in SCALAR_TYPES:
        z = literal_for(y, x)
        if z is not None and (special is None or z.aval.dtype.kind != special[0]):
            return prim.bind(z, y)
    if prim in _COMPARISONS and (type(x) is int or type(y) is int):
        known = _beyond(prim, x, y)
        if known is not None:
            return known
    trace = ctx.trace
    args = (prim, x, y, *(special or ()))
    if trace.recorded:
        return templates.call(trace, _promoted, args, {})
    return _promoted(*args)


def _promoted(prim: Primitive, x: Any, y: Any, kind: str = "", instead: Any = None) -> Any:
    """`binary` of operands that change before they are bound."""
    name = prim.numpy_name or prim.name
    a, b = promote(name, x, y, scalars=prim.scalars)
    if kind and a.dtype.kind == kind:
        a, b = promote(name, x, y)
        prim = instead
    return prim.bind(a, b)


def literal_for(x: ArrayLike, scalar: ArrayLike) -> Literal | None:
    """`scalar` as a literal of the dtype of `x`; None where `x` has to change too, or is bool.

    None also for an int that the dtype does not hold.
    """
    try:
        aval, cast, low, high = scalar_plan(type(x).aval and x.aval, type(scalar), _x64.value,
                                            _mode.value)
    except AttributeError:
        return None
    if aval is None:
        return None
    if cast is not None:
        scalar = cast(scalar)
    if low is not None and not low <= scalar <= high:
        return None
    return Literal(scalar, aval)


@memoize(4096)
def scalar_plan(x: object, kind: type, x64: bool, mode: str) -> tuple:
    """How a Python number is written beside an operand, at these two options.

    (aval of the literal, cast or None, smallest and largest int or None); aval None: no fast way.
    """
    weak = kind is not bool
    if not isinstance(x, ShapedArray) or dtypes.is_extended(x.dtype):
        return None, None, None, None
    dtype, weak = dtypes.promote_types(x.dtype, dtypes.python_scalar_dtype(kind), x.weak_type, weak)
    if dtype != x.dtype or dtype == BOOL or weak != x.weak_type:
        return None, None, None, None
    cast = _PYTHON_CAST[dtypes.scalar_kind(dtype)]
    low = high = None
    if dtypes.is_integer(dtype):
        low, high = dtypes.integer_range(dtype)
    return make_aval((), dtype, weak), None if cast is kind else cast, low, high


_COMPARISONS = {comparison.eq_p: operator.eq, comparison.ne_p: operator.ne,
                comparison.lt_p: operator.lt, comparison.le_p: operator.le,
                comparison.gt_p: operator.gt, comparison.ge_p: operator.ge}


def _beyond(prim: Primitive, x: Any, y: Any) -> Any:
    """The comparison of integers with a Python int beyond their dtype, which is the same for all.

    None for every other comparison.
    """
    number, other = (x, y) if type(x) is int else (y, x)
    if not hasattr(other, "dtype"):
        return None
    aval = typeof(other)
    if not isinstance(aval, ShapedArray) or not dtypes.is_integer(aval.dtype):
        return None
    if dtypes.fits(number, aval.dtype):
        return None
    side = 1 if number > 0 else -1
    same = _COMPARISONS[prim](side, 0) if number is x else _COMPARISONS[prim](0, side)
    return to_array(broadcast_to(Literal(same, make_aval((), BOOL)), aval.shape))


def _wrapped(name: str, value: int, aval: ShapedArray) -> int:
    """A Python int outside the dtype, modulo its range as C converts; OverflowError beyond int."""
    if not dtypes.fits(value, dtypes.default_int()):
        raise OverflowError(f"{name}: the Python int {value} given with an operand of dtype "
                            f"{aval.dtype};\n  it fits neither that dtype nor "
                            f"{dtypes.default_int()}; use a float, or enable x64.")
    return int(np.asarray(value).astype(aval.dtype))


# One operand -------------------------------------------------------------------------------------

def refuse(name: str, x: object, position: int) -> NoReturn:
    """Raise the TypeError for anything but arrays and numbers."""
    kind = type(x).__name__
    remedy = ("\n  convert it with olympus.numpy.asarray, whose cost is then visible"
              if isinstance(x, (list, tuple)) else " pass numbers or arrays")
    raise TypeError(f"{name}: operand {position} is of type {kind}; an array or a number is "
                    f"required;{remedy}.")


def operand(name: str, x: Any, position: int = 0) -> Operand:
    """`x` as something that has `aval`, `shape` and `dtype`; Python and NumPy scalars as literals.

    Raises TypeError for lists, strings, None and other objects.
    """
    kind = type(x)
    if hasattr(kind, "aval"):       # its class's: other objects may pass all attributes on
        aval = x.aval
        if isinstance(aval, ShapedArray):
            if kind is ShapeDtypeStruct:
                refuse(name, x, position)
            return x
        if isinstance(aval, AbstractValue):
            if aval.mutable and not isinstance(x, Tracer):  # as `__array__` says it to C++
                raise TypeError(f"{name}: a reference {aval} given; an array is required; pass "
                                "ref[...], its content.")
            what = describe(x) if isinstance(x, Tracer) else (
                f"a {'value of type' if aval.is_high else 'reference'} {aval}")
            instead = ("define an operation on it as an olympus.experimental.hiolympus.HiPrim"
                       if aval.is_high else "read a reference with ref[...]")
            raise TypeError(f"{name}: operand {position} is {what}; an array is required; "
                            f"{instead}.")
    if kind in SCALAR_TYPES:
        if kind is int and not -2**31 <= x < 2**31 and not dtypes.fits(x, dtypes.default_int()):
            return WideInt(name, x, scalar_aval(int))
        return _python_literal(name, x, scalar_aval(kind))
    if isinstance(x, (np.ndarray, np.generic)):
        return _numpy_operand(name, x, position)
    if isinstance(x, SymbolicDim):
        return Literal(x, scalar_aval(int))
    for base in PYTHON_NUMBERS:     # subclasses: IntEnum and the like
        if isinstance(x, base):
            return operand(name, base(x), position)
    if (as_array_method := array_method(x)) is not None:
        return operand(name, as_array_method(), position)
    refuse(name, x, position)


def _python_literal(name: str, x: ArrayLike, aval: ShapedArray) -> Literal:
    kind = dtypes.scalar_kind(aval.dtype)
    if dtypes.is_extended(aval.dtype):
        raise TypeError(f"{name}: the number {x} given for {aval.dtype}; operands of that dtype "
                        "are required.")
    value = _PYTHON_CAST[kind](x)
    if kind in "iu" and not dtypes.fits(value, aval.dtype):
        value = _wrapped(name, value, aval)
    return Literal(value, aval)


@final
class NumpyOperand:
    """A NumPy array with its aval, until promotion has settled which dtype it is put under."""

    __slots__ = ("value", "aval")

    def __init__(self, value: np.ndarray, aval: ShapedArray) -> None:
        self.value, self.aval = value, aval


@final
class WideInt:
    """A Python int beyond the default dtype, until promotion finds one that holds it, or none."""

    __slots__ = ("name", "value", "aval")

    def __init__(self, name: str, value: int, aval: ShapedArray) -> None:
        self.name, self.value, self.aval = name, value, aval    # whose operand it is


Operand: TypeAlias = Array | NumpyOperand | WideInt      # which has an aval


def _numpy_operand(name: str, x: Any, position: int) -> Array | NumpyOperand:
    try:
        aval = typeof(x)
    except TypeError:
        raise TypeError(f"{name}: operand {position} is a NumPy array of dtype {x.dtype};\n  a "
                        "numeric or boolean dtype is required; convert it first.") from None
    if not x.ndim:
        return Literal(np.asarray(x).astype(aval.dtype)[()], aval)
    return NumpyOperand(x, aval)


def convert(x: Any, dtype: DType, weak_type: bool = False) -> Array:
    """An operand with another dtype or weak type; literals and Python scalars change in place."""
    if type(x) in SCALAR_TYPES:
        x = operand("convert", x)
    if type(x) is WideInt:
        return _python_literal(x.name, x.value, make_aval((), dtype, weak_type))
    if type(x) is Literal:
        return _convert_literal(x, dtype, weak_type)
    if type(x) is NumpyOperand:
        x = array_from_numpy(x.value)
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type, sharding=None)


def as_bool(x: Array) -> Array:
    """An operand as booleans: whether elements are not zero."""
    return x if x.dtype == BOOL else comparison.ne(x, literal(0, x.dtype))


def _convert_literal(x: Literal, dtype: DType, weak_type: bool) -> Literal:
    aval = make_aval((), dtype, weak_type)
    if isinstance(x.raw, SymbolicDim):
        return Literal(x.raw, aval)
    kind, old = dtypes.scalar_kind(dtype), dtypes.scalar_kind(x.aval.dtype)
    if type(x.raw) in SCALAR_TYPES and not (old == "c" and kind != "c"):
        if not (kind in "iu" and old == "f"):
            return _python_literal("promotion", x.raw, aval)
    value = np.asarray(x.raw)
    value = value.real if old == "c" and kind != "c" else value
    return Literal(dtypes.converted(value, dtype)[()], aval)


def warn_complex(name: str, aval: ShapedArray, dtype: DTypeLike) -> None:
    """Warn that imaginary parts are dropped."""
    source.warn(f"{name}: {aval} converted to {dtypes.long_name(dtype)}; casting complex "
                "values to real discards the imaginary part; use x.real.",
                np.exceptions.ComplexWarning)


# Several operands --------------------------------------------------------------------------------

_NO_AXES = frozenset[Hashable]()    # one object for all plans


def _result_type(name: str, avals: tuple, inexact: bool
                 ) -> tuple[DType, bool, tuple[int, ...], Space, frozenset[Hashable]]:
    """(dtype, weak type, shape, memory space, axes along which it varies) of the result; errors
    name the operation.
    """
    space = next((a.memory_space for a in avals if a.tagged and a.shape), Space.Device)
    vma = frozenset().union(*[a.vma for a in avals if a.tagged]) or _NO_AXES
    return *result_type(name, avals, inexact), result_shape(name, avals), space, vma


def result_type(name: str, avals: Sequence[ShapedArray], inexact: bool = False
                ) -> tuple[DType, bool]:
    """(dtype, weak type) of the promotion of types; errors name the operation."""
    try:
        dtype, weak = dtypes.promote_many(tuple([(a.dtype, a.weak_type) for a in avals]))
    except dtypes.TypePromotionError as error:
        if not any(dtypes.is_extended(a.dtype) for a in avals):
            raise dtypes.TypePromotionError(f"{name}: {said(error)}") from None
        shown = ", ".join(dtypes.long_name(a.dtype) for a in avals)
        raise TypeError(f"{name}: {name} does not accept dtypes {shown}; keys never mix with "
                        "another dtype.") from None
    if inexact and not dtypes.is_extended(dtype):
        dtype = dtypes.to_inexact_dtype(dtype)
    return (dtypes.canonical_dtype(dtype) if any(a is _WIDE for a in avals) else dtype), weak


def _promotable(name: str, x: int, position: int) -> Operand:
    """`operand` for Python ints, also those that only floats and wide dtypes take."""
    if not _x64.value and not -2**31 <= x < 2**31:
        return WideInt(name, x, _WIDE)
    return operand(name, x, position)


def result_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The shape that operands broadcast to; ValueError-like TypeError names them."""
    try:
        return broadcast_shapes(*[a.shape for a in avals])
    except ValueError:
        shown, shapes = " and ".join(map(str, avals)), ", ".join(str(a.shape) for a in avals)
        raise TypeError(f"{name}: operands {shown} given: {name} got incompatible shapes for "
                        f"broadcasting: {shapes}. Aligned at the right, the sizes of each axis "
                        "must be equal or 1; reshape an operand, or insert an axis with "
                        "x[..., None].") from None


def check_ranks(name: str, avals: Sequence[ShapedArray], core: Sequence[int] = ()) -> None:
    """Warn or raise, as `olympus_numpy_rank_promotion` says, where ranks differ.

    Scalars go with everything; operands with `core` axes each that do not broadcast, do not.
    """
    mode = _rank_mode.value
    ranks = ({a.ndim - n for a, n in zip(avals, core, strict=True)} if core else
             {a.ndim for a in avals if a.ndim})
    if mode == "allow" or len(ranks) < 2:
        return
    besides = f" besides the last {' and '.join(map(str, core))} axes" if core else ""
    message = (f"{name}: operands {' and '.join(map(str, avals))} given; equal ranks{besides} are "
               f"required, because olympus_numpy_rank_promotion is {mode!r}; reshape one, or "
               "insert an axis with x[..., None].")
    if mode == "raise":
        raise ValueError(message)
    source.warn(message)


def promote(name: str, *xs: object, inexact: bool = False, scalars: bool = False) -> list[Array]:
    """Operands with one dtype and one shape, literals (and `scalars`) aside, as lax requires.

    Raises TypeError for operands that are no arrays or do not broadcast, TypePromotionError for
    dtypes without a join.
    """
    xs = tuple([_promotable(name, x, i) if type(x) is int else operand(name, x, i)
                for i, x in enumerate(xs)])
    avals = tuple([x.aval for x in xs])
    key = (avals, inexact, _x64.value, _mode.value)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = _result_type(name, avals, inexact)
    if _rank_mode.value != "allow":
        check_ranks(name, avals)
    dtype, weak, shape, space, vma = plan
    return [_fit(x, dtype, weak, None if scalars and not x.aval.shape else shape, space, vma)
            for x in xs]


def _fit(x: Any, dtype: DType, weak: bool, shape: tuple[int, ...] | None,
         space: Space = Space.Device, vma: frozenset[Hashable] = _NO_AXES) -> Array:
    """One operand with the dtype and shape of a plan."""
    if type(x) is NumpyOperand:
        x = array_from_numpy(x.value.astype(dtype, copy=False), weak)
    elif type(x) is WideInt or (x.aval.dtype != dtype or (weak and not x.aval.weak_type)
          or (type(x) is Literal and x.aval.weak_type != weak)):
        x = convert(x, dtype, weak)
    if shape is None or type(x) is Literal or x.shape == shape:
        return x
    if vma and config.auto_pcast.value:
        # Before the broadcast: devices exchange the cotangent of `x`, not the larger one.
        x = tags.pvary(x, vma)
    return broadcast_to(x, shape) if x.shape else broadcast_scalar(x, shape, space)


def promote_dtypes(name: str, *xs: object, inexact: bool = False) -> list[Array]:
    """Operands with one dtype, each with its own shape."""
    operands, types, arrays = [], [], True
    for i, x in enumerate(xs):
        if not (isinstance(x, _ARRAY_TYPES) and type(x.aval) is ShapedArray):
            arrays = False
            x = _promotable(name, x, i) if type(x) is int else operand(name, x, i)
        operands.append(x)
        types.append(x.aval)
    avals = tuple(types)
    key = ("dtypes", avals, inexact, _x64.value, _mode.value)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = result_type(name, avals, inexact)
    dtype, weak = plan
    if arrays and False not in [a.dtype == dtype and a.weak_type == weak for a in avals]:
        return operands
    return [_fit(x, dtype, weak, None) for x in operands]


def inexact_dtypes(name: str, *xs: object) -> Sequence[Array]:
    """Arrays and literals at one floating or complex dtype, each with its own shape.

    That of bfloat16 beside integers is bfloat16; strict promotion takes integers as floats, too.
    """
    if _mode.value == "strict":
        xs = tuple(map(inexact, xs))
    return promote_dtypes(name, *xs, inexact=True)


def promote_inexact(name: str, *xs: ArrayLike) -> Sequence[Array]:
    """`promote` to a floating or complex dtype: integers and booleans become float32."""
    return promote(name, *xs, inexact=True)


def array_args(name: str, *xs: object) -> list[Array]:
    """Operands with their own dtypes and shapes, checked to be arrays; none promoted."""
    if len(xs) == 1:        # as a rule: a frame less
        return [plain(operand(name, xs[0]))]
    return [plain(operand(name, x, i)) for i, x in enumerate(xs)]


def plain(x: Operand) -> Array:
    """An operand as a value that primitives take and that has shape and dtype."""
    if type(x) is WideInt:
        return convert(x, x.aval.dtype, True)
    return array_from_numpy(x.value) if type(x) is NumpyOperand else x


def broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` (an array or literal) repeated to a canonical shape that it broadcasts to."""
    old = x.shape
    if old == shape:
        return x
    return broadcast_in_dim_p.bind(x, shape=shape, sharding=None,
                                   broadcast_dimensions=tuple(range(len(shape) - len(old),
                                                                    len(shape))))


def choose(condition: Array, x: Array, y: Array) -> Array:
    """`x` where the condition holds, else `y`: arrays of its shape, or literals, of one dtype."""
    like = next((z.aval for z in (x, y, condition) if type(z) is not Literal and z.shape),
                x.aval)
    x, y = [broadcast_to(z, like.shape) if z.shape or not like.shape else
            broadcast_scalar(z, like.shape, like.memory_space) for z in (x, y)]
    return select_n_p.bind(condition, y, x)


# Families ----------------------------------------------------------------------------------------

def unary(op: Callable[[ArrayLike], Array], x: ArrayLike, name: str = "") -> Array:
    """Apply a lax function of one operand to an array or number of any dtype that it takes.

    Errors say `name`, by default the function's.
    """
    if not (hasattr(type(x), "aval") and isinstance(x.aval, ShapedArray)):
        x = plain(operand(name or op.__name__, x))
    return op(x)


def unary_inexact(op: Callable[[ArrayLike], Array], x: Any, name: str = "") -> Array:
    """Apply a lax function of one operand; integers and booleans become float32 (or float64)."""
    if not (hasattr(type(x), "aval") and isinstance(x.aval, ShapedArray)):
        x = plain(operand(name or op.__name__, x))
    return op(x if x.aval.dtype.kind in "fc" else inexact(x))     # saves two frames


def inexact(x: T) -> T | Array:
    """An array or literal of floating or complex dtype: integers and booleans become float32."""
    aval = x.aval if hasattr(x, "aval") else typeof(x)
    if dtypes.scalar_kind(aval.dtype) in _INEXACT:
        return x
    return convert(x, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)


def to_array(x: Any) -> Array:
    """A result that is an operand itself, as an array: literals are put on the device."""
    return result_array(x)


_INEXACT = frozenset(("f", "c", "key", "extended", "float0"))


def binary_inexact(prim: Primitive, x: ArrayLike, y: ArrayLike) -> Array:
    """Bind a two-operand primitive after promotion to a floating or complex dtype."""
    if type(x) is type(y):
        try:
            if x.aval is y.aval and type(x).aval and dtypes.scalar_kind(x.aval.dtype) in _INEXACT:
                return prim.bind(x, y)
        except AttributeError:
            pass
    x, y = promote(prim.numpy_name or prim.name, x, y, inexact=True, scalars=prim.scalars)
    return prim.bind(x, y)


def refuse_option(name: str, **options: object) -> None:
    """Raise TypeError for NumPy's options that write into or skip parts of an output."""
    for option, value in options.items():
        if value is not None:
            raise TypeError(f"{name}: the argument {option} is given;\n  arrays cannot be written "
                            "to, so only None is accepted; use the result, or olympus.numpy.where.")


def flag(name: str, option: str, value: bool | None) -> bool:
    """A switch as a bool; TypeError for anything but a bool, an int or None."""
    if value is None or isinstance(value, (int, np.bool_, Tracer)):
        return bool(value)      # of a tracer that says what to do instead
    raise TypeError(f"{name}: {option} {value!r} given; True or False is required.")


def refuse_inplace(name: str, inplace: bool) -> None:
    """Raise ValueError for a call that would write into its argument."""
    if inplace:
        raise ValueError(f"{name}: inplace=True given; arrays are immutable; pass inplace=False "
                         "and use the result.")
