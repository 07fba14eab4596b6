"""Rows for the rest of olympus.scipy.special, slow ones, with SciPy as oracle."""

import scipy.special as sp

from olympus.scipy import special

from . import Op
from .scipy_special import UNIT, P, Q, X, pair, row


def last(name, *given):
    """A row of a function of its last argument, with these before, in which it has no slope."""
    ours, theirs = getattr(special, name), getattr(sp, name)
    *numbers, x = given
    return Op(f"special.{name}", lambda x: theirs(*numbers, x).astype(x.dtype),
              lambda x: ours(*numbers, x), (x,), tol=2e-5)


def real(name, x):
    """A row of the real part of a function whose results are complex."""
    ours, theirs = getattr(special, name), getattr(sp, name)
    return Op(f"special.{name}", lambda x: theirs(x).real.astype(x.dtype),
              lambda x: ours(x).real, (x,), tol=2e-5)


ALL = (
    row("boxcox1p", P, Q), row("inv_boxcox", UNIT, Q), row("inv_boxcox1p", UNIT, Q),
    row("betainccinv", P, Q, UNIT, twice=False), row("gammainccinv", P, UNIT, twice=False),
    pair("shichi", P), row("ellipkm1", UNIT), row("erfi", X), row("erfinv", UNIT), row("exp1", P),
    row("gammasgn", X), row("huber", P, X), row("pseudo_huber", P, X), row("j0", X), row("k0", P),
    row("k0e", P), row("k1", P), row("y1", P), row("loggamma", P), row("ndtr", X),
    row("ndtri_exp", -P), row("rgamma", P), row("hyp1f1", P, Q, X, twice=False),
    last("hyp2f1", 1.5, 0.7, 2.3, 0.8 * UNIT),
    last("eval_chebyt", 4, UNIT), last("eval_gegenbauer", 4, 1.5, UNIT),
    last("eval_genlaguerre", 4, 1.5, UNIT), last("eval_hermite", 3, X),
    last("eval_hermitenorm", 3, X), last("kn", 2, P), last("yn", 2, P), real("lambertw", P),
    real("wofz", X),
)
