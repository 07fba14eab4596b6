"""Rows for the special functions of lax, with SciPy, or Python's integers, as oracle."""

import mpmath
import numpy as np
import scipy.special

from olympus import lax

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


def sample_slope(a, x):
    density = np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))
    return -slope(a, x) / density


def high(x, y):
    return np.array([(int(p) * int(q)) >> 32 for p, q in zip(x, y, strict=True)], x.dtype)


ALL = (
    Op("lax.igamma", scipy.special.gammainc, lax.igamma, (A, X), "fdhe", each=True,
       twice=False),     # its derivative in a has none in closed form
    Op("lax.igamma-keywords", scipy.special.gammainc, lambda a, x: lax.igamma(a=a, x=x), (A, X),
       twice=False),
    Op("lax.igammac", scipy.special.gammaincc, lambda a, x: lax.igammac(a=a, x=x), (A, X), "fdhe",
       each=True, twice=False),
    Op("lax.igamma_grad_a", lambda x: slope(A, x),
       lambda x: lax.igamma_grad_a(a=A.astype(x.dtype), x=x), (X,), "fd"),
    Op("lax.igamma_grad_a-both", slope, lax.igamma_grad_a, (A, X), "f", grad=False),
    Op("lax.random_gamma_grad", lambda x: sample_slope(A[:5], x),
       lambda x: lax.random_gamma_grad(A[:5].astype(x.dtype), x), (X[:5],), "f", tol=2e-4),
    Op("lax.betainc", lambda x: scipy.special.betainc(A, B, x),
       lambda x: lax.betainc(a=A.astype(x.dtype), b=B.astype(x.dtype), x=x), (UNIT,), "fdh"),
    Op("lax.betainc-all", scipy.special.betainc, lax.betainc, (A, B, UNIT), "fe", grad=False),
    Op("lax.zeta", lambda q: scipy.special.zeta(A + 1, q),
       lambda q: lax.zeta(x=(A + 1).astype(q.dtype), q=q), (X,), "fdh"),
    Op("lax.zeta-both", scipy.special.zeta, lax.zeta, (A + 1, X), "fe", grad=False),
    Op("lax.mulhi", high, lax.mulhi, (WHOLE, WHOLE[::-1].copy()), grad=False),
    Op("lax.polynomial", lambda x, c: np.polyval(c, x), lax.polynomial, (reals(2, 3), COEFFS),
       "fdci"),
    Op("lax.polynomial-unroll", lambda x, c: np.polyval(c, x),
       lambda x, c: lax.polynomial(x=x, coeffs=c, unroll=2), (reals(5, low=-1.2, high=1.2),
                                                              reals(70, low=-1, high=1)), "f"),
)
