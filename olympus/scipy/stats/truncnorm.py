"""The normal distribution cut off at two ends."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import truncnorm as _truncnorm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _truncnorm.cdf
entropy = _truncnorm.entropy
isf = _truncnorm.isf
logcdf = _truncnorm.logcdf
logpdf = _truncnorm.logpdf
logsf = _truncnorm.logsf
mean = _truncnorm.mean
pdf = _truncnorm.pdf
ppf = _truncnorm.ppf
rvs = _truncnorm.rvs
sf = _truncnorm.sf
std = _truncnorm.std
var = _truncnorm.var

_publish(__name__)
