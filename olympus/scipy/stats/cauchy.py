"""The Cauchy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import cauchy as _cauchy

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _cauchy.cdf
entropy = _cauchy.entropy
isf = _cauchy.isf
logcdf = _cauchy.logcdf
logpdf = _cauchy.logpdf
logsf = _cauchy.logsf
mean = _cauchy.mean
pdf = _cauchy.pdf
ppf = _cauchy.ppf
rvs = _cauchy.rvs
sf = _cauchy.sf
std = _cauchy.std
var = _cauchy.var

_publish(__name__)
