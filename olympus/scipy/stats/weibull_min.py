"""The Weibull distribution of smallest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import weibull_min as _weibull_min

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _weibull_min.cdf
entropy = _weibull_min.entropy
isf = _weibull_min.isf
logcdf = _weibull_min.logcdf
logpdf = _weibull_min.logpdf
logsf = _weibull_min.logsf
mean = _weibull_min.mean
pdf = _weibull_min.pdf
ppf = _weibull_min.ppf
rvs = _weibull_min.rvs
sf = _weibull_min.sf
std = _weibull_min.std
var = _weibull_min.var

_publish(__name__)
