"""What values the operations of a program may have: intervals that contain every honest rounding.

Each number of a recorded program is evaluated twice. Once by the operation itself, eagerly, which
is compiled apart from all others. Once as an interval of real numbers that contains what any order
of roundings may give: with each step rounded, and with steps kept in higher precision or without
bounds (a fused multiply-add keeps finite what overflows step by step). A compiled program whose
result lies outside changed more than roundings. Booleans and integers are known or not: a
comparison of overlapping intervals is not.

`walk` evaluates a program; loops, branches and calls are taken step by step.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from olympus._src.core.ir import ClosedOlympuspr, Literal, Olympuspr
from olympus.dtypes import finfo, issubdtype

LANEWISE = ("clamp", "convert_element_type", "select_n")    # elementwise besides those that say so
ROUNDED, APPROXIMATED = 4, 32       # units in the last place that one operation may be off


class Format(NamedTuple):
    """A floating-point type's numbers, in the wide type that bounds are computed in."""

    wide: Any
    eps: Any
    tiny: Any       # the least normal number
    most: Any


@functools.cache
def format_of(dtype: np.dtype) -> Format:
    """The format of a floating-point or complex dtype."""
    if dtype.kind == "c":
        dtype = np.dtype("f4" if dtype.itemsize == 8 else "f8")
    wide = np.longdouble if dtype == np.float64 else np.float64
    info = finfo(dtype)
    return Format(wide, wide(info.eps), wide(info.smallest_normal), wide(info.max))


class Range(NamedTuple):
    """Elementwise bounds; whether NaN is possible, and whether it is certain."""

    lo: Any
    hi: Any
    nan: Any
    must: Any


class Value(NamedTuple):
    """What an operation gave eagerly, and its bounds: one Range, or two of a complex number.

    Integers and booleans have `known` instead, which says where every honest evaluation agrees.
    """

    x: Any
    parts: tuple[Range, ...]
    known: Any
    rounds: int = 0     # 0: no rounding yet; 1: each step rounds once; 2: may be contracted; 3: any

    @property
    def exact(self) -> Any:
        """Where the bounds are the number itself."""
        if not self.parts:
            return self.known
        return functools.reduce(np.logical_and,
                                [(p.lo == p.hi) & ~p.nan | p.must for p in self.parts])


def is_float(dtype: np.dtype) -> bool:
    return issubdtype(dtype, np.floating)


def is_inexact(dtype: np.dtype) -> bool:
    return issubdtype(dtype, np.inexact)


def split(x: Any) -> list[Any]:
    """The real and imaginary parts of an array, in the wide type."""
    wide = format_of(x.dtype).wide
    return ([x.real.astype(wide), x.imag.astype(wide)] if x.dtype.kind == "c"
            else [x.astype(wide)])


def leaf(x: Any) -> Value:
    """A value that is given: exact, but that subnormal numbers may be read as zeros."""
    x = np.asarray(x)
    if not is_inexact(x.dtype):
        return Value(x, (), np.ones(x.shape, bool))
    of = format_of(x.dtype)
    return Value(x, tuple(flushed(point(each), of) for each in split(x)), None)


def point(x: Any) -> Range:
    nan = np.isnan(x)
    return Range(np.where(nan, -np.inf, x), np.where(nan, np.inf, x), nan, nan)


def anything(like: Any, of: Format) -> Range:
    lo = np.full(np.shape(like), -np.inf, of.wide)
    return Range(lo, -lo, np.ones(lo.shape, bool), np.zeros(lo.shape, bool))


def flushed(r: Range, of: Format) -> Range:
    """Bounds that contain zero where a subnormal number is, or what rounding makes one."""
    tiny = of.tiny * (1 + 4 * of.eps)
    return r._replace(lo=np.where((r.lo > 0) & (r.lo < tiny), 0, r.lo),
                      hi=np.where((r.hi < 0) & (r.hi > -tiny), 0, r.hi))


def settled(r: Range, of: Format, ulps: Any) -> Range:
    """Bounds of a rounded result, to within so many units in the last place."""
    less, more = 1 - ulps * of.eps, 1 + ulps * of.eps
    lo = np.where(r.lo > 0, r.lo * np.maximum(less, 0), r.lo * more)
    hi = np.where(r.hi < 0, r.hi * np.maximum(less, 0), r.hi * more)
    lo, hi = np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi)
    least = of.tiny * of.eps    # numbers this far apart are rounded to one another below `tiny`
    lo = np.where((abs(lo) < 2 * of.tiny) & (lo != 0), lo - least, lo)
    hi = np.where((abs(hi) < 2 * of.tiny) & (hi != 0), hi + least, hi)
    return flushed(Range(np.where(lo < -of.most, -np.inf, lo), np.where(hi > of.most, np.inf, hi),
                         r.nan | r.must, r.must), of)


def blurred(r: Range, ranges: Sequence[Range], of: Format) -> Range:
    """No bounds where an operand may be subnormal: functions read its bits, or zero."""
    vague = functools.reduce(np.logical_or, [
        (a.lo < of.tiny) & (a.hi > -of.tiny) & (a.lo != a.hi) for a in ranges]) & ~r.must
    return Range(np.where(vague, -np.inf, r.lo), np.where(vague, np.inf, r.hi), r.nan | vague,
                 r.must)


def joined(a: Range, b: Range) -> Range:
    return Range(np.minimum(a.lo, b.lo), np.maximum(a.hi, b.hi), a.nan | b.nan, a.must & b.must)


def with_eager(r: Range, x: Any) -> tuple[Range, Any]:
    """Bounds that contain the eager number too, and where they did not before."""
    nan = np.isnan(x)
    out = np.where(nan, ~r.nan, r.must | (x < r.lo) | (x > r.hi))
    return Range(np.where(nan, r.lo, np.minimum(r.lo, x)), np.where(nan, r.hi, np.maximum(r.hi, x)),
                 r.nan | nan, r.must & nan), out


# Operations on bounds. Each takes the operands' Ranges and the result's Format.

def corners(f: Callable[[Any, Any], Any], a: Range, b: Range, undefined: Any = None) -> Range:
    """Bounds of a function that is monotone in each operand; NaN at a corner counts as possible."""
    found = [f(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    bad = functools.reduce(np.logical_or, map(np.isnan, found))
    lo = functools.reduce(np.fmin, found)
    hi = functools.reduce(np.fmax, found)
    if undefined is None:
        lo, hi = np.where(bad, -np.inf, lo), np.where(bad, np.inf, hi)
    else:
        lo = np.where(bad, np.fmin(lo, undefined), lo)
        hi = np.where(bad, np.fmax(hi, undefined), hi)
    single = (a.lo == a.hi) & (b.lo == b.hi)
    must = a.must | b.must | bad & single
    return Range(lo, hi, a.nan | b.nan | bad, must)


def add(a: Range, b: Range) -> Range:
    return corners(np.add, a, b)


def negative(a: Range) -> Range:
    return Range(-a.hi, -a.lo, a.nan, a.must)


def subtract(a: Range, b: Range) -> Range:
    return add(a, negative(b))


def multiply(a: Range, b: Range) -> Range:
    r = corners(np.multiply, a, b, 0)
    undefined = has_zero(a) & has_infinity(b) | has_zero(b) & has_infinity(a)
    return r._replace(nan=r.nan | undefined)


def has_zero(a: Range) -> Any:
    return (a.lo <= 0) & (a.hi >= 0)


def has_infinity(a: Range) -> Any:
    return np.isinf(a.lo) | np.isinf(a.hi)


def divide(a: Range, b: Range) -> Range:
    """A divisor that may be zero may have either sign."""
    r = corners(np.divide, a, b, 0)
    zero = (b.lo <= 0) & (b.hi >= 0)
    both = zero & (a.lo <= 0) & (a.hi >= 0)
    return Range(np.where(zero, -np.inf, r.lo), np.where(zero, np.inf, r.hi), r.nan | both, r.must)


def maximum(a: Range, b: Range) -> Range:
    return Range(np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi), a.nan | b.nan, a.must | b.must)


def minimum(a: Range, b: Range) -> Range:
    return Range(np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi), a.nan | b.nan, a.must | b.must)


def increasing(f: Callable[[Any], Any], least: float = -np.inf, most: float = np.inf,
               ) -> Callable[[Range], Range]:
    def bounds(a: Range) -> Range:
        outside = (a.lo < least) | (a.hi > most)
        must = a.must | (a.hi < least) | (a.lo > most)
        lo, hi = np.clip(a.lo, least, most), np.clip(a.hi, least, most)
        return Range(f(lo), f(hi), a.nan | outside, must)

    return bounds


def decreasing(f: Callable[[Any], Any], least: float = -np.inf, most: float = np.inf
               ) -> Callable[[Range], Range]:
    up = increasing(lambda x: -f(x), least, most)
    return lambda a: negative(up(a))


def even(f: Callable[[Any], Any]) -> Callable[[Range], Range]:
    """A function that depends on the size of its operand only, and grows with it."""
    def bounds(a: Range) -> Range:
        low = np.where((a.lo <= 0) & (a.hi >= 0), 0, np.minimum(abs(a.lo), abs(a.hi)))
        return Range(f(low), f(np.maximum(abs(a.lo), abs(a.hi))), a.nan, a.must)

    return bounds


def wave(f: Callable[[Any], Any]) -> Callable[[Range], Range]:
    """Sine and cosine: their slope is at most 1."""
    def bounds(a: Range) -> Range:
        middle, width = (a.lo + a.hi) / 2, (a.hi - a.lo) / 2
        known = width < 1
        y = f(np.where(known, middle, 0))
        infinite = np.isinf(a.lo) | np.isinf(a.hi)
        lo = np.where(known, np.maximum(y - width, -1), -1)
        hi = np.where(known, np.minimum(y + width, 1), 1)
        slack = 1e-6 if a.lo.dtype == np.float64 else 1e-13
        return Range(lo - slack, hi + slack, a.nan | infinite,
                     a.must | np.isinf(a.lo) & (a.lo == a.hi))

    return bounds


def growing(f: Callable[[Any], Any]) -> Callable[[Range], Range]:
    """Exponentials: within a loop, one that overflows may be the greatest number at first, to which
    a fused multiply-add adds; one that underflows is not zero.
    """
    def bounds(a: Range) -> Range:
        lo, hi = f(a.lo), f(a.hi)
        most, least = (3e38, 5e-324) if a.lo.dtype == np.float64 else (
            np.finfo(np.float64).max, np.finfo(np.longdouble).smallest_subnormal)
        return Range(np.minimum(lo, most), np.where((hi == 0) & (a.hi > -np.inf), least, hi),
                     a.nan, a.must)

    return bounds


def logistic(x: Any) -> Any:
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))),
                    1 / (1 + np.exp(-np.maximum(x, 0))))


UNARY: dict[str, tuple[Callable[[Range], Range], int]] = {
    "neg": (negative, 0), "abs": (even(lambda x: x), 0), "square": (even(np.square), ROUNDED),
    "sqrt": (increasing(np.sqrt, 0), ROUNDED),
    "rsqrt": (decreasing(lambda x: 1 / np.sqrt(x), 0), APPROXIMATED),
    "cbrt": (increasing(np.cbrt), 8 * APPROXIMATED),    # XLA's older emitter has x ** (1 / 3)
    "exp": (growing(np.exp), APPROXIMATED), "exp2": (growing(np.exp2), APPROXIMATED),
    "expm1": (increasing(np.expm1), APPROXIMATED), "log": (increasing(np.log, 0), APPROXIMATED),
    "log2": (increasing(np.log2, 0), APPROXIMATED),
    "log1p": (increasing(np.log1p, -1), APPROXIMATED),
    "tanh": (increasing(np.tanh), APPROXIMATED), "logistic": (increasing(logistic), APPROXIMATED),
    "sinh": (increasing(np.sinh), APPROXIMATED), "cosh": (even(np.cosh), APPROXIMATED),
    "asinh": (increasing(np.arcsinh), APPROXIMATED),
    "acosh": (increasing(np.arccosh, 1), APPROXIMATED),
    "atanh": (increasing(np.arctanh, -1, 1), APPROXIMATED),
    "atan": (increasing(np.arctan), APPROXIMATED),
    "asin": (increasing(np.arcsin, -1, 1), APPROXIMATED),
    "acos": (decreasing(np.arccos, -1, 1), APPROXIMATED),
    "sin": (wave(np.sin), APPROXIMATED), "cos": (wave(np.cos), APPROXIMATED),
    "sign": (increasing(np.sign), 0), "floor": (increasing(np.floor), 0),
    "ceil": (increasing(np.ceil), 0),
    "stop_gradient": (lambda a: a, 0), "copy": (lambda a: a, 0), "copy_p": (lambda a: a, 0),
    "held": (lambda a: a, 0),
    "reduce_precision": (lambda a: a, ROUNDED)}
BINARY: dict[str, tuple[Callable[[Range, Range], Range], int]] = {
    "add": (add, ROUNDED), "sub": (subtract, ROUNDED), "mul": (multiply, ROUNDED),
    "div": (divide, ROUNDED), "max": (maximum, 0), "min": (minimum, 0), "add_any": (add, ROUNDED)}
MOVES = {"reshape", "broadcast_in_dim", "transpose", "slice", "concatenate", "rev", "squeeze",
         "expand_dims", "dynamic_slice", "gather", "split", "stack", "tile", "pad", "unstack",
         "pvary", "dynamic_update_slice", "scatter", "copy", "optimization_barrier", "select_n"}
DATA = {"dynamic_slice": 1, "gather": 1, "dynamic_update_slice": 2, "pad": 2}
ROUNDS = {"add", "sub", "mul", "div", "sqrt", "square"}
EXACT = {"neg", "abs", "max", "min", "clamp", "sign", "floor", "ceil", "round", "stop_gradient",
         "is_finite", "eq", "ne", "lt", "le", "gt", "ge", "real", "imag", "complex", "conj"} | MOVES


def rounding(name: str, ins: Sequence[Value], x: Any) -> int:
    """How freely a result may be rounded: see `Value.rounds`."""
    most = max((each.rounds for each in ins), default=0)
    if name in EXACT:
        return most
    if name == "convert_element_type":
        return most if x.dtype in (np.float32, np.float64) or not is_inexact(x.dtype) else 3
    if not is_inexact(x.dtype):
        return most
    if name not in ROUNDS or x.dtype not in (np.float32, np.float64) or most == 3:
        return 3
    if name in ("mul", "square"):
        return 2
    if name in ("add", "sub") and any(each.rounds == 2 for each in ins):
        return 3        # a product that is added may be fused
    return max(most, 1)


def power(a: Range, b: Range, of: Format) -> tuple[Range, Any]:
    """`a ** b` of what cannot be negative; its error grows with the exponent of the result."""
    r = corners(np.power, Range(np.maximum(a.lo, 0), np.maximum(a.hi, 0), a.nan, a.must), b)
    straddles = (a.lo <= 1) & (a.hi >= 1) | (b.lo <= 0) & (b.hi >= 0)
    lo, hi = np.where(straddles, np.minimum(r.lo, 1), r.lo), np.where(straddles,
                                                                     np.maximum(r.hi, 1), r.hi)
    size = np.maximum(abs(np.log(np.maximum(lo, of.wide(1e-300)))),
                      abs(np.log(np.minimum(hi, of.most))))
    negative_base = a.lo < 0
    r = Range(np.where(negative_base, -np.inf, lo), np.where(negative_base, np.inf, hi),
              r.nan | negative_base, np.zeros(np.shape(lo), bool))
    return r, APPROXIMATED * (1 + np.where(np.isfinite(size), size, 100))


def integer_power(a: Range, n: int, of: Format) -> Range:
    """Products of the operand with itself, then a quotient; each may overflow."""
    f = (lambda x: x ** abs(n))
    r = settled(even(f)(a) if n % 2 == 0 else increasing(f)(a), of, ROUNDED * (abs(n) + 1))
    if n < 0:
        one = np.ones_like(r.lo)
        r = divide(point(one), r)
    return settled(r, of, ROUNDED * (abs(n) + 1))


def remainder(a: Range, b: Range) -> Range:
    """Known where both are exact; else within the divisor."""
    exact = (a.lo == a.hi) & (b.lo == b.hi) & ~a.nan & ~b.nan
    y = np.fmod(a.lo, b.lo)
    bad = np.isnan(y)
    most = np.minimum(np.maximum(abs(b.lo), abs(b.hi)), np.maximum(abs(a.lo), abs(a.hi)))
    loose = np.isinf(a.lo) | np.isinf(a.hi) | (b.lo <= 0) & (b.hi >= 0)
    return Range(np.where(exact & ~bad, y, -most), np.where(exact & ~bad, y, most),
                 a.nan | b.nan | np.where(exact, bad, loose), a.must | b.must | exact & bad)


def angle(a: Range, b: Range) -> Range:
    """`atan2`, whose sign at zeros is left open."""
    r = corners(np.arctan2, a, b)
    jumps = (a.lo <= 0) & (a.hi >= 0)
    pi = a.lo.dtype.type(np.pi) * (1 + a.lo.dtype.type(1e-6 if a.lo.dtype == np.float64 else 1e-15))
    return Range(np.where(jumps, -pi, r.lo), np.where(jumps, pi, r.hi), a.nan | b.nan,
                 a.must | b.must)


def summed(a: Range, of: Format, axes: tuple[int, ...], total: Callable[..., Any]) -> Range:
    """Sums (or cumulative ones) in any order."""
    size = total(np.maximum(abs(a.lo), abs(a.hi)), axes)
    count = max(int(np.prod([np.shape(a.lo)[i] for i in axes])), 1)
    lo, hi = total(a.lo, axes), total(a.hi, axes)
    loose = size > of.most      # a part of it may overflow
    slack = 2 * count * of.eps * size
    certain = total(a.must.astype(int), axes) > 0
    return Range(np.where(loose | np.isnan(lo), -np.inf, lo - slack),
                 np.where(loose | np.isnan(hi), np.inf, hi + slack),
                 (total(a.nan.astype(int), axes) > 0) | loose, certain)


def of_sum(name: str, params: Any, a: Range, of: Format) -> Range:
    if name == "reduce_sum":
        return summed(a, of, tuple(params["axes"]), lambda v, i: np.sum(v, i))
    axis, back = params["axis"], params["reverse"]

    def running(v: Any, _: Any) -> Any:
        return np.flip(np.cumsum(np.flip(v, axis), axis), axis) if back else np.cumsum(v, axis)

    return summed(a, of, (axis,), running)


def ordered(name: str, a: Range, params: Any) -> Range | None:
    """The least and the greatest results, in order; NaN comes last."""
    if params.get("reverse") or (a.nan & ~a.must).any():
        return None
    if name == "cummax":
        lo, hi = (np.maximum.accumulate(each, params["axis"]) for each in (a.lo, a.hi))
        must = np.logical_or.accumulate(a.must, params["axis"])
    else:
        lo, hi = (np.sort(np.where(a.must, np.inf, each), params["dimension"])
                  for each in (a.lo, a.hi))
        must = np.sort(a.must, params["dimension"])
    return Range(np.where(must, -np.inf, lo), np.where(must, np.inf, hi), must, must)


def over(f: Callable[[Range, Range], Range], a: Range, axes: tuple[int, ...]) -> Range:
    """A reduction by a function of two Ranges."""
    shape = [n for i, n in enumerate(np.shape(a.lo)) if i not in axes]
    rest = [i for i in range(np.ndim(a.lo)) if i not in axes]
    flat = [np.transpose(each, rest + list(axes)).reshape([*shape, -1]) for each in a]
    parts = [Range(*(each[..., i] for each in flat)) for i in range(flat[0].shape[-1])]
    return functools.reduce(f, parts)


def in_any_order(r: Range, a: Range, of: Format, axes: tuple[int, ...]) -> Range:
    """The bounds of a product, where some of its factors alone may overflow, or give zero."""
    least, most = np.minimum(abs(a.lo), abs(a.hi)), np.maximum(abs(a.lo), abs(a.hi))
    least = np.where(a.lo * a.hi > 0, least, 0)
    infinite, none = np.isinf(most).any(axes), (least == 0).any(axes)
    with np.errstate(all="ignore"):
        large = np.log(np.maximum(np.where(np.isinf(most), 1, most), 1)).sum(axes) > np.log(of.most)
        small = np.log(np.where(least > 0, np.minimum(least, 1), 1)).sum(axes) < np.log(of.tiny)
    nan = large & (none | small) | small & infinite
    return Range(np.where(large, -np.inf, np.where(small, np.minimum(r.lo, 0), r.lo)),
                 np.where(large, np.inf, np.where(small, np.maximum(r.hi, 0), r.hi)),
                 r.nan | nan, r.must & (~nan | a.must.any(axes)))


def contraction(a: Range, b: Range, of: Format, x: Any, numbers: Any) -> Range:
    """A product of matrices: the middle, and how far each factor may be from it."""
    def arranged(u: Any, side: int) -> Any:
        contracted, batch = numbers[0][side], numbers[1][side]
        free = [i for i in range(u.ndim) if i not in contracted and i not in batch]
        shape = [u.shape[i] for i in batch], [u.shape[i] for i in free]
        order = ([*batch, *free, *contracted] if side == 0 else [*batch, *contracted, *free])
        u = np.transpose(u, order)
        batches = int(np.prod(shape[0]))
        frees = int(np.prod(shape[1]))
        return u.reshape([batches, frees, -1] if side == 0 else [batches, -1, frees])

    bounds = [arranged(np.asarray(each), side) for side, r in ((0, a), (1, b))
              for each in (r.lo, r.hi, r.nan | r.must | np.isinf(r.lo) | np.isinf(r.hi))]
    al, ah, an, bl, bh, bn = bounds
    bad = np.matmul(an.astype(int), np.ones_like(bn, int)) + np.matmul(
        np.ones_like(an, int), bn.astype(int)) > 0
    al, ah, bl, bh = (np.where(np.isfinite(u), u, 0) for u in (al, ah, bl, bh))
    am, ar, bm, br = (al + ah) / 2, (ah - al) / 2, (bl + bh) / 2, (bh - bl) / 2
    middle = np.matmul(am, bm)
    size = np.matmul(abs(am) + ar, abs(bm) + br)
    slack = (np.matmul(ar, abs(bm)) + np.matmul(abs(am), br) + np.matmul(ar, br)
             + 2 * (al.shape[-1] + 2) * of.eps * size + al.shape[-1] * of.tiny)
    bad |= size > of.most
    shape = x.shape
    lo, hi = np.where(bad, -np.inf, middle - slack), np.where(bad, np.inf, middle + slack)
    return Range(lo.reshape(shape), hi.reshape(shape), bad.reshape(shape),
                 np.zeros(shape, bool))


# One equation

PLACES: dict[Any, list[Any]] = {}   # where the elements of a move come from


def moved(eqn: Any, ins: list[Value]) -> list[Value]:
    """Values that an operation only moves: it is asked where each element comes from."""
    name = eqn.primitive.name
    count = DATA.get(name, len(ins))
    data, rest = ins[:count], ins[count:]
    shapes = tuple([each.x.shape for each in data])
    key = (eqn.primitive, *eqn.params.items(), shapes)
    found = None if rest else PLACES.get(key)
    if found is None:
        starts = np.cumsum([0, *(each.x.size for each in data)])
        places = [np.arange(s, s + each.x.size, dtype=np.int32).reshape(each.x.shape)
                  for s, each in zip(starts, data, strict=False)]
        found = run(eqn, [*places, *(each.x for each in rest)])
        if not rest:
            PLACES[key] = found

    def take(leaves: list[Any], place: Any) -> Any:
        return np.concatenate([np.ravel(each) for each in leaves])[place]

    values = []
    certain = all(bool(np.all(each.known)) for each in rest if not each.parts)
    for place in found:
        x = np.asarray(take([each.x for each in data], place))
        if data[0].parts:
            parts = tuple(Range(*(take([each.parts[k][i] for each in data], place)
                                  for i in range(4))) for k in range(len(data[0].parts)))
            if not certain:
                parts = tuple(anything(x, format_of(x.dtype)) for _ in parts)
            values.append(Value(x, parts, None))
        else:
            values.append(Value(x, (), take([each.known for each in data], place) & certain))
    return values


def compared(name: str, ins: list[Value], x: Any) -> Any:
    """Where a comparison is known."""
    if not ins[0].parts:
        return np.broadcast_to(ins[0].known & ins[1].known, x.shape)
    if len(ins[0].parts) == 2:
        return np.broadcast_to(ins[0].exact & ins[1].exact, x.shape)
    a, b = ins[0].parts[0], ins[1].parts[0]
    apart = (a.hi < b.lo) | (b.hi < a.lo)
    exact = (a.lo == a.hi) & (b.lo == b.hi)
    decided = (apart | exact) & ~a.nan & ~b.nan | a.must | b.must
    return np.broadcast_to(decided, x.shape)


def chosen(ins: list[Value], x: Any) -> Value:
    """`select_n`: where the choice is not known, either case."""
    which, *cases = ins
    if not cases[0].parts:
        picked = np.choose(np.broadcast_to(which.x, x.shape).astype(int),
                           [np.broadcast_to(case.known, x.shape) for case in cases])
        return Value(x, (), picked & which.known)
    parts = []
    for k in range(len(cases[0].parts)):
        ranges = [case.parts[k] for case in cases]
        every = functools.reduce(joined, ranges)
        index = np.broadcast_to(which.x, x.shape).astype(int)
        one = Range(*(np.choose(index, [np.broadcast_to(r[i], x.shape) for r in ranges])
                      for i in range(4)))
        parts.append(Range(*(np.where(which.known, p, q) for p, q in zip(one, every, strict=True))))
    return Value(x, tuple(parts), None)


def converted(source: Value, x: Any) -> Value:
    """`convert_element_type`."""
    if not is_inexact(x.dtype):
        if not source.parts:
            return Value(x, (), source.known)
        r = source.parts[0]
        if x.dtype == bool:
            return Value(x, (), (r.lo > 0) | (r.hi < 0) | (r.lo == r.hi) & ~r.nan | r.must)
        return Value(x, (), (np.trunc(r.lo) == np.trunc(r.hi)) & ~r.nan
                     & (abs(r.lo) < 2.0 ** 62) | source.exact)
    of = format_of(x.dtype)
    if not source.parts:
        whole = point(source.x.astype(of.wide))
        loose = anything(x, of)
        part = Range(*(np.where(source.known, p, q) for p, q in zip(whole, loose, strict=True)))
        parts: list[Range] = [settled(part, of, 1)]
    else:
        narrower = format_of(source.x.dtype).eps < of.eps or format_of(
            source.x.dtype).most > of.most
        parts = [settled(Range(r.lo.astype(of.wide), r.hi.astype(of.wide), r.nan, r.must), of,
                         1 if narrower else 0) for r in source.parts]
    if x.dtype.kind == "c" and len(parts) == 1:
        parts.append(point(np.zeros(x.shape, of.wide)))
    return Value(x, tuple(parts[:2 if x.dtype.kind == "c" else 1]), None)


def complex_parts(name: str, ins: list[Value], of: Format) -> list[Range] | None:
    """Operations on complex numbers by those on their parts."""
    def r(f: Callable[[Range, Range], Range], a: Range, b: Range) -> Range:
        return settled(f(a, b), of, APPROXIMATED)

    parts = [each.parts for each in ins]
    if name in ("add", "sub"):
        f = BINARY[name][0]
        return [r(f, *pair) for pair in zip(*parts, strict=True)]
    if name == "neg":
        return [negative(each) for each in parts[0]]
    if name == "conj":
        return [parts[0][0], negative(parts[0][1])]
    if name == "complex":
        return [parts[0][0], parts[1][0]]
    if name in ("mul", "square"):
        (a, b), (c, d) = parts[0], parts[-1]
        return together([r(subtract, r(multiply, a, c), r(multiply, b, d)),
                         r(add, r(multiply, a, d), r(multiply, b, c))], of)
    if name == "div":
        (a, b), (c, d) = parts
        size = r(add, r(multiply, c, c), r(multiply, d, d))
        real = r(add, r(multiply, a, c), r(multiply, b, d))
        imaginary = r(subtract, r(multiply, b, c), r(multiply, a, d))
        return together([r(divide, real, size), r(divide, imaginary, size)], of)
    return None


def together(parts: list[Range], of: Format) -> list[Range]:
    """Parts whose errors are relative to the size of the number; unbounded if one is infinite."""
    size = functools.reduce(np.maximum, [np.maximum(abs(p.lo), abs(p.hi)) for p in parts])
    slack = APPROXIMATED * of.eps * size
    loose = ~np.isfinite(size) | functools.reduce(np.logical_or, [p.nan for p in parts])
    return [Range(np.where(loose, -np.inf, p.lo - slack), np.where(loose, np.inf, p.hi + slack),
                  loose, ~loose & False) for p in parts]


def near(ins: list[Value], x: Any) -> Value:
    """For an operation that is not bounded here: the eager result if its operands are exact."""
    exact = functools.reduce(np.logical_and, [np.all(each.exact) for each in ins], np.True_)
    if not is_inexact(x.dtype):
        return Value(x, (), np.full(x.shape, bool(exact)))
    of = format_of(x.dtype)
    sizes = functools.reduce(np.maximum, [abs(each) for each in split(x)])
    parts = []
    for each in split(x):
        r = settled(point(each), of, 4 * APPROXIMATED)
        slack = np.where(np.isfinite(sizes), 4 * APPROXIMATED * of.eps * sizes, 0)
        r = r._replace(lo=r.lo - slack, hi=r.hi + slack)
        if x.dtype.kind == "c":     # of what overflows, the order decides between inf and NaN
            lost = ~np.isfinite(sizes)
            r = Range(np.where(lost, -np.inf, r.lo), np.where(lost, np.inf, r.hi), r.nan | lost,
                      r.must & ~lost)
        parts.append(r if exact else anything(x, of))
    return Value(x, tuple(parts), None)


def bounded(eqn: Any, ins: list[Value], x: Any) -> Value:
    """The Value of an equation of one result."""
    name, params = eqn.primitive.name, eqn.params
    if name in ("eq", "ne", "lt", "le", "gt", "ge"):
        return Value(x, (), compared(name, ins, x))
    if name == "select_n":
        return chosen(ins, x)
    if name == "convert_element_type":
        return converted(ins[0], x)
    if name == "is_finite":
        r = ins[0].parts[0]
        most = format_of(ins[0].x.dtype).most
        return Value(x, (), (r.lo >= -most) & (r.hi <= most) & ~r.nan | ins[0].exact)
    if not is_inexact(x.dtype):
        ranks = [np.ndim(each.x) for each in ins]
        if any(each.parts for each in ins) or np.ndim(x) != max(ranks, default=0):
            return near(ins, x)
        return Value(x, (), np.broadcast_to(
            functools.reduce(np.logical_and, [each.known for each in ins]), x.shape))
    of = format_of(x.dtype)
    if x.dtype.kind == "c":
        found = complex_parts(name, ins, of)
        return near(ins, x) if found is None else Value(x, tuple(found), None)
    if name in ("real", "imag"):
        return Value(x, (ins[0].parts[name == "imag"],), None)
    if not all(len(each.parts) == 1 for each in ins):
        return near(ins, x)
    ranges = [each.parts[0] for each in ins]
    r = real(name, params, ranges, of, x, ins)
    return near(ins, x) if r is None else Value(x, (r,), None)


def real(name: str, params: Any, ranges: list[Range], of: Format, x: Any, ins: list[Value]
         ) -> Range | None:
    """Bounds of an operation of real numbers, or None where this file has none."""
    if name in UNARY:
        f, ulps = UNARY[name]
        r = settled(f(ranges[0]), of, ulps)
        return blurred(r, ranges, of) if ulps == APPROXIMATED else r
    if name in BINARY:
        g, ulps = BINARY[name]
        return settled(g(*ranges), of, ulps)
    if name == "clamp":
        return minimum(maximum(ranges[1], ranges[0]), ranges[2])
    if name == "pow":
        r, error = power(ranges[0], ranges[1], of)
        exact = np.broadcast_to((ins[0].exact & ins[1].exact) & (ranges[0].lo <= 0), x.shape)
        whole = settled(point(x.astype(of.wide)), of, 4 * APPROXIMATED)
        return Range(*(np.where(exact, p, q)
                       for p, q in zip(whole, settled(r, of, error), strict=True)))
    if name == "integer_pow":
        return integer_power(ranges[0], params["y"], of)
    if name == "rem":
        return remainder(*ranges)
    if name == "atan2":
        return blurred(settled(angle(*ranges), of, APPROXIMATED), ranges, of)
    if name == "round":
        half = of.wide(.5)
        away = params["rounding_method"] in (0, "AWAY_FROM_ZERO")
        f = ((lambda v: np.where(np.isfinite(v), np.sign(v) * np.floor(abs(v) + half), v))
             if away else np.rint)
        return increasing(f)(ranges[0])
    if name in ("reduce_sum", "cumsum"):
        return settled(of_sum(name, params, ranges[0], of), of, ROUNDED)
    if name in ("reduce_max", "reduce_min", "reduce_prod"):
        axes = tuple(params["axes"])
        if name == "reduce_prod":
            found = over(lambda p, q: settled(multiply(p, q), of, ROUNDED), ranges[0], axes)
            return in_any_order(found, ranges[0], of, axes)
        return over(maximum if name == "reduce_max" else minimum, ranges[0], axes)
    if name in ("cummax", "sort"):
        return ordered(name, ranges[0], params)
    if name == "dot_general":
        return settled(contraction(ranges[0], ranges[1], of, x, params["dimension_numbers"]), of,
                       ROUNDED)
    return None


# Programs

class Walk:
    """Evaluates programs equation by equation; collects eager results outside of their bounds."""

    def __init__(self) -> None:
        self.outside: list[tuple[str, str, list[Any], Any]] = []

    def closed(self, closed: ClosedOlympuspr, *args: Value) -> list[Value]:
        return self.program(closed.olympuspr, [leaf(c) for c in closed.consts], args)

    def program(self, pr: Olympuspr, consts: Sequence[Value], args: Sequence[Value]
                ) -> list[Value]:
        env: dict[Any, Value] = dict(zip([*pr.constvars, *pr.invars], [*consts, *args],
                                         strict=True))

        def read(atom: Any) -> Value:
            return leaf(atom.value()) if type(atom) is Literal else env[atom]

        for eqn in pr.eqns:
            ins = [read(atom) for atom in eqn.invars]
            outs = self.equation(eqn, ins)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(atom) for atom in pr.outvars]

    def equation(self, eqn: Any, ins: list[Value]) -> list[Value]:
        name = eqn.primitive.name
        if name == "pvary":
            return ins
        if name in ("scan", "while", "cond"):
            return getattr(self, f"of_{name}")(eqn.params, ins)
        for key in ("olympuspr", "call_olympuspr", "fun_olympuspr"):
            body = eqn.params.get(key)
            if isinstance(body, ClosedOlympuspr):
                return self.closed(body, *ins)
            if isinstance(body, Olympuspr):
                return self.program(body, [], ins)
        if name in MOVES and name != "select_n":
            return [self.with_eager(name, value, ins) for value in moved(eqn, ins)]
        outs = run(eqn, [each.x for each in ins])
        if len(outs) == 1:
            values = [bounded(eqn, ins, outs[0])]
        else:
            values = [near(ins, x) for x in outs]
        return [self.with_eager(name, value, ins) for value in values]

    def with_eager(self, name: str, value: Value, ins: list[Value]) -> Value:
        rounds = rounding(name, ins, value.x)
        if not value.parts:
            return value._replace(rounds=rounds)
        parts = []
        for part, x in zip(value.parts, split(value.x), strict=True):
            r, out = with_eager(part, x)
            if out.any():
                at = tuple(np.argwhere(out)[0])
                self.outside.append((name, str(value.x.dtype), [
                    each.x[at] if np.shape(each.x) == np.shape(x) else each.x for each in ins],
                    value.x[at]))
            parts.append(r)
        return value._replace(parts=tuple(parts), rounds=rounds)

    def of_scan(self, params: Any, ins: list[Value]) -> list[Value]:
        consts, carry = params["num_consts"], params["num_carry"]
        pr = params["olympuspr"]
        fixed, state, rows = ins[:consts], ins[consts:consts + carry], ins[consts + carry:]
        length = params["length"]
        steps = range(length - 1, -1, -1) if params["reverse"] else range(length)
        given: dict[int, list[Value]] = {}
        for i in steps:
            outs = self.body(pr, [*fixed, *state, *(taken(each, i) for each in rows)])
            state, given[i] = outs[:carry], outs[carry:]
        return [*state, *(stacked([given[i][k] for i in range(length)])
                          for k in range(len(given[steps[0]])))]

    def body(self, pr: Any, ins: list[Value]) -> list[Value]:
        return self.closed(pr, *ins) if isinstance(pr, ClosedOlympuspr) else self.program(
            pr, [], ins)

    def of_while(self, params: Any, ins: list[Value]) -> list[Value]:
        c, b = params["cond_nconsts"], params["body_nconsts"]
        state = ins[c + b:]
        while self.body(params["cond_olympuspr"], [*ins[:c], *state])[0].x:
            state = self.body(params["body_olympuspr"], [*ins[c:c + b], *state])
        return state

    def of_cond(self, params: Any, ins: list[Value]) -> list[Value]:
        index = int(np.clip(ins[0].x, 0, len(params["branches"]) - 1))
        outs = self.body(params["branches"][index], ins[1:])
        return outs if np.all(ins[0].known) else [*map(unbounded, outs)]


def unbounded(value: Value) -> Value:
    """A value that may be any other."""
    x = value.x
    if not value.parts:
        return value._replace(known=np.zeros(x.shape, bool))
    return value._replace(parts=tuple(anything(x, format_of(x.dtype)) for _ in value.parts))


LANES = 16      # elements of an operation alone


def run(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """The operation alone, eagerly."""
    prim, shape = eqn.primitive, np.broadcast_shapes(*map(np.shape, operands)) if (
        eqn.primitive.elementwise or eqn.primitive.name in LANEWISE) else None
    if shape is None or math.prod(shape) > LANES:
        outs = prim.bind(*operands, **eqn.params)
        return [np.asarray(x) for x in (outs if prim.multiple_results else [outs])]
    # One shape serves all: compiling an operation for each takes most of a sweep.
    lanes = [np.resize(np.broadcast_to(x, shape), LANES) for x in operands]
    return [np.asarray(prim.bind(*lanes, **eqn.params))[:math.prod(shape)].reshape(shape)]


def taken(value: Value, i: int) -> Value:
    return Value(value.x[i], tuple(Range(*(each[i] for each in part)) for part in value.parts),
                 None if value.known is None else value.known[i], value.rounds)


def stacked(values: list[Value]) -> Value:
    first = values[0]
    parts = tuple(Range(*(np.stack([v.parts[k][i] for v in values]) for i in range(4)))
                  for k in range(len(first.parts)))
    return Value(np.stack([v.x for v in values]), parts,
                 None if first.known is None else np.stack([v.known for v in values]),
                 max(v.rounds for v in values))
