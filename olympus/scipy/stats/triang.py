"""The triangular distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import triang as _triang

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _triang.cdf
entropy = _triang.entropy
isf = _triang.isf
logcdf = _triang.logcdf
logpdf = _triang.logpdf
logsf = _triang.logsf
mean = _triang.mean
pdf = _triang.pdf
ppf = _triang.ppf
rvs = _triang.rvs
sf = _triang.sf
std = _triang.std
var = _triang.var

_publish(__name__)
