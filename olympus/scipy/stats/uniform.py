"""The uniform distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import uniform as _uniform

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _uniform.cdf
entropy = _uniform.entropy
isf = _uniform.isf
logcdf = _uniform.logcdf
logpdf = _uniform.logpdf
logsf = _uniform.logsf
mean = _uniform.mean
pdf = _uniform.pdf
ppf = _uniform.ppf
rvs = _uniform.rvs
sf = _uniform.sf
std = _uniform.std
var = _uniform.var

_publish(__name__)
