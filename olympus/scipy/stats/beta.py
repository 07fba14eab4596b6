"""The beta distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import beta as _beta

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _beta.cdf
entropy = _beta.entropy
isf = _beta.isf
logcdf = _beta.logcdf
logpdf = _beta.logpdf
logsf = _beta.logsf
mean = _beta.mean
pdf = _beta.pdf
ppf = _beta.ppf
rvs = _beta.rvs
sf = _beta.sf
std = _beta.std
var = _beta.var

_publish(__name__)
