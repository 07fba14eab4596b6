"""The Laplace distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import laplace as _laplace

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _laplace.cdf
entropy = _laplace.entropy
isf = _laplace.isf
logcdf = _laplace.logcdf
logpdf = _laplace.logpdf
logsf = _laplace.logsf
mean = _laplace.mean
pdf = _laplace.pdf
ppf = _laplace.ppf
rvs = _laplace.rvs
sf = _laplace.sf
std = _laplace.std
var = _laplace.var

_publish(__name__)
