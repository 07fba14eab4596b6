"""The logistic distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import logistic as _logistic

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _logistic

_publish(__name__)
