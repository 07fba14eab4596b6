"""The log-normal distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import lognorm as _lognorm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _lognorm.cdf
entropy = _lognorm.entropy
isf = _lognorm.isf
logcdf = _lognorm.logcdf
logpdf = _lognorm.logpdf
logsf = _lognorm.logsf
mean = _lognorm.mean
pdf = _lognorm.pdf
ppf = _lognorm.ppf
rvs = _lognorm.rvs
sf = _lognorm.sf
std = _lognorm.std
var = _lognorm.var

_publish(__name__)
