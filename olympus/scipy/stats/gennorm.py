"""The generalised normal distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import gennorm as _gennorm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _gennorm.cdf
entropy = _gennorm.entropy
isf = _gennorm.isf
logcdf = _gennorm.logcdf
logpdf = _gennorm.logpdf
logsf = _gennorm.logsf
mean = _gennorm.mean
pdf = _gennorm.pdf
ppf = _gennorm.ppf
rvs = _gennorm.rvs
sf = _gennorm.sf
std = _gennorm.std
var = _gennorm.var

_publish(__name__)
