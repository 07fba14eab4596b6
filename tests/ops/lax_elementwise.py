"""Rows for elementwise lax operations, with NumPy or SciPy as oracle.

Functions with steps (floor, sign) are differentiated too: between steps the slope is zero.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

import olympus
from olympus import lax
from olympus._src.lax import comparison
from olympus.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, reshard

from . import Op

Array = np.ndarray
EPS = 2.0 ** -23


def row(name: str, fun: Callable[..., Any], oracle: Callable[..., Any], args: tuple[Any, ...],
        kinds: str = "fh", grad: bool = True, ulps: float = 8.0) -> Op:
    """`h` stands for both half precisions; `ulps`: how far values may be off, in any dtype."""
    return Op(f"lax.{name}", oracle, fun, args, kinds.replace("h", "he"), grad, ulps * EPS,
              not name.startswith("select_n"))


WIDE = np.array([-3.7, -2.0, -0.6, -0.25, 0.3, 1.1, 2.5, 7.0])
OFF = WIDE + 0.05      # where nothing jumps
UNIT = np.array([-0.9, -0.5, -0.02, 0.1, 0.33, 0.8])
POSITIVE = np.array([0.2, 0.4, 1.3, 2.8, 9.5, 31.0])
OTHER = np.array([1.7, -0.8, 2.2, 0.9, -3.1, 0.4, 1.9, -5.0])
WHOLE = np.array([-7.0, -3.0, -2.0, 0.0, 1.0, 4.0, 6.0, 11.0])
COUNTS = np.array([0.0, 1.0, 3.0, 9.0, 2.0, 30.0, 31.0, 5.0])
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.2, 3.7])


def away(x: Array) -> Array:
    return np.trunc(x + np.copysign(0.5, x))


def logical(x: Array, y: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    unsigned = f"u{x.dtype.itemsize}"
    shifted = x.view(unsigned) >> np.minimum(y, bits - 1).astype(unsigned)
    return np.where(y < bits, shifted, 0).astype(x.dtype)


def bit_length(x: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    return np.array([bits - int(v).bit_length() if v >= 0 else 0 for v in x], x.dtype)


def popcount(x: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    return np.array([bin(int(v) % 2 ** bits).count("1") for v in x], x.dtype)


def constrained(x: Any) -> Any:
    mesh = Mesh(np.array(olympus.devices()[:1]), "d")
    return lax.with_sharding_constraint(x, NamedSharding(mesh, P()))


def resharded(x: Any) -> Any:
    mesh = Mesh(np.array(olympus.devices()[:1]), "d", axis_types=(AxisType.Explicit,))
    return reshard(x, NamedSharding(mesh, P()))


def power(n: int) -> Op:
    return row(f"integer_pow-{n}", lambda x: lax.integer_pow(x, n), lambda x: x ** n, (WIDE,),
               "fhc" if n < 0 else "fhci", n != 0, 40.0)


UNARY = [
    row("neg", lax.neg, np.negative, (WIDE,), "fhciu"),
    row("abs", lax.abs, np.abs, (WIDE,), "fhci"),
    row("sign", lax.sign, lambda x: x / np.abs(x) if x.dtype.kind == "c" else np.sign(x), (WIDE,),
        "fhciu"),
    row("floor", lax.floor, np.floor, (OFF,)),
    row("ceil", lax.ceil, np.ceil, (OFF,)),
    row("round", lax.round, away, (OFF,)),
    row("round-even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint,
        (HALVES,), "fdh", grad=False),
    row("round-halves", lax.round, away, (HALVES,), "fdh", grad=False),
    row("is_finite", lax.is_finite, np.isfinite, (np.array([1.0, np.inf, np.nan]),), "fdh", False),
    row("square", lax.square, np.square, (WIDE,), "fhci"),
    row("one_minus_square", lax.one_minus_square, lambda x: (1 - x) * (1 + x), (WIDE,), "fhc"),
    row("reciprocal", lax.reciprocal, lambda x: 1 / x, (WIDE,), "fhc"),
    row("sqrt", lax.sqrt, np.sqrt, (POSITIVE,), "fhc"),
    row("rsqrt", lax.rsqrt, lambda x: 1 / np.sqrt(x), (POSITIVE,), "fhc"),
    row("cbrt", lax.cbrt, np.cbrt, (WIDE,)),
    row("exp", lax.exp, np.exp, (WIDE,), "fhc"),
    row("exp2", lax.exp2, lambda x: 2.0 ** x, (WIDE,), "fhc"),
    row("expm1", lax.expm1, np.expm1, (WIDE,), "fhc"),
    row("log", lax.log, np.log, (POSITIVE,), "fhc", ulps=40.0),
    row("log2", lax.log2, lambda x: np.log(x) / np.log(2.0), (POSITIVE,), "fhc", ulps=40.0),
    row("log1p", lax.log1p, np.log1p, (POSITIVE,), "fhc", ulps=40.0),
    row("logistic", lax.logistic, lambda x: 1 / (1 + np.exp(-x)), (WIDE,), "fhc"),
    row("sin", lax.sin, np.sin, (WIDE,), "fhc", ulps=20.0),
    row("cos", lax.cos, np.cos, (WIDE,), "fhc", ulps=20.0),
    row("tan", lax.tan, np.tan, (WIDE,), "fhc", ulps=40.0),
    row("asin", lax.asin, np.arcsin, (UNIT,), "fhc", ulps=20.0),
    row("acos", lax.acos, np.arccos, (UNIT,), "fhc", ulps=20.0),
    row("atan", lax.atan, np.arctan, (WIDE,), "fhc", ulps=40.0),
    row("sinh", lax.sinh, np.sinh, (WIDE,), "fhc", ulps=20.0),
    row("cosh", lax.cosh, np.cosh, (WIDE,), "fhc", ulps=20.0),
    row("tanh", lax.tanh, np.tanh, (WIDE,), "fhc", ulps=20.0),
    row("asinh", lax.asinh, np.arcsinh, (WIDE,), "fhc", ulps=20.0),
    row("acosh", lax.acosh, np.arccosh, (POSITIVE + 1.0,), "fhc", ulps=40.0),
    row("atanh", lax.atanh, np.arctanh, (UNIT,), "fhc", ulps=80.0),
    row("erf", lax.erf, sp.erf, (WIDE,)),
    row("erfc", lax.erfc, sp.erfc, (WIDE,), ulps=40.0),
    row("erf_inv", lax.erf_inv, sp.erfinv, (UNIT,), ulps=20.0),
    row("lgamma", lax.lgamma, sp.gammaln, (POSITIVE,), ulps=200.0),
    row("digamma", lax.digamma, sp.digamma, (POSITIVE,), ulps=100.0),
    row("polygamma", lambda x: lax.polygamma(2.0, x), lambda x: sp.polygamma(2, x), (POSITIVE,),
        ulps=100.0),
    row("bessel_i0e", lax.bessel_i0e, sp.i0e, (WIDE * 3,)),
    row("bessel_i1e", lax.bessel_i1e, sp.i1e, (WIDE * 3,)),
    row("conj", lax.conj, np.conj, (WIDE,), "c"),
    row("real", lax.real, np.real, (WIDE,), "c"),
    row("imag", lax.imag, np.imag, (WIDE,), "c"),
    row("bitwise_not", lax.bitwise_not, np.invert, (WHOLE,), "iub", False),
    row("population_count", lax.population_count, popcount, (WHOLE,), "iu", False),
    row("clz", lax.clz, bit_length, (WHOLE,), "iu", False),
    row("reduce_precision", lambda x: lax.reduce_precision(x, 8, 23),
        lambda x: x.astype("f4").astype(x.dtype), (WHOLE,), grad=False),
    row("reduce_precision-whole", lambda x: lax.reduce_precision(x, 11, 52), lambda x: x, (WIDE,),
        "f"),
    row("stop_gradient", lax.stop_gradient, lambda x: x, (WIDE,), "fdhcz", False),
    row("reshard", resharded, lambda x: x, (WIDE,), "fhciub"),
    row("with_sharding_constraint", constrained, lambda x: x, (WIDE,), "fhciub"),
    row("optimization_barrier", lax.optimization_barrier, lambda x: x, (WIDE,), "fhciub"),
    *map(power, (-2, -1, 0, 1, 2, 3, 4)),
]

BINARY = [
    row("add", lax.add, np.add, (WIDE, OTHER), "fhciu"),
    row("sub", lax.sub, np.subtract, (WIDE, OTHER), "fhciu"),
    row("mul", lax.mul, np.multiply, (WIDE, OTHER), "fhciu"),
    row("div", lax.div, np.divide, (WIDE, OTHER), "fhc"),
    row("div-whole", lax.div, lambda x, y: np.trunc(x / y).astype(x.dtype), (WHOLE, WHOLE + 8.0),
        "iu", False),
    row("rem", lax.rem, np.fmod, (WIDE, OTHER), "f"),
    row("rem-whole", lax.rem, np.fmod, (WHOLE, WHOLE + 8.0), "hiu", False),
    row("max", lax.max, np.maximum, (WIDE, OTHER), "fhciu"),
    row("min", lax.min, np.minimum, (WIDE, OTHER), "fhciu"),
    row("pow", lax.pow, np.power, (POSITIVE, OTHER[:6]), "fhc", ulps=80.0),
    row("pow-integer", lambda x: lax.pow(x, 3), lambda x: x ** 3, (WIDE,), "fhc", ulps=80.0),
    row("atan2", lax.atan2, np.arctan2, (WIDE, OTHER), ulps=20.0),
    row("complex", lax.complex, lambda x, y: x + 1j * y, (WIDE, OTHER), "f"),
    row("nextafter", lax.nextafter, np.nextafter, (WIDE, OTHER), "fd", False),
    row("bitwise_and", lax.bitwise_and, np.bitwise_and, (WHOLE, COUNTS), "iub", False),
    row("bitwise_or", lax.bitwise_or, np.bitwise_or, (WHOLE, COUNTS), "iub", False),
    row("bitwise_xor", lax.bitwise_xor, np.bitwise_xor, (WHOLE, COUNTS), "iub", False),
    row("shift_left", lax.shift_left, np.left_shift, (WHOLE, COUNTS), "i", False),
    row("shift_right_logical", lax.shift_right_logical, logical, (WHOLE, COUNTS), "iu", False),
    row("shift_right_arithmetic", lax.shift_right_arithmetic, np.right_shift, (WHOLE, COUNTS), "iu",
        False),
    row("eq", lax.eq, np.equal, (WHOLE, np.abs(WHOLE)), "fhciub", False),
    row("ne", lax.ne, np.not_equal, (WHOLE, np.abs(WHOLE)), "fhciub", False),
    row("lt", lax.lt, np.less, (WIDE, OTHER), "fhiub", False),
    row("le", lax.le, np.less_equal, (WIDE, OTHER), "fhiub", False),
    row("gt", lax.gt, np.greater, (WIDE, OTHER), "fhiub", False),
    row("ge", lax.ge, np.greater_equal, (WIDE, OTHER), "fhiub", False),
    row("eq_to", comparison.eq_to, np.equal, (WHOLE, np.abs(WHOLE)), "fhiub", False),
    row("lt_to", comparison.lt_to, np.less, (WIDE, OTHER), "fhiub", False),
    row("le_to", comparison.le_to, np.less_equal, (WIDE, OTHER), "fhiub", False),
    row("select", lambda x, y: lax.select(lax.lt(x, y), x, lax.mul(y, y)),
        lambda x, y: np.where(x < y, x, y * y), (WIDE, OTHER), "fhi"),
    row("select_n", lambda x, y: lax.select_n(np.arange(8, dtype="i4") % 3, x, y, lax.add(x, y)),
        lambda x, y: np.choose(np.arange(8) % 3, [x, y, x + y]), (WIDE, OTHER), "fhciu"),
    row("clamp", lambda x, y: lax.clamp(lax.sub(y, 1), x, lax.add(y, 1)),
        lambda x, y: np.clip(x, y - 1, y + 1), (WIDE, OTHER), "fhi"),
    row("clamp-scalar", lambda x: lax.clamp(-1, x, 2), lambda x: np.clip(x, -1, 2), (WIDE,), "fhi"),
]

ALL = (*UNARY, *BINARY)
