"""The chi-square distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import chi2 as _chi2

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _chi2.cdf
entropy = _chi2.entropy
isf = _chi2.isf
logcdf = _chi2.logcdf
logpdf = _chi2.logpdf
logsf = _chi2.logsf
mean = _chi2.mean
pdf = _chi2.pdf
ppf = _chi2.ppf
rvs = _chi2.rvs
sf = _chi2.sf
std = _chi2.std
var = _chi2.var

_publish(__name__)
