"""The Weibull distribution of smallest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import weibull_min as _weibull_min

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _weibull_min

_publish(__name__)
