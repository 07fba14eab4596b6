"""The logistic distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import logistic as _logistic

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _logistic.cdf
entropy = _logistic.entropy
isf = _logistic.isf
logcdf = _logistic.logcdf
logpdf = _logistic.logpdf
logsf = _logistic.logsf
mean = _logistic.mean
pdf = _logistic.pdf
ppf = _logistic.ppf
rvs = _logistic.rvs
sf = _logistic.sf
std = _logistic.std
var = _logistic.var

_publish(__name__)
