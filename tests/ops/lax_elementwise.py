"""Rows for elementwise lax operations: a function, what NumPy or SciPy says, arguments in float64.

`kinds` are the dtypes the values are checked in: f float64 and float32, h float16 and bfloat16, c
complex128; i int32, u uint8, b bool, for which `args` are cast. `grad` says that the derivative
exists and is not zero; `ulps` how many units in the last place the values may be off.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special as sp

from olympus import lax
from olympus._src.lax import choice, special

Array = np.ndarray


class Row(NamedTuple):
    name: str
    fun: Callable[..., Any]
    oracle: Callable[..., Any]
    args: tuple[Any, ...]
    kinds: str = "fh"
    grad: bool = True
    ulps: float = 8.0


WIDE = np.array([-3.7, -2.0, -0.6, -0.25, 0.3, 1.1, 2.5, 7.0])
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


def power(n: int) -> Row:
    return Row(f"integer_pow{n}", lambda x: lax.integer_pow(x, n), lambda x: x ** n, (WIDE,),
               "fhc" if n < 0 else "fhci", n != 0, 40.0)


UNARY = [
    Row("neg", lax.neg, np.negative, (WIDE,), "fhciu"),
    Row("abs", lax.abs, np.abs, (WIDE,), "fhci"),
    Row("sign", lax.sign, lambda x: x / np.abs(x) if x.dtype.kind == "c" else np.sign(x), (WIDE,),
        "fhciu", False),
    Row("floor", lax.floor, np.floor, (WIDE,), grad=False),
    Row("ceil", lax.ceil, np.ceil, (WIDE,), grad=False),
    Row("round", lax.round, away, (HALVES,), grad=False),
    Row("round even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint,
        (HALVES,), grad=False),
    Row("is_finite", lax.is_finite, np.isfinite, (np.array([1.0, np.inf, np.nan]),), "fh", False),
    Row("square", lax.square, np.square, (WIDE,), "fhci"),
    Row("one_minus_square", lax.one_minus_square, lambda x: (1 - x) * (1 + x), (WIDE,), "fhc"),
    Row("reciprocal", lax.reciprocal, lambda x: 1 / x, (WIDE,), "fhc"),
    Row("sqrt", lax.sqrt, np.sqrt, (POSITIVE,), "fhc"),
    Row("rsqrt", lax.rsqrt, lambda x: 1 / np.sqrt(x), (POSITIVE,), "fhc"),
    Row("cbrt", lax.cbrt, np.cbrt, (WIDE,)),
    Row("exp", lax.exp, np.exp, (WIDE,), "fhc"),
    Row("exp2", lax.exp2, lambda x: 2.0 ** x, (WIDE,), "fhc"),
    Row("expm1", lax.expm1, np.expm1, (WIDE,), "fhc"),
    Row("log", lax.log, np.log, (POSITIVE,), "fhc", ulps=40.0),
    Row("log2", lax.log2, lambda x: np.log(x) / np.log(2.0), (POSITIVE,), "fhc", ulps=40.0),
    Row("log1p", lax.log1p, np.log1p, (POSITIVE,), "fhc", ulps=40.0),
    Row("logistic", lax.logistic, lambda x: 1 / (1 + np.exp(-x)), (WIDE,), "fhc"),
    Row("sin", lax.sin, np.sin, (WIDE,), "fhc", ulps=20.0),
    Row("cos", lax.cos, np.cos, (WIDE,), "fhc", ulps=20.0),
    Row("tan", lax.tan, np.tan, (WIDE,), "fhc", ulps=40.0),
    Row("asin", lax.asin, np.arcsin, (UNIT,), "fhc", ulps=20.0),
    Row("acos", lax.acos, np.arccos, (UNIT,), "fhc", ulps=20.0),
    Row("atan", lax.atan, np.arctan, (WIDE,), "fhc", ulps=40.0),
    Row("sinh", lax.sinh, np.sinh, (WIDE,), "fhc", ulps=20.0),
    Row("cosh", lax.cosh, np.cosh, (WIDE,), "fhc", ulps=20.0),
    Row("tanh", lax.tanh, np.tanh, (WIDE,), "fhc", ulps=20.0),
    Row("asinh", lax.asinh, np.arcsinh, (WIDE,), "fhc", ulps=20.0),
    Row("acosh", lax.acosh, np.arccosh, (POSITIVE + 1.0,), "fhc", ulps=40.0),
    Row("atanh", lax.atanh, np.arctanh, (UNIT,), "fhc", ulps=80.0),
    Row("erf", special.erf, sp.erf, (WIDE,)),
    Row("erfc", special.erfc, sp.erfc, (WIDE,), ulps=40.0),
    Row("erf_inv", special.erf_inv, sp.erfinv, (UNIT,), ulps=20.0),
    Row("lgamma", special.lgamma, sp.gammaln, (POSITIVE,), ulps=200.0),
    Row("digamma", special.digamma, sp.digamma, (POSITIVE,), ulps=100.0),
    Row("polygamma", lambda x: special.polygamma(2.0, x), lambda x: sp.polygamma(2, x), (POSITIVE,),
        ulps=100.0),
    Row("bessel_i0e", special.bessel_i0e, sp.i0e, (WIDE * 3,)),
    Row("bessel_i1e", special.bessel_i1e, sp.i1e, (WIDE * 3,)),
    Row("conj", lax.conj, np.conj, (WIDE,), "c"),
    Row("real", lax.real, np.real, (WIDE,), "c"),
    Row("imag", lax.imag, np.imag, (WIDE,), "c"),
    Row("bitwise_not", lax.bitwise_not, np.invert, (WHOLE,), "iub", False),
    Row("population_count", lax.population_count, popcount, (WHOLE,), "iu", False),
    Row("clz", lax.clz, bit_length, (WHOLE,), "iu", False),
    Row("reduce_precision", lambda x: lax.reduce_precision(x, 8, 23),
        lambda x: x.astype("f4").astype(x.dtype), (WHOLE,), grad=False),
    Row("stop_gradient", lax.stop_gradient, lambda x: x, (WIDE,), "fhc", False),
    Row("optimization_barrier", lax.optimization_barrier, lambda x: x, (WIDE,), "fhciub"),
    *map(power, (-2, -1, 0, 1, 2, 3, 4)),
]

BINARY = [
    Row("add", lax.add, np.add, (WIDE, OTHER), "fhciu"),
    Row("sub", lax.sub, np.subtract, (WIDE, OTHER), "fhciu"),
    Row("mul", lax.mul, np.multiply, (WIDE, OTHER), "fhciu"),
    Row("div", lax.div, np.divide, (WIDE, OTHER), "fhc"),
    Row("div whole", lax.div, lambda x, y: np.trunc(x / y).astype(x.dtype), (WHOLE, WHOLE + 8.0),
        "iu", False),
    Row("rem", lax.rem, np.fmod, (WIDE, OTHER), "f"),
    Row("rem whole", lax.rem, np.fmod, (WHOLE, WHOLE + 8.0), "hiu", False),
    Row("max", lax.max, np.maximum, (WIDE, OTHER), "fhciu"),
    Row("min", lax.min, np.minimum, (WIDE, OTHER), "fhciu"),
    Row("pow", lax.pow, np.power, (POSITIVE, OTHER[:6]), "fhc", ulps=80.0),
    Row("pow integer", lambda x: lax.pow(x, 3), lambda x: x ** 3, (WIDE,), "fhc", ulps=80.0),
    Row("atan2", lax.atan2, np.arctan2, (WIDE, OTHER), ulps=20.0),
    Row("complex", lax.complex, lambda x, y: x + 1j * y, (WIDE, OTHER), "f"),
    Row("nextafter", lax.nextafter, np.nextafter, (WIDE, OTHER), "f", False),
    Row("bitwise_and", lax.bitwise_and, np.bitwise_and, (WHOLE, COUNTS), "iub", False),
    Row("bitwise_or", lax.bitwise_or, np.bitwise_or, (WHOLE, COUNTS), "iub", False),
    Row("bitwise_xor", lax.bitwise_xor, np.bitwise_xor, (WHOLE, COUNTS), "iub", False),
    Row("shift_left", lax.shift_left, np.left_shift, (WHOLE, COUNTS), "i", False),
    Row("shift_right_logical", lax.shift_right_logical, logical, (WHOLE, COUNTS), "iu", False),
    Row("shift_right_arithmetic", lax.shift_right_arithmetic, np.right_shift, (WHOLE, COUNTS), "iu",
        False),
    Row("eq", lax.eq, np.equal, (WHOLE, np.abs(WHOLE)), "fhciub", False),
    Row("ne", lax.ne, np.not_equal, (WHOLE, np.abs(WHOLE)), "fhciub", False),
    Row("lt", lax.lt, np.less, (WIDE, OTHER), "fhiub", False),
    Row("le", lax.le, np.less_equal, (WIDE, OTHER), "fhiub", False),
    Row("gt", lax.gt, np.greater, (WIDE, OTHER), "fhiub", False),
    Row("ge", lax.ge, np.greater_equal, (WIDE, OTHER), "fhiub", False),
    Row("eq_to", choice.eq_to, np.equal, (WHOLE, np.abs(WHOLE)), "fhiub", False),
    Row("lt_to", choice.lt_to, np.less, (WIDE, OTHER), "fhiub", False),
    Row("le_to", choice.le_to, np.less_equal, (WIDE, OTHER), "fhiub", False),
    Row("select", lambda x, y: lax.select(lax.lt(x, y), x, lax.mul(y, y)),
        lambda x, y: np.where(x < y, x, y * y), (WIDE, OTHER), "fhi"),
    Row("select_n", lambda x, y: lax.select_n(np.arange(8, dtype="i4") % 3, x, y, lax.add(x, y)),
        lambda x, y: np.choose(np.arange(8) % 3, [x, y, x + y]), (WIDE, OTHER), "fhciu"),
    Row("clamp", lambda x, y: lax.clamp(lax.sub(y, 1), x, lax.add(y, 1)),
        lambda x, y: np.clip(x, y - 1, y + 1), (WIDE, OTHER), "fhi"),
    Row("clamp scalar", lambda x: lax.clamp(-1, x, 2), lambda x: np.clip(x, -1, 2), (WIDE,), "fhi"),
]

ALL = [*UNARY, *BINARY]
