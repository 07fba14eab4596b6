"""The half-normal distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import halfnorm as _halfnorm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _halfnorm.cdf
entropy = _halfnorm.entropy
isf = _halfnorm.isf
logcdf = _halfnorm.logcdf
logpdf = _halfnorm.logpdf
logsf = _halfnorm.logsf
mean = _halfnorm.mean
pdf = _halfnorm.pdf
ppf = _halfnorm.ppf
rvs = _halfnorm.rvs
sf = _halfnorm.sf
std = _halfnorm.std
var = _halfnorm.var

_publish(__name__)
