"""The inverse gamma distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import invgamma as _invgamma

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _invgamma.cdf
entropy = _invgamma.entropy
isf = _invgamma.isf
logcdf = _invgamma.logcdf
logpdf = _invgamma.logpdf
logsf = _invgamma.logsf
mean = _invgamma.mean
pdf = _invgamma.pdf
ppf = _invgamma.ppf
rvs = _invgamma.rvs
sf = _invgamma.sf
std = _invgamma.std
var = _invgamma.var

_publish(__name__)
