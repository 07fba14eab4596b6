"""The Rayleigh distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import rayleigh as _rayleigh

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _rayleigh.cdf
entropy = _rayleigh.entropy
isf = _rayleigh.isf
logcdf = _rayleigh.logcdf
logpdf = _rayleigh.logpdf
logsf = _rayleigh.logsf
mean = _rayleigh.mean
pdf = _rayleigh.pdf
ppf = _rayleigh.ppf
rvs = _rayleigh.rvs
sf = _rayleigh.sf
std = _rayleigh.std
var = _rayleigh.var

_publish(__name__)
