"""The normal distribution cut off at two ends."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import truncnorm as _truncnorm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _truncnorm

_publish(__name__)
