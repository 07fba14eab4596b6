"""Rows for the special functions of lax, with SciPy, or Python's integers, as oracle."""

import mpmath
import numpy as np
import scipy.special

from olympus import lax
from olympus._src.lax.special.incomplete_beta import beta_density_p, betainc_slope_p
from olympus._src.lax.special.incomplete_gamma import (
    gamma_density_p, gamma_slope_ratio_p, igamma_slope_p,
)
from olympus._src.lax.special.zeta import zeta_slope_p

from . import Op, reals

A = np.array([0.3, 1.0, 2.5, 7.0, 20.0, 25.0, 90.0])
X = np.array([0.2, 2.0, 1.5, 11.0, 18.0, 50.0, 8.0])
B = np.array([2.0, 0.4, 3.0, 1.5, 30.0, 0.02, 5.0])
UNIT = np.array([0.1, 0.8, 0.45, 0.9, 0.4, 0.6, 0.93])
WHOLE = np.array([-(2**31), -7, 5, 2**31 - 1, 123456789], np.int32)
COEFFS = reals(4, seed=3)


@np.vectorize
def slope(a, x):
    """dP/da, by a difference of numbers of 60 digits."""
    with mpmath.workdps(60):
        p = lambda t: mpmath.gammainc(t, 0, float(x), regularized=True)
        h = mpmath.mpf(10) ** -20
        a = mpmath.mpf(float(a))
        return float((p(a + h) - p(a - h)) / (2 * h))


def gamma_density(a, x):
    return np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))


def beta_density(a, b, x):
    return np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - scipy.special.betaln(a, b))


def sample_slope(a, x):
    return -slope(a, x) / gamma_density(a, x)


def differentiated(fun, orders):
    """The partial derivative of an mpmath function, from its values in 40 digits."""
    @np.vectorize
    def value(*args):
        with mpmath.workdps(40):
            return float(mpmath.diff(fun, tuple(mpmath.mpf(float(v)) for v in args), orders))
    return value


gamma_slope = differentiated(lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), (2, 0))
beta_slope = differentiated(lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
                            (1, 1, 0))
zeta_slope = differentiated(mpmath.zeta, (1, 0))


def high(x, y):
    return np.array([(int(p) * int(q)) >> 32 for p, q in zip(x, y, strict=True)], x.dtype)


ALL = (
    Op("lax.igamma", scipy.special.gammainc, lax.igamma, (A, X), "fdhe", each=True),
    Op("lax.igamma-keywords", scipy.special.gammainc, lambda a, x: lax.igamma(a=a, x=x), (A, X)),
    Op("lax.igamma-slope", gamma_slope, lambda a, x: igamma_slope_p.bind(a, x, order=2), (A, X),
       tol=1e-4),
    Op("lax.igammac", scipy.special.gammaincc, lambda a, x: lax.igammac(a=a, x=x), (A, X), "fdhe",
       each=True),
    Op("lax.igamma_grad_a", lambda x: slope(A, x),
       lambda x: lax.igamma_grad_a(a=A.astype(x.dtype), x=x), (X,), "fd"),
    Op("lax.igamma_grad_a-both", slope, lax.igamma_grad_a, (A, X), "f"),
    Op("lax.random_gamma_grad", lambda x: sample_slope(A[:5], x),
       lambda x: lax.random_gamma_grad(A[:5].astype(x.dtype), x), (X[:5],), "f", tol=2e-4),
    Op("lax.random_gamma_grad-both", sample_slope, lax.random_gamma_grad, (A[:4], X[:4]),
       tol=2e-4),
    Op("lax.random_gamma_grad-slope", lambda a, x: gamma_slope(a, x) / gamma_density(a, x),
       lambda a, x: gamma_slope_ratio_p.bind(a, x, order=2), (A[:5], X[:5]), tol=2e-4),
    Op("lax.betainc", lambda x: scipy.special.betainc(A, B, x),
       lambda x: lax.betainc(a=A.astype(x.dtype), b=B.astype(x.dtype), x=x), (UNIT,), "fdh"),
    Op("lax.betainc-all", scipy.special.betainc, lax.betainc, (A, B, UNIT), "fe"),
    Op("lax.betainc-slope", beta_slope, lambda a, b, x: betainc_slope_p.bind(a, b, x, m=1, n=1),
       (A, B, UNIT), tol=1e-4),
    Op("lax.igamma-density", gamma_density, lambda a, x: gamma_density_p.bind(a, x),
       (A[:5], X[:5]), tol=1e-4),
    Op("lax.betainc-density", beta_density, lambda a, b, x: beta_density_p.bind(a, b, x),
       (A[:4], B[:4], UNIT[:4]), tol=1e-4),
    Op("lax.zeta", lambda q: scipy.special.zeta(A + 1, q),
       lambda q: lax.zeta(x=(A + 1).astype(q.dtype), q=q), (X,), "fdh"),
    Op("lax.zeta-both", scipy.special.zeta, lax.zeta, (A + 1, X), "fe"),
    Op("lax.zeta-slope", zeta_slope, lambda s, q: zeta_slope_p.bind(s, q, order=1), (A + 1, X),
       tol=1e-4),
    Op("lax.mulhi", high, lax.mulhi, (WHOLE, WHOLE[::-1].copy()), grad=False),
    Op("lax.polynomial", lambda x, c: np.polyval(c, x), lax.polynomial, (reals(2, 3), COEFFS),
       "fdci"),
    Op("lax.polynomial-unroll", lambda x, c: np.polyval(c, x),
       lambda x, c: lax.polynomial(x=x, coeffs=c, unroll=2), (reals(5, low=-1.2, high=1.2),
                                                              reals(70, low=-1, high=1)), "f"),
)
