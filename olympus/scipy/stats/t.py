"""The Student t distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import t as _t

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _t.cdf
entropy = _t.entropy
isf = _t.isf
logcdf = _t.logcdf
logpdf = _t.logpdf
logsf = _t.logsf
mean = _t.mean
pdf = _t.pdf
ppf = _t.ppf
rvs = _t.rvs
sf = _t.sf
std = _t.std
var = _t.var

_publish(__name__)
