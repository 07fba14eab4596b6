"""The normal distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import norm as _norm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _norm.cdf
entropy = _norm.entropy
isf = _norm.isf
logcdf = _norm.logcdf
logpdf = _norm.logpdf
logsf = _norm.logsf
mean = _norm.mean
pdf = _norm.pdf
ppf = _norm.ppf
rvs = _norm.rvs
sf = _norm.sf
std = _norm.std
var = _norm.var

_publish(__name__)
