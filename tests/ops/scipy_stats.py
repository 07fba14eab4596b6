"""Rows for olympus.scipy.stats: distributions of each kind of formula, summaries of samples."""

import numpy as np
import scipy.stats as sp

from olympus.scipy import stats
from olympus.scipy.stats import geom, multivariate_normal, norm, pareto, weibull_min

from . import Op, reals

X = reals(3, 4)
POSITIVE = reals(3, 4, low=1.2, high=4.0)
CHANCES = reals(3, 4, low=0.05, high=0.95)
TIES = np.round(X * 2)
COUNTS = np.arange(12.0).reshape(3, 4) % 5 + 1
COV = np.array([[2.0, 0.3, 0.1, 0.0], [0.3, 1.0, 0.2, 0.1], [0.1, 0.2, 1.5, 0.3],
                [0.0, 0.1, 0.3, 1.2]])


def row(name, oracle, fun, *args, label="", **settings):
    """SciPy's oracles compute in double precision: their results are as wide as the arguments."""
    def same_width(*xs):
        found = np.asarray(oracle(*xs))
        return found.astype(next(x.dtype for x in xs if hasattr(x, "dtype")))
    return Op(f"scipy.stats.{name}{label}", same_width, fun, args, **settings)


ALL = (
    row("norm.logpdf", sp.norm.logpdf, norm.logpdf, X, reals(4), POSITIVE, dtypes="fe"),
    row("pareto.logsf", sp.pareto.logsf, pareto.logsf, POSITIVE, reals(4, low=0.5, high=2.0),
        twice=False),
    row("weibull_min.ppf", sp.weibull_min.ppf, weibull_min.ppf, CHANCES,
        reals(4, low=0.5, high=2.0)),
    row("geom.logpmf", lambda p, k: sp.geom.logpmf(k, p), lambda p, k: geom.logpmf(k, p), CHANCES,
        COUNTS.astype(np.int32)),
    row("multivariate_normal.logpdf", lambda x, m: sp.multivariate_normal.logpdf(x, m, COV),
        lambda x, m: multivariate_normal.logpdf(x, m, COV.astype(m.dtype)), X, reals(4)),
    row("skew", sp.skew, stats.skew, X),
    row("zscore", lambda x: sp.zscore(x, 1), lambda x: stats.zscore(x, 1), X),
    row("rankdata", lambda x: sp.rankdata(x, axis=1), lambda x: stats.rankdata(x, axis=1), TIES,
        grad=False),
    row("mode", lambda x: sp.mode(x, 1)[0], lambda x: stats.mode(x, 1).mode, TIES, grad=False),
    row("pearsonr", lambda x, y: sp.pearsonr(x, y)[0], lambda x, y: stats.pearsonr(x, y).statistic,
        X[0], POSITIVE[1], tol=1e-4),
)
