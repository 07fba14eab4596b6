"""The exponential distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import expon as _expon

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _expon.cdf
entropy = _expon.entropy
isf = _expon.isf
logcdf = _expon.logcdf
logpdf = _expon.logpdf
logsf = _expon.logsf
mean = _expon.mean
pdf = _expon.pdf
ppf = _expon.ppf
rvs = _expon.rvs
sf = _expon.sf
std = _expon.std
var = _expon.var

_publish(__name__)
