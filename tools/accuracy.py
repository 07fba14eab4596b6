#!/usr/bin/env python3
"""Write docs/accuracy.md: the largest error in ULP of elementwise functions, per dtype.

    PYTHONPATH=.:tests python tools/accuracy.py [--points 10000] [--processes 2] > page.md

float64 is compared with mpmath at 40 digits. Narrower dtypes are compared with NumPy and SciPy in
float64, which err by less than 2^-10 ULP of float32; float16 and bfloat16 operands of functions of
one argument are all 65536 of them.
"""

from __future__ import annotations

import argparse
import math
import pathlib
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any, NamedTuple

import ml_dtypes
import mpmath as mp
import numpy as np
import scipy.special as sp
from test_scipy_special import ACCURACY, spread

import olympus
from olympus import lax
from olympus.scipy import special

DTYPES = {"float16": np.dtype("f2"), "bfloat16": np.dtype(ml_dtypes.bfloat16),
          "float32": np.dtype("f4"), "float64": np.dtype("f8")}
REAL = (-np.inf, np.inf)
PAGE = pathlib.Path(__file__).parents[1] / "docs" / "accuracy.md"
SWEPT = "<!-- tools/special_sweep.py --write -->"       # begins what that tool writes of the page


class Case(NamedTuple):
    """A function, its reference in float64 and in mpmath, and per operand where points lie."""

    name: str
    near: Callable[..., Any]
    exact: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    fun: Callable[..., Any] | None = None


def mp_lower(a: Any, x: Any, digits: int = 45) -> Any:
    """P(a, x) by its power series, all of whose terms are positive."""
    term = total = mp.mpf(1)
    n = 0
    while term > total * mp.mpf(10) ** -digits:
        n += 1
        term *= x / (a + n)
        total += term
    return total * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))


def mp_upper(a: Any, x: Any) -> Any:
    """Q(a, x)."""
    with mp.workdps(60):
        q = 1 - mp_lower(a, x)
    return q if q > mp.mpf(10) ** -20 else mp.gammainc(a, x, mp.inf, regularized=True)


def mp_lower_slope(a: Any, x: Any) -> Any:
    """dP/da by a difference, in digits enough for slopes of 1e-130, where P is nearly 1."""
    with mp.workdps(220):
        h = a * mp.mpf(10) ** -40
        return (mp_lower(a + h, x, 210) - mp_lower(a - h, x, 210)) / (2 * h)


def mp_sample_slope(a: Any, x: Any) -> Any:
    """-(dP/da) / (dP/dx)."""
    density = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
    return -mp_lower_slope(a, x) / density


def mp_zeta(s: Any, q: Any) -> Any:
    """The Hurwitz zeta function by Euler-Maclaurin summation: 30 terms and 14 corrections."""
    n, end = 30, q + 30
    total = sum((q + k) ** -s for k in range(n)) + end ** (1 - s) / (s - 1) + end ** -s / 2
    term = s * end ** (-s - 1)
    for k in range(1, 15):
        total += mp.bernoulli(2 * k) / mp.factorial(2 * k) * term
        term *= (s + 2 * k - 1) * (s + 2 * k) / end ** 2
    return total


def mp_polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of digamma."""
    return mp.psi(0, x) if m == 0 else (-1) ** int(m + 1) * mp.factorial(m) * mp_zeta(m + 1, x)


def own64(name: str) -> Callable[..., Any]:
    """Olympus in float64, whose row is compared with mpmath, for what SciPy does not have."""
    def near(*xs: Any) -> Any:
        with olympus.enable_x64(True):
            return np.asarray(getattr(lax, name)(*(np.asarray(x, "f8") for x in xs)))
    return near


def unary(name: str, near: Any, exact: Any = None, low: float = -np.inf, high: float = np.inf
          ) -> Case:
    return Case(name, near, exact or getattr(mp, name), ((low, high),))


POSITIVE = (0.0, np.inf)
SHAPE = (1e-3, 300.0)
CASES = (
    unary("abs", np.abs, mp.fabs), unary("neg", np.negative, lambda x: -x),
    unary("sign", np.sign), unary("floor", np.floor), unary("ceil", np.ceil),
    unary("square", np.square, lambda x: x * x),
    unary("reciprocal", np.reciprocal, lambda x: 1 / x),
    unary("sqrt", np.sqrt, low=0), unary("cbrt", np.cbrt, mp.cbrt, low=0),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x), low=0),
    unary("exp", np.exp, low=-745, high=710),
    unary("exp2", np.exp2, lambda x: mp.power(2, x), -1074, 1024),
    unary("expm1", np.expm1, low=-745, high=710),
    unary("log", np.log, low=0), unary("log2", np.log2, lambda x: mp.log(x) / mp.log(2), 0),
    unary("log1p", np.log1p, low=-1), unary("logistic", sp.expit, lambda x: 1 / (1 + mp.exp(-x)),
                                            -700, 700),
    unary("sin", np.sin), unary("cos", np.cos), unary("tan", np.tan),
    unary("asin", np.arcsin, mp.asin, -1, 1), unary("acos", np.arccos, mp.acos, -1, 1),
    unary("atan", np.arctan, mp.atan),
    unary("sinh", np.sinh, low=-710, high=710), unary("cosh", np.cosh, low=-710, high=710),
    unary("tanh", np.tanh), unary("asinh", np.arcsinh, mp.asinh),
    unary("acosh", np.arccosh, mp.acosh, 1), unary("atanh", np.arctanh, mp.atanh, -1, 1),
    unary("erf", sp.erf), unary("erfc", sp.erfc, low=-30, high=27),
    unary("erf_inv", sp.erfinv, mp.erfinv, -1, 1),
    unary("lgamma", sp.gammaln, mp.loggamma, 0, 1e5), unary("digamma", sp.psi, mp.digamma, 0, 1e5),
    unary("bessel_i0e", sp.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), -700, 700),
    unary("bessel_i1e", sp.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), -700, 700),
    Case("add", np.add, lambda x, y: x + y, (REAL, REAL)),
    Case("sub", np.subtract, lambda x, y: x - y, (REAL, REAL)),
    Case("mul", np.multiply, lambda x, y: x * y, (REAL, REAL)),
    Case("div", np.divide, lambda x, y: x / y, (REAL, REAL)),
    Case("rem", np.fmod, lambda x, y: math.fmod(x, y), (REAL, REAL)),
    Case("max", np.maximum, max, (REAL, REAL)), Case("min", np.minimum, min, (REAL, REAL)),
    Case("pow", np.power, mp.power, ((0.0, 1e3), (-100.0, 100.0))),
    Case("atan2", np.arctan2, mp.atan2, (REAL, REAL)),
    Case("igamma", sp.gammainc, mp_lower, (SHAPE, SHAPE)),
    Case("igammac", sp.gammaincc, mp_upper, (SHAPE, SHAPE)),
    Case("igamma_grad_a", own64("igamma_grad_a"), mp_lower_slope, (SHAPE, SHAPE)),
    Case("random_gamma_grad", own64("random_gamma_grad"), mp_sample_slope, (SHAPE, SHAPE)),
    Case("betainc", sp.betainc, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
         ((0.1, 50.0), (0.1, 50.0), (0.0, 1.0))),
    Case("zeta", sp.zeta, mp_zeta, ((1.001, 40.0), (1e-2, 1e3))),
    Case("polygamma", sp.polygamma, mp_polygamma, ((0, 5), (1e-2, 1e3))),
    *(Case(f"special.{name}", getattr(sp, name), exact, tuple(ranges), getattr(special, name))
      for name, (_, ranges, exact) in ACCURACY.items()),
)


LOG10 = Case("log10", np.log10, mp.log10, (POSITIVE,), olympus.numpy.log10)


def specials(dtype: Any) -> np.ndarray:
    """±0, ±1, ±inf, NaN, ± smallest and largest subnormal and normal numbers."""
    info = ml_dtypes.finfo(dtype)
    sub = info.smallest_subnormal
    sizes = [0.0, 1.0, np.inf, sub, np.nextafter(info.tiny, dtype.type(0)), info.tiny, info.max]
    values = np.array([float(s) for s in sizes])
    return np.concatenate([values, -values, [np.nan]]).astype(dtype)


def points(case: Case, dtype: Any, count: int) -> list[np.ndarray]:
    """Operands: half uniform in the range (in ±10 of an infinite one), half in logarithm.

    Those of special functions are few, and where the tests have them: mpmath takes long elsewhere.
    """
    if case.name.startswith("special."):
        return [spread(*r, count // 10, i).astype(dtype) for i, r in enumerate(case.ranges)]
    rng = np.random.default_rng(sum(map(ord, case.name)))
    if dtype.itemsize == 2 and len(case.ranges) == 1:
        return [np.arange(2**16, dtype=np.uint16).view(dtype)]
    info = ml_dtypes.finfo(dtype)
    out = []
    for low, high in case.ranges:
        u = rng.random(count)
        flat = max(low, -10.0) + u * (min(high, max(low, 0.0) + 10.0) - max(low, -10.0))
        top = min(max(abs(low), abs(high)), float(info.max))
        bottom = max(float(info.tiny), low, 1e-300 if len(case.ranges) == 1 else 1e-30)
        wide = np.exp(np.log(bottom) + rng.random(count) * (np.log(top) - np.log(bottom)))
        if len(case.ranges) > 1:
            wide = np.minimum(wide, 1e30)
        wide *= np.where((rng.random(count) < 0.5) & (low < 0), -1, 1)
        x = np.where(rng.random(count) < 0.5, flat, np.clip(wide, low, high)).astype(dtype)
        out.append(np.floor(x) if case.name == "polygamma" and not out else x)
    return out


def ulp(reference: np.ndarray, dtype: Any) -> np.ndarray:
    """The distance between numbers of `dtype` near the reference; NaN where it is not normal."""
    info = ml_dtypes.finfo(dtype)
    size = np.abs(reference)
    with np.errstate(all="ignore"):
        unit = np.exp2(np.floor(np.log2(size)) - info.nmant)
    return np.where((size >= float(info.tiny)) & (size <= float(info.max)), unit, np.nan)


def exact_errors(case: Case, xs: list[np.ndarray], found: np.ndarray) -> np.ndarray:
    """Errors in ULP of float64 results against mpmath; NaN where there is no finite reference."""
    errors = np.full(found.shape, np.nan)
    mp.mp.dps = 40
    for i, (v, *args) in enumerate(zip(found, *xs, strict=True)):
        try:
            wanted = case.exact(*(mp.mpf(float(a)) for a in args))
        except (ValueError, ZeroDivisionError, OverflowError, mp.libmp.NoConvergence):
            continue
        if isinstance(wanted, (mp.mpc, complex)) or not mp.isfinite(wanted):
            continue
        unit = ulp(np.array(float(wanted)), DTYPES["float64"])[()]
        if unit == unit:
            errors[i] = abs(float((mp.mpf(float(v)) - wanted) / mp.mpf(float(unit)))) \
                if np.isfinite(v) else np.inf
    return errors


def measure(case: Case, dtype_name: str, count: int) -> tuple[float, int, int]:
    """(largest error in ULP, number of points, number of special points whose kind differs)."""
    dtype = DTYPES[dtype_name]
    fun = case.fun or getattr(lax, case.name)
    with olympus.enable_x64(True), np.errstate(all="ignore"):
        xs = points(case, dtype, count)
        many = case.name.startswith("special.") and len(xs) > 2
        ends = np.ones(1, dtype) if many else specials(dtype)
        grid = [g.ravel() for g in np.meshgrid(*[ends] * len(xs), indexing="ij")]
        both = np.asarray(olympus.jit(fun)(*map(np.concatenate, zip(xs, grid, strict=True))))
        found, ends = both[:xs[0].size], both[xs[0].size:].astype("f8")
        if dtype_name == "float64":
            errors = exact_errors(case, xs, found)
        else:
            wanted = np.asarray(case.near(*(x.astype("f8") for x in xs)), "f8")
            size = np.abs(found.astype("f8") - wanted) / ulp(wanted, dtype)
            errors = np.where(np.isfinite(found.astype("f8")), size,
                              np.where(np.isnan(size), np.nan, np.inf))
        tiny = float(ml_dtypes.finfo(dtype).tiny)
        for x in xs:
            size = np.abs(x.astype("f8"))
            errors = np.where((size > 0) & (size < tiny), np.nan, errors)
        limits = np.asarray(case.near(*(g.astype("f8") for g in grid)), "f8").astype(dtype)
        differ = kinds(ends) != kinds(limits.astype("f8"))
    worst = 0.0 if np.isnan(errors).all() else np.nanmax(errors)
    return float(worst), int(found.size), int(differ.sum())


def kinds(x: np.ndarray) -> np.ndarray:
    """0 for numbers, ±1 for infinities, 2 for NaN."""
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0))


def row(arguments: tuple[int, int]) -> str:
    """A line of the page."""
    index, count = arguments
    case = CASES[index]
    cells = []
    for name in DTYPES:
        worst, used, differ = measure(case, name, count)
        cells.append(f"{spell(worst)} | {differ or ''}")
    return f"| `{case.name}` | {used} | " + " | ".join(cells) + " |"


# Functions that have kernels on one CPU (`olympus/_src/lax/kernels/elementwise.py`).
OF_KERNELS = ("cbrt", "exp2", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
              "sinh", "asinh", "acosh", "atanh", "atan2")
LARGEST_ANGLE = 2.0 ** 28       # of float64, up to which there are kernels


def kernel_row(name: str) -> str:
    """A function's largest errors, by XLA's form and by its kernel; nothing where there is none."""
    case = LOG10 if name == "log10" else next(c for c in CASES if c.name == name)
    fun, cells = case.fun or getattr(lax, name), []
    for dtype in ("float32", "float64"):
        if name in ("sin", "cos", "tan") and dtype == "float64":
            case = case._replace(ranges=((-LARGEST_ANGLE, LARGEST_ANGLE),))
        xs = points(case, DTYPES[dtype], 2**15)
        with olympus.enable_x64(True), np.errstate(all="ignore"):
            taken = olympus.debug.kernels(fun, *xs).lines
            for mode in ("off", "auto") if taken else ():
                found = np.asarray(olympus.jit(fun, kernels=mode)(*xs))
                if dtype == "float64":
                    errors = exact_errors(case, xs, found)
                else:
                    wanted = case.near(*(x.astype("f8") for x in xs))
                    errors = np.abs(found.astype("f8") - wanted) / ulp(wanted, DTYPES[dtype])
                cells.append(spell(np.nanmax(errors)))
            cells += [""] * (0 if taken else 2)
    return f"| `{name}` | " + " | ".join(cells) + " |"


def spell(worst: float) -> str:
    """An error, rounded up to two digits."""
    if not np.isfinite(worst):
        return "inf"
    if worst < 0.1:
        return "0" if worst == 0 else "0.1"
    digits = 1 - math.floor(math.log10(worst))
    rounded = math.ceil(worst * 10.0 ** digits - 1e-9) / 10.0 ** digits
    return f"{rounded:.1f}" if rounded < 10 else f"{rounded:.0f}"


HEADER = """# Accuracy

This page lists the largest error found, in units in the last place (ULP) of the exact result, of
each elementwise function of `olympus.lax` and of many of `olympus.scipy.special`, on CPU.
`tools/accuracy.py` writes the page; `tests/test_accuracy.py` measures some rows again and fails
where they are worse.

* *points*: the number of points in float64, where results are compared with mpmath at 40 digits.
  The other dtypes are compared with NumPy or SciPy in float64, whose own errors are below 0.001 ULP
  of float32 (for `igamma_grad_a` and `random_gamma_grad`, which SciPy lacks, with Olympus's
  float64). Functions of one operand are measured at all 65536 numbers of float16 and bfloat16.
* Half of the points are uniform near zero, half uniform in logarithm over the range of the dtype,
  within the function's natural domain. Subnormal operands and results are left out: XLA on CPU
  takes subnormal numbers for zero.
* *kinds*: the number of wrong kinds of results (NaN or infinite where the result should be finite,
  or the reverse) at combinations of ±0, ±1, ±inf, NaN and the smallest and largest subnormal and
  normal numbers. Most are subnormal operands taken for zero (`1 / x`, `log(x)`), and `igamma` and
  `betainc` at infinities, where SciPy has no limit.
* Rows of `special` have a tenth of the points, in the ranges of `tests/test_scipy_special.py`.
  Their largest errors are next to zeros of the functions.
* An error of `inf` is a result that is NaN or infinite where the exact one is a normal number.

| function | points | float16 | kinds | bfloat16 | kinds | float32 | kinds | float64 | kinds |
|---|---|---|---|---|---|---|---|---|---|"""


FOOTER = """
## On one CPU

From some thousand elements on, [kernels](what_is_fast.md) compute these functions. The largest
errors in ULP that `tools/accuracy.py --kernels` found at 32,768 points, of float32 beside NumPy's
float64, of float64 beside mpmath, in the form of above and as kernels:

| function | float32: XLA's form | kernel | float64: XLA's form | kernel |
|---|---|---|---|---|
| `cbrt` | 0.9 | 0.5 | 3.1 | 0.7 |
| `exp2` | 0.5 | 0.5 | 0.5 | 0.6 |
| `log2` |  |  | 1.3 | 0.8 |
| `log10` |  |  | 2.7 | 0.7 |
| `log1p` |  |  | 1.6 | 0.6 |
| `sin` | 0.6 | 0.5 | 0.5 | 0.7 |
| `cos` | 0.6 | 0.5 | 0.5 | 0.7 |
| `tan` | 0.9 | 0.5 | 0.5 | 0.8 |
| `asin` | 17000000 | 0.5 | 1.3 | 0.6 |
| `acos` | 1.7 | 0.5 | 1.2 | 0.6 |
| `atan` | 0.8 | 0.5 | 0.5 | 0.6 |
| `sinh` | 24 | 0.5 | 480 | 0.9 |
| `asinh` | 2.7 | 0.5 | 2.5 | 0.6 |
| `acosh` | 2.9 | 0.5 | 2.9 | 0.6 |
| `atanh` | 2.5 | 0.5 | 2.3 | 0.7 |
| `atan2` | 1.4 | 0.5 | 0.5 | 0.6 |

Logarithms to 2 and 10 are exact at powers of their bases. Powers by halves of odd numbers err by
0.501 ULP, tangents of angles beyond 2²⁴ in float32 by 0.52. Angles beyond 2²⁸ in an array of
float64 give it XLA's form as a whole.

## Convolutions

A float32 convolution of one feature by more than some 70 numbers (`convolve`, `correlate`,
`scipy.signal.convolve2d`, their derivatives) is a product of Fourier transforms in float64 on one
CPU, where that takes less time than the sums. Measured by the **largest** element of the result,
its errors come from the last rounding, 6e-8; NumPy's direct sums reach 3e-7 (10,000 by 10,000
numbers). By the elements themselves they may be larger where the operands' sizes differ by more
than a factor of 10⁸: a direct sum of small elements knows nothing of large ones elsewhere. What
is smaller than the bound of the error, `2**-52 * log2(n) * norm(x) * norm(y)`, is 0, so sums of
no products are 0, sums of numbers that are not negative stay so, and sums of small whole numbers
are exact. With infinities or NaN the direct sums run, which spread them no further than they
reach. `jit(f, kernels="off")` has the direct sums everywhere.

## Whole domains

`tools/special_sweep.py` draws operands of every special function from everywhere: zero, subnormal,
tiny, small, next to 1, whole, half, moderate, large, huge, infinite, of both signs. SciPy finds
suspects, mpmath decides, and what rounding the operands explains is no error. The table below has
the worst errors. The reasons for the large ones, and for wrong results, are these:

* `lax.lgamma`, `lax.digamma`, `lax.polygamma` and `lax.erf_inv` are XLA's, as in JAX: `lgamma` next
  to 1 and 2 and `digamma` next to its zero have only absolute precision, `polygamma` (on CPU in
  float64 for all dtypes, which JAX's is not) is 0 or NaN where `m!` or `zeta` leaves the range of
  float64, so above the order 170; below 0 it is by reflection, since XLA's sum has no digits from
  x = -8 on. `special.gammaln`, `special.digamma`, `special.polygamma` and `special.erfinv` have
  full precision.
* Functions computed by several operations in float32 have a few rounding errors: `boxcox`, `gdtr`,
  `gdtrc`, `inv_boxcox`, `zetac`: up to 7e-6, where they nearly vanish; and their products of two
  numbers may under- or overflow where the result does not.
* `betainc` and its relatives: parameters up to 1e30, of every ratio; in float32 all of them.
  Parameters above 1e9 take the uniform expansion: within 1e-11 of relative error next to the mean,
  as large as the effect of rounding x.
* `hyp2f1` and `hyp1f1`: where terms cancel, Taylor's series of the differential equation lead to x,
  within about 1e-11 for parameters up to 600. Where they would not, for c or b below 0 and a
  result of less than 1e-8 of the largest term, the value is NaN; NaN or infinite, too, where an
  intermediate value leaves the range of numbers.
* `elliprd` of arguments whose ratios are beyond 1e30, 0.1 %.
* Bessel functions and Airy's of arguments beyond 1e15, `ellipj` of large ones: the phase has no
  digits; the size is right.
* Orthogonal polynomials of degrees that are not whole are hypergeometric functions, within 1e-11 up
  to the degree 300 (SciPy's lose all digits from about 40 on). Hermite's are NaN: SciPy has none.
  Degrees of a float dtype cost ten times what those of an integer dtype do to compile.
* Laguerre polynomials of large degree and a parameter far below -1: their recurrence loses digits.
* `poch(z, m)` for `z` above 1e4 and `m` that is not whole loses digits, all of them where `z + m`
  rounds to `z`.
* Subnormal operands count as zero, and subnormal results may be zero.
* Where SciPy has NaN at an end, the limit: `airy` and `voigt_profile` at infinity, `gammaincinv` at
  a = 0, `nbdtr` at n = 0, `stdtrit` at 0 and 1; `gammaln(-inf)` is inf, as in C."""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--kernels", action="store_true", help="only the table of kernels")
    given = parser.parse_args()
    if given.kernels:
        for name in given.only or OF_KERNELS:
            print(kernel_row(name), flush=True)
        return
    wanted = [(i, given.points) for i, c in enumerate(CASES)
              if not given.only or c.name in given.only]
    print(HEADER)
    with get_context("spawn").Pool(given.processes) as pool:
        for line in pool.imap(row, wanted):
            print(line, flush=True)
    print(FOOTER)
    print("", "".join(PAGE.read_text().partition(SWEPT)[1:]), sep="\n", end="")


if __name__ == "__main__":
    main()
