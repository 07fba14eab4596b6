"""Special functions of SciPy, elementwise, differentiable to every order."""

from .._src.base.util import publish_bounded as _publish
from .._src.nn.activations import logsumexp
from .._src.scipy.special.airy import airy
from .._src.scipy.special.bessel import (
    bessel_jn, i0, i0e, i1, i1e, j0, j1, jn, k0, k0e, k1, k1e, kn, y0, y1, yn,
)
from .._src.scipy.special.bessel_real import iv, ive, jv, kv, kve, yv
from .._src.scipy.special.carlson import ellipeinc, ellipj, ellipkinc, elliprc, elliprd, elliprf
from .._src.scipy.special.combinatorics import (
    bernoulli, binom, comb, factorial, multigammaln, perm, poch, zeta, zetac,
)
from .._src.scipy.special.distributions import (
    bdtr, bdtrc, chdtr, chdtrc, chdtri, fdtr, fdtrc, fdtri, gdtr, gdtrc, kolmogorov, nbdtr, nbdtrc,
    pdtr, pdtrc, stdtr, stdtrit,
)
from .._src.scipy.special.elliptic import ellipe, ellipk, ellipkm1
from .._src.scipy.special.entropy import (
    boxcox, boxcox1p, entr, expit, exprel, huber, inv_boxcox, inv_boxcox1p, kl_div, log_expit,
    log_softmax, logit, pseudo_huber, rel_entr, softmax, xlog1py, xlogy,
)
from .._src.scipy.special.gammas import (
    beta, betainc, betaincc, betaln, digamma, gamma, gammainc, gammaincc, gammaln, gammasgn,
    loggamma, polygamma, rgamma,
)
from .._src.scipy.special.gauss import hyp2f1
from .._src.scipy.special.harmonics import lpmn, lpmn_values, sph_harm_y
from .._src.scipy.special.hypergeometric import hyp1f1
from .._src.scipy.special.integrals import exp1, expi, expn, fresnel, owens_t, shichi, sici, spence
from .._src.scipy.special.inverses import (
    betainccinv, betaincinv, gammainccinv, gammaincinv, lambertw,
)
from .._src.scipy.special.normal import (
    dawsn, erf, erfc, erfcinv, erfcx, erfi, erfinv, log_ndtr, ndtr, ndtri, ndtri_exp, voigt_profile,
    wofz,
)
from .._src.scipy.special.orthogonal import (
    eval_chebyt, eval_chebyu, eval_gegenbauer, eval_genlaguerre, eval_hermite, eval_hermitenorm,
    eval_laguerre, eval_legendre,
)

__all__ = [
    "airy", "bdtr", "bdtrc", "bernoulli", "bessel_jn", "beta", "betainc", "betaincc",
    "betainccinv", "betaincinv", "betaln", "binom", "boxcox", "boxcox1p", "chdtr", "chdtrc",
    "chdtri", "comb", "dawsn", "digamma", "ellipe", "ellipeinc", "ellipj", "ellipk",
    "ellipkinc", "ellipkm1", "elliprc", "elliprd", "elliprf", "entr", "erf", "erfc", "erfcinv",
    "erfcx", "erfi", "erfinv", "eval_chebyt", "eval_chebyu", "eval_gegenbauer",
    "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_laguerre", "eval_legendre",
    "exp1", "expi", "expit", "expn", "exprel", "factorial", "fdtr", "fdtrc", "fdtri",
    "fresnel", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln",
    "gammasgn", "gdtr", "gdtrc", "huber", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e",
    "inv_boxcox", "inv_boxcox1p", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k0e", "k1",
    "k1e", "kl_div", "kn", "kolmogorov", "kv", "kve", "lambertw", "log_expit", "log_ndtr",
    "log_softmax", "loggamma", "logit", "logsumexp", "lpmn", "lpmn_values", "multigammaln",
    "nbdtr", "nbdtrc", "ndtr", "ndtri", "ndtri_exp", "owens_t", "pdtr", "pdtrc", "perm",
    "poch", "polygamma", "pseudo_huber", "rel_entr", "rgamma", "shichi", "sici", "softmax",
    "spence", "sph_harm_y", "stdtr", "stdtrit", "voigt_profile", "wofz", "xlog1py", "xlogy",
    "y0", "y1", "yn", "yv", "zeta", "zetac",
]

_publish(__name__)
