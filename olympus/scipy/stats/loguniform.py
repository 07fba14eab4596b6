"""The log-uniform distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import loguniform as _loguniform

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _loguniform

_publish(__name__)
