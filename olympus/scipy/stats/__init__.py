"""Probability distributions, each a module with functions, and statistics of samples.

A distribution's module is imported when it is first named.
"""

import typing as _typing

from ..._src.base.util import publish_bounded as _publish
from ..._src.base.util import submodules as _submodules
from ..._src.scipy.stats.inference import (
    linregress, pearsonr, spearmanr, ttest_1samp, ttest_ind, ttest_rel,
)
from ..._src.scipy.stats.kde import gaussian_kde
from ..._src.scipy.stats.moments import (
    describe, entropy, gmean, hmean, iqr, kurtosis, median_abs_deviation, moment, skew, variation,
    zscore,
)
from ..._src.scipy.stats.ranks import mode, rankdata, sem

__all__ = [
    "describe", "entropy", "gaussian_kde", "gmean", "hmean", "iqr", "kurtosis", "linregress",
    "median_abs_deviation", "mode", "moment", "pearsonr", "rankdata", "sem", "skew", "spearmanr",
    "ttest_1samp", "ttest_ind", "ttest_rel", "variation", "zscore",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        bernoulli as bernoulli, beta as beta, betabinom as betabinom, binom as binom,
        cauchy as cauchy, chi2 as chi2, dirichlet as dirichlet, expon as expon, f as f,
        gamma as gamma, gennorm as gennorm, geom as geom, gumbel_l as gumbel_l,
        gumbel_r as gumbel_r, halfcauchy as halfcauchy, halfnorm as halfnorm,
        hypergeom as hypergeom, invgamma as invgamma, laplace as laplace, levy as levy,
        logistic as logistic, lognorm as lognorm, loguniform as loguniform, maxwell as maxwell,
        multinomial as multinomial, multivariate_normal as multivariate_normal, nbinom as nbinom,
        norm as norm, pareto as pareto, poisson as poisson, randint as randint,
        rayleigh as rayleigh, skellam as skellam, t as t, triang as triang,
        truncnorm as truncnorm, uniform as uniform, vonmises as vonmises,
        weibull_max as weibull_max, weibull_min as weibull_min, wrapcauchy as wrapcauchy,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
