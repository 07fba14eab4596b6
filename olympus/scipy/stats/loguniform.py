"""The log-uniform distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import loguniform as _loguniform

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _loguniform.cdf
entropy = _loguniform.entropy
isf = _loguniform.isf
logcdf = _loguniform.logcdf
logpdf = _loguniform.logpdf
logsf = _loguniform.logsf
mean = _loguniform.mean
pdf = _loguniform.pdf
ppf = _loguniform.ppf
rvs = _loguniform.rvs
sf = _loguniform.sf
std = _loguniform.std
var = _loguniform.var

_publish(__name__)
