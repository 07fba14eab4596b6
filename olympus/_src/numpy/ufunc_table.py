"""The table of ufuncs: dtypes and identities, and the methods that a primitive does at once.

Importing it puts the attributes of `ufunc` on the elementwise functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, DTypeLike
from ..lax import cumulative, reduce
from ..types.shape import canonical_axes
from . import arithmetic, elementary, integers, logic, products, reductions, trigonometry
from .indexing import write
from .options import PARAMETERS, Loops
from .promote import BOOL, broadcast_to, choose, convert
from .ufunc import reduced_at, ufunc

# A pattern of dtypes (see `Loops`), the kinds of dtype that x stands for, and the functions.
_LOOPS = (
    ("x->x", "fc", "exp exp2 expm1 log log1p log2 log10 sqrt sin cos tan arcsin arccos arctan sinh "
                   "cosh tanh arcsinh arccosh arctanh rint reciprocal"),
    ("x->x", "f", "cbrt deg2rad rad2deg degrees radians fabs spacing"),
    ("x->x", "biuf", "floor ceil trunc"),
    ("x->x", "iufc", "negative sign square"),
    ("x->x", "biufc", "positive conjugate"),
    ("x->x", "biu", "invert"),
    ("x->r", "biufc", "absolute"),
    ("x->B", "iu", "bitwise_count"),
    ("x->?", "biufc", "logical_not isnan isinf isfinite"),
    ("x->?", "biuf", "signbit"),
    ("x->xx", "f", "modf"),
    ("x->xi", "f", "frexp"),
    ("xi->x", "f", "ldexp"),
    ("xx->x", "biufc", "add multiply maximum minimum fmax fmin"),
    ("xx->x", "biufc", "matmul vecdot matvec vecmat"),
    ("xx->x", "iufc", "subtract power"),
    ("xx->x", "iuf", "floor_divide remainder fmod"),
    ("xx->x", "iu", "left_shift right_shift gcd lcm"),
    ("xx->x", "biu", "bitwise_and bitwise_or bitwise_xor"),
    ("xx->x", "fc", "divide float_power logaddexp logaddexp2 arctan2"),
    ("xx->x", "f", "hypot copysign nextafter heaviside"),
    ("xx->xx", "iuf", "divmod"),
    ("xx->?", "biufc", "equal not_equal less less_equal greater greater_equal logical_and "
                       "logical_or logical_xor"),
)
_IDENTITIES = {"add": 0, "multiply": 1, "logical_and": True, "logical_or": False,
               "logical_xor": False, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0,
               "logaddexp": -np.inf, "logaddexp2": -np.inf, "hypot": 0, "gcd": 0}


# Methods that are one primitive ------------------------------------------------------------------

def _sum(total: Callable[..., Array], x: Array, *, axis: object, dtype: DTypeLike, keepdims: bool,
         initial: ArrayLike, where: ArrayLike) -> Array:
    return total(x, axis, dtype, None, keepdims, initial, where)


def _truth(total: Callable[..., Array], combine: Callable[..., Array], x: Array, *, axis: object,
           dtype: DTypeLike, keepdims: bool, initial: ArrayLike | None, where: ArrayLike) -> Array:
    truth = total(x, axis, None, keepdims, where=where)
    return truth if initial is None else combine(truth, initial)


def _extremum(total: Callable[..., Array], x: Array, *, axis: object, dtype: DTypeLike,
              keepdims: bool, initial: ArrayLike, where: ArrayLike) -> Array:
    return total(x, axis, None, keepdims, initial, where)


def _all_bits(total: Callable[..., Array], combine: Callable[..., Array], x: Array, *, axis: object,
              dtype: DTypeLike, keepdims: bool, initial: ArrayLike | None, where: Array | None
              ) -> Array:
    neutral = _IDENTITIES[combine.__name__]
    axes = canonical_axes(axis, x.ndim, f"{combine.__name__}.reduce")
    if where is not None:
        x = choose(broadcast_to(where, x.shape), x, convert(neutral, x.dtype))
    bits = reductions.expand(total(x, axes), axes, keepdims)
    return bits if initial is None else combine(bits, convert(initial, x.dtype))


_REDUCE = {
    "add": partial(_sum, reductions.sum), "multiply": partial(_sum, reductions.prod),
    "logical_and": partial(_truth, reductions.all, logic.logical_and),
    "logical_or": partial(_truth, reductions.any, logic.logical_or),
    "maximum": partial(_extremum, reductions.max), "minimum": partial(_extremum, reductions.min),
    "bitwise_and": partial(_all_bits, reduce.reduce_and, logic.bitwise_and),
    "bitwise_or": partial(_all_bits, reduce.reduce_or, logic.bitwise_or),
    "bitwise_xor": partial(_all_bits, reduce.reduce_xor, logic.bitwise_xor),
}


def _running(op: Callable[..., Array], x: Array, *, axis: int, dtype: DTypeLike | None) -> Array:
    """Sums and products, in the dtype that `reduce` has."""
    return op(x, axis, reductions.sum_dtype(x.dtype) if dtype is None else dtype)


def _extremes(op: Callable[..., Array], x: Array, *, axis: int, dtype: DTypeLike) -> Array:
    """Running extrema; booleans as the numbers 0 and 1."""
    if x.dtype == BOOL:
        return convert(op(convert(x, np.dtype("uint8")), axis), BOOL)
    return op(x, axis)


_ACCUMULATE = {
    "add": partial(_running, reductions.cumsum), "multiply": partial(_running, reductions.cumprod),
    "maximum": partial(_extremes, cumulative.cummax),
    "minimum": partial(_extremes, cumulative.cummin),
}


def _wide_reduceat(function: Callable[..., Any], x: Array, indices: Array, *, axis: int, dtype: Any
                   ) -> Array:
    dtype = reductions.sum_dtype(x.dtype) if dtype is None else dtype
    return reduced_at(convert(x, dtype), indices, function=function.__ufunc__, axis=axis)


_REDUCEAT = {f.__name__: partial(_wide_reduceat, f) for f in (arithmetic.add, arithmetic.multiply)}

_AT = {name: partial(lambda op, x, indices, b: write(op, x, indices, b), op) for name, op in (
    ("add", "add"), ("subtract", "subtract"), ("multiply", "multiply"), ("maximum", "max"),
    ("minimum", "min"))}


# Installing --------------------------------------------------------------------------------------

def _signature(names: tuple[str, ...], first_named: int) -> inspect.Signature:
    """The parameters of an elementwise function: its operands, then NumPy's options."""
    P = inspect.Parameter
    operands = [P(n, P.POSITIONAL_ONLY if i < first_named else P.POSITIONAL_OR_KEYWORD,
                  annotation="ArrayLike") for i, n in enumerate(names)]
    operands += [P("out", P.POSITIONAL_OR_KEYWORD, default=None, annotation="None"),
                 P("args", P.VAR_POSITIONAL, annotation="None")]
    return inspect.Signature([*operands, *[p for n, p in PARAMETERS.items() if n != "out"]],
                             return_annotation="Array")


def _as_ufunc(call: Any, loops: Loops, signatures: dict[Any, inspect.Signature]) -> object:
    """Give a function the attributes of a ufunc."""
    name = call.__name__
    made: Any = ufunc(call, len(loops.ins), len(loops.outs), name=name,
                      identity=_IDENTITIES.get(name), call=call, reduce=_REDUCE.get(name),
                      accumulate=_ACCUMULATE.get(name), at=_AT.get(name),
                      reduceat=_REDUCEAT.get(name))
    made.types, made.loops = loops.types(), loops
    made.signature = getattr(call, "signature", None)
    if made.signature is None:
        code = inspect.unwrap(call).__code__
        key = code.co_varnames[:code.co_argcount], code.co_posonlyargcount
        if key not in signatures:
            signatures[key] = _signature(*key)
        call.__signature__ = signatures[key]
    call.__ufunc__ = made
    for attribute in ("nin", "nout", "nargs", "identity", "types", "ntypes", "signature", "loops",
                      "resolve_dtypes", "reduce", "accumulate", "reduceat", "at", "outer"):
        setattr(call, attribute, getattr(made, attribute))
    return call


def _installed() -> dict[str, object]:
    """Every ufunc, by name."""
    homes = arithmetic, logic, elementary, trigonometry, integers, products
    signatures: dict[Any, inspect.Signature] = {}
    return {name: _as_ufunc(next(getattr(m, name) for m in homes if hasattr(m, name)),
                            Loops(pattern, kinds), signatures)
            for pattern, kinds, names in _LOOPS for name in names.split()}


UFUNCS = _installed()
