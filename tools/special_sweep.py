#!/usr/bin/env python3
"""Are the special functions right everywhere? A seeded sweep over whole domains.

Operands are drawn by magnitude (zero, subnormal, tiny, small, unit, whole, half, moderate, large,
huge, infinite, of both signs, and next to 1), not from where a function is at ease. SciPy finds
suspects, mpmath decides: of a result that SciPy's supports the distance to SciPy's is its error, of
any other that to mpmath's. A suspect is a result that is further from mpmath's than rounding the
operands moves it, or of another kind (NaN, infinite) than both SciPy's and mpmath's. Subnormal
operands may be taken for zero, and subnormal results given as zero, as XLA on CPU does.

    PYTHONPATH=.:tests:tools python tools/special_sweep.py
        [--seed 0] [--points 400] [--regions] [--write | --check] [name …]
"""

from __future__ import annotations

import argparse
import collections
import functools
import itertools
import signal
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import accuracy
import mpmath as mp
import numpy as np
import scipy.special as sp

import olympus
from olympus import lax
from olympus.scipy import special

mpf = mp.mpf
DIGITS = 60
PATIENCE = 0.1      # seconds of the processor for one number


class Case(NamedTuple):
    """A function, the kinds of its operands, its exact value (None: SciPy alone decides)."""

    name: str
    kinds: str
    exact: Callable[..., Any] | None
    fun: Callable[..., Any]
    near: Callable[..., Any] | None
    inverse: bool = False       # `exact(found, *operands)` is then the error in the result itself


# Operands: of each kind the magnitudes that it is drawn from ------------------------------------
# r real, p positive, q probability, n whole number, o order, s shape, m modulus <= 1, i inside ±1

MAGNITUDES = ("zero", "subnormal", "tiny", "small", "unit", "one", "whole", "half", "moderate",
              "large", "huge", "infinite")
KINDS: dict[str, tuple[tuple[str, ...], float]] = {     # magnitudes, the share of negative ones
    "r": (MAGNITUDES, 0.5), "p": (MAGNITUDES, 0.05),
    "q": (("zero", "subnormal", "tiny", "small", "unit", "unit", "unit", "one"), 0.02),
    "n": (("zero", "whole", "whole", "whole", "hundreds"), 0.0),
    "o": (("zero", "tiny", "small", "unit", "whole", "half", "moderate", "hundreds"), 0.3),
    "s": (("zero", "tiny", "small", "unit", "one", "whole", "half", "moderate", "large", "great"),
          0.03),
    "m": (("zero", "subnormal", "tiny", "small", "unit", "one"), 0.2),
    "i": (("zero", "subnormal", "tiny", "small", "unit", "one"), 0.5),
    "d": (("small", "unit", "moderate", "half", "large"), 0.0),
}

NAMES = {"r": "real", "p": "positive", "q": "probability", "n": "whole", "o": "order",
         "s": "shape", "m": "modulus", "i": "[-1,1]", "d": "degrees"}


def magnitude(label: str, rng: Any, dtype: Any) -> float:
    """A number of that size, > 0 but for `zero`."""
    info = np.finfo(dtype)
    least, most = float(info.tiny), float(info.max)
    middle = 1e-20 if dtype == np.float64 else 1e-12

    def log(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return {
        "zero": lambda: 0.0, "subnormal": lambda: least * rng.uniform(0.01, 0.9),
        "tiny": lambda: log(least, middle), "small": lambda: log(middle, 0.01),
        "unit": lambda: rng.uniform(0.01, 1.0),
        "one": lambda: 1.0 + rng.choice([0, -1, 1, -1]) * log(float(info.eps), 1e-2),
        "whole": lambda: float(rng.integers(1, 41)), "half": lambda: rng.integers(0, 40) + 0.5,
        "moderate": lambda: rng.uniform(1.0, 50.0), "large": lambda: log(50.0, 1e5),
        "hundreds": lambda: float(rng.integers(41, 600)),
        "huge": lambda: log(1e5, most / 4), "great": lambda: log(1e5, 1e30),
        "infinite": lambda: np.inf}[label]()


def draw(kind: str, rng: Any, dtype: Any) -> tuple[str, float]:
    """(region, value) of an operand."""
    labels, negative = KINDS[kind]
    label = str(rng.choice(labels))
    value = magnitude(label, rng, dtype)
    value = min(value, 1.0) if kind in "qmi" and rng.random() < 0.95 else value
    if rng.random() < negative:
        label, value = f"-{label}", -value
    if kind == "m" and label.startswith("-"):       # negative parameters have no end
        value *= float(10.0 ** rng.uniform(0, 6))
    return label, float(np.asarray(value, dtype))


# Exact values -----------------------------------------------------------------------------------

def beta_below(a: Any, b: Any, x: Any) -> Any:
    """I(a, b; x), from the end where it is small, so that digits of small values stay."""
    if x == 0 or x == 1:
        return mpf(x)
    with mp.workdps(DIGITS + int(abs(mp.log10(min(a, b))))):
        if x * (a + b + 2) > a + 1:
            return 1 - beta_tail(b, a, 1 - x)
        return beta_tail(a, b, x)


def beta_tail(a: Any, b: Any, x: Any) -> Any:
    front = mp.exp(a * mp.log(x) + b * mp.log1p(-x) - log_beta(a, b)) / a
    return front * mp.hyp2f1(1, a + b, a + 1, x)


def log_beta(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def beta_above(a: Any, b: Any, x: Any) -> Any:
    with mp.workdps(DIGITS + int(abs(mp.log10(x))) if x else DIGITS):
        return beta_below(b, a, 1 - x)


def lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True) if x > a + 50 else accuracy.mp_lower(a, x, 55)


def upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def student(df: Any, t: Any) -> Any:
    if t == 0:
        return mpf(1) / 2
    tail = beta_below(df / 2, mpf(1) / 2, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def inverse_of(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The relative error of x where forward(*parameters, x) = p, by the slope at x."""
    def error(found: Any, *operands: Any) -> Any:
        *parameters, p = operands
        end = found == 0 or mp.isinf(found)
        if end:         # right if the root is beyond the range of numbers
            found = mpf(2) ** -1022 if found == 0 else mp.sign(found) * mpf(2) ** 1023
        step = found * mpf(10) ** -25
        value = forward(*parameters, found)
        slope = (forward(*parameters, found + step) - value) / step
        move = (p - value) / (slope * found)
        if end:
            return mpf(0) if (move > 0) == (abs(found) > 1) else mp.inf
        return abs(move)
    return error


def kolmogorov(y: Any) -> Any:
    if y < mpf("0.05"):
        return mpf(1)
    return 2 * mp.nsum(lambda k: (-1) ** (int(k) - 1) * mp.exp(-2 * k * k * y * y), [1, mp.inf]) \
        if y > 0.3 else 1 - mp.sqrt(2 * mp.pi) / y * sum(
            mp.exp(-((2 * k - 1) * mp.pi) ** 2 / (8 * y * y)) for k in range(1, 8))


def owens(h: Any, a: Any) -> Any:
    points = [0, a] if abs(h * a) < 10 else [0, 1 / h, 4 / h, 12 / h, 40 / h]
    points = [min(abs(p), abs(a)) for p in points]
    total = mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), sorted({*points}))
    return mp.sign(a) * total / (2 * mp.pi)


def faddeeva(z: Any) -> Any:
    return mp.exp(-z * z) * mp.erfc(-1j * z)


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    if sigma == 0:
        return gamma / (mp.pi * (x * x + gamma * gamma))
    scale = sigma * mp.sqrt(2)
    return mp.re(faddeeva(mp.mpc(x, gamma) / scale)) / (scale * mp.sqrt(mp.pi))


def power_minus(x: Any, k: Any) -> Any:
    return mp.log(x) if k == 0 else mp.expm1(k * mp.log(x)) / k


def binomial(below: bool) -> Callable[..., Any]:
    def exact(k: Any, n: Any, p: Any) -> Any:
        k, n = mp.floor(k), mp.floor(n)
        if not 0 <= k <= n or not 0 <= p <= 1:
            raise ValueError
        if k == n:
            return mpf(below)
        return beta_above(k + 1, n - k, p) if below else beta_below(k + 1, n - k, p)
    return exact


def fisher(above: bool) -> Callable[..., Any]:
    def exact(n: Any, d: Any, x: Any) -> Any:
        y = n * x / (d + n * x)
        return (beta_above if above else beta_below)(n / 2, d / 2, y)
    return exact


def relative(p: Any, q: Any) -> Any:
    return p * mp.log(p / q) if p else mpf(0)


def real(z: Any) -> Any:
    if mp.im(z) != 0:
        raise ValueError
    return mp.re(z)


def case(name: str, kinds: str, exact: Any, fun: Any = None, near: Any = None,
         inverse: bool = False) -> Case:
    return Case(name, kinds, exact, fun or getattr(special, name),
                near or getattr(sp, name, None), inverse)


def part(name: str, index: int, kinds: str, exact: Any) -> Case:
    """One of the results of a function that has several."""
    return Case(f"{name}[{index}]", kinds, exact, lambda *xs: getattr(special, name)(*xs)[index],
                lambda *xs: getattr(sp, name)(*xs)[index])


def primitive(name: str, kinds: str, exact: Any, near: Any) -> Case:
    return Case(f"lax.{name}", kinds, exact, getattr(lax, name), near)


def orthogonal(name: str, kinds: str, exact: Any) -> Case:
    """Integer degrees, which have a primitive, and in SciPy a function, of their own."""
    def of_integers(module: Any) -> Callable[..., Any]:
        return lambda n, *xs: getattr(module, f"eval_{name}")(n.astype("int32"), *xs)
    return case(f"eval_{name}", kinds, exact, of_integers(special), of_integers(sp))


def between(name: str, kinds: str, exact: Any) -> Case:
    """Real degrees."""
    def principal(*operands: Any) -> Any:
        value = exact(*operands)
        return mp.re(value) if abs(mp.im(value)) <= abs(value) * mpf(10) ** -40 else mp.nan
    return case(f"eval_{name}", kinds, principal)._replace(name=f"eval_{name} of real degrees")


def log_gamma(x: Any) -> Any:
    """SciPy's, but for -inf, where C's has inf."""
    return np.where(x == -np.inf, np.inf, sp.gammaln(x))


INVERSE = functools.partial(case, inverse=True)
CASES = (
    *(part("airy", i, "r", functools.partial(f, derivative=d)) for i, (f, d) in enumerate(
        itertools.product((mp.airyai, mp.airybi), (0, 1)))),
    case("bdtr", "nnq", binomial(True)), case("bdtrc", "nnq", binomial(False)),
    case("beta", "ss", mp.beta), case("betaln", "ss", lambda a, b: mp.log(abs(mp.beta(a, b)))),
    case("betainc", "ssq", beta_below), case("betaincc", "ssq", beta_above),
    INVERSE("betaincinv", "ssq", inverse_of(beta_below)),
    INVERSE("betainccinv", "ssq", inverse_of(beta_above)),
    case("binom", "rr", mp.workdps(700)(mp.binomial)),
    case("boxcox", "pr", power_minus), case("boxcox1p", "pr", lambda x, k: power_minus(1 + x, k)),
    case("inv_boxcox", "rr", lambda y, k: mp.exp(mp.log1p(k * y) / k) if k else mp.exp(y)),
    case("inv_boxcox1p", "rr", lambda y, k: mp.expm1(mp.log1p(k * y) / k) if k else mp.expm1(y)),
    case("chdtr", "sp", lambda v, x: lower(v / 2, x / 2)),
    case("chdtrc", "sp", lambda v, x: upper(v / 2, x / 2)),
    INVERSE("chdtri", "sq", inverse_of(lambda v, x: upper(v / 2, x / 2))),
    case("comb", "nn", mp.binomial), case("perm", "nn", lambda n, k: mp.ff(n, k)),
    case("factorial", "n", mp.factorial),
    case("dawsn", "r", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
    case("digamma", "r", mp.digamma), case("gamma", "r", mp.gamma), case("rgamma", "r", mp.rgamma),
    case("gammaln", "r", lambda x: mp.log(abs(mp.gamma(x))), None, log_gamma),
    case("loggamma", "p", mp.loggamma),
    case("gammasgn", "r", lambda x: mp.sign(mp.gamma(x))),
    case("ellipe", "m", mp.ellipe), case("ellipk", "m", mp.ellipk),
    case("ellipkm1", "p", lambda p: mp.ellipk(1 - p)),
    case("ellipeinc", "rm", lambda f, m: real(mp.ellipe(f, m))),
    case("ellipkinc", "rm", lambda f, m: mp.sign(f) * real(mp.ellipf(abs(f), m))),
    *(part("ellipj", i, "oq", functools.partial(
        lambda u, m, kind: mp.ellipfun(kind, u, m=m), kind=kind))
      for i, kind in enumerate(("sn", "cn", "dn"))),
    case("elliprc", "pr", mp.elliprc), case("elliprf", "ppp", mp.elliprf),
    case("elliprd", "ppp", mp.elliprd),
    case("entr", "p", lambda x: -x * mp.log(x) if x else mpf(0)),
    case("erf", "r", mp.erf), case("erfc", "r", mp.erfc), case("erfi", "r", mp.erfi),
    case("erfcx", "r", lambda x: mp.exp(x * x) * mp.erfc(x)),
    INVERSE("erfinv", "i", inverse_of(mp.erf)), INVERSE("erfcinv", "q", inverse_of(mp.erfc)),
    case("exp1", "p", mp.e1), case("expi", "r", mp.ei), case("expn", "np", mp.expint),
    case("expit", "r", lambda x: 1 / (1 + mp.exp(-x))),
    case("exprel", "r", lambda x: mp.expm1(x) / x if x else mpf(1)),
    case("log_expit", "r", lambda x: -mp.log1p(mp.exp(-x))),
    case("logit", "q", lambda p: mp.log(p / (1 - p))),
    case("fdtr", "ssp", fisher(False)), case("fdtrc", "ssp", fisher(True)),
    INVERSE("fdtri", "ddq", inverse_of(fisher(False))),
    part("fresnel", 0, "r", mp.fresnels), part("fresnel", 1, "r", mp.fresnelc),
    case("gammainc", "sp", lower), case("gammaincc", "sp", upper),
    INVERSE("gammaincinv", "sq", inverse_of(lower)),
    INVERSE("gammainccinv", "sq", inverse_of(upper)),
    case("gdtr", "ssp", lambda a, b, x: lower(b, a * x)),
    case("gdtrc", "ssp", lambda a, b, x: upper(b, a * x)),
    case("huber", "pr", lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2)),
    case("pseudo_huber", "pr", lambda d, r: r * r / (mp.sqrt(1 + (r / d) ** 2) + 1) if d else 0),
    case("hyp1f1", "oor", mp.hyp1f1), case("hyp2f1", "ooom", lambda *v: real(mp.hyp2f1(*v))),
    *(case(f"{kind}{order}{e}", "p" if kind in "ky" else "r", functools.partial(
        lambda x, f, n, s: f(n, x) * mp.exp(s * abs(x)), f=f, n=order,
        s=(1 if kind == "k" else -1) if e else 0))
      for kind, f, ends in (("i", mp.besseli, ("", "e")), ("j", mp.besselj, ("",)),
                            ("k", mp.besselk, ("", "e")), ("y", mp.bessely, ("",)))
      for order in (0, 1) for e in ends),
    case("iv", "op", mp.besseli), case("jv", "op", mp.besselj), case("kv", "op", mp.besselk),
    case("yv", "op", mp.bessely), case("jn", "np", mp.besselj), case("kn", "np", mp.besselk),
    case("yn", "np", mp.bessely), case("ive", "op", lambda v, x: mp.besseli(v, x) * mp.exp(-x)),
    case("kve", "op", lambda v, x: mp.besselk(v, x) * mp.exp(x)),
    case("rel_entr", "pp", relative), case("kl_div", "pp", lambda p, q: relative(p, q) - p + q),
    case("kolmogorov", "p", kolmogorov),
    Case("lambertw", "p", mp.lambertw, lambda x: olympus.numpy.real(special.lambertw(x)),
         lambda x: sp.lambertw(x).real),
    case("ndtr", "r", mp.ncdf),
    case("log_ndtr", "r", lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)),
    INVERSE("ndtri", "q", inverse_of(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2)),
    Case("ndtri_exp", "p", inverse_of(lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)),
         lambda y: special.ndtri_exp(-y), lambda y: sp.ndtri_exp(-y), True)._replace(
             exact=lambda found, y: inverse_of(
                 lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2))(found, -y)),
    case("nbdtr", "nnq", lambda k, n, p: beta_below(n, k + 1, p)),
    case("nbdtrc", "nnq", lambda k, n, p: beta_above(n, k + 1, p)),
    case("pdtr", "np", lambda k, m: upper(k + 1, m)),
    case("pdtrc", "np", lambda k, m: lower(k + 1, m)),
    case("owens_t", "rr", owens), case("poch", "rr", mp.rf),
    case("polygamma", "np", accuracy.mp_polygamma),
    part("shichi", 0, "r", mp.shi), part("shichi", 1, "p", mp.chi),
    part("sici", 0, "r", mp.si), part("sici", 1, "p", mp.ci),
    case("spence", "p", lambda x: mp.re(mp.polylog(2, 1 - x))),
    case("stdtr", "sr", student), INVERSE("stdtrit", "dq", inverse_of(student)),
    case("voigt_profile", "rdd", voigt),
    Case("wofz", "rp", lambda x, y: mp.re(faddeeva(mp.mpc(x, y))),
         lambda x, y: olympus.numpy.real(special.wofz(lax.complex(x, y))),
         lambda x, y: sp.wofz(x + 1j * y).real),
    case("xlogy", "pp", lambda x, y: x * mp.log(y) if x else mpf(0)),
    case("xlog1py", "pr", lambda x, y: x * real(mp.log1p(y)) if x else mpf(0)),
    Case("zeta", "ps", lambda s, q: mp.zeta(s, q), special.zeta, sp.zeta),
    Case("zeta_one", "r", mp.zeta, special.zeta, sp.zeta),
    case("zetac", "r", lambda x: mp.zeta(x) - 1),
    *(orthogonal(name, kinds, exact) for name, kinds, exact in (
        ("chebyt", "nr", mp.chebyt), ("chebyu", "nr", mp.chebyu), ("legendre", "nr", mp.legendre),
        ("hermite", "nr", mp.hermite), ("laguerre", "nr", lambda n, x: mp.laguerre(n, 0, x)),
        ("hermitenorm", "nr", lambda n, x: mpf(2) ** (-n / 2) * mp.hermite(n, x / mp.sqrt(2))),
        ("gegenbauer", "nsr", mp.gegenbauer), ("genlaguerre", "nsr", mp.laguerre))),
    *(between(name, kinds, exact) for name, kinds, exact in (
        ("chebyt", "oi", mp.chebyt), ("chebyu", "oi", mp.chebyu), ("legendre", "oi", mp.legendre),
        ("laguerre", "or", lambda n, x: mp.laguerre(n, 0, x)),
        ("gegenbauer", "ooi", mp.gegenbauer), ("genlaguerre", "oor", mp.laguerre))),
    primitive("lgamma", "r", lambda x: mp.log(abs(mp.gamma(x))), log_gamma),
    primitive("digamma", "r", mp.digamma, sp.psi),
    primitive("polygamma", "np", accuracy.mp_polygamma, sp.polygamma),
    primitive("zeta", "ps", lambda s, q: mp.zeta(s, q), sp.zeta),
    primitive("erf_inv", "i", None, sp.erfinv),
    primitive("igamma", "sp", lower, sp.gammainc), primitive("igammac", "sp", upper, sp.gammaincc),
    primitive("betainc", "ssq", beta_below, sp.betainc),
    primitive("bessel_i0e", "r", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), sp.i0e),
    primitive("bessel_i1e", "r", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), sp.i1e),
)


# The sweep --------------------------------------------------------------------------------------

class TimeoutError(Exception):
    """mpmath takes too long."""


def _alarm(*_: Any) -> None:
    raise TimeoutError


def decided(exact: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
    """The exact value; NaN at a pole and outside of the domain, None where mpmath has no answer."""
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        value = mp.mpmathify(exact(*xs))
        return mp.nan if isinstance(value, mp.mpc) and value.imag != 0 else mp.re(value)
    except (ValueError, ZeroDivisionError):
        return mp.nan
    except (TimeoutError, OverflowError, mp.libmp.NoConvergence, MemoryError, TypeError,
            RecursionError, AttributeError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def distance(found: float, wanted: Any, dtype: Any) -> float:
    """The relative distance; 0 for two that are one in the dtype, infinite between kinds."""
    info = np.finfo(dtype)
    if mp.isnan(wanted) or np.isnan(found):
        return 0.0 if bool(mp.isnan(wanted)) == bool(np.isnan(found)) else np.inf
    if abs(wanted) > mpf(float(info.max)):
        return 0.0 if abs(found) >= float(info.max) * 0.999 and mp.sign(wanted) == np.sign(found) \
            else np.inf
    if np.isinf(found):
        return 0.0 if abs(wanted) > mpf(float(info.max)) * mpf("0.9999") else np.inf
    gap = abs(mpf(found) - wanted)
    if gap <= mpf(float(info.tiny)) * 1.01:
        return 0.0
    return float(gap / max(abs(wanted), mpf(float(info.tiny))))


def shaken(case: Case, xs: tuple[float, ...], wanted: Any, dtype: Any) -> float:
    """How far, relatively, the exact value moves when an operand moves by an ulp."""
    most = 0.0
    eps = mpf(float(np.finfo(dtype).eps))
    for i, x in enumerate(xs):
        if case.kinds[i] != "n":
            for sign in (1, -1):
                moved = decided(case.exact, (*map(mpf, xs[:i]), mpf(x) * (1 + sign * eps),
                                             *map(mpf, xs[i + 1:])))
                if moved is not None and mp.isfinite(moved) and wanted != 0:
                    most = max(most, float(abs((moved - wanted) / wanted)))
    return most


class Finding(NamedTuple):
    error: float
    xs: tuple[float, ...]
    found: float
    scipy: float
    exact: Any
    suspect: bool


def judge(case: Case, xs: tuple[float, ...], found: float, scipy: float, dtype: Any) -> Finding:
    """How far a result is from the truth."""
    info = np.finfo(dtype)
    limit = 2000 * float(info.eps) if dtype == np.float64 else 16 * float(info.eps)
    near = distance(found, mpf(scipy), dtype)
    if near <= limit:
        return Finding(near, xs, found, scipy, None, False)
    ends = any(np.isinf(x) or np.isnan(x) for x in xs)
    limit_of = ends or 0.0 in xs
    flushed = tuple(0.0 if abs(x) < float(info.tiny) else x for x in xs)
    wanted = None
    for operands in dict.fromkeys((xs, flushed)):
        if case.exact is None or ends:
            continue
        if case.inverse:
            if np.isnan(found):
                continue
            error = decided(case.exact, (mpf(found), *map(mpf, operands)))
            if error is None:
                continue
            wanted, off = error, float(error) if mp.isfinite(error) else np.inf
        else:
            value = decided(case.exact, tuple(map(mpf, operands)))
            if value is None:
                continue
            wanted, off = value, distance(found, value, dtype)
            if off > limit and np.isfinite(off):
                spread = shaken(case, operands, value, dtype)
                if off <= 8 * spread:
                    return Finding(0.0, xs, found, scipy, wanted, False)
        if off <= limit:
            return Finding(off, xs, found, scipy, wanted, False)
    if limit_of and np.isnan(scipy):        # a limit that SciPy does not have
        return Finding(0.0, xs, found, scipy, None, False)
    if wanted is None:
        return Finding(near, xs, found, scipy, None, True)
    return Finding(off, xs, found, scipy, wanted, True)


def sweep(case: Case, dtype: Any, points: int, seed: int) -> Iterator[tuple[str, Finding]]:
    """(region, finding) of every drawn point."""
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
    drawn = [[draw(k, rng, dtype) for k in case.kinds] for _ in range(points * len(case.kinds))]
    columns = [np.array([d[i][1] for d in drawn], dtype) for i in range(len(case.kinds))]
    with np.errstate(all="ignore"):
        found = np.asarray(compiled(case.fun, *columns), np.float64)
        wide = [c.astype(np.float64) for c in columns]
        tiny = float(np.finfo(dtype).tiny)
        flushed = [np.where(np.abs(x) < tiny, 0.0 * x, x) for x in wide]
        scipy, zero = (np.asarray(case.near(*xs), np.float64) for xs in (wide, flushed))
        scipy = np.where((found == zero) | (found != found) & (zero != zero), zero, scipy)
    for row, *xs, f, s in zip(drawn, *wide, found, scipy, strict=True):
        region = ", ".join(label for label, _ in row)
        yield region, judge(case, tuple(map(float, xs)), float(f), float(s), dtype)


def compiled(fun: Callable[..., Any], *args: Any) -> Any:
    """The value of a function, lowered by the rules of `PLATFORMS` and compiled here."""
    return olympus.jit(fun).trace(*args).lower(lowering_platforms=PLATFORMS).compile()(*args)


PLATFORMS: tuple[str, ...] = ("cpu",)


class Measured(NamedTuple):
    """What the sweep of a function found: by region the worst error, and the suspects."""

    points: int
    worst: dict[str, Finding]
    suspects: dict[str, list[Finding]]

    def error(self) -> float:
        return max((f.error for f in self.worst.values()), default=0.0)

    def count(self) -> int:
        return sum(map(len, self.suspects.values()))


def measure(case: Case, dtype: Any, points: int, seed: int) -> Measured:
    """The sweep of a function, sorted by regions."""
    found, worst = 0, {}
    suspects: dict[str, list[Finding]] = collections.defaultdict(list)
    with olympus.enable_x64(dtype == np.float64):
        for region, finding in sweep(case, dtype, points, seed):
            found += 1
            if finding.suspect:
                suspects[region].append(finding)
            elif region not in worst or finding.error > worst[region].error:
                worst[region] = finding
    return Measured(found, worst, suspects)


def report(case: Case, dtype: Any, found: Measured, regions: bool) -> None:
    """Prints a function's faults and its worst errors."""
    print(f"{case.name} {np.dtype(dtype)}: worst {found.error():.1e}, {found.count()} suspects",
          flush=True)
    if regions:
        for region, f in sorted(found.worst.items(), key=lambda item: -item[1].error):
            print(f"    {region}: {f.error:.1e} at {f.xs}")
    for region, many in sorted(found.suspects.items()):
        f = max(many, key=lambda f: f.error)
        exact = "?" if f.exact is None else mp.nstr(f.exact, 17)
        print(f"  ! {region} ({len(many)}): {f.xs} gives {f.found!r}, SciPy {f.scipy!r}, "
              f"{'error' if case.inverse else 'exact'} {exact}")


# The table of docs/accuracy.md --------------------------------------------------------------------

BEGIN, END = accuracy.SWEPT, "<!-- end -->"
TABLE_SEED, TABLE_POINTS, FEW_POINTS = 24, 30, 8
DTYPES = ("float32", "float64")
ZONES = {"near 0": ("zero", "subnormal", "tiny", "small"),
         "middle": ("unit", "one", "whole", "half", "moderate"),
         "large": ("large", "hundreds"), "huge": ("huge", "great")}
PLACE = {label: i for i, labels in enumerate(ZONES.values()) for label in labels}
HEADER = f"""{BEGIN}
### The worst relative error of each function and region

{TABLE_POINTS} points per operand, {FEW_POINTS} for hypergeometric functions, for which mpmath
takes long; seed {TABLE_SEED}. The largest operand decides the region: *near 0* up to 0.01,
*middle* up to 50, *large* up to 1e5, *huge*; empty where no point fell.
*wrong*: results further from mpmath's than rounding the operands explains, or NaN or infinite where
they should not be, which the errors do not count. *undecided*: results that differ from SciPy's
where mpmath has no value. `tools/special_sweep.py --write` writes this table, `--check` measures it
again.

| function | operands |""" + "".join(
    f" {dtype}: {' | '.join(ZONES)} | wrong | undecided |" for dtype in DTYPES) + "\n|---|---|" + (
    "---|" * (len(DTYPES) * (len(ZONES) + 2)))


def zone(region: str) -> int:
    """The place of the largest operand; an infinite one is beyond the others."""
    return max(PLACE.get(label.removeprefix("-"), len(ZONES)) for label in region.split(", "))


def cells(found: Measured) -> list[str]:
    """The worst errors by zone, how many results are wrong, how many undecided."""
    worst: dict[int, float] = {}
    for region, f in found.worst.items():
        worst[zone(region)] = max(f.error, worst.get(zone(region), 0.0))
    suspects = [f for many in found.suspects.values() for f in many]
    undecided = sum(f.exact is None for f in suspects)
    errors = (f"{worst[i]:.0e}".replace("0e+00", "0") if i in worst else ""
              for i in range(len(ZONES)))
    return [*errors, *(str(n or "") for n in (len(suspects) - undecided, undecided))]


def row(case: Case) -> list[str]:
    """The cells of a function's line, measured."""
    points = FEW_POINTS if "hyp" in case.name or "real degrees" in case.name else TABLE_POINTS
    measured = [measure(case, np.dtype(d).type, points, TABLE_SEED) for d in DTYPES]
    return [f"`{case.name}`", " ".join(NAMES[k] for k in case.kinds),
            *itertools.chain.from_iterable(map(cells, measured))]


def table(page: str) -> dict[str, list[str]]:
    """By function the cells of its line of the page."""
    block = page.partition(BEGIN)[2].partition(END)[0]
    rows = ([c.strip() for c in line.split("|")[1:-1]] for line in block.splitlines()
            if line.startswith("| `"))
    return {cells[0].strip("`"): cells for cells in rows}


def write(case: Case) -> None:
    """Measure a function and put its line into the page."""
    measured = row(case)
    page = accuracy.PAGE.read_text()
    known = table(page) | {case.name: measured}
    lines = (f"| {' | '.join(known[case.name])} |" for case in CASES if case.name in known)
    before, _, rest = page.partition(BEGIN)
    block = "\n".join((HEADER, *lines, END))
    after = rest.partition(END)[2] or "\n"
    accuracy.PAGE.write_text(before.rstrip("\n") + "\n\n" + block + after)


def worse(case: Case, known: list[str]) -> list[str]:
    """What is worse than the page says: an error more than twice its, or a wrong result more.

    One rounding more is never worse: processors differ in whether they fuse a product and a sum.
    """
    said = []
    columns = itertools.product(DTYPES, (*ZONES, "wrong", "undecided"))
    for (dtype, name), new, old in zip(columns, row(case)[2:], known[2:], strict=True):
        allowed = float(old or 0)
        if name != "wrong":
            allowed = max(2 * allowed, float(np.finfo(dtype).eps))
        if name != "undecided" and float(new or 0) > allowed:
            said.append(f"{case.name}, {name}: {new}; the page says {old or 'nothing'}")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--points", type=int, default=400, help="per operand")
    parser.add_argument("--regions", action="store_true", help="the worst error of each region")
    parser.add_argument("--write", action="store_true", help="the table of docs/accuracy.md")
    parser.add_argument("--check", action="store_true", help="whether that table still holds")
    parser.add_argument("--dtypes", nargs="*", default=DTYPES)
    parser.add_argument("--platform", default="cpu", help="whose formulas are compiled, here")
    given = parser.parse_args()
    global PLATFORMS
    PLATFORMS = given.platform,
    signal.signal(signal.SIGVTALRM, _alarm)
    mp.mp.dps = DIGITS
    cases = [c for c in CASES if not given.names or any(name in c.name for name in given.names)]
    if given.write:
        for case in cases:
            write(case)
        return 0
    if given.check:
        known = table(accuracy.PAGE.read_text())
        said = [text for case in cases for text in worse(case, known[case.name])]
        print(*said, sep="\n")
        return int(bool(said))
    total = 0
    for case in cases:
        for dtype in given.dtypes:
            found = measure(case, np.dtype(dtype).type, given.points, given.seed)
            total += found.count()
            report(case, dtype, found, given.regions)
    print(f"{total} suspects", file=sys.stderr)
    return int(bool(total))


if __name__ == "__main__":
    sys.exit(main())
