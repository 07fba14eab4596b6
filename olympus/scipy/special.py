"""Special functions of SciPy, elementwise, differentiable to every order."""

from .._src.base.util import publish as _publish
from .._src.nn.activations import logsumexp
from .._src.scipy.special.entropy import (
    boxcox,
    boxcox1p,
    entr,
    expit,
    exprel,
    huber,
    inv_boxcox,
    inv_boxcox1p,
    kl_div,
    log_expit,
    log_softmax,
    logit,
    pseudo_huber,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)
from .._src.scipy.special.gammas import (
    beta,
    betainc,
    betaincc,
    betaln,
    digamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    polygamma,
)
from .._src.scipy.special.normal import (
    dawsn,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfi,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
    ndtri_exp,
    voigt_profile,
    wofz,
)

__all__ = [
    "beta", "betainc", "betaincc", "betaln", "boxcox", "boxcox1p", "dawsn", "digamma", "entr",
    "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "expit", "exprel", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "huber", "inv_boxcox", "inv_boxcox1p", "kl_div",
    "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "ndtri_exp",
    "polygamma", "pseudo_huber", "rel_entr", "softmax", "voigt_profile", "wofz", "xlog1py",
    "xlogy",
]

_publish(__name__)
