"""Rows for olympus.scipy.special, with SciPy as oracle."""

import numpy as np
import scipy.special as sp

from olympus.scipy import special

from . import Op

P = np.array([0.3, 1.2, 2.7, 0.45, 5.5])
Q = np.array([0.5, 1.1, 0.8, 3.5, 2.0])
X = np.array([-1.9, -0.35, 0.6, 1.4, 2.8])
UNIT = np.array([0.02, 0.35, 0.6, 0.81, 0.97])


def row(name, *args, dtypes="f", tol=2e-5, **settings):
    """A row of a function that SciPy has under the same name."""
    def oracle(*xs):
        return getattr(sp, name)(*(np.asarray(x, "f8") for x in xs)).astype(xs[0].dtype)
    return Op(f"special.{name}", oracle, getattr(special, name), args, dtypes, tol=tol, **settings)


def bessel(name):
    """A row of a function of the order 1.3, in which there is no derivative."""
    ours, theirs = getattr(special, name), getattr(sp, name)
    return Op(f"special.{name}", lambda x: theirs(1.3, x).astype(x.dtype),
              lambda x: ours(1.3, x), (P,), tol=2e-5)


def pair(name, x):
    """A row of a function of two results: a sum that tells them apart."""
    ours, theirs = getattr(special, name), getattr(sp, name)
    return Op(f"special.{name}", lambda x: theirs(x)[0].astype(x.dtype) + 2 * theirs(x)[1].astype(
        x.dtype), lambda x: ours(x)[0] + 2 * ours(x)[1], (x,), tol=2e-5)


ALL = (
    row("xlogy", P, Q, dtypes="fh", each=True), row("rel_entr", P, Q), row("kl_div", P, Q),
    row("entr", P), row("boxcox", P, Q), row("logit", UNIT, each=True), row("exprel", X),
    row("erfc", X, dtypes="fd", each=True), row("erfcx", X, dtypes="fde", each=True),
    row("dawsn", X), row("ndtri", UNIT, dtypes="fd"),
    row("log_ndtr", X, dtypes="fdh", each=True), row("erfcinv", 2 * UNIT), row("gammaln", P),
    row("digamma", P, dtypes="fd"), row("beta", P, Q, twice=False),
    row("betaln", P, Q, twice=False), row("gamma", P), row("poch", P, Q, twice=False),
    row("binom", P, Q, twice=False), row("expi", P), row("spence", P), row("zeta", 1.0 + P),
    row("owens_t", X, Q), row("ellipkinc", X, UNIT), row("ellipeinc", X, UNIT),
    row("elliprf", P, Q, UNIT), row("elliprc", P, Q), row("elliprd", P, Q, UNIT),
    Op("special.ellipj", lambda u, m: sp.ellipj(u, m)[1].astype(u.dtype),
       lambda u, m: special.ellipj(u, m)[1], (X, UNIT), tol=2e-5),
    *map(bessel, ("jv", "yv", "iv", "ive", "kv", "kve")),
    Op("special.airy", lambda x: sp.airy(x)[2].astype(x.dtype), lambda x: special.airy(x)[2], (X,)),
    row("ellipk", UNIT), row("ellipe", UNIT),
    row("j1", X), row("y0", P), row("k1e", P), row("i1", X),
    pair("fresnel", X), pair("sici", P),
    Op("special.jn", lambda x: sp.jn(3, x).astype(x.dtype), lambda x: special.jn(3, x), (X,)),
    Op("special.expn", lambda x: sp.expn(3, x).astype(x.dtype), lambda x: special.expn(3, x), (P,)),
    Op("special.hyp1f1", lambda x: sp.hyp1f1(P, Q, x).astype(x.dtype),
       lambda x: special.hyp1f1(P.astype(x.dtype), Q.astype(x.dtype), x), (X,)),
    Op("special.sph_harm_y", lambda x: sp.sph_harm_y(3, 1, x, 0.0).real.astype(x.dtype),
       lambda x: special.sph_harm_y(3, 1, x, 0.0).real, (UNIT,)),
    row("gammaincinv", P, UNIT, twice=False), row("betaincinv", P, Q, UNIT, twice=False),
    row("stdtr", P, X, twice=False), row("stdtrit", P, UNIT, twice=False),
    row("kolmogorov", P, twice=False),
)
