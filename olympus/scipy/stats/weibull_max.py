"""The Weibull distribution of largest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import weibull_max as _weibull_max

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _weibull_max.cdf
entropy = _weibull_max.entropy
isf = _weibull_max.isf
logcdf = _weibull_max.logcdf
logpdf = _weibull_max.logpdf
logsf = _weibull_max.logsf
mean = _weibull_max.mean
pdf = _weibull_max.pdf
ppf = _weibull_max.ppf
rvs = _weibull_max.rvs
sf = _weibull_max.sf
std = _weibull_max.std
var = _weibull_max.var

_publish(__name__)
