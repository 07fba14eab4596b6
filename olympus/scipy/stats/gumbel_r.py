"""The Gumbel distribution of largest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import gumbel_r as _gumbel_r

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _gumbel_r.cdf
entropy = _gumbel_r.entropy
isf = _gumbel_r.isf
logcdf = _gumbel_r.logcdf
logpdf = _gumbel_r.logpdf
logsf = _gumbel_r.logsf
mean = _gumbel_r.mean
pdf = _gumbel_r.pdf
ppf = _gumbel_r.ppf
rvs = _gumbel_r.rvs
sf = _gumbel_r.sf
std = _gumbel_r.std
var = _gumbel_r.var

_publish(__name__)
