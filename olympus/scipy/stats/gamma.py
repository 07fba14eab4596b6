"""The gamma distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import gamma as _gamma

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _gamma.cdf
entropy = _gamma.entropy
isf = _gamma.isf
logcdf = _gamma.logcdf
logpdf = _gamma.logpdf
logsf = _gamma.logsf
mean = _gamma.mean
pdf = _gamma.pdf
ppf = _gamma.ppf
rvs = _gamma.rvs
sf = _gamma.sf
std = _gamma.std
var = _gamma.var

_publish(__name__)
