"""The F distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import f as _f

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _f.cdf
entropy = _f.entropy
isf = _f.isf
logcdf = _f.logcdf
logpdf = _f.logpdf
logsf = _f.logsf
mean = _f.mean
pdf = _f.pdf
ppf = _f.ppf
rvs = _f.rvs
sf = _f.sf
std = _f.std
var = _f.var

_publish(__name__)
