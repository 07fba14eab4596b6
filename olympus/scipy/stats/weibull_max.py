"""The Weibull distribution of largest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import weibull_max as _weibull_max

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _weibull_max

_publish(__name__)
