"""The Maxwell distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import maxwell as _maxwell

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _maxwell.cdf
entropy = _maxwell.entropy
isf = _maxwell.isf
logcdf = _maxwell.logcdf
logpdf = _maxwell.logpdf
logsf = _maxwell.logsf
mean = _maxwell.mean
pdf = _maxwell.pdf
ppf = _maxwell.ppf
rvs = _maxwell.rvs
sf = _maxwell.sf
std = _maxwell.std
var = _maxwell.var

_publish(__name__)
